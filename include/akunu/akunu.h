/* akunu runs language models on your own machine. This is its C interface.
 *
 *   #include <akunu/akunu.h>
 *   #include <stdio.h>
 *
 *   static bool print(uint32_t token, const char* text, size_t length, void* user_data) {
 *     (void)token, (void)user_data;
 *     fwrite(text, 1, length, stdout);
 *     return true;
 *   }
 *
 *   int main(void) {
 *     akunu_model model;
 *     if (akunu_load_model("model.gguf", NULL, &model) != AKUNU_OK) {
 *       fprintf(stderr, "%s\n", akunu_last_error());
 *       return 1;
 *     }
 *     akunu_generate_options options = {.size = sizeof options, .max_tokens = 64};
 *     akunu_generate_text(model, "The sea is", &options, print, NULL, NULL);
 *     akunu_close_model(model);
 *   }
 *
 * Threads: every function may be called from any thread, and several at a time on the same handle, unless
 * it says otherwise. Texts of several threads run together, and each has the same tokens that it has alone.
 * Nothing is thrown, printed, or exits the process. A handle that is closed while a call uses it ends that
 * call with AKUNU_ERROR_HANDLE or AKUNU_ERROR_DEVICE.
 *
 * Text is UTF-8. Where a function writes into a buffer, `capacity` is its length and `length` receives what
 * is needed: of text without the zero byte that ends it. A null buffer with capacity 0 asks for the length
 * alone and is no error; where the buffer is too small, nothing is written to it and the status is
 * AKUNU_ERROR_SPACE.
 *
 * After fork(), models must be loaded again in the child: their handles are refused there. */
#ifndef AKUNU_AKUNU_H
#define AKUNU_AKUNU_H

#include "akunu/types.h"

#if defined(__GNUC__)
#define AKUNU_API __attribute__((visibility("default")))
#else
#define AKUNU_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- life ---- */

/* "0.1.0". Lives for ever. */
AKUNU_API const char* akunu_version(void);

/* Why the latest call of this thread that failed did; "" before that. Lives until this thread's next call. */
AKUNU_API const char* akunu_last_error(void);

/* "AKUNU_ERROR_FILE". Lives for ever. */
AKUNU_API const char* akunu_status_name(akunu_status status);

/* Loads a GGUF file (of a split one, any part) or a directory of Hugging Face or MLX. `options` may be null.
 * Takes seconds for large models; the file must stay as it is while the model lives. */
AKUNU_API akunu_status akunu_load_model(const char* path, const akunu_load_options* options,
                                        akunu_model* model);

/* Ends what is under way; its memory goes when the last call that uses it has returned. */
AKUNU_API akunu_status akunu_close_model(akunu_model model);

/* ---- information ---- */

/* Set `info->size` first. */
AKUNU_API akunu_status akunu_get_model_info(akunu_model model, akunu_model_info* info);

/* What was decided at load and might not be expected, a line each. */
AKUNU_API akunu_status akunu_get_notes(akunu_model model, char* buffer, size_t capacity,
                                       size_t* length);

/* The devices of this build, one name a line, the fastest first. */
AKUNU_API akunu_status akunu_get_devices(char* buffer, size_t capacity, size_t* length);

/* ---- text ---- */

/* The tokenizer of a GGUF file, with or without weights in it, or of a directory (BPE or BERT's WordPiece
 * in its tokenizer.json; another kind is AKUNU_ERROR_UNSUPPORTED). */
AKUNU_API akunu_status akunu_open_tokenizer(const char* path, akunu_tokenizer* tokenizer);
/* That of a model: a handle of its own, which is to be closed. */
AKUNU_API akunu_status akunu_get_tokenizer(akunu_model model, akunu_tokenizer* tokenizer);
AKUNU_API akunu_status akunu_close_tokenizer(akunu_tokenizer tokenizer);

