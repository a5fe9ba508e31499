// sample: chooses a row's next token; docs/kernels.md has the steps, in this file's order. One
// threadgroup samples a row; the host takes no part.
//
// Floor: the logits are read once when greedy (not a number? the largest), four to six times when
// drawing; a vocabulary of 256 thousand is 1 MB, which stays in the last cache. Sums are cut by the
// vocabulary alone, so a row always picks the same.
#include "metal/kernels/sample_filters.h"
#include "metal/kernels/sample_history.h"

// Biases, banned stop tokens and the mask: applied before any sampler.
struct Changes {
  bool biased, may_not_end, masked;
};

// Steps 2 to 4, on a copy. It lies in device memory: a barrier of threadgroup memory alone would
// order nothing of it. A thread masks what it alone reads later.
inline void change(Team team, device const float* logits, device float* copy, uint vocab_size,
                   device const SequenceRecord& record, Changes changes,
                   device const uint* biases, device const uint* mask) {
  for (uint i = team.thread_index; i < vocab_size; i += team.n_threads) copy[i] = logits[i];
  threadgroup_barrier(mem_flags::mem_device);
  if (changes.biased) {
    for (uint i = team.thread_index; i < record.biases.n; i += team.n_threads) {
      const uint token = biases[2 * i];
      const float bias = as_type<float>(biases[2 * i + 1]);
      if (token < vocab_size)
        copy[token] = bias == -infinity() ? -infinity() : copy[token] + bias;
    }
    threadgroup_barrier(mem_flags::mem_device);
  }
  if (changes.may_not_end) {
    for (uint i = team.thread_index; i < record.n_stop_ids; i += team.n_threads)
      if (record.stop_ids[i] < vocab_size) copy[record.stop_ids[i]] = -infinity();
    threadgroup_barrier(mem_flags::mem_device);
  }
  if (changes.masked)
    for (uint i = team.thread_index; i < vocab_size; i += team.n_threads)
      if ((mask[i / 32] >> i % 32 & 1u) == 0) copy[i] = -infinity();
}

// The first by rank of logits as they are, and whether one of them is not a number. Many loads are under way at once:
// one threadgroup reads all.
inline Candidate first_of(Team team, device const float* logits, uint vocab_size,
                          thread bool& has_nan) {
  constexpr uint kAtOnce = 16;
  uint not_numbers = 0;
  Candidate best = Candidate{-infinity(), kNone};
  for (uint first = team.thread_index; first < vocab_size; first += kAtOnce * team.n_threads) {
    float z[kAtOnce];
#pragma unroll
    for (uint j = 0; j < kAtOnce; ++j) {
      const uint i = first + j * team.n_threads;
      z[j] = i < vocab_size ? logits[i] : -infinity();
    }
#pragma unroll
    for (uint j = 0; j < kAtOnce; ++j) {
      const uint i = first + j * team.n_threads;
      not_numbers += isnan(z[j]) ? 1 : 0;
      const bool is_first = z[j] > best.value || (best.token == kNone && i < vocab_size);
      best = Candidate{is_first ? z[j] : best.value, is_first ? i : best.token};
    }
  }
  has_nan = team_sum(team, not_numbers) != 0;
  return team_best(team, best);
}

// True where no sampler can change which token is the most likely.
inline bool is_plain_greedy(device const SequenceRecord& record) {
  return record.sampling.temperature == 0.0f && !has_penalties(record) &&
         record.sampling.dry_multiplier == 0.0f && !(record.sampling.typical_p < 1.0f) &&
         record.sampling.xtc_probability == 0.0f;
}

// A uniform number in [0, 1).
inline float xtc_coin(device const SequenceRecord& record, uint draw) {
  const uint word = philox(uint4(0, draw, record.choice, 1), record.sampling.seed_low,
                           record.sampling.seed_high);
  return float(word >> 8) * 0x1p-24f;
}

// Steps 5 and 6 for logits of which the largest is a finite number.
inline uint draw_token(thread Candidates& from, device const uint* log, uint position, uint draw,
                       device const SequenceRecord& record, Breakers breakers,
                       threadgroup uint* memory) {
  for (uint i = 0; i < kSamplerCount; ++i) {
    const uint sampler = sampler_at(record.sampling.samplers_low, record.sampling.samplers_high, i);
    if (sampler == 0) break;
    switch (sampler) {
      case kSamplerPenalties:
        if (!has_penalties(record)) break;
        make_writable(from);
        penalise(from.team, from.copy, from.vocab_size,
                 history_of(log, position, record, record.sampling.penalty_window), record, memory);
        break;
      case kSamplerDry:
        if (!(record.sampling.dry_multiplier > 0.0f)) break;
        make_writable(from);
        penalise_dry(from.team, from.copy, from.vocab_size,
                     history_of(log, position, record, record.sampling.dry_penalty_last_n), record,
                     breakers, memory);
        break;
      case kSamplerTopNSigma:
        keep_top_n_sigma(from, record.sampling.top_n_sigma);
        break;
      case kSamplerTopK:
        keep_top_k(from, record.sampling.top_k);
        break;
      case kSamplerTypicalP:
        keep_typical_p(from, record.sampling.typical_p);
        break;
      case kSamplerTopP:
        keep_top_p(from, record.sampling.top_p);
        break;
      case kSamplerMinP:
        keep_min_p(from, record.sampling.min_p);
        break;
      case kSamplerXtc:
        if (xtc_coin(record, draw) < record.sampling.xtc_probability)
          drop_top_choices(from, record.sampling.xtc_threshold);
        break;
      case kSamplerTemperature: {
        const float temperature = record.sampling.temperature;
        if (temperature == 0.0f) return best_of(from).token;
        if (from.is_listed) {
          for (uint j = from.team.thread_index; j < from.n; j += from.team.n_threads)
            from.z[j] /= temperature;
          threadgroup_barrier(mem_flags::mem_threadgroup);
        } else {
          from.divisor = temperature;
        }
        from.is_best_known = false;
        const Candidate best = best_of(from);
        if (best.value == infinity()) return best.token;  // an infinite z wins whatever the noise
        break;
      }
      default:
        break;
    }
  }
  return pick(from, record, draw);
}

