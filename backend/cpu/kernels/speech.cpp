// What models of speech compute with and others do not; cross_attention is in attention.cpp.
//   unfold: the inputs of a convolution along the rows of a span, channel after channel:
//           out[r, c * width + j] = input[stride * r + j - padding, c], 0 outside of the span's input,
//           which are rows [stride * first_row, stride * (first_row + n_rows))
//     0 input: rows [stride * rows, n_channels]   1 out: activation [rows, n_channels * width]
//     25 UnfoldParams
//   cross_weights: softmax(query . keys * scale) over all of an encoder's positions, of some heads of
//                  rows with a head row: out[head_row, first + i, position]
//     0 query: rows [rows, n_heads * head_dim]   1 key_cache: [page][kv_head][256][head_dim]
//     2 out: head_rows [., n_out, n_positions]   25 CrossWeightsParams
//   transcription_rules: logits of what may not follow become -inf
//     0 logits: head_rows [head_rows, vocab_size]   1 tokens: log   2 options
//     25 TranscriptionRulesParams
//   slices: one row   limit: latency; memory: the logits are read twice and written in part
#include <math.h>

#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/sample_scans.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa, class Activation>
struct Unfold {
  static void row(const Call& call, const UnfoldParams& params, uint64_t r, std::byte* scratch) {
    const Span& span = call.spans[call.rows[r].span];
    const uint32_t n_channels = params.n_channels, width = params.width;
    float* const unfolded = reinterpret_cast<float*>(scratch);
    const int64_t begin = int64_t{span.first_row} * params.stride;
    const int64_t end = (int64_t{span.first_row} + span.n_rows) * params.stride;
    for (uint32_t j = 0; j < width; ++j) {
      const int64_t from = static_cast<int64_t>(r) * params.stride + j - params.padding;
      const bool is_there = from >= begin && from < end;
      const float* input =
          is_there ? operand<const float>(call, 0, static_cast<uint64_t>(from), n_channels)
                   : nullptr;
      for (uint32_t c = 0; c < n_channels; ++c) unfolded[c * width + j] = is_there ? input[c] : 0;
    }
    const uint32_t k = n_channels * width;
    Activation::write(call.operands[1] + r * Activation::row_bytes(k), k, 0, k,
                      [&](uint32_t i, uint32_t n) { return Isa::load(unfolded + i, n); });
  }
  static uint64_t scratch_bytes(const Call& call) {
    const auto& params = *static_cast<const UnfoldParams*>(call.params);
    return sizeof(float) * (uint64_t{params.n_channels} * params.width + Isa::kLanes);
  }
};

template <class Isa, class Cache>
struct CrossWeights {
  using Vector = typename Isa::Vector;

  static void row(const Call& call, const CrossWeightsParams& params, uint64_t r, std::byte*) {
    const Row& row = call.rows[r];
    if (row.head_row == kNone) return;
    const uint32_t n = params.n_positions;
    const float* query =
        operand<const float>(call, 0, r, uint64_t{params.n_heads} * params.head_dim);
    float* out = operand<float>(call, 2, row.head_row, uint64_t{params.n_out} * n) +
                 uint64_t{params.first} * n;
    for (uint32_t head = 0; head < params.n_heads && head < 32; ++head) {
      if ((params.heads >> head & 1) == 0) continue;
      weigh_positions(call, params, row, query + uint64_t{head} * params.head_dim,
                      head / (params.n_heads / params.n_kv_heads), out);
      out += n;
    }
  }

 private:
  static void weigh_positions(const Call& call, const CrossWeightsParams& params, const Row& row,
                              const float* query, uint32_t kv_head, float* weights) {
    const uint32_t n = params.n_positions, head_dim = params.head_dim;
    for (uint32_t first = 0; first < n; first += kPagePositions) {
      const std::byte* keys =
          call.operands[1] + cache_page<Cache>(call, params, row.sequence, kv_head, first);
      const uint32_t here = n - first < kPagePositions ? n - first : kPagePositions;
      for (uint32_t i = 0; i < here; ++i)
        weights[first + i] =
            dot(query, keys + i * Cache::row_bytes(head_dim), head_dim) * params.scale;
    }
    const auto top = Isa::broadcast(largest_of<Isa>(weights, n));
    double total[1];
    sum_terms<Isa, 1>(weights, n, -kInfinity, total, [&](Vector v, Vector(&terms)[1]) {
      terms[0] = exp<Isa>(Isa::subtract(v, top));
    });
    const auto factor = Isa::broadcast(static_cast<float>(1.0 / total[0]));
    for (uint32_t i = 0; i < n; i += Isa::kLanes) {
      const uint32_t left = n - i < Isa::kLanes ? n - i : Isa::kLanes;
      const auto weight = exp<Isa>(Isa::subtract(Isa::load(weights + i, left), top));
      Isa::store(weights + i, Isa::multiply(weight, factor), left);
    }
  }

  static float dot(const float* query, const std::byte* key, uint32_t n) {
    auto sum = Isa::zero();
    for (uint32_t i = 0; i < n; i += Isa::kLanes) {
      const uint32_t left = n - i < Isa::kLanes ? n - i : Isa::kLanes;
      sum = Isa::multiply_add(Isa::load(query + i, left), Cache::load(key, i, left), sum);
    }
    return Isa::sum_lanes(sum);
  }
};