AKUNU_API akunu_status akunu_get_vocab_size(akunu_tokenizer tokenizer, uint32_t* vocab_size);

/* `add_special`: what the model expects around a prompt (BOS, rarely EOS). `parse_special`: names of control
 * tokens in the text become those tokens; leave it off for text that you did not write. */
AKUNU_API akunu_status akunu_encode(akunu_tokenizer tokenizer, const char* text, size_t text_length,
                                    bool add_special, bool parse_special, uint32_t* tokens,
                                    size_t capacity, size_t* length);

/* Bytes that are no UTF-8 become U+FFFD. `skip_special` leaves control tokens out. */
AKUNU_API akunu_status akunu_decode(akunu_tokenizer tokenizer, const uint32_t* tokens,
                                    size_t n_tokens, bool skip_special, char* buffer,
                                    size_t capacity, size_t* length);

/* The bytes that one token adds to a text, which need not be UTF-8; of a control token its name. */
AKUNU_API akunu_status akunu_token_bytes(akunu_tokenizer tokenizer, uint32_t token, char* buffer,
                                         size_t capacity, size_t* length);

/* The tokens after which a generation is over. */
AKUNU_API akunu_status akunu_get_stop_ids(akunu_tokenizer tokenizer, uint32_t* tokens,
                                          size_t capacity, size_t* length);

/* The Jinja source of the chat template; "" where the model has none. */
AKUNU_API akunu_status akunu_get_chat_template(akunu_tokenizer tokenizer, char* buffer,
                                               size_t capacity, size_t* length);

/* A conversation as the model's chat template writes it. Formats of common families are built in and taken
 * for templates that are known letter by letter; another one is AKUNU_ERROR_UNSUPPORTED, and what the
 * template itself refuses AKUNU_ERROR_ARGUMENT. `options` may be null. Tools are for Python alone: a role
 * "tool" is AKUNU_ERROR_UNSUPPORTED. */
AKUNU_API akunu_status akunu_format_chat(akunu_tokenizer tokenizer, const akunu_message* messages,
                                         size_t n_messages, const akunu_chat_options* options,
                                         char* buffer, size_t capacity, size_t* length);
/* Likewise as tokens: what to generate from. Control tokens are those of the template; their names in a
 * message stay text, so that no message can pretend to be another's. */
AKUNU_API akunu_status akunu_encode_chat(akunu_tokenizer tokenizer, const akunu_message* messages,
                                         size_t n_messages, const akunu_chat_options* options,
                                         uint32_t* tokens, size_t capacity, size_t* length);
/* Which of the built-in formats it is: "chatml", "llama3.1". */
AKUNU_API akunu_status akunu_chat_format_name(akunu_tokenizer tokenizer, char* buffer,
                                              size_t capacity, size_t* length);

/* ---- run ---- */

/* Generates until the text ends; `callback`, `options` and `stats` may be null. Set `stats->size` first. */
AKUNU_API akunu_status akunu_generate(akunu_model model, const uint32_t* prompt, size_t n_prompt,
                                      const akunu_generate_options* options,
                                      akunu_token_callback callback, void* user_data,
                                      akunu_generation_stats* stats);
/* Likewise of a text: encoded with `add_special`, without `parse_special`. */
AKUNU_API akunu_status akunu_generate_text(akunu_model model, const char* prompt,
                                           const akunu_generate_options* options,
                                           akunu_token_callback callback, void* user_data,
                                           akunu_generation_stats* stats);

/* Starts a text and returns at once. */
AKUNU_API akunu_status akunu_start(akunu_model model, const uint32_t* prompt, size_t n_prompt,
                                   const akunu_generate_options* options,
                                   akunu_generation* generation);
/* Takes new tokens: `n_tokens` receives how many, 0 where the time is up or the text is over (then
 * `finish` is no longer AKUNU_FINISH_NONE). `timeout_ms` 0 does not wait, -1 waits as long as it takes. One
 * thread at a time. */
