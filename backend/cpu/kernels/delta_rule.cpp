// gated_delta_rule (Yang et al., 2024): of each value head h, with state S [value_dim, key_dim], over the rows of a
// span, where k = key / |key| and q = query / |query| / sqrt(key_dim) are those of its key head:
//   S = e^(rate[h] * log(1 + e^(a[h] + bias[h]))) * S;  S += (v - S k) k^T / (1 + e^-b[h]);  out = S q
// With per_channel every number of a key has an a and a bias of its own (Kimi Delta Attention, Moonshot AI, 2025): each
// column of S fades by another factor.
//   0 input: rows [rows, 2 * n_key_heads * key_dim + n_value_heads * value_dim]: queries, keys, values
//   1 a: rows [rows, n_value_heads] or [rows, n_value_heads * key_dim]   2 b: rows [rows, n_value_heads]
//   3 rate: vector [n_value_heads]   4 bias: vector, as long as a row of a
//   5 states: float [page][2][n_value_heads][value_dim][key_dim]; that after n positions is at index n % 2
//   6 out: rows [rows, n_value_heads * value_dim]   25 GatedDeltaRuleParams
//   slices: kStateRows rows of the state of one head, for all rows of a span. With a key_dim of 128 the old state and
//   the new one take 8 KiB each, and stay in L1
//   limit: one row: memory, reads one half of the state and writes the other; many: three FMAs and a
//   product per number of state and row; per channel one more product, and for each slice the factors of a row
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/recurrent.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa>
struct GatedDeltaRule {
  static uint64_t slices(const Call& call) {
    const auto& params = *static_cast<const GatedDeltaRuleParams*>(call.params);
    return uint64_t{call.n_spans} * params.n_value_heads * parts(params);
  }
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
    const auto& params = *static_cast<const GatedDeltaRuleParams*>(call.params);
    const uint64_t n_parts = parts(params), of_span = params.n_value_heads * n_parts;
    for (uint64_t slice = begin; slice < end; ++slice) {
      const Span& span = call.spans[call.first_span + slice / of_span];
      const auto head = static_cast<uint32_t>(slice % of_span / n_parts);
      const auto first = static_cast<uint32_t>(slice % n_parts) * kStateRows;
      const uint32_t left = params.value_dim - first;
      move_on(call, params, span, head, first, left < kStateRows ? left : kStateRows);
    }
  }

 private:
  using Vector = typename Isa::Vector;

  // What a row of a text does to a head's state. Factors are of the numbers as they are in the input.
  struct Change {
    const float* query;
    const float* key;
    float query_factor, key_factor;
    float share;  // of the difference that is added
  };

  // What a row leaves of a state: one factor for all of it.
  struct KeepOfHead {
    float keep;
    Vector of(uint32_t, uint32_t) const { return Isa::broadcast(keep); }
    static Vector faded(Vector key, uint32_t, uint32_t) { return key; }
    float faded_sum(float sum) const { return keep * sum; }
  };
  // Or a factor for each number of a key, with which the key meets the old state.
  struct KeepOfChannels {
    const float* keep;
    Vector of(uint32_t j, uint32_t lanes) const { return Isa::load(keep + j, lanes); }
    Vector faded(Vector key, uint32_t j, uint32_t lanes) const {
      return Isa::multiply(key, of(j, lanes));
    }
    static float faded_sum(float sum) { return sum; }
  };

  static uint64_t parts(const GatedDeltaRuleParams& params) {
    return (params.value_dim + uint64_t{kStateRows} - 1) / kStateRows;
  }
  // 1 / |x|, as if |x|^2 were never 0.
  static float inverse_length(const float* x, uint32_t n) {
    Vector sum = Isa::zero();
    for (uint32_t i = 0; i < n; i += Isa::kLanes) {
      const Vector v = Isa::load(x + i, n - i);
      sum = Isa::multiply_add(v, v, sum);
    }
    return 1.0f / __builtin_sqrtf(Isa::sum_lanes(sum) + 1e-6f);
  }

  // Rows [first, first + n) of the state of one head, of all rows of a span.
  static void move_on(const Call& call, const GatedDeltaRuleParams& params, const Span& span,
                      uint32_t head, uint32_t first, uint32_t n) {
    const uint32_t key_dim = params.key_dim, n_heads = params.n_value_heads;
    const uint64_t values = uint64_t{n_heads} * params.value_dim;
    const uint64_t keys = uint64_t{params.n_key_heads} * key_dim;
    const uint64_t key_head =
        params.is_tiled != 0 ? head % params.n_key_heads : head / (n_heads / params.n_key_heads);
    const uint64_t place = uint64_t{head} * params.value_dim + first;
    const uint32_t page =
        page_of(call.pages, params.page_table_base, params.page_table_stride, span.sequence, 0);
    const uint64_t half = values * key_dim;
    float* const states =
        reinterpret_cast<float*>(call.operands[5]) + 2 * page * half + place * key_dim;
    const float rate = operand<const float>(call, 3, 0, 0)[head];
    const bool per_channel = params.per_channel != 0;
    const uint64_t of_head = per_channel ? key_dim : 1;  // numbers of a and of bias
    const float* const bias = operand<const float>(call, 4, 0, 0) + head * of_head;
    float keep[kMaxStateDim];
    const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(key_dim));
    for (uint64_t r = span.first_row; r < uint64_t{span.first_row} + span.n_rows; ++r) {
      float* const out = operand<float>(call, 6, r, values) + place;
      if (!(call.rows[r].flags & kRowActive)) {
        for (uint32_t i = 0; i < n; ++i) out[i] = 0;
        continue;
      }
      const float* const query =
          operand<const float>(call, 0, r, 2 * keys + values) + key_head * key_dim;
      const float* const key = query + keys;
      const float* const value =
          operand<const float>(call, 0, r, 2 * keys + values) + 2 * keys + place;
      const float* const a = operand<const float>(call, 1, r, n_heads * of_head) + head * of_head;
      keep_of(a, bias, rate, static_cast<uint32_t>(of_head), keep);
      const float b = operand<const float>(call, 2, r, n_heads)[head];
      const Change change{.query = query,
                          .key = key,
                          .query_factor = inverse_length(query, key_dim) * scale,
                          .key_factor = inverse_length(key, key_dim),
                          .share = 1.0f / (1.0f + first_lane<Isa>(exp<Isa>(Isa::broadcast(-b))))};
      const uint32_t position = call.rows[r].position;
      const float* const before = position == 0 ? nullptr : states + position % 2 * half;
      float* const after = states + (position + 1) % 2 * half;
      for (uint32_t i = 0; i < n; i += kRowsTogether) {
        const uint64_t at = uint64_t{i} * key_dim;
        const float* const old = before == nullptr ? nullptr : before + at;
        if (per_channel)
          rows_of_state(change, KeepOfChannels{keep}, old, after + at, key_dim, n - i, value + i,
                        out + i);
        else
          rows_of_state(change, KeepOfHead{keep[0]}, old, after + at, key_dim, n - i, value + i,
                        out + i);
      }
    }
  }

  // The factors of n channels, or of a head.
  static void keep_of(const float* a, const float* bias, float rate, uint32_t n, float* keep) {
    for (uint32_t i = 0; i < n; i += Isa::kLanes) {
      const uint32_t lanes = n - i;
      const Vector time =
          softplus_lanes<Isa>(Isa::add(Isa::load(a + i, lanes), Isa::load(bias + i, lanes)));
      Isa::store(keep + i, exp<Isa>(Isa::multiply(Isa::broadcast(rate), time)), lanes);
    }
  }

  template <class Keep>
  static void rows_of_state(const Change& change, const Keep& keep, const float* before,
                            float* after, uint32_t key_dim, uint32_t n_left, const float* value,
                            float* out) {
    if (n_left >= kRowsTogether)
      rows_of_state<true>(change, keep, before, after, key_dim, kRowsTogether, value, out);
    else
      rows_of_state<false>(change, keep, before, after, key_dim, n_left, value, out);
  }

  // Up to kRowsTogether rows of a state move on by one row of the text; none `before`: they are 0.
  template <bool kWhole, class Keep>
  static void rows_of_state(const Change& change, const Keep& keep, const float* before,
                            float* after, uint32_t key_dim, uint32_t n_left, const float* value,
                            float* out) {
    const uint32_t n = kWhole ? kRowsTogether : n_left;
    Vector sums[kRowsTogether] = {Isa::zero(), Isa::zero(), Isa::zero(), Isa::zero()};
    float of_rows[kRowsTogether];
    if (before != nullptr)
      for (uint32_t j = 0; j < key_dim; j += Isa::kLanes) {
        const Vector k = keep.faded(Isa::load(change.key + j, key_dim - j), j, key_dim - j);
        for (uint32_t i = 0; i < n; ++i)
          sums[i] = Isa::multiply_add(Isa::load(before + uint64_t{i} * key_dim + j, key_dim - j), k,
                                      sums[i]);
      }
    Isa::store_sums(of_rows, sums);
    Vector added[kRowsTogether];
    for (uint32_t i = 0; i < n; ++i) {
      const float seen = keep.faded_sum(of_rows[i] * change.key_factor);
      added[i] = Isa::broadcast(change.share * (value[i] - seen) * change.key_factor);
    }
    for (Vector& sum : sums) sum = Isa::zero();
    for (uint32_t j = 0; j < key_dim; j += Isa::kLanes) {
      const uint32_t lanes = key_dim - j;
      const Vector k = Isa::load(change.key + j, lanes), q = Isa::load(change.query + j, lanes);
      const Vector kept = keep.of(j, lanes);
      for (uint32_t i = 0; i < n; ++i) {
        const uint64_t at = uint64_t{i} * key_dim + j;
        const Vector old = before == nullptr ? Isa::zero() : Isa::load(before + at, lanes);
        const Vector made = Isa::multiply_add(k, added[i], Isa::multiply(kept, old));
        Isa::store(after + at, made, lanes);
        sums[i] = Isa::multiply_add(made, q, sums[i]);
      }
    }
    Isa::store_sums(of_rows, sums);
    for (uint32_t i = 0; i < n; ++i) out[i] = of_rows[i] * change.query_factor;
  }
};

using DeltaRule = GatedDeltaRule<ThisIsa>;

constexpr KernelEntry kDeltaRuleEntries[] = {
    {{Operation::gated_delta_rule, kAny, {kAbsent, kAbsent, kAbsent}, F32<ThisIsa>::kFormat},
     {DeltaRule::slices, DeltaRule::run, nullptr}},
};

}  // namespace

template <>
KernelList Families<ThisIsa>::delta_rule() {
  return list_of(kDeltaRuleEntries);
}

}  // namespace akunu::cpu