// The rules are those of Whisper's own decoder (Radford et al., 2022). Timestamps come in pairs, the
// end of a segment and the beginning of the next, and never go back; where the timestamps together
// are likelier than every other token, it is one of them.
template <class Isa>
struct TranscribeByRules {
  static void row(const Call& call, const TranscriptionRulesParams& params, uint64_t r,
                  std::byte*) {
    const Row& row = call.rows[r];
    const SequenceRecord& record = call.sequences[row.sequence];
    const bool chooses = row.position + 1 >= record.n_prompt;
    if (!(row.flags & kRowActive) || row.head_row == kNone || !chooses) return;
    const TranscriptionRules& rules = record.rules;
    const uint32_t n = params.vocab_size, n_chosen = row.position + 1 - rules.n_before;
    float* logits = operand<float>(call, 0, row.head_row, n);
    ban_listed(call, row, rules.banned, logits, n);
    if (n_chosen == 0) ban_listed(call, row, rules.banned_first, logits, n);
    if (rules.first_timestamp == 0 || rules.first_timestamp >= n) return;
    const uint32_t* chosen =
        operand<const uint32_t>(call, 1, row.sequence, params.log_stride) + rules.n_before;
    ban_by_history(rules, chosen, n_chosen, logits, n);
    if (timestamps_are_likelier(logits, rules.first_timestamp, n))
      ban(logits, 0, rules.first_timestamp);
  }

 private:
  static void ban(float* logits, uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) logits[i] = -kInfinity;
  }

  static void ban_listed(const Call& call, const Row& row, const OptionList& list, float* logits,
                         uint32_t n) {
    const uint32_t* tokens =
        operand<const uint32_t>(call, 2, row.sequence, kMaxOptionWords) + list.first;
    for (uint32_t i = 0; i < list.n; ++i)
      if (tokens[i] < n) logits[tokens[i]] = -kInfinity;
  }

  static void ban_by_history(const TranscriptionRules& rules, const uint32_t* chosen,
                             uint32_t n_chosen, float* logits, uint32_t n) {
    const uint32_t first = rules.first_timestamp;
    if (n_chosen == 0) {
      ban(logits, 0, first);
      if (rules.last_initial < n) ban(logits, rules.last_initial + 1, n);
      return;
    }
    const bool is_behind = chosen[n_chosen - 1] >= first;
    const bool is_behind_two = n_chosen < 2 || chosen[n_chosen - 2] >= first;
    if (is_behind && is_behind_two) ban(logits, first, n);
    if (is_behind && !is_behind_two) ban(logits, 0, rules.end_of_text);
    uint32_t i = n_chosen;
    while (i > 0 && chosen[i - 1] < first) --i;
    if (i == 0) return;
    // The end of a segment may be the beginning of the next one; nothing else has the time twice.
    const uint32_t next = is_behind && !is_behind_two ? chosen[i - 1] : chosen[i - 1] + 1;
    ban(logits, first, next < n ? next : n);
  }

  static bool timestamps_are_likelier(const float* logits, uint32_t first, uint32_t n) {
    const float* timestamps = logits + first;
    const float largest = largest_of<Isa>(timestamps, n - first);
    if (largest == -kInfinity) return false;
    double total[1];
    const auto top = Isa::broadcast(largest);
    sum_terms<Isa, 1>(timestamps, n - first, -kInfinity, total,
                      [&](typename Isa::Vector v, typename Isa::Vector(&out)[1]) {
                        out[0] = exp<Isa>(Isa::subtract(v, top));
                      });
    return static_cast<double>(largest) + ::log(total[0]) >
           static_cast<double>(largest_of<Isa>(logits, first));
  }
};

template <template <class> class Activation>
constexpr KernelEntry unfold_entry() {
  using Kernel = Unfold<ThisIsa, Activation<ThisIsa>>;
  using UnfoldRows = RowsKernel<ThisIsa, UnfoldParams, Kernel>;
  return {{Operation::unfold, Activation<ThisIsa>::kKind},
          {UnfoldRows::slices, UnfoldRows::run, Kernel::scratch_bytes}};
}

template <template <class> class Cache>
constexpr KernelEntry cross_weights_entry() {
  using WeightRows = RowsKernel<ThisIsa, CrossWeightsParams, CrossWeights<ThisIsa, Cache<ThisIsa>>>;
  return {{Operation::cross_weights, kAny, {kAbsent, kAbsent, kAbsent}, Cache<ThisIsa>::kFormat},
          {WeightRows::slices, WeightRows::run, nullptr}};
}

using TranscribeRows = RowsKernel<ThisIsa, TranscriptionRulesParams, TranscribeByRules<ThisIsa>>;

constexpr KernelEntry kSpeechEntries[] = {
    unfold_entry<F32Activation>(),
    unfold_entry<Bf16Activation>(),
    unfold_entry<Bf16PairActivation>(),
    unfold_entry<Q8Activation>(),
    unfold_entry<Q16Activation>(),
    cross_weights_entry<F32>(),
    cross_weights_entry<F16>(),
    {{Operation::transcription_rules}, {TranscribeRows::slices, TranscribeRows::run, nullptr}},
};

}  // namespace

template <>
KernelList Families<ThisIsa>::speech() {
  return list_of(kSpeechEntries);
}

}  // namespace akunu::cpu