AKUNU_API akunu_status akunu_take(akunu_generation generation, int32_t timeout_ms, uint32_t* tokens,
                                  size_t capacity, size_t* n_tokens, akunu_finish* finish);
/* A descriptor that can be read (poll, select, epoll) whenever akunu_take would not wait. It belongs to the
 * generation: do not read or close it. */
AKUNU_API akunu_status akunu_get_descriptor(akunu_generation generation, int* descriptor);
/* The text ends as soon as the step under way has; tokens that are there can still be taken. */
AKUNU_API akunu_status akunu_cancel(akunu_generation generation);
AKUNU_API akunu_status akunu_get_stats(akunu_generation generation, akunu_generation_stats* stats);
/* Cancels it, if it is not over. */
AKUNU_API akunu_status akunu_close_generation(akunu_generation generation);

/* The logits of the last token: float32 [vocab_size]. */
AKUNU_API akunu_status akunu_logits(akunu_model model, const uint32_t* tokens, size_t n_tokens,
                                    float* logits, size_t capacity, size_t* length);

/* Where the time of one step goes: its commands in order, each timed alone. Loads the model of a GGUF
 * file for itself and takes seconds; `options` may be null. */
AKUNU_API akunu_status akunu_profile(const char* path, const akunu_profile_options* options,
                                     akunu_profile_callback callback, void* user_data);

/* ---- sessions ---- */

/* A session is a text that is read and goes on in turns. What is computed of it stays in the model's cache as
 * long as there is room: only what is new is read. While one call generates, another that uses the session is
 * refused (AKUNU_ERROR_BUSY). */
AKUNU_API akunu_status akunu_open_session(akunu_model model, akunu_session* session);
AKUNU_API akunu_status akunu_close_session(akunu_session session);
/* Tokens behind those that are there; AKUNU_ERROR_CONTEXT where they do not fit. */
AKUNU_API akunu_status akunu_append(akunu_session session, const uint32_t* tokens, size_t n_tokens);
/* As akunu_generate from the session's tokens. Those that come out are appended, but not a stop token;
 * where it fails, the session is as it was. */
AKUNU_API akunu_status akunu_continue(akunu_session session, const akunu_generate_options* options,
                                      akunu_token_callback callback, void* user_data,
                                      akunu_generation_stats* stats);
/* Another session that goes on from here, on its own; what is cached serves both. */
AKUNU_API akunu_status akunu_fork_session(akunu_session session, akunu_session* fork);
/* Forgets all tokens but the first `n_tokens`; 0 begins anew. */
AKUNU_API akunu_status akunu_rewind(akunu_session session, size_t n_tokens);
AKUNU_API akunu_status akunu_get_session_tokens(akunu_session session, uint32_t* tokens,
                                                size_t capacity, size_t* length);
/* Writes the session to a file, its keys and values too, which appears whole or not at all in the place of an
 * earlier one. The Python package reads it (`Model.load_session`). Tokens that the cache lacks are computed
 * first; of large models the first call takes seconds: which model it is, is said by a digest of its files. */
AKUNU_API akunu_status akunu_save_session(akunu_session session, const char* path);
/* A session from such a file, or one that the Python package saved; of a conversation it has the tokens alone.
 * Another model, cache type or layout, and a damaged file, are AKUNU_ERROR_FILE. `n_restored` may be null: it
 * receives how many tokens need not be read again, none of keys and values that another version of akunu or
 * another device computed, and fewer than all where the cache has no room. */
AKUNU_API akunu_status akunu_load_session(akunu_model model, const char* path,
                                          akunu_session* session, size_t* n_restored);

/* ---- embeddings ---- */

/* One vector per text, pooled as the model's file says and of length 1: float32 [n_texts, embedding_dim].
 * `length` counts numbers. Texts run together. */
AKUNU_API akunu_status akunu_embed(akunu_model model, const char* const* texts, size_t n_texts,
                                   float* vectors, size_t capacity, size_t* length);
