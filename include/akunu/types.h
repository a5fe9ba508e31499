/* The plain types of akunu's C API. See akunu.h, which includes this file. */
#ifndef AKUNU_TYPES_H
#define AKUNU_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a call. Behind anything but AKUNU_OK, akunu_last_error() says what, where, and what
 * to do. */
typedef enum akunu_status {
  AKUNU_OK = 0,
  AKUNU_ERROR_ARGUMENT = 1,    /* an argument makes no sense, or names no file */
  AKUNU_ERROR_HANDLE = 2,      /* a handle is null, closed, or of another kind */
  AKUNU_ERROR_FILE = 3,        /* a file contradicts its format */
  AKUNU_ERROR_UNSUPPORTED = 4, /* sound, but akunu does not have it */
  AKUNU_ERROR_DEVICE = 5,      /* the device refused or failed */
  AKUNU_ERROR_MEMORY = 6,      /* there is not enough memory */
  AKUNU_ERROR_CONTEXT = 7,     /* the prompt and what shall follow do not fit into the context */
  AKUNU_ERROR_BUSY = 8,        /* as many requests wait as may, or a session is in use */
  AKUNU_ERROR_SPACE = 9,       /* the buffer is too small; the size it needs was written */
  AKUNU_ERROR_INTERNAL = 10    /* a mistake of akunu's: please report it */
} akunu_status;

/* Handles are numbers, not addresses: a closed one is refused, never followed. Null is none. */
typedef struct akunu_model_s* akunu_model;
typedef struct akunu_generation_s* akunu_generation;
typedef struct akunu_tokenizer_s* akunu_tokenizer;
typedef struct akunu_gguf_s* akunu_gguf;
typedef struct akunu_session_s* akunu_session;
typedef struct akunu_transcription_s* akunu_transcription;

/* Every struct begins with its size, `sizeof` of it as the caller was compiled: a library that is
 * newer or older reads and writes no more than both know. Zero in any other field is its default. */

/* A low-rank adapter: what texts call it, and its GGUF file or PEFT folder. These two fields for good. */
typedef struct akunu_adapter {
  const char* name;
  const char* path;
} akunu_adapter;

/* An adapter of one text, and how much of it. These two fields for good. */
typedef struct akunu_adapter_weight {
  const char* name;
  float weight; /* -10000 to 10000; 1: as it was trained */
} akunu_adapter_weight;

/* What is added to the logit of a token; -INFINITY bans it. These two fields for good. */
typedef struct akunu_token_bias {
  uint32_t token;
  float bias;
} akunu_token_bias;

typedef struct akunu_load_options {
  size_t size;
  const char* device; /* "auto" (the default), "cpu", "cuda", "metal" */
  uint32_t context;   /* positions per text; 0: what the model was trained for, or what fits */
  uint32_t threads;   /* CPU workers; 0: as many as the process may use */
  uint64_t kv_memory; /* bytes for the cache; 0: one full context */
  const char*
      kv_type; /* of keys and values: "f16" (the default), "f32", "q8_0", "q4_0" (keys q8_0) */
  bool no_prefix_cache;          /* texts that begin alike share nothing */
  const akunu_adapter* adapters; /* what texts may ask for, each name once */
  size_t n_adapters;
  const char* draft;   /* a smaller model of the same vocabulary, for texts with `speculate` */
  uint64_t gpu_memory; /* bytes of a GPU's own memory; 0: what is free */
  uint32_t gpus; /* GPUs of this host (CUDA) that compute the model together, up to 8; 0: one */
  bool prediction_head; /* the model's own drafts, for texts with `speculate` */
  /* written by tools/options.py: load */
  /* end of load */
} akunu_load_options;

typedef struct akunu_model_info {
  size_t size;
  char architecture[32]; /* "llama", as the file has it */
  uint32_t n_layers;
  uint32_t dim;
  uint32_t n_heads;
  uint32_t n_kv_heads;
  uint32_t vocab_size;
  uint32_t trained_context; /* positions */
  uint32_t context;         /* positions that a text may have here */
  uint32_t embedding_dim;   /* numbers of an embedding; 0: the model generates text */
  uint64_t memory_bytes;    /* of the device, all labels together */
  uint64_t mapped_bytes;    /* of the file, read where they lie */
  char name[64];            /* the model's own, cut; "" where the file has none */
  uint32_t head_dim;        /* where layers differ (as in heads), the most of any */
  uint32_t ffn_dim;         /* likewise */
  uint32_t rope_dim;        /* numbers of a head that are rotated */
  float rope_theta;
  float rope_theta_windowed; /* of layers with a window, where it is another; 0: it is not */
  float norm_epsilon;
  uint32_t window;      /* positions that layers with a window see; 0: there are none */
  uint32_t latent_rank; /* of latent attention; 0: it has keys and values */
  uint32_t n_experts;   /* 0: no mixture of experts */
  uint32_t n_experts_chosen;
  uint32_t expert_dim; /* feed-forward width of each */
  uint32_t n_mels;     /* bands of speech that it hears; 0: it is a model of text */
} akunu_model_info;

