// Samplers that look at the tokens so far: penalties, and DRY.
//
// 1. What they compute. docs/kernels.md, step 5 of sample.
// 2. What bounds them. The length of the text that a row looks back at; only tokens of that text
//    change a logit.
// 3. What is done about it. Counts for the whole vocabulary are kept, of which only the tokens of
//    the text are touched.
#pragma once

#include <stdint.h>

#include "core/rows.h"

namespace akunu::cpu {

// The tokens that a row looks back at: log[begin] to log[end - 1].
struct History {
  const uint32_t* log;
  uint32_t begin, end;
};

template <class Isa>
static History history_of(const uint32_t* log, uint32_t position, const SequenceRecord& record,
                          uint32_t most) {
  const uint32_t end = position + 1;
  uint32_t begin = record.sampling.penalize_prompt != 0 ? 0 : record.n_prompt;
  if (begin > end) begin = end;
  if (end - begin > most) begin = end - most;
  return {log, begin, end};
}

static inline bool has_penalties(const Sampling& sampling) {
  return sampling.repetition_penalty != 1.0f || sampling.frequency_penalty != 0.0f ||
         sampling.presence_penalty != 0.0f;
}

// `counts` has an entry per token of the vocabulary; only those of the history are touched.
template <class Isa>
static void penalize(float* logits, uint32_t vocab_size, const History& history,
                     const Sampling& sampling, uint32_t* counts) {
  const uint32_t* log = history.log;
  for (uint32_t i = history.begin; i < history.end; ++i)
    if (log[i] < vocab_size) counts[log[i]] = 0;
  for (uint32_t i = history.begin; i < history.end; ++i)
    if (log[i] < vocab_size) ++counts[log[i]];
  for (uint32_t i = history.begin; i < history.end; ++i) {
    const uint32_t token = log[i];
    if (token >= vocab_size || counts[token] == 0) continue;
    float& logit = logits[token];
    logit = logit > 0 ? logit / sampling.repetition_penalty : logit * sampling.repetition_penalty;
    logit = logit - (static_cast<float>(counts[token]) * sampling.frequency_penalty +
                     sampling.presence_penalty);
    counts[token] = 0;
  }
}

// --- DRY -----------------------------------------------------------------------------------------

// A list of breakers as records have it; see core/rows.h.
struct Breakers {
  const uint32_t* words;
  uint32_t n;
};

// Whether a breaker begins at log[i]: how many tokens of it follow, kNone where none does.
template <class Isa>
static uint32_t breaker_at(const Breakers& breakers, const History& history, uint32_t i) {
  const uint32_t* words = breakers.words;
  for (uint32_t entry = 0; entry < breakers.n; ++entry) {
    const uint32_t n_tail = words[0], n_heads = words[1];
    const uint32_t *tail = words + 2, *heads = tail + n_tail;
    words = heads + n_heads;
    if (n_tail >= history.end - i) continue;
    uint32_t low = 0, high = n_heads;
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      if (heads[middle] < history.log[i]) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == n_heads || heads[low] != history.log[i]) continue;
    uint32_t same = 0;
    while (same < n_tail && tail[same] == history.log[i + 1 + same]) ++same;
    if (same == n_tail) return n_tail;
  }
  return kNone;
}

// Whether a token alone is a breaker.
template <class Isa>
static bool breaks(const Breakers& breakers, uint32_t token) {
  return breaker_at<Isa>(breakers, {&token, 0, 1}, 0) == 0;
}

constexpr float kLargestDryPenalty = 1e30f;

// DRY's penalty for a token that would extend a repetition of `length` tokens.
template <class Isa>
static float dry_penalty(const Sampling& sampling, uint32_t length) {
  float penalty = sampling.dry_multiplier;
  for (uint32_t i = sampling.dry_allowed_length;
       i < length && penalty < kLargestDryPenalty && sampling.dry_base != 1.0f; ++i)
    penalty *= sampling.dry_base;
  return penalty < kLargestDryPenalty ? penalty : kLargestDryPenalty;
}

// `lengths` as `counts` above.
template <class Isa>
static void penalize_dry(float* logits, uint32_t vocab_size, const History& history,
                         const Sampling& sampling, const Breakers& breakers, uint32_t* lengths) {
  const uint32_t* log = history.log;
  const uint32_t end = history.end, n = end - history.begin;
  if (n <= sampling.dry_allowed_length) return;
  uint32_t longest = n;  // that a repetition may be: back to the latest breaker
  for (uint32_t i = end; i-- > history.begin;) {
    const uint32_t n_tail = breaker_at<Isa>(breakers, history, i);
    if (n_tail == kNone) continue;
    longest = end - 1 - i - n_tail;
    break;
  }
  if (longest < sampling.dry_allowed_length) return;
  for (uint32_t i = history.begin; i < end; ++i)
    if (log[i] < vocab_size) lengths[log[i]] = 0;
  // For each token of the history: the length of the longest common suffix of the text before it and the
  // whole text. That is how long a repetition is which this token would extend.
  for (uint32_t i = history.begin + 1; i < end; ++i) {
    uint32_t length = 0;
    while (length < longest && i - length > history.begin &&
           log[i - 1 - length] == log[end - 1 - length])
      ++length;
    if (length >= sampling.dry_allowed_length && log[i] < vocab_size && lengths[log[i]] < length)
      lengths[log[i]] = length;
  }
  for (uint32_t i = history.begin + 1; i < end; ++i) {
    const uint32_t token = log[i];
    if (token >= vocab_size || lengths[token] == 0) continue;
    if (!breaks<Isa>(breakers, token))
      logits[token] = logits[token] - dry_penalty<Isa>(sampling, lengths[token]);
    lengths[token] = 0;
  }
}

}  // namespace akunu::cpu
