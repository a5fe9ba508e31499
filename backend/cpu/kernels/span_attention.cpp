// span_attention: softmax(query . keys * scale) . values over the rows of the row's own span
//   0 query: rows [rows, n_heads * head_dim]   1 key, 2 value: rows [rows, n_kv_heads * head_dim]
//   3 out: activation [rows, n_heads * head_dim]   25 SpanAttentionParams
//   slices: up to kSpanQueries / group rows of a span x the fewest kv heads whose output is whole groups
//           of the activation kind
//   limit:  the multipliers; a kv head's keys and values of a text are in L2
//
// 1. What it computes. A row's arithmetic depends on its own span only, by blocks of 256 rows from
//    the span's first one: scores in order of head_dim, their maximum, exponentials relative to it,
//    their sum and the weighted values in order of rows; blocks are merged in order.
// 2. What is done about speed. Query heads are the lanes of registers: one number of a key, or of a
//    value, is multiplied with those of all queries at once. Scores and sums never go across lanes;
//    only the queries and the result are transposed. Lanes know nothing of each other, so that
//    neither their number nor the queries beside one change a bit of it.
// 3. What was before. Lanes along head_dim (matmul_tile.h): where heads have 32 numbers, adding the
//    lanes of every score took as long as its products.
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/attention_range.h"
#include "cpu/kernels/float_panel.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

constexpr uint32_t kSpanQueries = 32;  // query heads per slice: their scores of a block take 32 KiB
constexpr uint32_t kSpanBlock = 256;   // rows whose scores are computed together

// How a call is cut, and how much scratch a worker needs.
template <class Wide>
struct SpanLayout {
  SpanLayout(const SpanAttentionParams& params, uint32_t out_group)
      : group(params.n_heads / params.n_kv_heads),
        head_dim(params.head_dim),
        block_rows(group < kSpanQueries ? kSpanQueries / group : 1),
        lanes(round_up(block_rows * group, Wide::kLanes)),
        unit(
            heads_of_whole_groups(params.n_kv_heads, uint64_t{group} * params.head_dim, out_group)),
        units((params.n_kv_heads + unit - 1) / unit),
        out_stride(uint64_t{unit} * group * params.head_dim) {}

  static constexpr uint32_t kPerLane = 8;  // arrays of State that have one number per lane

  uint32_t group;        // query heads per kv head
  uint32_t head_dim;     // numbers of a head
  uint32_t block_rows;   // rows per slice
  uint32_t lanes;        // query heads per slice and kv head, rounded up to whole registers
  uint32_t unit, units;  // kv heads per slice; slices per block of rows
  uint64_t out_stride;   // floats per row of a slice's result

  uint64_t bytes() const {
    return sizeof(float) * (uint64_t{lanes} * (2 * head_dim + kSpanBlock + kPerLane) +
                            block_rows * out_stride + Wide::kLanes);
  }
};

// What does not depend on how the result is written.
template <class Isa>
struct SpanAttend {
  using Wide = typename Isa::Wide;
  using Vector = typename Wide::Vector;
  using Tiling = SpanLayout<Wide>;

  // Of the queries of a slice that belong to one kv head, one per lane.
  struct State {
    State(const Tiling& tiling, std::byte* scratch) {
      const uint64_t n = tiling.lanes;
      float* next = reinterpret_cast<float*>(scratch);
      const auto take = [&next](uint64_t count) {
        float* const taken = next;
        next += count;
        return taken;
      };
      queries = take(n * tiling.head_dim);
      scores = take(n * kSpanBlock);
      values = take(n * tiling.head_dim);
      float** const per_lane[] = {&largest, &sums, &keep,       &add,
                                  &slopes,  &rows, &first_seen, &end_seen};
      static_assert(sizeof(per_lane) / sizeof(per_lane[0]) == Tiling::kPerLane);
      for (float** each : per_lane) *each = take(n);
      out = take(tiling.block_rows * tiling.out_stride + Wide::kLanes);
    }

