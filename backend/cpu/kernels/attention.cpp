// attention: softmax(query . keys * scale) . values over the positions that a row sees
//   0 query: rows [rows, n_heads * head_dim]
//   1 key_cache, 2 value_cache: [page][kv_head][256][head_dim]
//   3 out: activation [rows, n_heads * head_dim]   25 AttentionParams
// cross_attention: the same over all of an encoder's positions   25 CrossAttentionParams
// latent_attention: likewise over what a row sees, where values are the first numbers of the keys
//   0 query   1 cache   2 out: rows [rows, n_heads * value_dim]   25 LatentAttentionParams
//   slice: up to kQueries / group rows of one span x the fewest kv heads whose output is whole groups
//          of the activation kind (32 numbers for q8_32, 1 for floats)
//
// 1. What it computes. Online softmax (FlashAttention) with the pages of the cache, 256 positions
//    each, as its blocks. For each page: the scores, their maximum, the exponentials relative to it,
//    their sum, and the sum of the values weighted with them, in order of position (`attend_page`).
//    Then the page's sums are rescaled and added to those of the pages before (`merge`), in order.
//    Pages begin at fixed positions, so what is added in which order depends on the row's own range
//    of positions only: rows of a slice share what is loaded, never a sum (row invariance).
// 2. What bounds it. One row: memory, each key and value is read once for 2 * group products. A
//    prompt's rows: the multipliers; the exponentials are 1 of 2 * head_dim.
// 3. What the loops do about it.
//    - The `group` query heads that share a kv head, of up to kQueries / group rows, go through a page
//      together, and read it once.
//    - Scores are a matmul of queries x keys, with the micro-kernel of float matmuls
//      (matmul_tile.h): keys are its weight rows, a score the sum over head_dim.
//    - Values are weighed the other way round (`weigh_tile`): a vector has neighbouring columns of a
//      value row, and R queries x C vectors of sums stay in registers while all positions pass.
//    - Pages lie apart in memory, where no hardware prefetcher follows. So the page's values are
//      prefetched while its keys are multiplied, and the keys of the next page, or of the next kv
//      head, while the values are weighed: as many lines as are loaded.
// 4. What was tried and did not pay. Prefetching 1 to 16 KiB ahead in the same page (6 to 20 % slower
//    than a page ahead), and a page's lines in one burst. docs/decisions/prefetching-on-the-cpu.md.
//
// Attention in int16 is attention_int16.cpp, that of encoders span_attention.cpp, that on a matrix
// unit in tiles/. Where to change it: another format of the cache is a trait beside F16 (formats.h) or
// CacheQ8_0 (formats_cache.h), and lines in kEntries; another score (a cap, a bias) goes into `scale_scores`.
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/attention_range.h"
#include "cpu/kernels/formats_cache.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/matmul_tile.h"
#include "cpu/kernels/sink.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

// What operations differ in: how many numbers a value has, where values and results are, and how many
// parts the query heads of a kv head are cut into, so that a model with a single one has slices for
// several workers.
template <class Params>
struct Traits {
  static constexpr uint32_t kValues = 2, kOut = 3;  // slots
  static uint32_t value_dim(const Params& params) { return params.head_dim; }
  static uint32_t parts(const Params&) { return 1; }
};
template <>
struct Traits<LatentAttentionParams> {
  static constexpr uint32_t kValues = 1, kOut = 2;
  static constexpr uint32_t kMostHeads = 8;
  static uint32_t value_dim(const LatentAttentionParams& params) { return params.value_dim; }
  static uint32_t parts(const LatentAttentionParams& params) {
    const uint32_t group = params.n_heads / params.n_kv_heads;
    uint32_t heads = group < kMostHeads ? group : kMostHeads;
    while (group % heads != 0) --heads;
    return group / heads;
  }
};

constexpr uint32_t kQueries =
    32;  // query heads of a slice: their scores of a page are 32 KiB, an L1

