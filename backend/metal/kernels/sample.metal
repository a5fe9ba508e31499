// sample: chooses a row's next token; docs/kernels.md has the steps, in this file's order. One
// threadgroup samples a row; the host takes no part.
//
// Floor: the logits are read twice when greedy (not a number? the largest), four to six times when
// drawing; a vocabulary of 256 thousand is 1 MB, which stays in the last cache. What costs more
// than a read per token (noise, masses) is done for those only that can still be picked: a bound
// from top_k, top_p, min_p or the largest noise leaves a list that fits the threadgroup's memory;
// if it does not, the same steps walk the logits themselves. Every cut is exact: a bisection over
// the floats' bits by counts or masses, ties by the lowest token, where a bisection over a range of
// values would be off by one at its edge. Sums are cut by the vocabulary alone, so a row always
// picks the same.
#include "metal/kernels/sample.h"

constant constexpr uint kListed = 2048;  // candidates in threadgroup memory
constant constexpr uint kWindow = 1024;  // tokens of a penalty window that are compared one by one
constant constexpr uint kCounts = 4096;  // tokens counted at a time for longer windows

// What is chosen from: the list, or all logits.
struct Source {
  device const float* logits;
  float temperature;
  bool is_listed;
  uint n;
  threadgroup const float* z;
  threadgroup const uint* tokens;
};
inline Candidate candidate(Source from, uint i) {
  if (from.is_listed) return Candidate{from.z[i], from.tokens[i]};
  return Candidate{from.logits[i] / from.temperature, i};
}

// The candidates that are left: those with a larger key, and of an equal one the tokens up to
// `last`.
struct Cut {
  uint key, last;
};
inline bool is_inside(Cut cut, uint key, uint token) {
  return key > cut.key || (key == cut.key && token <= cut.last);
}

inline uint count_from(Team team, Source from, uint key) {
  uint n = 0;
  for (uint i = team.thread_index; i < from.n; i += team.n_threads)
    n += key_of(candidate(from, i).value) >= key ? 1 : 0;
  return team_sum(team, n);
}

