// sample: chooses a row's next token; docs/kernels.md has the steps, in this file's order
//   0 logits: head_rows [head_rows, vocab_size]   1 tokens: log [sequences, log_stride]
//   2 picked: [rows]   3 masks   4 options   25 SampleParams
//   slices: one row
//
// 1. What it computes. A greedy row takes the largest logit, the first of equals. Any other: biases, bans and
//    masks on a copy of the logits; then the samplers of the row's record, each of which changes or drops
//    candidates (sample_scans.h, sample_history.h, sample_candidates.h); then a draw by the row's own random
//    numbers (philox.h), so that it depends on seed and position alone.
// 2. What bounds it. Greedy: memory, the logits are read twice. Sampled: sorting and exponentials of as many
//    candidates as are left.
// 3. What is done about it. Nothing is copied where nothing changes the logits. Scratch holds a candidate per
//    token of the vocabulary (before that, counts of what was said), and behind them the copy.
#include "cpu/isa/isa.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/sample_candidates.h"
#include "cpu/kernels/sample_history.h"
#include "cpu/kernels/sample_scans.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

// Step 2.
template <class Isa>
static void add_biases(float* logits, uint32_t vocab_size, const TokenBias* biases, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    if (biases[i].token >= vocab_size) continue;
    float& logit = logits[biases[i].token];
    logit = biases[i].bias == -kInfinity ? -kInfinity : logit + biases[i].bias;
  }
}

// Step 3.
template <class Isa>
static void ban_stop_ids(float* logits, uint32_t vocab_size, const SequenceRecord& record) {
  for (uint32_t i = 0; i < record.n_stop_ids; ++i)
    if (record.stop_ids[i] < vocab_size) logits[record.stop_ids[i]] = -kInfinity;
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

template <class Isa>
struct Sample {
  static void row(const Call& call, const SampleParams& params, uint64_t r, std::byte* scratch) {
    const Row& row = call.rows[r];
    if (!(row.flags & kRowActive) || row.head_row == kNone) return;
    if ((row.flags & (kRowScored | kRowPrompt | kRowChained)) == (kRowScored | kRowPrompt)) return;
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

  // The option words of the row's sequence; null where the call has none.
  static const uint32_t* options_of(const Call& call, const Row& row) {
    return call.operands[4] == nullptr ? nullptr
                                       : operand<uint32_t>(call, 4, row.sequence, kMaxOptionWords);
  }

  // Steps 2 to 4: a copy, or the logits themselves where nothing changes.
  static const float* changed(const Call& call, const Row& row, const float* logits, uint32_t n,
                              float* copy) {
    const SequenceRecord& record = call.sequences[row.sequence];
    const uint32_t* options = options_of(call, row);
    const bool biased = options != nullptr && record.biases.n > 0,
               may_not_end = row.draw < record.sampling.min_tokens && record.n_stop_ids > 0,
               masked = (row.flags & kRowMasked) != 0;
    if (!biased && !may_not_end && !masked) return logits;
    __builtin_memcpy(copy, logits, sizeof(float) * n);
    if (biased)
      add_biases<Isa>(copy, n, reinterpret_cast<const TokenBias*>(options + record.biases.first),
                      record.biases.n);
    if (may_not_end) ban_stop_ids<Isa>(copy, n, record);
    if (masked) apply_mask<Isa>(copy, n, operand<uint32_t>(call, 3, row.head_row, mask_words(n)));
    return copy;
  }

  // All steps. Returns kNone, and records a status, where no token can be chosen.
  static uint32_t choose(const Call& call, const SampleParams& params, uint32_t r, const Row& row,
                         const uint32_t* log, std::byte* scratch) {
    const float* logits = operand<const float>(call, 0, row.head_row, params.vocab_size);
    if (holds_nan<Isa>(logits, params.vocab_size)) {
      record_status(call, r, kStatusNotANumber, 0);
      return kNone;
    }
    float* copy = reinterpret_cast<float*>(scratch + copy_offset(params.vocab_size));
    logits = changed(call, row, logits, params.vocab_size, copy);
    const float largest = largest_of<Isa>(logits, params.vocab_size);
    if (largest == -kInfinity) {
      record_status(call, r, kStatusNoCandidate, 0);
      return kNone;
    }
    const SequenceRecord& record = call.sequences[row.sequence];
    if (largest == kInfinity || is_plain_greedy(record.sampling))
      return first_with<Isa>(logits, params.vocab_size, largest);
    Candidates<Isa> candidates(logits, params.vocab_size, largest, copy,
                               reinterpret_cast<Candidate*>(scratch));
    return draw(call, params.vocab_size, row, log, candidates);
  }

  // True where no sampler can change which token is the most likely.
  static bool is_plain_greedy(const Sampling& sampling) {
    return sampling.temperature == 0.0f && !has_penalties(sampling) &&
           sampling.dry_multiplier == 0.0f && !(sampling.typical_p < 1.0f) &&
           sampling.xtc_probability == 0.0f;
  }

  // Steps 5 and 6.
  static uint32_t draw(const Call& call, uint32_t vocab_size, const Row& row, const uint32_t* log,
                       Candidates<Isa>& candidates) {
    const SequenceRecord& record = call.sequences[row.sequence];
    const Sampling& sampling = record.sampling;
    const auto counts = [&] { return reinterpret_cast<uint32_t*>(candidates.list_memory()); };
    for (uint32_t i = 0; i < kSamplerCount; ++i) {
      switch (sampler_at(sampling.samplers_low, sampling.samplers_high, i)) {
        case kSamplerPenalties:
          if (has_penalties(sampling)) {
            float* logits = candidates.writable();
            penalize<Isa>(logits, vocab_size,
                          history_of<Isa>(log, row.position, record, sampling.penalty_window),
                          sampling, counts());
          }
          break;
        case kSamplerDry:
          if (sampling.dry_multiplier > 0.0f) {
            float* logits = candidates.writable();
            const uint32_t* options = options_of(call, row);
            const Breakers breakers =
                options == nullptr
                    ? Breakers{nullptr, 0}
                    : Breakers{options + record.dry_breakers.first, record.dry_breakers.n};
            penalize_dry<Isa>(
                logits, vocab_size,
                history_of<Isa>(log, row.position, record, sampling.dry_penalty_last_n), sampling,
                breakers, counts());
          }
          break;
        case kSamplerTopNSigma:
          candidates.keep_top_n_sigma(sampling.top_n_sigma);
          break;
        case kSamplerTopK:
          candidates.keep_top_k(sampling.top_k);
          break;
        case kSamplerTypicalP:
          candidates.keep_typical_p(sampling.typical_p);
          break;
        case kSamplerTopP:
          candidates.keep_top_p(sampling.top_p);
          break;
        case kSamplerMinP:
          candidates.keep_min_p(sampling.min_p);
          break;
        case kSamplerXtc:
          if (xtc_coin(record, row.draw) < sampling.xtc_probability)
            candidates.drop_top_choices(sampling.xtc_threshold);
          break;
        case kSamplerTemperature:
          if (uint32_t only = kNone; !candidates.set_temperature(sampling.temperature, only))
            return only;
          break;
        default:
          i = kSamplerCount;
      }
    }
    return candidates.pick(record, row.draw);
  }

  // A uniform number in [0, 1).
  static float xtc_coin(const SequenceRecord& record, uint32_t draw) {
    const auto words = philox4x32_10<Isa>(Isa::broadcast_bits(0), draw, record.choice, 1,
                                          record.sampling.seed_low, record.sampling.seed_high);
    return static_cast<float>(Isa::first_lane(words) >> 8) * 0x1p-24f;
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
