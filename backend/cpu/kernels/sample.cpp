// sample: chooses a row's next token; docs/kernels.md has the steps, in this file's order
//   0 logits: head_rows [head_rows, vocab_size]   1 tokens: log [sequences, log_stride]
//   2 picked: [rows]   3 masks   4 options   25 SampleParams
//   slices: one row   limit: memory when greedy: the logits are read twice
// Scratch holds one candidate per token of the vocabulary (before that, the penalties' counts), and
// behind them a copy of the logits where a row's record changes some.
#include <math.h>

#include "cpu/isa/isa.h"
#include "cpu/kernels/candidates.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/sample_noise.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

constexpr float kInfinity = __builtin_inff();

// Calls visit(i, vector, n) for all of `values`, n (1 to 8) at a time; lanes past n are 0.
template <class Isa, class Visit>
static inline void for_vectors(const float* values, uint32_t count, const Visit& visit) {
  uint32_t i = 0;
  for (; i + Isa::kLanes <= count; i += Isa::kLanes) visit(i, Isa::load(values + i), Isa::kLanes);
  if (i < count) visit(i, Isa::load(values + i, count - i), count - i);
}

// Calls visit(i) for every i, in order, where values[i] < bound() does not hold.
template <class Isa, class Bound, class Visit>
static inline void for_those_at_least(const float* values, uint32_t count, const Bound& bound,
                                      const Visit& visit) {
  for_vectors<Isa>(values, count, [&](uint32_t i, typename Isa::Vector v, uint32_t n) {
    uint32_t hits = Isa::not_less(v, Isa::broadcast(bound())) & ((1u << n) - 1);
    for (; hits != 0; hits &= hits - 1) visit(i + static_cast<uint32_t>(__builtin_ctz(hits)));
  });
}

template <class Isa>
static float largest_of(const float* values, uint32_t count) {
  auto largest = Isa::broadcast(-kInfinity);
  float rest = -kInfinity;
  for_vectors<Isa>(values, count, [&](uint32_t i, typename Isa::Vector v, uint32_t n) {
    if (n == Isa::kLanes) {
      largest = Isa::maximum(v, largest);
    } else {
      for (uint32_t j = i; j < i + n; ++j) rest = values[j] > rest ? values[j] : rest;
    }
  });
  const float vectors = Isa::max_lanes(largest);
  return vectors > rest ? vectors : rest;
}

template <class Isa>
static uint32_t first_with(const float* values, uint32_t count, float value) {
  for (uint32_t i = 0; i < count; i += Isa::kLanes) {
    const uint32_t n = count - i < Isa::kLanes ? count - i : Isa::kLanes;
    const uint32_t hits =
        Isa::not_less(Isa::load(values + i, n), Isa::broadcast(value)) & ((1u << n) - 1);
    if (hits != 0) return i + static_cast<uint32_t>(__builtin_ctz(hits));
  }
  return kNone;
}

// Step 1.
template <class Isa>
static bool holds_nan(const float* logits, uint32_t count) {
  uint32_t nan = 0;
  for_vectors<Isa>(logits, count,
                   [&](uint32_t, typename Isa::Vector v, uint32_t) { nan |= Isa::is_nan(v); });
  return nan != 0;
}

// Step 2, which works on a copy.
template <class Isa>
static void add_biases(float* logits, uint32_t vocab_size, const TokenBias* biases, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    if (biases[i].token >= vocab_size) continue;
    float& logit = logits[biases[i].token];
    logit = biases[i].bias == -kInfinity ? -kInfinity : logit + biases[i].bias;
  }
}