// The token of the n-th (from 1) candidate with exactly this key, by token.
inline uint nth_equal(Team team, Source from, uint key, uint n, uint vocab_size) {
  uint low = 0, high = vocab_size - 1;  // the answer lies in between
  while (low < high) {
    const uint middle = low + (high - low) / 2;
    uint count = 0;
    for (uint i = team.thread_index; i < from.n; i += team.n_threads) {
      const Candidate c = candidate(from, i);
      count += key_of(c.value) == key && c.token <= middle ? 1 : 0;
    }
    if (team_sum(team, count) >= n) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// The first k by rank, of at least k.
inline Cut cut_top_k(Team team, Source from, uint k, uint largest_key, uint vocab_size) {
  uint low = 0, high = largest_key + 1, above = 0;  // count(low) >= k > count(high) = above
  uint reached = 0xffffffffu;                       // count(low), once known
  while (high - low > 1) {
    const uint middle = low + (high - low) / 2;
    const uint count = count_from(team, from, middle);
    if (count == k) return Cut{middle, kNone};
    if (count > k) {
      low = middle;
      reached = count;
    } else {
      high = middle;
      above = count;
    }
  }
  const uint wanted = k - above;
  if (reached == 0xffffffffu) reached = count_from(team, from, low);
  if (reached - above == wanted) return Cut{low, kNone};
  return Cut{low, nth_equal(team, from, low, wanted, vocab_size)};
}

inline Mass mass_from(Team team, Source from, Cut cut, uint key, float largest_z) {
  Mass mass = Mass{0.0f, 0.0f};
  for (uint i = team.thread_index; i < from.n; i += team.n_threads) {
    const Candidate c = candidate(from, i);
    const uint own = key_of(c.value);
    if (own >= key && is_inside(cut, own, c.token))
      mass = sum_of(mass, Mass{exp_of(c.value - largest_z), 0.0f});
  }
  return team_mass(team, mass);
}

// Of what `cut` leaves, the shortest prefix by rank with at least the mass `enough`.
inline Cut cut_top_p(Team team, Source from, Cut cut, Mass enough, Candidate first,
                     uint vocab_size) {
  const uint largest_key = key_of(first.value);
  if (reaches(Mass{1.0f, 0.0f}, enough)) return Cut{largest_key, first.token};
  uint low = cut.key, high = largest_key + 1;  // mass(low) >= enough > mass(high) = above
  Mass above = Mass{0.0f, 0.0f};
  while (high - low > 1) {
    const uint middle = low + (high - low) / 2;
    const Mass mass = mass_from(team, from, cut, middle, first.value);
    if (reaches(mass, enough)) {
      low = middle;
    } else {
      high = middle;
      above = mass;
    }
  }
  uint equals = 0;
  for (uint i = team.thread_index; i < from.n; i += team.n_threads) {
    const Candidate c = candidate(from, i);
    equals += key_of(c.value) == low && is_inside(cut, low, c.token) ? 1 : 0;
  }
  equals = team_sum(team, equals);
  const float missing = (enough.high - above.high) + (enough.low - above.low);
  const float shares = missing / exp_of(value_of(low) - first.value);
  if (!(shares < float(equals))) return Cut{low, low == cut.key ? cut.last : uint(kNone)};
  uint wanted = uint(shares);
  if (float(wanted) < shares) ++wanted;
  return Cut{low, nth_equal(team, from, low, max(wanted, 1u), vocab_size)};
}

// Step 3. The window ends with the row's own token, whatever the log holds behind it: entries of an
// earlier answer must not count.
inline float penalised(float logit, uint count, device const SequenceRecord& record) {
#pragma clang fp contract(off)
  const float bent =
      logit > 0.0f ? logit / record.sampling.repetition_penalty : logit * record.sampling.repetition_penalty;
  const float product = float(count) * record.sampling.frequency_penalty;  // rounded, as the contract asks
  return bent - (product + record.sampling.presence_penalty);
}
inline void penalise(Team team, device float* logits, uint vocab_size, device const uint* log,
                     uint position, device const SequenceRecord& record, threadgroup uint* memory) {
  const uint end = position + 1;
  const uint n = min(end, record.sampling.penalty_window);
  device const uint* window = log + (end - n);
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
    threadgroup_barrier(mem_flags::mem_threadgroup);
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
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

// The largest value and its lowest index.
inline Candidate best_logit(Team team, device const float* logits, uint vocab_size) {
  Candidate best = Candidate{-infinity(), kNone};
  for (uint i = team.thread_index; i < vocab_size; i += team.n_threads) {
    const Candidate c = Candidate{logits[i], i};
    if (best.token == kNone || is_better(c, best)) best = c;
  }
  return team_best(team, best);
}

inline float noisy(Candidate c, device const SequenceRecord& record, uint draw) {
  return c.value +
         gumbel(philox(uint4(c.token, draw, record.choice, 0), record.sampling.seed_low, record.sampling.seed_high));
}

// Steps 6 and 7 for a temperature above 0. `largest` is the largest logit; it is not -inf.
inline uint draw_token(Team team, device const float* logits, uint vocab_size, float largest,
                       device const SequenceRecord& record, uint draw, threadgroup uint* memory) {
  const float temperature = record.sampling.temperature, largest_z = largest / temperature;
  // Equal z may come from logits that differ, so the best token is found anew.
  uint first = kNone;
  float own_largest = -infinity();
  for (uint i = team.thread_index; i < vocab_size; i += team.n_threads) {
    const float z = logits[i] / temperature;
    own_largest = max(own_largest, z);
    if (z == largest_z) first = min(first, i);
  }
  const Candidate top = Candidate{largest_z, team_min(team, first)};
  if (largest_z == infinity()) return top.token;  // no finite noise matters then
  const uint largest_key = key_of(largest_z);
  const bool has_top_k = record.sampling.top_k > 0 && record.sampling.top_k < vocab_size,
             has_top_p = record.sampling.top_p < 1.0f;

  // Whoever is below the bound is not picked.
  uint bound = 0;
  if (has_top_k) {
    // The k-th of the threads' own largest: k tokens at least are as large.
    if (record.sampling.top_k <= team.n_threads) {
      const uint own_key = key_of(own_largest);
      uint high = largest_key + 1;
      while (high - bound > 1) {
        const uint middle = bound + (high - bound) / 2;
        if (team_sum(team, own_key >= middle ? 1u : 0u) >= record.sampling.top_k) {
          bound = middle;
        } else {
          high = middle;
        }
      }
    }
  } else if (has_top_p) {
    // Tokens of less than (1 - top_p) / vocab_size of the total, which is at least 1, are together
    // less than what top_p drops; half of it leaves room for rounding.
    bound = key_of(largest_z + log_of(0.5f * (1.0f - record.sampling.top_p) / float(vocab_size)));
  } else {
    // Whoever is further behind the best than any noise can be has lost already.
    bound = min(largest_key, key_of(noisy(top, record, draw) - kLargestNoise));
    if (record.sampling.min_p > 0.0f && record.sampling.min_p <= 1.0f)
      bound = max(bound,
                  min(largest_key, key_of(largest_z + log_of(max(record.sampling.min_p, 1e-37f)) - 0.01f)));
  }

  // The list, in an order that depends on nothing but the logits: an atomic counter would shuffle
  // it, and sums of masses with it.
  const Source all = Source{logits,
                            temperature,
                            false,
                            vocab_size,
                            reinterpret_cast<threadgroup const float*>(memory),
                            memory + kListed};
  Source from = all;
  uint own = 0;
  for (uint i = team.thread_index; i < vocab_size; i += team.n_threads)
    own += key_of(logits[i] / temperature) >= bound ? 1 : 0;
  uint n = 0;
  uint place = team_prefix(team, own, n);
  if (n <= kListed) {
    threadgroup float* listed_z = reinterpret_cast<threadgroup float*>(memory);
    threadgroup uint* listed_tokens = memory + kListed;
    for (uint i = team.thread_index; i < vocab_size; i += team.n_threads) {
      const float z = logits[i] / temperature;
      if (key_of(z) < bound) continue;
      listed_z[place] = z;
      listed_tokens[place] = i;
      ++place;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    from.is_listed = true;
    from.n = n;
  }

  Cut cut = Cut{0, kNone};
  if (has_top_k) cut = cut_top_k(team, from, record.sampling.top_k, largest_key, vocab_size);
  if (has_top_p) {
    const Mass total = has_top_k ? mass_from(team, from, cut, 0, largest_z)
                                 : mass_from(team, all, cut, 0, largest_z);
    const float product = record.sampling.top_p * total.high;
    const Mass enough =
        Mass{product, fma(record.sampling.top_p, total.high, -product) + record.sampling.top_p * total.low};
    cut = cut_top_p(team, from, cut, enough, top, vocab_size);
  }
  Candidate best = Candidate{-infinity(), kNone};
  for (uint i = team.thread_index; i < from.n; i += team.n_threads) {
    const Candidate c = candidate(from, i);
    if (!is_inside(cut, key_of(c.value), c.token)) continue;
    if (record.sampling.min_p > 0.0f && !(exp_of(c.value - largest_z) >= record.sampling.min_p)) continue;
    const Candidate chosen = Candidate{noisy(c, record, draw), c.token};
    if (is_better(chosen, best)) best = chosen;
  }
  return team_best(team, best).token;
}

// What a record changes of its row's logits.
struct Changes {
  bool biased, penalised, masked;
};

// Steps 2 to 4, on a copy. It lies in device memory: a barrier of threadgroup memory alone would
// order nothing of it. A thread copies and masks what it alone reads later.
inline void change(Team team, device const float* logits, device float* copy, uint vocab_size,
                   device const uint* log, uint position, device const SequenceRecord& record,
                   Changes changes, device const uint* biases, device const uint* mask,
                   threadgroup uint* memory) {
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
  if (changes.penalised) {
    penalise(team, copy, vocab_size, log, position, record, memory);
    threadgroup_barrier(mem_flags::mem_device);
  }
  if (changes.masked)
    for (uint i = team.thread_index; i < vocab_size; i += team.n_threads)
      if ((mask[i / 32] >> i % 32 & 1u) == 0) copy[i] = -infinity();
}

inline bool holds_nan(Team team, device const float* logits, uint vocab_size) {
  uint not_numbers = 0;
  for (uint i = team.thread_index; i < vocab_size; i += team.n_threads)
    not_numbers += isnan(logits[i]) ? 1 : 0;
  return team_sum(team, not_numbers) != 0;
}

// Steps 5 to 7; kNone where there is nothing to choose.
inline uint choose(Team team, device const float* logits, uint vocab_size,
                   device const SequenceRecord& record, uint draw, threadgroup uint* memory) {
  const Candidate best = best_logit(team, logits, vocab_size);
  if (best.value == -infinity()) return kNone;
  if (record.sampling.temperature == 0.0f) return best.token;
  return draw_token(team, logits, vocab_size, best.value, record, draw, memory);
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
    device const SequenceRecord& record = sequences[row.sequence];
    device uint* log = tokens + ulong(row.sequence) * params.log_stride;
    device const float* from = logits + ulong(row.head_row) * vocab_size;

    uint problem = kStatusOk;
    uint token = kNone;
    if (holds_nan(team, from, vocab_size)) {
      problem = kStatusNotANumber;
    } else {
      Changes changes = Changes{false, false, false};
      device const uint* biases = log;  // or whatever: read only where there are any
      device const uint* mask = log;
      if (kIsBound4) {
        changes.biased = record.biases.n > 0;
        biases = options + ulong(row.sequence) * kMaxOptionWords + record.biases.first;
      }
      if (kIsBound3) {
        changes.masked = (row.flags & kRowMasked) != 0;
        if (changes.masked) mask = masks + ulong(row.head_row) * mask_words(vocab_size);
      }
      changes.penalised = record.sampling.repetition_penalty != 1.0f ||
                          record.sampling.frequency_penalty != 0.0f ||
                          record.sampling.presence_penalty != 0.0f;
      if (changes.biased || changes.penalised || changes.masked) {
        device float* copy = workspace + ulong(group.x) * vocab_size;
        change(team, from, copy, vocab_size, log, row.position, record, changes, biases, mask,
               memory);
        from = copy;
      }
      token = choose(team, from, vocab_size, record, row.draw, memory);
      if (token == kNone) problem = kStatusNoCandidate;
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
