// span_attention: softmax(query . keys * scale) . values over the rows of the row's own span
//   0 query: rows [rows, n_heads * head_dim]   1 key, 2 value: rows [rows, n_kv_heads * head_dim]
//   3 out: activation [rows, n_heads * head_dim]   25 SpanAttentionParams
//   slices: up to kSpanQueries / group rows of a span x the fewest kv heads whose output is whole groups
//           of the activation kind
//   limit:  the multipliers; a kv head's keys and values of a text are in L2
//
// A row's arithmetic depends on its own span only, by blocks of 256 rows from the span's first one:
// scores, their maximum, exponentials relative to it, their sum, the weighted values in order of rows;
// blocks are merged in order.
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/attention_range.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/matmul_tile.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

constexpr uint32_t kSpanQueries = 32;  // query heads per slice: their scores of a block take 32 KiB
constexpr uint32_t kSpanBlock = 256;   // rows whose scores are computed together

// How a call is cut, and where a worker's scratch holds what.
template <class Isa>
struct SpanLayout {
  SpanLayout(const SpanAttentionParams& params, uint32_t out_group)
      : group(params.n_heads / params.n_kv_heads),
        block_rows(group < kSpanQueries ? kSpanQueries / group : 1),
        queries(block_rows * group),
        unit(
            heads_of_whole_groups(params.n_kv_heads, uint64_t{group} * params.head_dim, out_group)),
        units((params.n_kv_heads + unit - 1) / unit),
        value_stride((params.head_dim + Isa::kLanes - 1) / Isa::kLanes * Isa::kLanes),
        out_stride(uint64_t{unit} * group * params.head_dim) {}

  uint32_t group;         // query heads per kv head
  uint32_t block_rows;    // rows per slice
  uint32_t queries;       // query heads per slice and kv head
  uint32_t unit, units;   // kv heads per slice; slices per block of rows
  uint64_t value_stride;  // floats per query's sums of values, whole vectors
  uint64_t out_stride;    // floats per row of a slice's result

  uint64_t bytes() const {
    return queries *
               (sizeof(typename FloatInput<Isa>::Row) + 4 * (kSpanBlock + 2 * value_stride + 4)) +
           4 * (block_rows * out_stride + Isa::kLanes);
  }
};

template <class Isa, class Activation>
struct SpanAttention {
  using Vector = typename Isa::Vector;
  using Tiling = SpanLayout<Isa>;