// How a call is divided into slices, and how much scratch memory a worker needs. `out_group`: numbers
// per group of the output's activation kind, which is quantised in whole groups.
template <class Isa>
struct Layout {
  static constexpr uint32_t kLanes = Isa::Wide::kLanes;
  template <class Params>
  Layout(const Params& params, uint32_t out_group)
      : parts(Traits<Params>::parts(params)),
        heads(params.n_kv_heads * parts),
        group(params.n_heads / heads),
        value_dim(Traits<Params>::value_dim(params)),
        block_rows(group < kQueries ? kQueries / group : 1),
        queries(block_rows * group),
        unit(heads_of_whole_groups(heads, uint64_t{group} * value_dim, out_group)),
        units((heads + unit - 1) / unit),
        value_stride((value_dim + kLanes - 1) / kLanes * kLanes),
        out_stride(uint64_t{unit} * group * value_dim) {}

  uint32_t parts;  // of the query heads of a kv head; each is one more kv head, with the same rows
  uint32_t heads;  // kv heads, counted so
  uint32_t group;  // query heads per kv head
  uint32_t value_dim;
  uint32_t block_rows;    // rows of a slice
  uint32_t queries;       // query heads of a slice for each of its kv heads: block_rows * group
  uint32_t unit, units;   // kv heads of a slice; slices for each block of rows
  uint64_t value_stride;  // value_dim, rounded up to whole vectors
  uint64_t out_stride;    // floats of one row of a slice's result

  uint64_t bytes() const {
    return queries * (sizeof(typename FloatInput<Isa>::Row) + sizeof(Range) +
                      4 * (kPagePositions + 2 * value_stride + 4)) +
           4 * (block_rows * out_stride + Isa::kLanes);
  }
};

// What a slice keeps while it goes through the pages of one kv head, in the worker's scratch memory; one entry
// for each query head.
template <class Isa>
struct State {
  State(const Layout<Isa>& layout, std::byte* scratch) {
    const uint64_t n = layout.queries;
    scores = take<float>(scratch, n * kPagePositions);
    page_values = take<float>(scratch, n * layout.value_stride);
    values = take<float>(scratch, n * layout.value_stride);
    inputs = take<typename FloatInput<Isa>::Row>(scratch, n);
    ranges = take<Range>(scratch, n);
    largest = take<float>(scratch, n);
    sums = take<float>(scratch, n);
    page_largest = take<float>(scratch, n);
    page_sums = take<float>(scratch, n);
    out = take<float>(scratch, layout.block_rows * layout.out_stride + Isa::kLanes);
  }

  float* scores;       // [queries][256] of this page; later their exponentials
  float* page_values;  // [queries][value_stride] weighted sums of this page's values
  float* values;       // [queries][value_stride] those of all pages before
  typename FloatInput<Isa>::Row* inputs;  // [queries] the query vectors
  Range* ranges;   // [queries] positions of this page that the query sees, from the page's first on
  float* largest;  // [queries] largest score of the pages before
  float* sums;     // [queries] sum of their exponentials relative to it: the denominator
  float* page_largest;  // [queries] the same two of this page
  float* page_sums;
  float* out;  // [block_rows][out_stride]

 private:
  template <class T>
  static T* take(std::byte*& p, uint64_t n) {
    T* result = reinterpret_cast<T*>(p);
    p += n * sizeof(T);
    return result;
  }
};

// What is prefetched while the values of a page are read: with its row i, row i of these, which are keys.
struct Next {
  const std::byte* rows;
  uint64_t row_bytes;
  uint32_t end;  // how many rows there are
};