// Step 3. `counts` has an entry per token of the vocabulary; only those of the window are touched.
template <class Isa>
static void penalize(float* logits, uint32_t vocab_size, const uint32_t* log, uint32_t position,
                     const SequenceRecord& record, uint32_t* counts) {
  const uint64_t end = uint64_t{position} + 1;
  const uint64_t begin =
      end > record.sampling.penalty_window ? end - record.sampling.penalty_window : 0;
  for (uint64_t i = begin; i < end; ++i)
    if (log[i] < vocab_size) counts[log[i]] = 0;
  for (uint64_t i = begin; i < end; ++i)
    if (log[i] < vocab_size) ++counts[log[i]];
  for (uint64_t i = begin; i < end; ++i) {
    const uint32_t token = log[i];
    if (token >= vocab_size || counts[token] == 0) continue;
    float& logit = logits[token];
    logit = logit > 0 ? logit / record.sampling.repetition_penalty
                      : logit * record.sampling.repetition_penalty;
    logit = logit - (static_cast<float>(counts[token]) * record.sampling.frequency_penalty +
                     record.sampling.presence_penalty);
    counts[token] = 0;
  }
}

// Step 4.
template <class Isa>
static void apply_mask(float* logits, uint32_t vocab_size, const uint32_t* mask) {
  for (uint32_t first = 0; first < vocab_size; first += 32) {
    const uint32_t n = vocab_size - first < 32 ? vocab_size - first : 32;
    uint32_t banned = ~mask[first / 32];
    if (n < 32) banned &= (1u << n) - 1;
    for (; banned != 0; banned &= banned - 1)
      logits[first + static_cast<uint32_t>(__builtin_ctz(banned))] = -kInfinity;
  }
}

// z of the candidates, and what stays of them.
template <class Isa>
struct Filter {
  const float* logits;
  uint32_t vocab_size;
  const SequenceRecord& record;
  float largest_z;
  Candidate* list;  // the candidates, in any order
  uint32_t n = 0;

  float z_of(uint32_t token) const { return logits[token] / record.sampling.temperature; }

  // e^(z - largest) of eight numbers.
  void weights(const float (&z)[8], float (&out)[8]) const {
    Isa::store(out, exp<Isa>(Isa::subtract(Isa::load(z), Isa::broadcast(largest_z))));
  }
  float weight(float z) const {
    const float all[8] = {z, z, z, z, z, z, z, z};
    float out[8];
    weights(all, out);
    return out[0];
  }

  // All tokens with z >= bound, by token.
  void take_at_least(float bound) {
    // A logit this far below bound * temperature is below it after any rounding.
    const float product = bound * record.sampling.temperature;
    const float coarse = product - 0x1p-20f * __builtin_fabsf(product) - 0x1p-100f;
    n = 0;
    for_those_at_least<Isa>(
        logits, vocab_size, [&] { return coarse; },
        [&](uint32_t token) {
          const float z = z_of(token);
          if (z >= bound) list[n++] = {z, token};
        });
  }

  // The first k by rank. Tokens come in order, so that a later one must be strictly better.
  void take_top_k(uint32_t k) {
    for (n = 0; n < k; ++n) list[n] = {z_of(n), n};
    make_heap<Isa, WorstFirst<Isa>>(list, k);
    // The logits order like z, but for rounding: equal z may come from logits that differ.
    float worst = logits[list[0].token];
    for_those_at_least<Isa>(
        logits + k, vocab_size - k, [&] { return worst; },
        [&](uint32_t i) {
          const float z = z_of(k + i);
          if (!(z > list[0].z)) return;
          list[0] = {z, k + i};
          sift_down<Isa, WorstFirst<Isa>>(list, k, 0);
          worst = logits[list[0].token];
        });
  }

  // Sum of e^(z - largest) over the vocabulary: floats within 8 * 32 tokens, then doubles.
  double total_weight() const {
    const auto temperature = Isa::broadcast(record.sampling.temperature);
    const auto largest = Isa::broadcast(largest_z);
    double total = 0;
    auto part = Isa::zero();
    uint32_t step = 0;
    for_vectors<Isa>(logits, vocab_size, [&](uint32_t i, typename Isa::Vector v, uint32_t count) {
      if (count < Isa::kLanes) {
        for (uint32_t j = i; j < i + count; ++j) total += static_cast<double>(weight(z_of(j)));
        return;
      }
      part = Isa::add(part, exp<Isa>(Isa::subtract(Isa::divide(v, temperature), largest)));
      if (++step % 32 == 0) {
        total += static_cast<double>(Isa::sum_lanes(part));
        part = Isa::zero();
      }
    });
    return total + static_cast<double>(Isa::sum_lanes(part));
  }