/* How tokens are chosen. All zero: always the likeliest one. */
typedef struct akunu_sampling {
  size_t size;
  /* written by tools/options.py: sampling */
  /* 0 (the default) takes the most likely words; higher surprises more. */
  float temperature;
  /* Choose among this many likely tokens; 0 (the default): among all. */
  uint32_t top_k;
  /* Choose among the fewest tokens that reach this sum; default: 1, all. */
  float top_p;
  /* Drop tokens less likely than this share of the likeliest; default: 0, none. */
  float min_p;
  /* Above 1 (the default): what was said lately is less likely. */
  float repetition_penalty;
  /* Above 0 (the default): the less likely, the more often it was said. */
  float frequency_penalty;
  /* Above 0 (the default): less likely, however often it was said. */
  float presence_penalty;
  /* The same seed gives the same text. */
  uint64_t seed;
  /* Choose among the tokens of the most usual surprise, up to this sum; default: 1, all. */
  float typical_p;
  /* Drop logits so many standard deviations below the largest; default: 0, none. */
  float top_n_sigma;
  /* How often the likeliest tokens are dropped, for variety; default: 0, never. */
  float xtc_probability;
  /* Which those are: all that are this likely but the last of them; default: 0.1. */
  float xtc_threshold;
  /* Penalties look at so many of the latest tokens; default: 64. */
  uint32_t penalty_window;
  /* The opposite of: Whether penalties and DRY look at the prompt too, or at the reply alone. */
  bool no_prompt_penalties;
  /* DRY: above 0 (the default), going on as it was said before is less likely. */
  float dry_multiplier;
  /* DRY: each further token of a repetition costs so many times more; default: 1.75. */
  float dry_base;
  /* DRY: so many tokens may be repeated before it costs something; default: 2. */
  uint32_t dry_allowed_length;
  /* DRY looks at so many of the latest tokens; default: all. */
  uint32_t dry_penalty_last_n;
  /* What is done to the logits, in which order; what is left out is not done. Names between
   * commas; null: all, in the usual order. */
  const char* samplers;
  /* The least tokens to generate: the model cannot end its text before. */
  uint32_t min_tokens;
  /* end of sampling */
} akunu_sampling;

typedef struct akunu_generate_options {
  size_t size;
  uint32_t max_tokens;            /* 0: what the context holds */
  const akunu_sampling* sampling; /* null: greedy */
  const uint32_t* stop_ids;       /* after these the text ends, beside the model's own */
  size_t n_stop_ids;
  bool ignore_stops;                    /* the model's own stop tokens do not end the text */
  const akunu_adapter_weight* adapters; /* those of this text, each once */
  size_t n_adapters;
  bool speculate; /* tokens are drafted, by `draft` or from the text: often faster, never others */
  /* What the text must obey: GBNF, a JSON schema, a regular expression. Not in the C library: any of them is
   * AKUNU_ERROR_UNSUPPORTED. */
  const char* grammar;
  const char* json_schema;
  const char* regex;
  bool ignore_eos;                    /* the model's own stop tokens cannot be chosen */
  const akunu_token_bias* logit_bias; /* each token once */
  size_t n_logit_bias;
  /* Texts beyond which DRY sees no repetition; null: a newline, a colon, a quote and a star. */
  const char* const* dry_sequence_breakers;
  size_t n_dry_sequence_breakers;
} akunu_generate_options;

/* A turn of a conversation. This struct has these two fields for good: conversations are arrays of it. */
typedef struct akunu_message {
  const char* role; /* "system", "user", "assistant" */
  const char* content;
} akunu_message;

typedef struct akunu_chat_options {
  size_t size;
  bool no_generation_prompt; /* nothing opens the model's own turn at the end */
  bool no_thinking;          /* of models that think and can do without: Qwen 3, SmolLM 3 */
} akunu_chat_options;