    float* queries;     // [head_dim][lanes]
    float* scores;      // [256][lanes] of the block at hand, then their exponentials
    float* values;      // [head_dim][lanes] weighted values of the blocks so far
    float* largest;     // score of the blocks so far
    float* sums;        // of exponentials relative to it
    float* keep;        // what sums and values of the blocks before are multiplied with
    float* add;         // what those of the block at hand are multiplied with
    float* slopes;      // ALiBi's, of the query's head
    float* rows;        // the query's row, counted from the span's first one
    float* first_seen;  // the rows that it sees, likewise
    float* end_seen;
    float* out;  // [block_rows][out_stride]
  };

  // Numbers of a lane, next to each other.
  [[gnu::noinline]] static void gather(const float* from, uint64_t stride, uint32_t n, float* to) {
    for (const float* const end = to + n; to != end; ++to, from += stride) *to = *from;
  }

  // Leaves the result, transposed, of every query head of the rows that belongs to kv head `head`.
  static void attend(const Call& call, const SpanAttentionParams& params, const Tiling& tiling,
                     const State& state, uint64_t first_row, uint32_t n_rows, uint32_t head) {
    const Span& span = call.spans[call.rows[first_row].span];
    const uint32_t n_queries = n_rows * tiling.group;
    const uint32_t first = static_cast<uint32_t>(first_row) - span.first_row;
    const uint64_t kv_stride = uint64_t{params.n_kv_heads} * params.head_dim;
    const uint64_t kv_begin = span.first_row * kv_stride + uint64_t{head} * params.head_dim;
    const float* keys = reinterpret_cast<const float*>(call.operands[1]) + kv_begin;
    const float* values = reinterpret_cast<const float*>(call.operands[2]) + kv_begin;
    // Whole registers: the lanes behind the last query repeat it, and nobody reads them.
    const uint32_t lanes = round_up(n_queries, Wide::kLanes);
    for (uint32_t lane = 0; lane < lanes; ++lane)
      begin_lane(call, params, tiling, state, span, first_row, head, lane,
                 lane < n_queries ? lane : n_queries - 1);
    for (uint32_t i = 0; i < params.head_dim; ++i)
      __builtin_memset(state.values + i * tiling.lanes, 0, lanes * sizeof(float));

    const Range seen_first = seen(first, span.n_rows, params);
    const Range seen_last = seen(first + n_rows - 1, span.n_rows, params);
    const Range all = unite(seen_first, seen_last);
    const bool is_same = seen_first.begin == seen_last.begin && seen_first.end == seen_last.end;
    for (uint32_t block = all.begin / kSpanBlock * kSpanBlock; block < all.end;
         block += kSpanBlock) {
      const Range needed = intersect(all, {block, block + kSpanBlock});
      for_lanes(lanes, [&]<uint32_t C>(uint32_t lane) {
        for_tiles(needed.begin, needed.end, [&]<uint32_t R>(uint32_t row) {
          multiply_keys<R, C>(params, tiling, state.queries + lane, keys + row * kv_stride,
                              kv_stride, state.scores + (row - needed.begin) * tiling.lanes + lane);
        });
        const Block given{state.scores + lane, tiling.lanes, needed};
        for (uint32_t c = 0; c < C; ++c) {
          if (params.alibi_first != 0) lower_scores(state, given, lane, c);
          if (!is_same) hide_scores(state, given, lane, c);
          weigh_scores(state, given, lane, c);
        }
        for_tiles(0, params.head_dim, [&]<uint32_t R>(uint32_t i) {
          multiply_values<R, C>(state, given, values + needed.begin * kv_stride + i, kv_stride,
                                state.values + i * tiling.lanes + lane, lane);
        });
      });
    }
    for (uint32_t lane = 0; lane < lanes; lane += Wide::kLanes) {
      const auto factor = Wide::divide(Wide::broadcast(1.0f), Wide::load(state.sums + lane));
      for (uint32_t i = 0; i < params.head_dim; ++i) {
        float* const sum = state.values + i * tiling.lanes + lane;
        Wide::store(sum, Wide::multiply(Wide::load(sum), factor));
      }
    }
  }