  // Keeps the shortest prefix by rank whose weight reaches top_p * total: it gathers at the list's
  // end while the heap of the others shrinks.
  void keep_top_p(double total) {
    make_heap<Isa, BestFirst<Isa>>(list, n);
    const double enough = static_cast<double>(record.sampling.top_p) * total;
    double sum = 0;
    uint32_t left = n;
    while (left > 0) {
      const Candidate best = list[0];
      list[0] = list[--left];
      list[left] = best;
      if (left > 0) sift_down<Isa, BestFirst<Isa>>(list, left, 0);
      sum += static_cast<double>(weight(best.z));
      if (sum >= enough) break;
    }
    list += left;
    n -= left;
  }

  void keep_min_p() {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; ++i)
      if (weight(list[i].z) >= record.sampling.min_p) list[kept++] = list[i];
    n = kept;
  }

  // Step 7 over the list, and for one token.
  Candidate pick(uint32_t draw) const {
    Candidate best = {-kInfinity, kNone};
    for (uint32_t first = 0; first < n; first += 8) {
      const uint32_t count = n - first < 8 ? n - first : 8;
      uint32_t words[8] = {};
      float z[8] = {};
      for (uint32_t i = 0; i < count; ++i) {
        const Candidate& candidate = list[first + i];
        words[i] = philox4x32_10<Isa>({{candidate.token, draw, record.choice, 0}},
                                      record.sampling.seed_low, record.sampling.seed_high)
                       .word[0];
        z[i] = candidate.z;
      }
      Isa::store(z, Isa::add(Isa::load(z), gumbel<Isa>(words)));
      for (uint32_t i = 0; i < count; ++i) {
        const Candidate noisy = {z[i], list[first + i].token};
        if (best.token == kNone || BestFirst<Isa>::above(noisy, best)) best = noisy;
      }
    }
    return best;
  }
};

// Steps 6 and 7. `largest` is the largest logit, at `top`; it is not -inf.
template <class Isa>
static uint32_t draw_token(const float* logits, uint32_t vocab_size, float largest, uint32_t top,
                           const SequenceRecord& record, uint32_t draw, Candidate* list) {
  const float largest_z = largest / record.sampling.temperature;
  Filter<Isa> filter{logits, vocab_size, record, largest_z, list};
  if (largest_z == kInfinity) {  // no finite noise matters then: the first of them
    for (uint32_t i = 0; i < top; ++i)
      if (filter.z_of(i) == kInfinity) return i;
    return top;
  }
  const bool top_k = record.sampling.top_k > 0 && record.sampling.top_k < vocab_size;
  const bool top_p = record.sampling.top_p < 1.0f;
  if (top_k) {
    filter.take_top_k(record.sampling.top_k);
    if (top_p) {
      double total = 0;
      for (uint32_t i = 0; i < filter.n; ++i)
        total += static_cast<double>(filter.weight(list[i].z));
      filter.keep_top_p(total);
    }
  } else if (top_p) {
    // Tokens of less than (1 - top_p) / vocab_size of the total, and that is at least 1, are
    // together less than what top-p drops; half of it leaves room for rounding.
    const double rest = 0.5 * (1.0 - static_cast<double>(record.sampling.top_p)) / vocab_size;
    filter.take_at_least(largest_z + static_cast<float>(::log(rest)));
    filter.keep_top_p(filter.total_weight());
  } else {
    // Whoever is further behind the best than any noise can be has lost already.
    list[0] = {largest_z, top};
    filter.n = 1;
    filter.take_at_least(filter.pick(draw).z - kLargestNoise);
  }
  if (record.sampling.min_p > 0) filter.keep_min_p();
  return filter.pick(draw).token;
}

