// Samplers that look at the tokens so far: penalties, and DRY. The window ends with the row's own token,
// whatever the log holds behind it: entries of an earlier answer must not count.
#pragma once

#include "metal/kernels/sample.h"

constant constexpr uint kWindow = 1024;  // tokens of a penalty window that are compared one by one
constant constexpr uint kCounts = 4096;  // tokens counted at a time for longer windows

// The tokens that a row looks back at: log[begin] to log[end - 1].
struct History {
  device const uint* log;
  uint begin, end;
};
inline History history_of(device const uint* log, uint position,
                          device const SequenceRecord& record, uint most) {
  const uint end = position + 1;
  const uint first = record.sampling.penalize_prompt != 0 ? 0 : min(record.n_prompt, end);
  return History{log, end - min(end - first, most), end};
}

inline bool has_penalties(device const SequenceRecord& record) {
  return record.sampling.repetition_penalty != 1.0f || record.sampling.frequency_penalty != 0.0f ||
         record.sampling.presence_penalty != 0.0f;
}

inline float penalised(float logit, uint count, device const SequenceRecord& record) {
#pragma clang fp contract(off)
  const float bent = logit > 0.0f ? logit / record.sampling.repetition_penalty
                                  : logit * record.sampling.repetition_penalty;
  const float product =
      float(count) * record.sampling.frequency_penalty;  // rounded, as the contract asks
  return bent - (product + record.sampling.presence_penalty);
}

inline void penalise(Team team, device float* logits, uint vocab_size, History history,
                     device const SequenceRecord& record, threadgroup uint* memory) {
  const uint n = history.end - history.begin;
  device const uint* window = history.log + history.begin;
  if (n <= kWindow) {
    for (uint i = team.thread_index; i < n; i += team.n_threads) memory[i] = window[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // Each distinct token once: whoever holds its first occurrence counts the others.
    for (uint i = team.thread_index; i < n; i += team.n_threads) {
      const uint token = memory[i];
      if (token >= vocab_size) continue;
      bool is_first = true;
      for (uint j = 0; j < i; ++j) is_first = is_first && memory[j] != token;
      if (!is_first) continue;
      uint count = 1;
      for (uint j = i + 1; j < n; ++j) count += memory[j] == token ? 1 : 0;
      logits[token] = penalised(logits[token], count, record);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    return;
  }
  threadgroup atomic_uint* counts = reinterpret_cast<threadgroup atomic_uint*>(memory);
  for (uint first = 0; first < vocab_size; first += kCounts) {
    for (uint i = team.thread_index; i < kCounts; i += team.n_threads)
      atomic_store_explicit(&counts[i], 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = team.thread_index; i < n; i += team.n_threads) {
      const uint token = window[i];
      if (token < vocab_size && token - first < kCounts)
        atomic_fetch_add_explicit(&counts[token - first], 1u, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = team.thread_index; i < kCounts; i += team.n_threads) {
      const uint count = atomic_load_explicit(&counts[i], memory_order_relaxed);
      if (count != 0) logits[first + i] = penalised(logits[first + i], count, record);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  }
}

// --- DRY -------------------------------------------------------------------------------------------

// A list of breakers as records have it.
struct Breakers {
  device const uint* words;
  uint n;
};

// Whether a breaker begins with `token`, followed by history.log[next] and so on: how many of those
// belong to it, kNone where none does.
inline uint breaker_at(Breakers breakers, History history, uint token, uint next) {
  device const uint* words = breakers.words;
  for (uint entry = 0; entry < breakers.n; ++entry) {
    const uint n_tail = words[0], n_heads = words[1];
    device const uint* tail = words + 2;
    device const uint* heads = tail + n_tail;
    words = heads + n_heads;
    if (n_tail > history.end - next) continue;
    uint low = 0, high = n_heads;
    while (low < high) {
      const uint middle = (low + high) / 2;
      if (heads[middle] < token) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == n_heads || heads[low] != token) continue;
    uint same = 0;
    while (same < n_tail && tail[same] == history.log[next + same]) ++same;
    if (same == n_tail) return n_tail;
  }
  return kNone;
}

constant constexpr float kLargestDryPenalty = 1e30f;

// DRY's penalty for a token that would extend a repetition of `length` tokens.
inline float dry_penalty(device const SequenceRecord& record, uint length) {
  float penalty = record.sampling.dry_multiplier;
  if (record.sampling.dry_base != 1.0f)
    for (uint i = record.sampling.dry_allowed_length; i < length && penalty < kLargestDryPenalty;
         ++i)
      penalty *= record.sampling.dry_base;
  return min(penalty, kLargestDryPenalty);
}

inline void penalise_dry(Team team, device float* logits, uint vocab_size, History history,
                         device const SequenceRecord& record, Breakers breakers,
                         threadgroup uint* memory) {
  device const uint* log = history.log;
  const uint end = history.end, n = end - history.begin;
  const uint allowed = record.sampling.dry_allowed_length;
  if (n <= allowed) return;
  // A repetition goes back to the latest breaker at most.
  uint nearest = n;  // the distance of its beginning from the last token
  for (uint i = team.thread_index; i < n && nearest == n; i += team.n_threads)
    if (breaker_at(breakers, history, log[end - 1 - i], end - i) != kNone) nearest = i;
  nearest = team_min(team, nearest);
  uint longest = n;
  if (nearest < n)
    longest = nearest - breaker_at(breakers, history, log[end - 1 - nearest], end - nearest);
  if (longest < allowed) return;
  // For each token of the history: the length of the longest common suffix of the text before it and the
  // whole text. That is how long a repetition is which this token would extend.
  threadgroup atomic_uint* lengths = reinterpret_cast<threadgroup atomic_uint*>(memory);
  for (uint first = 0; first < vocab_size; first += kCounts) {
    for (uint i = team.thread_index; i < kCounts; i += team.n_threads)
      atomic_store_explicit(&lengths[i], 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = history.begin + 1 + team.thread_index; i < end; i += team.n_threads) {
      const uint token = log[i];
      if (token >= vocab_size || token - first >= kCounts) continue;
      uint length = 0;
      while (length < longest && i - length > history.begin &&
             log[i - 1 - length] == log[end - 1 - length])
        ++length;
      if (length >= allowed)
        atomic_fetch_max_explicit(&lengths[token - first], length, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = team.thread_index; i < kCounts; i += team.n_threads) {
      const uint length = atomic_load_explicit(&lengths[i], memory_order_relaxed);
      if (length != 0 && breaker_at(breakers, history, first + i, end) != 0)
        logits[first + i] = logits[first + i] - dry_penalty(record, length);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  }
}