 private:
  // Registers along lanes, and numbers of keys or values, that a tile has: as many sums as fit, of
  // which a power of two divides most sizes of heads.
  static constexpr uint32_t kTileSums = FloatTile<Isa>::kTileRows * FloatTile<Isa>::kTileRegisters;
  static constexpr uint32_t kTileLanes = 2;
  static constexpr uint32_t kTileRows = kTileSums >= 16 ? 8 : kTileSums >= 8 ? 4 : 2;

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

  // Not inlined: among the variables of its callers, GCC 12 leaves its pointers in vector registers.
  [[gnu::noinline]] static void scatter(const float* from, uint32_t n, float* to, uint64_t stride) {
    for (const float* const end = from + n; from != end; ++from, to += stride) *to = *from;
  }

  // Puts query head `q` of the slice into a lane.
  static void begin_lane(const Call& call, const SpanAttentionParams& params, const Tiling& tiling,
                         const State& state, const Span& span, uint64_t first_row, uint32_t head,
                         uint32_t lane, uint32_t q) {
    const uint64_t row = first_row + q / tiling.group;
    const uint32_t own = static_cast<uint32_t>(row) - span.first_row;
    const uint32_t query_head = head * tiling.group + q % tiling.group;
    const float* query = reinterpret_cast<const float*>(call.operands[0]) +
                         (row * params.n_heads + query_head) * params.head_dim;
    scatter(query, params.head_dim, state.queries + lane, tiling.lanes);
    const Range range = seen(own, span.n_rows, params);
    state.largest[lane] = -__builtin_inff();
    state.sums[lane] = 0;
    state.slopes[lane] = slope_of(params, query_head);
    state.rows[lane] = static_cast<float>(own);
    state.first_seen[lane] = static_cast<float>(range.begin);
    state.end_seen[lane] = static_cast<float>(range.end);
  }

  // Calls use<C>(lane) for C registers of lanes at a time.
  static void for_lanes(uint32_t n, const auto& use) {
    uint32_t lane = 0;
    for (; lane + kTileLanes * Wide::kLanes <= n; lane += kTileLanes * Wide::kLanes)
      use.template operator()<kTileLanes>(lane);
    if (lane < n) use.template operator()<1>(lane);
  }

  // Calls use<R>(i) for R of [i, end) at a time.
  static void for_tiles(uint32_t i, uint32_t end, const auto& use) {
    for (; i + kTileRows <= end; i += kTileRows) use.template operator()<kTileRows>(i);
    if constexpr (kTileRows > 4)
      for (; i + 4 <= end; i += 4) use.template operator()<4>(i);
    if constexpr (kTileRows > 2)
      for (; i + 2 <= end; i += 2) use.template operator()<2>(i);
    for (; i < end; ++i) use.template operator()<1>(i);
  }

