// logprobs: of scored rows, the logarithm of the probability of the token that follows (the one that the row
// picked, or of a row of a prompt that picks none, the one behind it in the log), and the most likely
// tokens with theirs. One threadgroup scores a row.
//
// Floor: the logits are read twice, and once more for each of the most likely tokens, of which there are
// few; they stay in the last cache. A thread has several loads under way, since it would wait longer for
// one after the other than for anything else.
#include "metal/kernels/sample.h"

constant constexpr uint kLoads = 8;
struct Logits {
  float of[kLoads];
};
// Logits `first`, first + n_threads and so on; past the vocabulary minus infinity.
inline Logits load_logits(Team team, device const float* logits, uint vocab_size, uint first) {
  Logits own;
  for (uint j = 0; j < kLoads; ++j) {
    const uint i = first + j * team.n_threads;
    own.of[j] = i < vocab_size ? logits[i] : -infinity();
  }
  return own;
}

// The first token by rank after another one; any, where there is none before. Counts what is not a number.
inline Candidate best_after(Team team, device const float* logits, uint vocab_size, Candidate before,
                            bool has_before, thread uint& not_numbers) {
  Candidate best = Candidate{-infinity(), kNone};
  for (uint first = team.thread_index; first < vocab_size; first += kLoads * team.n_threads) {
    const Logits some = load_logits(team, logits, vocab_size, first);
    for (uint j = 0; j < kLoads; ++j) {
      const Candidate c = Candidate{some.of[j], first + j * team.n_threads};
      if (c.token >= vocab_size) break;
      not_numbers += isnan(c.value) ? 1 : 0;
      if (has_before && !is_better(before, c)) continue;
      if (best.token == kNone || is_better(c, best)) best = c;
    }
  }
  return team_best(team, best);
}

// One threadgroup per row. `partial`: threadgroup memory of two floats for each SIMD-group, in which
// reductions leave their partial results.
[[kernel]] void logprobs(
    device const float* logits [[buffer(0)]], device const uint* tokens [[buffer(1)]],
    device const uint* picked [[buffer(2)]], device TokenLogprobs* scores [[buffer(3)]],
    constant PassRange& pass [[buffer(23)]],
    constant LogprobsParams& params [[buffer(25)]], device Row* rows [[buffer(26)]],
    device const SequenceRecord* sequences [[buffer(28)]],
    device Status* statuses [[buffer(29)]], threadgroup float* partial [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const Team team = Team{thread_index, simdgroup, lane, n_simdgroups, 32 * n_simdgroups, partial};
  const uint vocab_size = params.vocab_size;
  const uint row_index = pass.first_row + group.x;
  device const Row& row = rows[row_index];
  if ((row.flags & kRowActive) == 0 || (row.flags & kRowScored) == 0 || row.head_row == kNone)
    return;
  device const float* own = logits + ulong(row.head_row) * vocab_size;
  uint not_numbers = 0;
  Candidate best = best_after(team, own, vocab_size, Candidate{0.0f, 0u}, false, not_numbers);
  not_numbers = team_sum(team, not_numbers);
  const float largest = best.value;
  if (not_numbers != 0 || largest == infinity() || largest == -infinity()) {
    threadgroup_barrier(mem_flags::mem_device);  // all have read the row
    if (thread_index == 0) record_status(statuses, rows, row_index, kStatusNotANumber, 0);
    return;
  }
  Mass total = Mass{0.0f, 0.0f};
  for (uint first = thread_index; first < vocab_size; first += kLoads * team.n_threads) {
    const Logits some = load_logits(team, own, vocab_size, first);
    for (uint j = 0; j < kLoads; ++j) {
      if (first + j * team.n_threads >= vocab_size) break;
      total = sum_of(total, Mass{exp_of(some.of[j] - largest), 0.0f});
    }
  }
  total = team_mass(team, total);
  const float log_total = log_of(total.high + total.low);

  device TokenLogprobs& out =
      scores[ulong(row.sequence) * kLogprobPlaces + row.position % kLogprobPlaces];
  if (thread_index == 0) {
    uint token = kNone;
    if ((row.flags & (kRowPrompt | kRowChained)) != kRowPrompt)
      token = picked[row_index];
    else if (row.position + 1 < params.log_stride)
      token = tokens[ulong(row.sequence) * params.log_stride + row.position + 1];
    out.chosen = token < vocab_size ? (own[token] - largest) - log_total : -infinity();
  }
  const uint wanted = min(sequences[row.sequence].n_logprobs, kMaxLogprobs);
  for (uint i = 0; i < wanted; ++i) {
    if (i > 0 && i < vocab_size)
      best = best_after(team, own, vocab_size, best, true, not_numbers);
    if (thread_index != 0) continue;
    out.tokens[i] = i < vocab_size ? best.token : uint(kNone);
    out.logprobs[i] = i < vocab_size ? (best.value - largest) - log_total : -infinity();
  }
}