/* Likewise of one text, given as tokens, those around it ([CLS], [SEP]) among them. */
AKUNU_API akunu_status akunu_embed_tokens(akunu_model model, const uint32_t* tokens,
                                          size_t n_tokens, float* vector, size_t capacity,
                                          size_t* length);

/* ---- speech ---- */

/* What is said in a WAV file at 16 kHz (PCM or floating point; channels are mixed), told by segments.
 * `model`: a Whisper model, in a GGUF file or a directory. Another rate or kind of file is
 * AKUNU_ERROR_UNSUPPORTED. `options` and `stats` may be null. Set `stats->size` first. */
AKUNU_API akunu_status akunu_transcribe_file(akunu_model model, const char* path,
                                             const akunu_transcribe_options* options,
                                             akunu_segment_callback callback, void* user_data,
                                             akunu_transcription_stats* stats);
/* Likewise of samples at 16 kHz, within -1 and 1. */
AKUNU_API akunu_status akunu_transcribe(akunu_model model, const float* samples, size_t n_samples,
                                        const akunu_transcribe_options* options,
                                        akunu_segment_callback callback, void* user_data,
                                        akunu_transcription_stats* stats);
/* Samples as they come: a window of 30 seconds is heard when it is full, by the call that fills it. How loud a
 * window is, is measured in it alone, not in all of the audio: texts may differ from those above. */
AKUNU_API akunu_status akunu_open_transcription(akunu_model model,
                                                const akunu_transcribe_options* options,
                                                akunu_segment_callback callback, void* user_data,
                                                akunu_transcription* transcription);
/* One call at a time; another is AKUNU_ERROR_BUSY. */
AKUNU_API akunu_status akunu_hear(akunu_transcription transcription, const float* samples,
                                  size_t n_samples);
/* Hears what is left; no samples may follow. `stats` may be null. */
AKUNU_API akunu_status akunu_finish_transcription(akunu_transcription transcription,
                                                  akunu_transcription_stats* stats);
/* From any thread: the call under way returns, and no more is told. */
AKUNU_API akunu_status akunu_cancel_transcription(akunu_transcription transcription);
/* Cancels it, if it is not over. */
AKUNU_API akunu_status akunu_close_transcription(akunu_transcription transcription);
/* Codes of the languages that a Whisper model knows, one a line: "en". */
AKUNU_API akunu_status akunu_get_languages(akunu_model model, char* buffer, size_t capacity,
                                           size_t* length);

/* ---- the GGUF reader ---- */

/* Opens a GGUF file without loading it: every count, length and offset is checked. */
AKUNU_API akunu_status akunu_open_gguf(const char* path, akunu_gguf* file);
AKUNU_API akunu_status akunu_close_gguf(akunu_gguf file);
AKUNU_API akunu_status akunu_get_n_tensors(akunu_gguf file, size_t* n_tensors);
/* Set `info->size` first. */
AKUNU_API akunu_status akunu_get_tensor(akunu_gguf file, size_t index, akunu_tensor_info* info);
AKUNU_API akunu_status akunu_get_n_keys(akunu_gguf file, size_t* n_keys);
/* The name of a key, in the order of the file. */
AKUNU_API akunu_status akunu_get_key(akunu_gguf file, size_t index, char* buffer, size_t capacity,
                                     size_t* length);
/* Values by key; AKUNU_ERROR_ARGUMENT where there is no such key, AKUNU_ERROR_FILE where it is of another type. */
AKUNU_API akunu_status akunu_get_string(akunu_gguf file, const char* key, char* buffer,
                                        size_t capacity, size_t* length);
AKUNU_API akunu_status akunu_get_integer(akunu_gguf file, const char* key, int64_t* value);
AKUNU_API akunu_status akunu_get_number(akunu_gguf file, const char* key, double* value);

#ifdef __cplusplus
}
#endif

#endif