// values[r] += sum over the positions i of `range` of weights[r][i] * value row i, in order of position: R queries x C
// vectors, which begin at column `first`. `n_last`: columns of the vector, where C is 1.
template <class Isa, class Cache, uint32_t R, uint32_t C>
static inline void weigh_tile(const float* weights, float* values, uint64_t value_stride,
                              const std::byte* cache, uint64_t row_bytes, uint32_t first,
                              uint32_t n_last, Range range, Next next) {
  using Keys = typename KeysBeside<Cache>::Type;
  typename Isa::Vector sums[R][C];  // the pragmas keep them in registers
#pragma GCC unroll 8
  for (uint32_t r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (uint32_t c = 0; c < C; ++c)
      sums[r][c] = Isa::load(values + r * value_stride + first + Isa::kLanes * c);
  for (uint32_t i = range.begin; i < range.end; ++i) {
    const std::byte* row = cache + i * row_bytes;
    const std::byte* prefetched =
        (i < next.end ? next.rows + i * next.row_bytes : row) + Keys::row_bytes(first);
    typename Isa::Vector loaded[C];
#pragma GCC unroll 8
    for (uint32_t c = 0; c < C; ++c) {
      if constexpr (IsInBlocks<Cache> &&
                    C * Isa::kLanes % kCacheBlock == 0)  // `first` begins a block
        loaded[c] = Cache::load_behind(row + Cache::byte_at(first), Isa::kLanes * c);
      else
        loaded[c] = Cache::load(row, first + Isa::kLanes * c, C > 1 ? Isa::kLanes : n_last);
      // One cache line between two loads: a burst would take all line fill buffers, which loads need too.
      const uint64_t byte = Keys::row_bytes(Isa::kLanes * c);
      if (c == 0 || byte / kCacheLine != Keys::row_bytes(Isa::kLanes * (c - 1)) / kCacheLine)
        __builtin_prefetch(prefetched + byte, 0, kIntoL2);
    }
#pragma GCC unroll 8
    for (uint32_t r = 0; r < R; ++r) {
      const auto weight = Isa::broadcast(weights[r * kPagePositions + i]);
#pragma GCC unroll 8
      for (uint32_t c = 0; c < C; ++c)
        sums[r][c] = Isa::multiply_add(weight, loaded[c], sums[r][c]);
    }
  }
#pragma GCC unroll 8
  for (uint32_t r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (uint32_t c = 0; c < C; ++c)
      Isa::store(values + r * value_stride + first + Isa::kLanes * c, sums[r][c]);
}

// C of weigh_tile for R queries: as many accumulators as a tile of the float matmul has.
template <class Isa, uint32_t R>
static constexpr uint32_t weigh_columns() {
  if (R == Isa::kTileRows) return Isa::kFloatTileColumns;
  const uint32_t fit = Isa::kTileRows * Isa::kFloatTileColumns / R;
  return fit >= 8 ? 8 : fit >= 4 ? 4 : 2;
}

// weigh_tile for all columns of rows that lie `row_bytes` apart. Each column is summed in a lane of its own, so vectors may be as wide as the level has
// them (Isa::Wide) without a change of the result.
template <class Isa, template <class> class Cache, uint32_t R>
static inline void weigh(const float* weights, float* values, uint64_t value_stride,
                         const std::byte* cache, uint64_t row_bytes, uint32_t n_columns,
                         Range range, Next next) {
  using Wide = typename Isa::Wide;
  using WideCache = Cache<Wide>;
  if (range.begin >= range.end) return;
  constexpr uint32_t kColumns = weigh_columns<Isa, R>();
  uint32_t first = 0;
  for (; first + kColumns * Wide::kLanes <= n_columns; first += kColumns * Wide::kLanes)
    weigh_tile<Wide, WideCache, R, kColumns>(weights, values, value_stride, cache, row_bytes, first,
                                             Wide::kLanes, range, next);
  for (; first < n_columns; first += Wide::kLanes) {
    const uint32_t rest = n_columns - first;
    weigh_tile<Wide, WideCache, R, 1>(weights, values, value_stride, cache, row_bytes, first,
                                      rest < Wide::kLanes ? rest : Wide::kLanes, range, next);
  }
}

// The same for R queries, each with its own range: positions that all of them see go through the tile of R, those
// before and behind query by query. (Neighbouring rows of a prompt see one position more each.)
template <class Isa, template <class> class Cache, uint32_t R>
static inline void weigh_ranges(const float* weights, float* values, uint64_t value_stride,
                                const std::byte* cache, uint64_t row_bytes, uint32_t n_columns,
                                const Range* ranges, Next next) {
  const auto alone = [&](uint32_t r, Range range) {
    weigh<Isa, Cache, 1>(weights + r * kPagePositions, values + r * value_stride, value_stride,
                         cache, row_bytes, n_columns, range, {});
  };
  Range common = ranges[0];
  for (uint32_t r = 1; r < R; ++r) common = intersect(common, ranges[r]);
  if (common.begin >= common.end) {
    for (uint32_t r = 0; r < R; ++r) alone(r, ranges[r]);
    return;
  }
  for (uint32_t r = 0; r < R; ++r) alone(r, {ranges[r].begin, common.begin});
  weigh<Isa, Cache, R>(weights, values, value_stride, cache, row_bytes, n_columns, common, next);
  for (uint32_t r = 0; r < R; ++r) alone(r, {common.end, ranges[r].end});
}

// Multiplies the scores of a range by `scale`, applies the soft cap (0: none), and returns the largest.
template <class Isa>
static float scale_scores(float* scores, Range range, float scale, float soft_cap) {
  auto largest = Isa::broadcast(-__builtin_inff());
  const auto factor = Isa::broadcast(scale), cap = Isa::broadcast(soft_cap);
  for (uint32_t i = range.begin; i < range.end; i += Isa::kLanes) {
    const uint32_t left = range.end - i, n = left < Isa::kLanes ? left : Isa::kLanes;
    auto score = Isa::multiply(Isa::load(scores + i, n), factor);
    if (soft_cap > 0) score = Isa::multiply(cap, tanh<Isa>(Isa::divide(score, cap)));
    Isa::store(scores + i, score, n);
    if (n == Isa::kLanes) {
      largest = Isa::maximum(score, largest);
    } else {
      for (uint32_t j = i; j < range.end; ++j)
        largest = Isa::maximum(Isa::broadcast(scores[j]), largest);
    }
  }
  return Isa::max_lanes(largest);
}

// Replaces scores by e^(score - largest) and returns their sum.
template <class Isa>
static float exponentiate(float* scores, Range range, float largest) {
  using Wide = typename Isa::Wide;
  auto sum = Isa::zero();  // eight lanes at every level, so all add in the same order
  const auto top = Isa::broadcast(largest);
  uint32_t i = range.begin;
  for (; i + Wide::kLanes <= range.end; i += Wide::kLanes) {
    Wide::store(scores + i,
                exp<Wide>(Wide::subtract(Wide::load(scores + i), Wide::broadcast(largest))));
    for (uint32_t j = 0; j < Wide::kLanes; j += Isa::kLanes)
      sum = Isa::add(sum, Isa::load(scores + i + j));
  }
  for (; i + Isa::kLanes <= range.end; i += Isa::kLanes) {
    const auto weight = exp<Isa>(Isa::subtract(Isa::load(scores + i), top));
    Isa::store(scores + i, weight);
    sum = Isa::add(sum, weight);
  }
  if (i < range.end) {
    const uint32_t n = range.end - i;
    Isa::store(scores + i, exp<Isa>(Isa::subtract(Isa::load(scores + i, n), top)), n);
    sum = Isa::add(sum, Isa::load(scores + i, n));
  }
  return Isa::sum_lanes(sum);
}

// Which positions rows see, and what becomes of their scores.
static inline Range seen_by(const Row& row, const AttentionParams& params) {
  return visible(row, params.window);
}
static inline Range seen_by(const Row&, const CrossAttentionParams& params) {
  return {0, params.n_positions};
}
static inline Range seen_by(const Row& row, const LatentAttentionParams&) {
  return visible(row, 0);
}
static inline float soft_cap_of(const LatentAttentionParams&) { return 0; }
static inline float soft_cap_of(const AttentionParams& params) { return params.soft_cap; }
static inline float soft_cap_of(const CrossAttentionParams&) { return 0; }

// All but how the result is written.
template <class Isa, template <class> class Cache, class Params>
struct Attend {
  using Values = Cache<Isa>;
  using Keys = typename KeysBeside<Values>::Type;
  using Tiling = Layout<Isa>;
  using Slice = State<Isa>;

  // Goes through the pages of kv head `head` with all query heads of these rows that share it, and leaves their
  // `values` and `sums` in `state`.
  static void run(const Call& call, const Params& params, const Tiling& tiling, Slice& state,
                  uint64_t first_row, uint32_t n_rows, uint32_t head) {
    const uint32_t n_queries = n_rows * tiling.group;
    const Row* rows = call.rows + first_row;
    const uint64_t query_stride = uint64_t{params.n_heads} * params.head_dim;
    Range all = seen_by(rows[0], params);
    for (uint32_t r = 1; r < n_rows; ++r) all = unite(all, seen_by(rows[r], params));
    for (uint32_t r = 0; r < n_rows; ++r) {
      const float* query = reinterpret_cast<const float*>(call.operands[0]) +
                           (first_row + r) * query_stride +
                           uint64_t{head} * tiling.group * params.head_dim;
      for (uint32_t g = 0; g < tiling.group; ++g) {
        const uint32_t q = r * tiling.group + g;
        state.inputs[q] = {query + uint64_t{g} * params.head_dim};
        state.largest[q] = -__builtin_inff();
        state.sums[q] = 0;
      }
    }
    __builtin_memset(state.values, 0, n_queries * tiling.value_stride * sizeof(float));
    for (uint32_t page_begin = all.begin / kPagePositions * kPagePositions; page_begin < all.end;
         page_begin += kPagePositions) {
      const Range page = {page_begin, page_begin + kPagePositions};
      for (uint32_t r = 0; r < n_rows; ++r) {
        const Range range = part_of_page(seen_by(rows[r], params), page_begin);
        for (uint32_t g = 0; g < tiling.group; ++g) state.ranges[r * tiling.group + g] = range;
      }
      const Range needed = intersect(all, page);
      const uint64_t key_bytes = Keys::row_bytes(params.head_dim);
      const auto page_at = [&](uint32_t of_head, uint32_t position) {
        return cache_page<Keys>(call, params, rows[0].sequence, of_head / tiling.parts, position);
      };
      Next next = {};  // the keys of the next page, or of the next kv head's first page
      if (page.end < all.end) {
        const uint32_t left = all.end - page.end;
        next = {call.operands[1] + page_at(head, page.end), key_bytes,
                left < kPagePositions ? left : kPagePositions};
      } else if (head + 1 < tiling.heads) {
        next = {call.operands[1] + page_at(head + 1, all.begin), key_bytes, kPagePositions};
      }
      attend_page(
          params, tiling, state, n_queries, call.operands[1] + page_at(head, page_begin),
          call.operands[Traits<Params>::kValues] +
              cache_page<Values>(call, params, rows[0].sequence, head / tiling.parts, page_begin),
          {needed.begin - page_begin, needed.end - page_begin}, next);
    }
  }

 private:
  // One page: scores, softmax relative to the page's own maximum, weighted values, merge. `needed`: positions that
  // any of the queries sees. multiply_panel prefetches `values`, weigh_from `next`.
  static void attend_page(const Params& params, const Tiling& tiling, Slice& state,
                          uint32_t n_queries, const std::byte* keys, const std::byte* values,
                          Range needed, Next next) {
    multiply_panel<Isa, Keys>(state.inputs, n_queries, keys, Keys::row_bytes(params.head_dim),
                              needed.begin, needed.end, params.head_dim, values,
                              [&](uint32_t q, uint32_t position, const float* scores, uint32_t n) {
                                __builtin_memcpy(state.scores + q * kPagePositions + position,
                                                 scores, n * sizeof(float));
                              });
    __builtin_memset(state.page_values, 0, n_queries * tiling.value_stride * sizeof(float));
    for (uint32_t q = 0; q < n_queries; ++q) {
      const Range range = state.ranges[q];
      if (range.begin >= range.end) continue;
      float* scores = state.scores + q * kPagePositions;
      state.page_largest[q] = scale_scores<Isa>(scores, range, params.scale, soft_cap_of(params));
      state.page_sums[q] = exponentiate<Isa>(scores, range, state.page_largest[q]);
    }
    uint32_t q = 0;
    for (; q + Isa::kTileRows <= n_queries; q += Isa::kTileRows)
      weigh_from<Isa::kTileRows>(params, tiling, state, values, q, next);
    if constexpr (Isa::kTileRows > 2)
      for (; q + 2 <= n_queries; q += 2) weigh_from<2>(params, tiling, state, values, q, next);
    for (; q < n_queries; ++q) weigh_from<1>(params, tiling, state, values, q, next);
    for (q = 0; q < n_queries; ++q)
      if (state.ranges[q].begin < state.ranges[q].end) merge(tiling, state, q);
  }

  // Only the first tile prefetches what comes next: the others read the same page again.
  template <uint32_t R>
  static void weigh_from(const Params& params, const Tiling& tiling, Slice& state,
                         const std::byte* values, uint32_t q, Next next) {
    weigh_ranges<Isa, Cache, R>(state.scores + q * kPagePositions,
                                state.page_values + q * tiling.value_stride, tiling.value_stride,
                                values, Values::row_bytes(params.head_dim), tiling.value_dim,
                                state.ranges + q, q == 0 ? next : Next{});
  }

  // Adds the page's sums to those of the pages before, both rescaled to the larger of the two maxima.
  static void merge(const Tiling& tiling, Slice& state, uint32_t q) {
    const float before = state.largest[q], here = state.page_largest[q];
    const float largest = here > before ? here : before;
    float factors[Isa::kLanes] = {before - largest, here - largest};
    Isa::store(factors, exp<Isa>(Isa::load(factors)));
    const auto keep = Isa::broadcast(factors[0]), take = Isa::broadcast(factors[1]);
    float* values = state.values + q * tiling.value_stride;
    const float* page_values = state.page_values + q * tiling.value_stride;
    for (uint64_t i = 0; i < tiling.value_stride; i += Isa::kLanes)
      Isa::store(values + i, Isa::multiply_add(Isa::load(page_values + i), take,
                                               Isa::multiply(Isa::load(values + i), keep)));
    state.sums[q] = state.sums[q] * factors[0] + state.page_sums[q] * factors[1];
    state.largest[q] = largest;
  }
};

// Slices of a call, each of which attends for its kv heads and writes the output with `writer`.
template <class Isa, template <class> class Cache, class Params>
struct AttentionSlices {
  using Tiling = Layout<Isa>;
  using Slice = State<Isa>;

  [[gnu::noinline]] static void run(const Call& call, const Tiling& tiling, uint64_t begin,
                                    uint64_t end, std::byte* scratch,
                                    const ActivationWriter& writer) {
    const auto& params = *static_cast<const Params*>(call.params);
    Slice state(tiling, scratch);
    for_each_slice<Isa>(call, tiling.block_rows, tiling.units, begin, end,
                        [&](uint32_t first_row, uint32_t n_rows, uint32_t unit) {
                          run_slice(call, params, tiling, state, first_row, n_rows, unit, writer);
                        });
  }

 private:
  static void run_slice(const Call& call, const Params& params, const Tiling& tiling, Slice& state,
                        uint64_t first_row, uint32_t n_rows, uint32_t unit,
                        const ActivationWriter& writer) {
    const uint32_t value_dim = tiling.value_dim;
    const uint32_t first_head = unit * tiling.unit;
    const uint32_t last_head =
        first_head + tiling.unit < tiling.heads ? first_head + tiling.unit : tiling.heads;
    for (uint32_t head = first_head; head < last_head; ++head) {
      Attend<Isa, Cache, Params>::run(call, params, tiling, state, first_row, n_rows, head);
      const uint64_t column = uint64_t{head - first_head} * tiling.group * value_dim;
      for (uint32_t q = 0; q < n_rows * tiling.group; ++q) {
        const float* values = state.values + q * tiling.value_stride;
        const uint32_t own = head * tiling.group + q % tiling.group;
        const float factor = 1.0f / (state.sums[q] + sink_share<Isa>(call, own, state.largest[q]));
        float* out = state.out + q / tiling.group * tiling.out_stride + column +
                     uint64_t{q % tiling.group} * value_dim;
        for (uint32_t i = 0; i < value_dim; ++i) out[i] = values[i] * factor;
      }
    }
    const uint32_t k = params.n_heads * value_dim;
    const uint32_t begin = first_head * tiling.group * value_dim;
    const uint32_t end = last_head * tiling.group * value_dim;
    for (uint32_t r = 0; r < n_rows; ++r)
      writer.write(call.operands[Traits<Params>::kOut] + (first_row + r) * writer.row_bytes(k), k,
                   begin, end, state.out + r * tiling.out_stride);
  }
};

// The kernel: its output is written as `Activation`.
template <class Isa, template <class> class Cache, class Activation, class Params>
struct Attention {
  using Tiling = Layout<Isa>;

  static uint64_t slices(const Call& call) {
    const Tiling tiling = tiling_of(call);
    return attention_slices(call, tiling.block_rows, tiling.units);
  }
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    AttentionSlices<Isa, Cache, Params>::run(call, tiling_of(call), begin, end, scratch,
                                             WriteStored<Isa, Activation>::kWriter);
  }
  static uint64_t scratch_bytes(const Call& call) { return tiling_of(call).bytes(); }

 private:
  static Tiling tiling_of(const Call& call) {
    return {*static_cast<const Params*>(call.params), Activation::kGroup};
  }
};

template <template <class> class Cache, template <class> class Activation,
          Operation kOperation = Operation::attention, class Params = AttentionParams>
constexpr KernelEntry entry() {
  using Kernel = Attention<ThisIsa, Cache, Activation<ThisIsa>, Params>;
  return {{kOperation,
           Activation<ThisIsa>::kKind,
           {kAbsent, kAbsent, kAbsent},
           Cache<ThisIsa>::kFormat},
          {Kernel::slices, Kernel::run, Kernel::scratch_bytes}};
}

template <template <class> class Cache>
constexpr KernelEntry latent_entry() {
  using Kernel = Attention<ThisIsa, Cache, F32Activation<ThisIsa>, LatentAttentionParams>;
  return {{Operation::latent_attention, kAny, {kAbsent, kAbsent, kAbsent}, Cache<ThisIsa>::kFormat},
          {Kernel::slices, Kernel::run, Kernel::scratch_bytes}};
}

template <template <class> class Cache, template <class> class Activation>
constexpr KernelEntry cross_entry() {
  return entry<Cache, Activation, Operation::cross_attention, CrossAttentionParams>();
}

template <template <class> class Cache, template <class> class Activation>
constexpr KernelEntry sink_entry() {
  return entry<Cache, Activation, Operation::sink_attention>();
}

constexpr KernelEntry kEntries[] = {
    entry<F32, F32Activation>(),
    entry<F32, Bf16Activation>(),
    entry<F32, Bf16PairActivation>(),
    entry<F32, Q8Activation>(),
    entry<F16, F32Activation>(),
    entry<F16, Bf16Activation>(),
    entry<F16, Bf16PairActivation>(),
    entry<F16, Q8Activation>(),
    entry<F32, Q16Activation>(),
    entry<F16, Q16Activation>(),
    entry<CacheQ8_0, F32Activation>(),
    entry<CacheQ8_0, Bf16Activation>(),
    entry<CacheQ8_0, Bf16PairActivation>(),
    entry<CacheQ8_0, Q8Activation>(),
    entry<CacheQ8_0, Q16Activation>(),
    entry<CacheQ4_0, F32Activation>(),
    entry<CacheQ4_0, Bf16Activation>(),
    entry<CacheQ4_0, Bf16PairActivation>(),
    entry<CacheQ4_0, Q8Activation>(),
    entry<CacheQ4_0, Q16Activation>(),
    cross_entry<F32, F32Activation>(),
    cross_entry<F32, Bf16Activation>(),
    cross_entry<F32, Bf16PairActivation>(),
    cross_entry<F32, Q8Activation>(),
    cross_entry<F16, F32Activation>(),
    cross_entry<F16, Bf16Activation>(),
    cross_entry<F16, Bf16PairActivation>(),
    cross_entry<F16, Q8Activation>(),
    cross_entry<F32, Q16Activation>(),
    cross_entry<F16, Q16Activation>(),
    latent_entry<F32>(),
    latent_entry<F16>(),
    sink_entry<F32, F32Activation>(),
    sink_entry<F32, Bf16Activation>(),
    sink_entry<F32, Bf16PairActivation>(),
    sink_entry<F32, Q8Activation>(),
    sink_entry<F16, F32Activation>(),
    sink_entry<F16, Bf16Activation>(),
    sink_entry<F16, Bf16PairActivation>(),
    sink_entry<F16, Q8Activation>(),
    sink_entry<F32, Q16Activation>(),
    sink_entry<F16, Q16Activation>(),
    sink_entry<CacheQ8_0, F32Activation>(),
    sink_entry<CacheQ8_0, Bf16Activation>(),
    sink_entry<CacheQ8_0, Bf16PairActivation>(),
    sink_entry<CacheQ8_0, Q8Activation>(),
    sink_entry<CacheQ8_0, Q16Activation>(),
    sink_entry<CacheQ4_0, F32Activation>(),
    sink_entry<CacheQ4_0, Bf16Activation>(),
    sink_entry<CacheQ4_0, Bf16PairActivation>(),
    sink_entry<CacheQ4_0, Q8Activation>(),
    sink_entry<CacheQ4_0, Q16Activation>(),
};

}  // namespace

template <>
KernelList Families<ThisIsa>::attention() {
  return list_of(kEntries);
}

}  // namespace akunu::cpu