  // The scores of R keys with C registers of queries, in order of head_dim.
  template <uint32_t R, uint32_t C>
  static void multiply_keys(const SpanAttentionParams& params, const Tiling& tiling,
                            const float* queries, const float* keys, uint64_t kv_stride,
                            float* scores) {
    Vector sums[R][C];
#pragma GCC unroll 8
    for (uint32_t r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (uint32_t c = 0; c < C; ++c) sums[r][c] = Wide::zero();
    const uint64_t stride = tiling.lanes;
    for (uint32_t i = 0; i < params.head_dim; ++i) {
      Vector loaded[C];
#pragma GCC unroll 8
      for (uint32_t c = 0; c < C; ++c)
        loaded[c] = Wide::load(queries + i * stride + c * Wide::kLanes);
#pragma GCC unroll 8
      for (uint32_t r = 0; r < R; ++r) {
        const auto key = Wide::broadcast(keys[r * kv_stride + i]);
#pragma GCC unroll 8
        for (uint32_t c = 0; c < C; ++c)
          sums[r][c] = Wide::multiply_add(key, loaded[c], sums[r][c]);
      }
    }
    const auto scale = Wide::broadcast(params.scale);
#pragma GCC unroll 8
    for (uint32_t r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (uint32_t c = 0; c < C; ++c)
        Wide::store(scores + r * stride + c * Wide::kLanes, Wide::multiply(sums[r][c], scale));
  }

  // Scores of the rows that a slice needs of a block.
  struct Block {
    float* scores;    // [needed][stride]
    uint64_t stride;  // lanes
    Range needed;     // counted from the span's first row

    // Replaces the scores of register c of each row by what `change` makes of them.
    void change(uint32_t c, const auto& change) const {
      for (uint32_t row = needed.begin; row < needed.end; ++row) {
        float* const at = scores + (row - needed.begin) * stride + c * Wide::kLanes;
        Wide::store(at, change(Wide::load(at), Wide::broadcast(static_cast<float>(row))));
      }
    }
  };

  // ALiBi: a score is lowered with the distance.
  static void lower_scores(const State& state, const Block& block, uint32_t lane, uint32_t c) {
    const uint32_t from = lane + c * Wide::kLanes;
    const auto slope = Wide::load(state.slopes + from), own = Wide::load(state.rows + from);
    block.change(c, [&](Vector score, Vector row) {
      const auto distance = Wide::absolute(Wide::subtract(row, own));
      return Wide::subtract(score, Wide::multiply(slope, distance));
    });
  }

  // Scores of rows that a query does not see are -infinity.
  static void hide_scores(const State& state, const Block& block, uint32_t lane, uint32_t c) {
    const uint32_t from = lane + c * Wide::kLanes;
    const auto first = Wide::load(state.first_seen + from), end = Wide::load(state.end_seen + from);
    const auto hidden = Wide::broadcast(-__builtin_inff());
    block.change(c, [&](Vector score, Vector row) {
      return Wide::select_less(row, first, hidden, Wide::select_less(row, end, score, hidden));
    });
  }

  // Scores become exponentials relative to the largest one so far; says what becomes of the blocks before.
  static void weigh_scores(const State& state, const Block& block, uint32_t lane, uint32_t c) {
    const uint32_t from = lane + c * Wide::kLanes;
    const auto nothing = Wide::broadcast(-__builtin_inff());
    const auto before = Wide::load(state.largest + from);
    auto here = nothing;
    const uint32_t n = block.needed.end - block.needed.begin;
    const float* scores = block.scores + c * Wide::kLanes;
    for (uint32_t i = 0; i < n; ++i)
      here = Wide::maximum(Wide::load(scores + i * block.stride), here);
    // Where nothing is seen here: any number, for the exponentials of -infinity to be 0.
    const auto top = Wide::select_less(nothing, here, here, Wide::zero());
    auto sum = Wide::zero();
    block.change(c, [&](Vector score, Vector) {
      const auto weight = exp<Wide>(Wide::subtract(score, top));
      sum = Wide::add(sum, weight);
      return weight;
    });
    const auto largest = Wide::maximum(here, before);
    const auto one = Wide::broadcast(1.0f);
    const auto relative = [&](Vector score, Vector otherwise) {
      return Wide::select_less(nothing, largest, exp<Wide>(Wide::subtract(score, largest)),
                               otherwise);
    };
    const auto keep = relative(before, one), add = relative(here, one);
    Wide::store(state.keep + from, keep);
    Wide::store(state.add + from, add);
    Wide::store(state.largest + from, largest);
    Wide::store(state.sums + from,
                Wide::multiply_add(sum, add, Wide::multiply(Wide::load(state.sums + from), keep)));
  }

  // R numbers of the weighted values of C registers of queries, in order of rows, join those of the
  // blocks before.
  template <uint32_t R, uint32_t C>
  static void multiply_values(const State& state, const Block& block, const float* values,
                              uint64_t kv_stride, float* out, uint32_t lane) {
    Vector sums[R][C];
#pragma GCC unroll 8
    for (uint32_t r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (uint32_t c = 0; c < C; ++c) sums[r][c] = Wide::zero();
    const float* weights = block.scores;
    const uint32_t n = block.needed.end - block.needed.begin;
    for (uint32_t i = 0; i < n; ++i, weights += block.stride, values += kv_stride) {
      Vector loaded[C];
#pragma GCC unroll 8
      for (uint32_t c = 0; c < C; ++c) loaded[c] = Wide::load(weights + c * Wide::kLanes);
#pragma GCC unroll 8
      for (uint32_t r = 0; r < R; ++r) {
        const auto value = Wide::broadcast(values[r]);
#pragma GCC unroll 8
        for (uint32_t c = 0; c < C; ++c)
          sums[r][c] = Wide::multiply_add(value, loaded[c], sums[r][c]);
      }
    }
    for (uint32_t c = 0; c < C; ++c) {
      const auto keep = Wide::load(state.keep + lane + c * Wide::kLanes);
      const auto add = Wide::load(state.add + lane + c * Wide::kLanes);
#pragma GCC unroll 8
      for (uint32_t r = 0; r < R; ++r) {
        float* const to = out + r * block.stride + c * Wide::kLanes;
        Wide::store(to, Wide::multiply_add(sums[r][c], add, Wide::multiply(Wide::load(to), keep)));
      }
    }
  }
};

template <class Isa, class Activation>
struct SpanAttention {
  using Wide = typename Isa::Wide;
  using Tiling = SpanLayout<Wide>;
  using State = typename SpanAttend<Isa>::State;

  static uint64_t slices(const Call& call) {
    const Tiling tiling = tiling_of(call);
    return attention_slices(call, tiling.block_rows, tiling.units);
  }
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    const auto& params = *static_cast<const SpanAttentionParams*>(call.params);
    const Tiling tiling = tiling_of(call);
    const State state(tiling, scratch);
    for_each_slice<Isa>(call, tiling.block_rows, tiling.units, begin, end,
                        [&](uint32_t first_row, uint32_t n_rows, uint32_t unit) {
                          run_slice(call, params, tiling, state, first_row, n_rows, unit);
                        });
  }
  static uint64_t scratch_bytes(const Call& call) { return tiling_of(call).bytes(); }

 private:
  static Tiling tiling_of(const Call& call) {
    return {*static_cast<const SpanAttentionParams*>(call.params), Activation::kGroup};
  }

  static void run_slice(const Call& call, const SpanAttentionParams& params, const Tiling& tiling,
                        const State& state, uint64_t first_row, uint32_t n_rows, uint32_t unit) {
    const uint32_t head_dim = params.head_dim;
    const uint32_t first_head = unit * tiling.unit;
    const uint32_t last_head =
        first_head + tiling.unit < params.n_kv_heads ? first_head + tiling.unit : params.n_kv_heads;
    for (uint32_t head = first_head; head < last_head; ++head) {
      SpanAttend<Isa>::attend(call, params, tiling, state, first_row, n_rows, head);
      const uint64_t column = uint64_t{head - first_head} * tiling.group * head_dim;
      for (uint32_t q = 0; q < n_rows * tiling.group; ++q) {
        float* out = state.out + q / tiling.group * tiling.out_stride + column +
                     uint64_t{q % tiling.group} * head_dim;
        SpanAttend<Isa>::gather(state.values + q, tiling.lanes, head_dim, out);
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