typedef enum akunu_finish {
  AKUNU_FINISH_NONE = 0, /* still under way */
  AKUNU_FINISH_STOP = 1,
  AKUNU_FINISH_LENGTH = 2,
  AKUNU_FINISH_CANCELLED = 3
} akunu_finish;

typedef struct akunu_generation_stats {
  size_t size;
  akunu_finish finish;
  uint32_t prompt_tokens;
  uint32_t cached_tokens; /* of the prompt, those that were in the cache */
  uint32_t completion_tokens;
  double prompt_seconds;     /* from the request to the first token */
  double completion_seconds; /* from the first token to the last */
  uint32_t drafted_tokens;
} akunu_generation_stats;

typedef struct akunu_tensor_info {
  size_t size;
  const char* name; /* lives as long as the file's handle */
  const char* type; /* "Q4_K"; likewise */
  uint32_t n_dims;
  uint64_t dims[4]; /* dims[0] is contiguous; 1 where absent */
  uint64_t n_bytes;
} akunu_tensor_info;

typedef struct akunu_profile_options {
  size_t size;
  const char* device;   /* as akunu_load_options has it */
  uint32_t threads;     /* likewise */
  uint32_t n_prompt;    /* rows of a prompt in the step; 0: one row that generates */
  uint32_t depth;       /* positions before them */
  uint32_t repetitions; /* 0: 5 */
} akunu_profile_options;

/* A command of a step, "layer 3 attention", and its median seconds. Return false to hear no more. */
typedef bool (*akunu_profile_callback)(const char* label, double seconds, void* user_data);

/* A token as it comes out: its id, and the text that is complete with it (UTF-8, `text_length` bytes and a
 * zero; often empty). Return false to end the text there. Called from the thread that generates. */
typedef bool (*akunu_token_callback)(uint32_t token, const char* text, size_t text_length,
                                     void* user_data);

typedef struct akunu_transcribe_options {
  size_t size;
  const char* language; /* "de"; null: detected in the first 30 seconds */
  const char* task;     /* "transcribe" (null), or "translate": into English */
  const float*
      temperatures; /* tried in order until a window's text is likely and does not repeat itself;
                                0 is greedy. Null: 0, 0.2, 0.4, 0.6, 0.8, 1 */
  size_t n_temperatures;
  uint32_t best_of;      /* texts that are drawn at a temperature above 0; 0: 5 */
  const char* prompt;    /* as if it had been said before; null: nothing */
  bool no_timestamps;    /* a segment for each window */
  bool no_previous_text; /* what was said in a window is not the prompt of the next */
  uint64_t seed;         /* of what is drawn */
} akunu_transcribe_options;

/* A stretch of speech. `size` is what the library knows; all of it lives until the callback returns. */
typedef struct akunu_segment {
  size_t size;
  uint32_t id;      /* counted from 0 */
  double start;     /* seconds from the beginning of the audio */
  double end;       /* likewise */
  const char* text; /* UTF-8, `text_length` bytes and a zero */
  size_t text_length;
  const uint32_t* tokens; /* timestamps among them */
  size_t n_tokens;
  const char* language;        /* given or detected */
  double language_probability; /* 1 where it was given */
  /* Of its window, as a whole: */
  double temperature;
  double avg_logprob; /* mean of its tokens */
  double
      compression_ratio; /* bytes of the text over those of its zlib form: above 2.4, it repeats itself */
  double no_speech_prob; /* how probable it is that nobody speaks */
} akunu_segment;

/* Called from the thread that transcribes. Return false to hear no more. */
typedef bool (*akunu_segment_callback)(const akunu_segment* segment, void* user_data);

typedef struct akunu_transcription_stats {
  size_t size;
  akunu_finish
      finish; /* STOP: all was heard; CANCELLED: by akunu_cancel_transcription, or the callback */
  char language[8]; /* "": nothing was heard */
  double language_probability;
  double audio_seconds;
  uint32_t n_segments;
  uint32_t n_windows;        /* of 30 seconds, each beginning where the last one's text ended */
  uint32_t n_failed_windows; /* of them, those of which no temperature's text passed */
  uint64_t n_tokens;         /* chosen, those of texts that did not pass too */
} akunu_transcription_stats;

#ifdef __cplusplus
}
#endif

#endif