// `memory`: 4096 words; `partial`: two per SIMD-group; workspace: logits of a row per threadgroup.
// Grid: rows, or fewer threadgroups, which then take several one after the other.
[[kernel]] void sample(
    device const float* logits [[buffer(0)]], device uint* tokens [[buffer(1)]],
    device uint* picked [[buffer(2)]],
    device const uint* masks [[buffer(3), function_constant(kIsBound3)]],
    device const uint* options [[buffer(4), function_constant(kIsBound4)]],
    constant PassRange& pass [[buffer(23)]], device float* workspace [[buffer(24)]],
    constant SampleParams& params [[buffer(25)]], device Row* rows [[buffer(26)]],
    device const SequenceRecord* sequences [[buffer(28)]],
    device Status* statuses [[buffer(29)]], threadgroup uint* memory [[threadgroup(0)]],
    threadgroup float* partial [[threadgroup(1)]], uint3 group [[threadgroup_position_in_grid]],
    uint3 n_groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const Team team = Team{thread_index, simdgroup, lane, n_simdgroups, 32 * n_simdgroups, partial};
  const uint vocab_size = params.vocab_size;
  for (uint r = group.x; r < pass.n_rows; r += n_groups.x) {
    // What the row before left in memory, others may be reading still.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint row_index = pass.first_row + r;
    device const Row& row = rows[row_index];
    if ((row.flags & kRowActive) == 0 || row.head_row == kNone) continue;
    if ((row.flags & (kRowScored | kRowPrompt | kRowChained)) == (kRowScored | kRowPrompt)) continue;
    device const SequenceRecord& record = sequences[row.sequence];
    device uint* log = tokens + ulong(row.sequence) * params.log_stride;
    device const float* from = logits + ulong(row.head_row) * vocab_size;

    uint problem = kStatusOk;
    uint token = kNone;
    bool has_nan = false;
    const Candidate first = first_of(team, from, vocab_size, has_nan);
    if (has_nan) {
      problem = kStatusNotANumber;
    } else {
      Changes changes = Changes{false, false, false};
      device const uint* biases = log;  // or whatever: read only where there are any
      device const uint* mask = log;
      Breakers breakers = Breakers{log, 0};
      if (kIsBound4) {
        device const uint* own_options = options + ulong(row.sequence) * kMaxOptionWords;
        changes.biased = record.biases.n > 0;
        biases = own_options + record.biases.first;
        breakers = Breakers{own_options + record.dry_breakers.first, record.dry_breakers.n};
      }
      if (kIsBound3) {
        changes.masked = (row.flags & kRowMasked) != 0;
        if (changes.masked) mask = masks + ulong(row.head_row) * mask_words(vocab_size);
      }
      changes.may_not_end = row.draw < record.sampling.min_tokens && record.n_stop_ids > 0;
      device float* copy = workspace + ulong(group.x) * vocab_size;
      if (changes.biased || changes.may_not_end || changes.masked) {
        change(team, from, copy, vocab_size, record, changes, biases, mask);
        from = copy;
      }
      Candidates candidates = all_candidates(team, vocab_size, from, copy, memory);
      candidates.best = first;
      candidates.is_best_known = !changes.biased && !changes.may_not_end && !changes.masked;
      const Candidate best = best_of(candidates);
      if (best.value == -infinity()) {
        problem = kStatusNoCandidate;
      } else if (best.value == infinity() || is_plain_greedy(record)) {
        token = best.token;
      } else {
        token = draw_token(candidates, log, row.position, row.draw, record, breakers, memory);
      }
    }
    if (token == kNone) {
      threadgroup_barrier(mem_flags::mem_device);  // all have read the row
      if (thread_index == 0) record_status(statuses, rows, row_index, problem, 0);
      continue;
    }
    if (thread_index != 0) continue;
    picked[row_index] = token;
    // Behind the log's end nothing is written.
    if ((row.flags & kRowChained) != 0 && row.position + 1 < params.log_stride)
      log[row.position + 1] = token;
  }
}
