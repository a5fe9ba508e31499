// What a step works on. These structs lie in device memory and are read by C++, MSL and CUDA alike:
// 32-bit fields only, explicit padding, fixed sizes.
//
// A row is one position of one sequence. A span is a run of consecutive rows of one sequence. A
// sequence record holds what a conversation needs on the device. Tokens live in a log per sequence:
// a row reads its token at tokens[sequence][position]; the sampler writes picked[row] and, for
// chained rows, tokens[sequence][position + 1]; `advance` then moves the chained rows on in place,
// so that every step of a chain is the same commands over the same memory.
#pragma once

// A constant of a header that C++, MSL and CUDA include: MSL keeps those in a space of their own.
#ifdef __METAL_VERSION__
#define AKUNU_CONSTANT constant constexpr
#else
#include <stdint.h>
#define AKUNU_CONSTANT constexpr
#endif

namespace akunu {

// Says "none" in a field that otherwise holds an index.
AKUNU_CONSTANT uint32_t kNone = 0xffffffffu;

// Flags of a row.
// Cleared: the row writes nothing that outlives the step.
AKUNU_CONSTANT uint32_t kRowActive = 1u << 0;
// The picked token is logged and the row moves on.
AKUNU_CONSTANT uint32_t kRowChained = 1u << 1;
// The row runs the kernels of RowClass `many`.
AKUNU_CONSTANT uint32_t kRowPrompt = 1u << 2;
// Of an image: its input is a vector of `embed`, not a token's, and it sees the image's rows behind it.
AKUNU_CONSTANT uint32_t kRowVectorInput = 1u << 3;
// `sample`: the mask at its head_row says which tokens are allowed.
AKUNU_CONSTANT uint32_t kRowMasked = 1u << 4;
// `logprobs` scores the token that follows it. A row of a prompt that is not chained chooses no token.
AKUNU_CONSTANT uint32_t kRowScored = 1u << 5;

// What `pool` makes of a row with a head row.
AKUNU_CONSTANT uint32_t kPoolOwn = 0;    // the row itself
AKUNU_CONSTANT uint32_t kPoolFirst = 1;  // the first row of its span
AKUNU_CONSTANT uint32_t kPoolMean = 2;   // the mean of its span's rows
AKUNU_CONSTANT uint32_t kPoolMax = 3;    // their maximum, number by number

struct Row {
  uint32_t sequence;  // index of the sequence record, the token log and the page tables
  uint32_t position;  // of this row's token in its sequence
  // Positions that it attends to, its own included, and those behind it of the same image. A window
  // begins before its own, wherever they end.
  uint32_t kv_length;
  uint32_t draw;      // index in the text of the token its logits choose; the sampler's counter
  uint32_t flags;     // kRow...
  uint32_t head_row;  // row of the head's buffers that its logits go to, or kNone
  uint32_t span;      // index of its span
  uint32_t adapter;   // word of its sequence's options where its list of adapters is, or kNone
  uint32_t last_position;  // a chained row clears kRowActive instead of moving past this position
  // Of an encoder's row: the first position with token type 1, or kNone; and what `pool` makes of it,
  // kPool...
  uint32_t second_segment;
  uint32_t pool;
  uint32_t reserved[5];
};
static_assert(sizeof(Row) == 64, "a row is 64 bytes on every device");

struct Span {
  uint32_t sequence;
  uint32_t first_row;
  uint32_t n_rows;
  uint32_t reserved;
};
static_assert(sizeof(Span) == 16, "a span is 16 bytes on every device");

// The part of a step that one command covers, for devices that tell it to kernels through memory
// (slot 23): rows, or head rows where the command's extent is head_rows, and the spans of the pass.
struct PassRange {
  uint32_t first_row;
  uint32_t n_rows;
  uint32_t first_span;
  uint32_t n_spans;
};
static_assert(sizeof(PassRange) == 16, "a pass range is 16 bytes on every device");

AKUNU_CONSTANT uint32_t kSequenceRecordVersion = 3;
AKUNU_CONSTANT uint32_t kMaxStopIds = 24;

// What is done to logits before a token is drawn from them: a record says which, in which order.
AKUNU_CONSTANT uint32_t kSamplerPenalties = 1;
AKUNU_CONSTANT uint32_t kSamplerDry = 2;
AKUNU_CONSTANT uint32_t kSamplerTopNSigma = 3;
AKUNU_CONSTANT uint32_t kSamplerTopK = 4;
AKUNU_CONSTANT uint32_t kSamplerTypicalP = 5;
AKUNU_CONSTANT uint32_t kSamplerTopP = 6;
AKUNU_CONSTANT uint32_t kSamplerMinP = 7;
AKUNU_CONSTANT uint32_t kSamplerXtc = 8;
AKUNU_CONSTANT uint32_t kSamplerTemperature = 9;
AKUNU_CONSTANT uint32_t kSamplerCount = 9;

// How a token is chosen: options that are a number, by name and in this order; `samplers` and `seed` are two words each.
// As they stand here, all are switched off. How to add one: docs/adding/sampling-option.md.
// written by tools/options.py: sampling
struct Sampling {
  float temperature = 0;  // 0: greedy
  uint32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float typical_p = 1;
  float top_n_sigma = 0;
  float xtc_probability = 0;
  float xtc_threshold = 0.1f;
  float repetition_penalty = 1;  // over the last `penalty_window` tokens of the log
  float frequency_penalty = 0;
  float presence_penalty = 0;
  uint32_t penalty_window = 64;  // tokens, the row's own included
  uint32_t penalize_prompt = 1;  // 0: penalties and DRY look at the reply alone
  float dry_multiplier = 0;
  float dry_base = 1.75f;
  uint32_t dry_allowed_length = 2;
  uint32_t dry_penalty_last_n = 0x7fffffff;
  uint32_t samplers_low =
      0x87654321;  // kSampler... of four bits each, the first one lowest; 0: no more
  uint32_t samplers_high = 0x9;
  uint32_t min_tokens = 0;  // before so many are chosen, none of the stop ids is
  uint32_t seed_low = 0;
  uint32_t seed_high = 0;
};
static_assert(sizeof(Sampling) == 88, "options of sampling are packed words");
// end of sampling
// The i-th of a record's samplers, 0 behind the last one.
static inline uint32_t sampler_at(uint32_t samplers_low, uint32_t samplers_high, uint32_t i) {
  return (i < 8 ? samplers_low >> (4 * i) : samplers_high >> (4 * (i - 8))) & 15u;
}

// Options whose length varies lie in a buffer of words, kMaxOptionWords for each sequence; its
// record says where in its part.
AKUNU_CONSTANT uint32_t kMaxOptionWords = 4096;
struct OptionList {
  uint32_t first = 0;  // word of the sequence's part
  uint32_t n = 0;      // entries, not words
};

// One entry of `biases`: two words.
struct TokenBias {
  uint32_t token;
  float bias;  // added to the token's logit; -infinity bans it
};
static_assert(sizeof(TokenBias) == 8, "a bias is two words");

// A low-rank adapter of a text, and how much of it: two words. A list of them follows their number.
struct AdapterShare {
  uint32_t adapter;
  float weight;
};
static_assert(sizeof(AdapterShare) == 8, "an adapter's share is two words");

// Where an adapter's rows lie among those of all adapters of one weight.
struct AdapterPart {
  uint32_t first;
  uint32_t rank;  // 0: it leaves this weight as it is
  float scale;
  uint32_t reserved;
};
static_assert(sizeof(AdapterPart) == 16, "a part is 16 bytes on every device");

// One of the experts that a row goes to, and how much of what it makes: two words.
struct ExpertRoute {
  uint32_t expert;
  float weight;
};
static_assert(sizeof(ExpertRoute) == 8, "a route is two words on every device");

// What may follow in the text of a window of speech; see `transcription_rules`. As it stands here,
// anything.
struct TranscriptionRules {
  uint32_t first_timestamp = 0;  // tokens from it on are timestamps; 0: they have no rules
  uint32_t end_of_text = 0;      // tokens from it on are no text
  uint32_t last_initial = 0;     // the latest timestamp that a text may begin with
  uint32_t n_before = 0;         // tokens of the log before the text's first
  OptionList banned = {};        // tokens that are never chosen, a word each
  OptionList banned_first = {};  // nor as the first token
};
static_assert(sizeof(TranscriptionRules) == 32, "rules are eight words");

struct SequenceRecord {
  uint32_t version = kSequenceRecordVersion;
  uint32_t choice = 0;  // which of several answers to one prompt; part of the noise key
  Sampling sampling = {};
  uint32_t n_stop_ids = 0;
  OptionList biases = {};  // TokenBias, each token once
  // Where DRY ends a repetition: at single tokens, or at several in a row. An entry is n_tail, n_heads,
  // the tokens of the tail, and in ascending order the tokens that it may follow; longer tails come
  // first.
  OptionList dry_breakers = {};
  uint32_t n_prompt = 0;    // tokens of the log that were given
  uint32_t n_logprobs = 0;  // of a scored row: the most likely tokens that are wanted
  TranscriptionRules rules = {};
  uint32_t reserved[1] = {};
  uint32_t stop_ids[kMaxStopIds] = {};  // a chained row that picks one clears its kRowActive
};
static_assert(sizeof(SequenceRecord) == 256, "a sequence record is 256 bytes on every device");

AKUNU_CONSTANT uint32_t kMaxLogprobs = 20;

// What `logprobs` says of a row: natural logarithms of the probabilities that the model gives. They lie
// in a ring for each sequence, at position % kLogprobPlaces.
AKUNU_CONSTANT uint32_t kLogprobPlaces = 64;
struct TokenLogprobs {
  float chosen;  // of the token behind the row
  uint32_t reserved[3];
  uint32_t tokens[kMaxLogprobs];  // the most likely, best first, the lowest of equals first
  float logprobs[kMaxLogprobs];   // theirs
};
static_assert(sizeof(TokenLogprobs) == 176, "a row's logprobs are 176 bytes on every device");

// What went wrong with a row; each is recorded by one operation. 0 is well.
AKUNU_CONSTANT uint32_t kStatusOk = 0;
AKUNU_CONSTANT uint32_t kStatusNotANumber = 1;   // sample: the row's logits hold NaN
AKUNU_CONSTANT uint32_t kStatusBadToken = 2;     // embed: its token is outside the vocabulary
AKUNU_CONSTANT uint32_t kStatusNoCandidate = 3;  // sample: every logit of the row is -inf

// One per row of a step (slot 29). A kernel that finds an active row wrong records it here and
// clears the row's kRowActive: that row writes nothing more, all others go on. Every submission
// begins with clean statuses of the rows that its passes cover.
struct Status {
  uint32_t code;      // the first kStatus... of the row
  uint32_t position;  // of the row then
  uint32_t detail;    // the offending token, where there is one
  uint32_t reserved;
};
static_assert(sizeof(Status) == 16, "a status is 16 bytes on every device");

}  // namespace akunu