template <class Isa>
struct Sample {
  static void row(const Call& call, const SampleParams& params, uint64_t r, std::byte* scratch) {
    const Row& row = call.rows[r];
    if (!(row.flags & kRowActive) || row.head_row == kNone) return;
    uint32_t* log = operand<uint32_t>(call, 1, row.sequence, params.log_stride);
    const uint32_t token = choose(call, params, static_cast<uint32_t>(r), row, log, scratch);
    if (token == kNone) return;
    *operand<uint32_t>(call, 2, r, 1) = token;
    const uint64_t next = uint64_t{row.position} + 1;
    if ((row.flags & kRowChained) && next < params.log_stride) log[next] = token;
  }

  static uint64_t scratch_bytes(const Call& call) {
    const uint32_t vocab_size = static_cast<const SampleParams*>(call.params)->vocab_size;
    return copy_offset(vocab_size) + sizeof(float) * vocab_size;
  }

 private:
  static uint64_t copy_offset(uint32_t vocab_size) {
    return (sizeof(Candidate) * vocab_size + 63) / 64 * 64;
  }

  // The logits as the record changes them: a copy, or the logits themselves where it changes none.
  static const float* changed(const Call& call, const SampleParams& params, const Row& row,
                              const float* logits, const uint32_t* log, std::byte* scratch) {
    const SequenceRecord& record = call.sequences[row.sequence];
    const uint32_t n = params.vocab_size;
    const bool biased = call.operands[4] != nullptr && record.biases.n > 0,
               masked = (row.flags & kRowMasked) != 0,
               penalized = record.sampling.repetition_penalty != 1.0f ||
                           record.sampling.frequency_penalty != 0.0f ||
                           record.sampling.presence_penalty != 0.0f;
    if (!biased && !masked && !penalized) return logits;
    float* copy = reinterpret_cast<float*>(scratch + copy_offset(n));
    __builtin_memcpy(copy, logits, sizeof(float) * n);
    if (biased) {
      const uint32_t* options = operand<uint32_t>(call, 4, row.sequence, kMaxOptionWords);
      add_biases<Isa>(copy, n, reinterpret_cast<const TokenBias*>(options + record.biases.first),
                      record.biases.n);
    }
    if (penalized)
      penalize<Isa>(copy, n, log, row.position, record, reinterpret_cast<uint32_t*>(scratch));
    if (masked) apply_mask<Isa>(copy, n, operand<uint32_t>(call, 3, row.head_row, mask_words(n)));
    return copy;
  }

  // kNone where there is nothing to choose, which is recorded.
  static uint32_t choose(const Call& call, const SampleParams& params, uint32_t r, const Row& row,
                         const uint32_t* log, std::byte* scratch) {
    const SequenceRecord& record = call.sequences[row.sequence];
    const float* logits = operand<const float>(call, 0, row.head_row, params.vocab_size);
    if (holds_nan<Isa>(logits, params.vocab_size)) {
      record_status(call, r, kStatusNotANumber, 0);
      return kNone;
    }
    logits = changed(call, params, row, logits, log, scratch);
    const float largest = largest_of<Isa>(logits, params.vocab_size);
    if (largest == -kInfinity) {
      record_status(call, r, kStatusNoCandidate, 0);
      return kNone;
    }
    const uint32_t top = first_with<Isa>(logits, params.vocab_size, largest);
    if (record.sampling.temperature == 0.0f) return top;
    return draw_token<Isa>(logits, params.vocab_size, largest, top, record, row.draw,
                           reinterpret_cast<Candidate*>(scratch));
  }
};

using Rows = RowsKernel<ThisIsa, SampleParams, Sample<ThisIsa>>;

constexpr KernelEntry kSampleEntries[] = {
    {{Operation::sample}, {Rows::slices, Rows::run, Sample<ThisIsa>::scratch_bytes}},
};

}  // namespace

template <>
KernelList Families<ThisIsa>::sample() {
  return list_of(kSampleEntries);
}

}  // namespace akunu::cpu
