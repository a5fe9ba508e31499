// logprobs: of scored rows, the logarithm of the probability of the token that follows, and the most likely
// tokens with theirs
//   0 logits: head_rows [head_rows, vocab_size]   1 tokens: log [sequences, log_stride]
//   2 picked: [rows]   3 out: TokenLogprobs [sequences, kLogprobPlaces]   25 LogprobsParams
//   slices: one row   limit: memory: the logits are read three or four times
#include <math.h>

#include "cpu/isa/isa.h"
#include "cpu/kernels/candidates.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/sample_scans.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa>
struct Logprobs {
  static void row(const Call& call, const LogprobsParams& params, uint64_t r, std::byte*) {
    const Row& row = call.rows[r];
    constexpr uint32_t kBoth = kRowActive | kRowScored;
    if ((row.flags & kBoth) != kBoth || row.head_row == kNone) return;
    const uint32_t n = params.vocab_size;
    const float* logits = operand<const float>(call, 0, row.head_row, n);
    const float largest = largest_of<Isa>(logits, n);
    if (holds_nan<Isa>(logits, n) || !__builtin_isfinite(largest))
      return record_status(call, r, kStatusNotANumber, 0);

    double total[1];
    const auto top = Isa::broadcast(largest);
    sum_terms<Isa, 1>(logits, n, -kInfinity, total,
                      [&](typename Isa::Vector v, typename Isa::Vector(&out)[1]) {
                        out[0] = exp<Isa>(Isa::subtract(v, top));
                      });
    const double log_total = static_cast<double>(largest) + ::log(total[0]);
    const auto logprob = [&](float logit) {
      return static_cast<float>(static_cast<double>(logit) - log_total);
    };

    TokenLogprobs& out = operand<TokenLogprobs>(call, 3, row.sequence,
                                                kLogprobPlaces)[row.position % kLogprobPlaces];
    const uint32_t token = next_token(call, params, r, row);
    out.chosen = token < n ? logprob(logits[token]) : -kInfinity;

    Candidate best[kMaxLogprobs];
    uint32_t wanted = call.sequences[row.sequence].n_logprobs;
    wanted = wanted < kMaxLogprobs ? wanted : kMaxLogprobs;
    const uint32_t found = wanted < n ? wanted : n;
    if (found > 0) take_best(logits, n, best, found);
    for (uint32_t i = 0; i < wanted; ++i) {
      out.tokens[i] = i < found ? best[i].token : kNone;
      out.logprobs[i] = i < found ? logprob(best[i].z) : -kInfinity;
    }
  }

 private:
  // The token that the row picked, or of a row of a prompt that picks none, the one behind it in the log.
  static uint32_t next_token(const Call& call, const LogprobsParams& params, uint64_t r,
                             const Row& row) {
    if ((row.flags & (kRowPrompt | kRowChained)) != kRowPrompt)
      return *operand<const uint32_t>(call, 2, r, 1);
    const uint64_t next = uint64_t{row.position} + 1;
    if (next >= params.log_stride) return kNone;
    return operand<const uint32_t>(call, 1, row.sequence, params.log_stride)[next];
  }

  // The first k by rank, in that order.
  static void take_best(const float* logits, uint32_t n, Candidate* best, uint32_t k) {
    for (uint32_t i = 0; i < k; ++i) best[i] = {logits[i], i};
    make_heap<Isa, WorstFirst<Isa>>(best, k);
    float worst = best[0].z;
    for_those_at_least<Isa>(
        logits + k, n - k, [&] { return worst; },
        [&](uint32_t i) {
          if (!(logits[k + i] > worst)) return;  // of equals the first one stays
          best[0] = {logits[k + i], k + i};
          sift_down<Isa, WorstFirst<Isa>>(best, k, 0);
          worst = best[0].z;
        });
    for (uint32_t left = k; left > 1;) {
      const Candidate last = best[0];
      best[0] = best[--left];
      best[left] = last;
      sift_down<Isa, WorstFirst<Isa>>(best, left, 0);
    }
  }
};

constexpr KernelEntry kLogprobsEntries[] = {
    {{Operation::logprobs},
     {RowsKernel<ThisIsa, LogprobsParams, Logprobs<ThisIsa>>::slices,
      RowsKernel<ThisIsa, LogprobsParams, Logprobs<ThisIsa>>::run, nullptr}},
};

}  // namespace

template <>
KernelList Families<ThisIsa>::logprobs() {
  return list_of(kLogprobsEntries);
}

}  // namespace akunu::cpu