  static uint64_t slices(const Call& call) {
    const Tiling tiling = tiling_of(call);
    return attention_slices(call, tiling.block_rows, tiling.units);
  }
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    const auto& params = *static_cast<const SpanAttentionParams*>(call.params);
    const Tiling tiling = tiling_of(call);
    for_each_slice<Isa>(call, tiling.block_rows, tiling.units, begin, end,
                        [&](uint32_t first_row, uint32_t n_rows, uint32_t unit) {
                          State state(tiling, scratch);
                          run_slice(call, params, tiling, state, first_row, n_rows, unit);
                        });
  }
  static uint64_t scratch_bytes(const Call& call) { return tiling_of(call).bytes(); }

 private:
  // One entry per query head.
  struct State {
    State(const Tiling& tiling, std::byte* scratch) {
      const uint64_t n = tiling.queries;
      scores = take<float>(scratch, n * kSpanBlock);
      block_values = take<float>(scratch, n * tiling.value_stride);
      values = take<float>(scratch, n * tiling.value_stride);
      out = take<float>(scratch, tiling.block_rows * tiling.out_stride + Isa::kLanes);
      largest = take<float>(scratch, n);
      sums = take<float>(scratch, n);
      block_largest = take<float>(scratch, n);
      block_sums = take<float>(scratch, n);
      inputs = take<typename FloatInput<Isa>::Row>(scratch, n);
    }

    float* scores;        // [queries][256] of the block at hand, then their exponentials
    float* block_values;  // [queries][value_stride] weighted values of the block
    float* values;        // [queries][value_stride] of the blocks before
    float* out;           // [block_rows][out_stride]
    float* largest;       // score
    float* sums;          // of exponentials relative to it
    float* block_largest;
    float* block_sums;
    typename FloatInput<Isa>::Row* inputs;

   private:
    template <class T>
    static T* take(std::byte*& p, uint64_t n) {
      T* result = reinterpret_cast<T*>(p);
      p += n * sizeof(T);
      return result;
    }
  };

  static Tiling tiling_of(const Call& call) {
    return {*static_cast<const SpanAttentionParams*>(call.params), Activation::kGroup};
  }

  // The rows that a row sees, counted from the span's first one.
  static Range seen(uint32_t row, uint32_t n_rows, const SpanAttentionParams& params) {
    const uint32_t window = params.window;
    const uint32_t end = params.causal != 0 ? row + 1 : n_rows;
    if (window == 0) return {0, end};
    return {row > window ? row - window : 0, end - row > window ? row + window + 1 : end};
  }

  // ALiBi's slope of a head; 0 where there is none.
  static float slope_of(const SpanAttentionParams& params, uint32_t head) {
    if (params.alibi_first == 0) return 0;
    uint32_t n_first = 1;
    while (2 * n_first <= params.n_heads) n_first *= 2;
    const bool is_first = head < n_first;
    const uint32_t power = is_first ? head + 1 : 2 * (head - n_first) + 1;
    float slope = 1;
    for (uint32_t i = 0; i < power; ++i)
      slope *= is_first ? params.alibi_first : params.alibi_second;
    return slope;
  }

  static void run_slice(const Call& call, const SpanAttentionParams& params, const Tiling& tiling,
                        State& state, uint64_t first_row, uint32_t n_rows, uint32_t unit) {
    const uint32_t head_dim = params.head_dim;
    const uint32_t first_head = unit * tiling.unit;
    const uint32_t last_head =
        first_head + tiling.unit < params.n_kv_heads ? first_head + tiling.unit : params.n_kv_heads;
    for (uint32_t head = first_head; head < last_head; ++head) {
      attend(call, params, tiling, state, first_row, n_rows, head);
      const uint64_t column = uint64_t{head - first_head} * tiling.group * head_dim;
      for (uint32_t q = 0; q < n_rows * tiling.group; ++q) {
        const float* values = state.values + q * tiling.value_stride;
        const float factor = 1.0f / state.sums[q];
        float* out = state.out + q / tiling.group * tiling.out_stride + column +
                     uint64_t{q % tiling.group} * head_dim;
        for (uint32_t i = 0; i < head_dim; ++i) out[i] = values[i] * factor;
      }
    }
    const uint32_t k = params.n_heads * head_dim;
    const uint32_t begin = first_head * tiling.group * head_dim;
    const uint32_t end = last_head * tiling.group * head_dim;
    for (uint32_t r = 0; r < n_rows; ++r) {
      const float* out = state.out + r * tiling.out_stride;
      Activation::write(call.operands[3] + (first_row + r) * Activation::row_bytes(k), k, begin,
                        end,
                        [&](uint32_t i, uint32_t n) { return Isa::load(out + (i - begin), n); });
    }
  }

  // Leaves values and sums of every query head of the rows that belongs to kv head `head`.
  static void attend(const Call& call, const SpanAttentionParams& params, const Tiling& tiling,
                     State& state, uint64_t first_row, uint32_t n_rows, uint32_t head) {
    const Span& span = call.spans[call.rows[first_row].span];
    const uint32_t n_queries = n_rows * tiling.group;
    const uint32_t first = static_cast<uint32_t>(first_row) - span.first_row;
    const uint64_t query_stride = uint64_t{params.n_heads} * params.head_dim;
    const uint64_t kv_stride = uint64_t{params.n_kv_heads} * params.head_dim;
    const uint64_t kv_begin = span.first_row * kv_stride + uint64_t{head} * params.head_dim;
    const float* keys = reinterpret_cast<const float*>(call.operands[1]) + kv_begin;
    const float* values = reinterpret_cast<const float*>(call.operands[2]) + kv_begin;
    for (uint32_t q = 0; q < n_queries; ++q) {
      const float* query = reinterpret_cast<const float*>(call.operands[0]) +
                           (first_row + q / tiling.group) * query_stride +
                           (uint64_t{head} * tiling.group + q % tiling.group) * params.head_dim;
      state.inputs[q] = {query};
      state.largest[q] = -__builtin_inff();
      state.sums[q] = 0;
    }
    __builtin_memset(state.values, 0, n_queries * tiling.value_stride * sizeof(float));
    const Range all =
        unite(seen(first, span.n_rows, params), seen(first + n_rows - 1, span.n_rows, params));
    for (uint32_t block = all.begin / kSpanBlock * kSpanBlock; block < all.end;
         block += kSpanBlock) {
      const Range needed = intersect(all, {block, block + kSpanBlock});
      multiply_panel<Isa, F32<Isa>>(
          state.inputs, n_queries, reinterpret_cast<const std::byte*>(keys), kv_stride * 4,
          needed.begin, needed.end, params.head_dim, nullptr,
          [&](uint32_t q, uint32_t row, const float* scores, uint32_t n) {
            __builtin_memcpy(state.scores + q * kSpanBlock + (row - block), scores,
                             n * sizeof(float));
          });
      for (uint32_t q = 0; q < n_queries; ++q) {
        const uint32_t row = first + q / tiling.group;
        const Range own = intersect(seen(row, span.n_rows, params), needed);
        const float slope = slope_of(params, head * tiling.group + q % tiling.group);
        weigh_scores(params, state, q, block, needed, own, row, slope);
      }
      __builtin_memset(state.block_values, 0, n_queries * tiling.value_stride * sizeof(float));
      uint32_t q = 0;
      for (; q + Isa::kTileRows <= n_queries; q += Isa::kTileRows)
        weigh_values<Isa::kTileRows>(params, tiling, state, q, values, kv_stride, block, needed);
      for (; q < n_queries; ++q)
        weigh_values<1>(params, tiling, state, q, values, kv_stride, block, needed);
      for (q = 0; q < n_queries; ++q) merge(tiling, state, q);
    }
  }

  // Scores of a block become exponentials relative to their maximum; 0 where the row does not see.
  static void weigh_scores(const SpanAttentionParams& params, State& state, uint32_t q,
                           uint32_t block, Range needed, Range own, uint32_t row, float slope) {
    float* const scores = state.scores + q * kSpanBlock;
    for (uint32_t i = needed.begin; i < needed.end; ++i)
      if (i < own.begin || i >= own.end) scores[i - block] = 0;
    if (own.begin >= own.end) {
      state.block_largest[q] = -__builtin_inff();
      state.block_sums[q] = 0;
      return;
    }
    const uint32_t begin = own.begin - block, end = own.end - block;
    if (slope != 0)
      for (uint32_t i = begin; i < end; ++i) {
        const uint32_t at = block + i;
        scores[i] =
            scores[i] * params.scale - slope * static_cast<float>(at > row ? at - row : row - at);
      }
    const float scale = slope != 0 ? 1 : params.scale;
    const auto factor = Isa::broadcast(scale);
    auto largest = Isa::broadcast(-__builtin_inff());
    uint32_t i = begin;
    for (; i + Isa::kLanes <= end; i += Isa::kLanes) {
      const auto score = Isa::multiply(Isa::load(scores + i), factor);
      Isa::store(scores + i, score);
      largest = Isa::maximum(score, largest);
    }
    for (; i < end; ++i) {
      scores[i] *= scale;
      largest = Isa::maximum(Isa::broadcast(scores[i]), largest);
    }
    const float top = Isa::max_lanes(largest);
    auto sum = Isa::zero();
    for (i = begin; i + Isa::kLanes <= end; i += Isa::kLanes) {
      const auto weight = exp<Isa>(Isa::subtract(Isa::load(scores + i), Isa::broadcast(top)));
      Isa::store(scores + i, weight);
      sum = Isa::add(sum, weight);
    }
    if (const uint32_t n = end - i; n > 0) {
      const auto weight = exp<Isa>(Isa::subtract(Isa::load(scores + i, n), Isa::broadcast(top)));
      Isa::store(scores + i, weight, n);
      sum = Isa::add(sum, Isa::load(scores + i, n));
    }
    state.block_largest[q] = top;
    state.block_sums[q] = Isa::sum_lanes(sum);
  }

  // block_values += weights * values, for R queries from q on, in order of rows.
  template <uint32_t R>
  static void weigh_values(const SpanAttentionParams& params, const Tiling& tiling, State& state,
                           uint32_t q, const float* values, uint64_t kv_stride, uint32_t block,
                           Range needed) {
    const float* const weights = state.scores + q * kSpanBlock;
    float* const out = state.block_values + q * tiling.value_stride;
    uint32_t column = 0;
    for (; column + 2 * Isa::kLanes <= params.head_dim; column += 2 * Isa::kLanes)
      weigh_columns<R, 2>(weights, out + column, tiling.value_stride, values + column, kv_stride,
                          block, needed, Isa::kLanes);
    for (; column < params.head_dim; column += Isa::kLanes) {
      const uint32_t left = params.head_dim - column;
      weigh_columns<R, 1>(weights, out + column, tiling.value_stride, values + column, kv_stride,
                          block, needed, left < Isa::kLanes ? left : Isa::kLanes);
    }
  }

  template <uint32_t R, uint32_t C>
  static void weigh_columns(const float* weights, float* out, uint64_t out_stride,
                            const float* values, uint64_t kv_stride, uint32_t block, Range needed,
                            uint32_t n_last) {
    Vector sums[R][C];
#pragma GCC unroll 8
    for (uint32_t r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (uint32_t c = 0; c < C; ++c) sums[r][c] = Isa::zero();
    for (uint32_t i = needed.begin; i < needed.end; ++i) {
      Vector loaded[C];
#pragma GCC unroll 8
      for (uint32_t c = 0; c < C; ++c)
        loaded[c] =
            Isa::load(values + i * kv_stride + Isa::kLanes * c, C > 1 ? Isa::kLanes : n_last);
#pragma GCC unroll 8
      for (uint32_t r = 0; r < R; ++r) {
        const auto weight = Isa::broadcast(weights[r * kSpanBlock + (i - block)]);
#pragma GCC unroll 8
        for (uint32_t c = 0; c < C; ++c)
          sums[r][c] = Isa::multiply_add(weight, loaded[c], sums[r][c]);
      }
    }
#pragma GCC unroll 8
    for (uint32_t r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (uint32_t c = 0; c < C; ++c)
        Isa::store(out + r * out_stride + Isa::kLanes * c, sums[r][c]);
  }

  // Takes the block's sums into those of the blocks before.
  static void merge(const Tiling& tiling, State& state, uint32_t q) {
    if (state.block_sums[q] == 0) return;  // it sees nothing of this block
    const float before = state.largest[q], here = state.block_largest[q];
    const float largest = here > before ? here : before;
    float factors[Isa::kLanes] = {before - largest, here - largest};
    Isa::store(factors, exp<Isa>(Isa::load(factors)));
    const auto keep = Isa::broadcast(factors[0]), take = Isa::broadcast(factors[1]);
    float* values = state.values + q * tiling.value_stride;
    const float* block_values = state.block_values + q * tiling.value_stride;
    for (uint64_t i = 0; i < tiling.value_stride; i += Isa::kLanes)
      Isa::store(values + i, Isa::multiply_add(Isa::load(block_values + i), take,
                                               Isa::multiply(Isa::load(values + i), keep)));
    state.sums[q] = state.sums[q] * factors[0] + state.block_sums[q] * factors[1];
    state.largest[q] = largest;
  }
};

template <template <class> class Activation>
constexpr KernelEntry span_attention_entry() {
  using Kernel = SpanAttention<ThisIsa, Activation<ThisIsa>>;
  return {{Operation::span_attention, Activation<ThisIsa>::kKind},
          {Kernel::slices, Kernel::run, Kernel::scratch_bytes}};
}

constexpr KernelEntry kSpanAttentionEntries[] = {
    span_attention_entry<F32Activation>(),      span_attention_entry<Bf16Activation>(),
    span_attention_entry<Bf16PairActivation>(), span_attention_entry<Q8Activation>(),
    span_attention_entry<Q16Activation>(),
};

}  // namespace

template <>
KernelList Families<ThisIsa>::span_attention() {
  return list_of(kSpanAttentionEntries);
}

}  // namespace akunu::cpu
