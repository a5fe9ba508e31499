// attention (see kernels/attention.cpp) of many rows on a matrix unit. Queries, keys, weights and values
// are multiplied in bf16 (kNumbers = 1), or each as the sum of two numbers in bf16 (kNumbers = 2,
// tiles/unpack.h); everything else is float32.
//   slices: up to kQueries / group rows of a span x a kv head
//
// 1. What it computes. As kernels/attention.cpp, page by page, in vectors of 16 absolute positions;
//    what a tile has beyond a row's range gets the weight 0.
// 2. What bounds it. The matrix unit, and the exponentials.
// 3. What is done about it. A page is unpacked once for 256 queries. Three blocks of 32 rows are at work
//    at a time (`overlap`): while the exponentials of one are computed, the matrix unit multiplies the
//    weights of the block before with the values, and the queries of the next one with the keys. Its
//    steps are shared out: some before each row's maximum, some before each row's weights. Weights are
//    2 to the power of score * log2 e.
// 4. What was tried and did not pay. A step in the middle of a row's weights; half a step after
//    every fourth vector, which is best for matmuls, made attention behind 3,584 positions a fifth
//    slower. docs/decisions/prompts-on-the-cpu.md.
// 5. Where to change it. Sizes of slices and scratch: TileLayout, TileState. The order of work:
//    `attend_page`, `overlap`. One product of two tiles by two: tiles/block.h.
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/attention_range.h"
#include "cpu/kernels/formats_bf16.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/sink.h"
#include "cpu/kernels/tiles/block.h"
#include "cpu/kernels/tiles/table.h"

namespace akunu::cpu {
namespace {

constexpr uint32_t kQueries = 256;     // of a slice: what unpacked keys and values are used for
constexpr uint32_t kPrefetchRows = 4;  // prefetch distance, in query rows
constexpr float kLog2E = 0x1.715476p+0f;

// How a call is divided into slices, and the sizes of a worker's scratch. Queries of a slice are
// ordered head by head, the rows of a head in whole blocks of 32.
template <class Isa, uint32_t kNumbers>
struct TileLayout {
  using Tiles = typename Isa::Tiles;

  explicit TileLayout(const AttentionParams& params)
      : group(params.n_heads / params.n_kv_heads),
        block_rows(group * kBlockRows < kQueries ? kQueries / group / kBlockRows * kBlockRows
                                                 : kBlockRows),
        n_queries(group * block_rows),
        k_steps(round_up(params.head_dim, kStep) / kStep),
        value_panels(round_up(params.head_dim, Tiles::kLines) / Tiles::kLines) {}

  uint32_t group;         // query heads per kv head
  uint32_t block_rows;    // rows of a slice, a multiple of 32
  uint32_t n_queries;     // of a slice
  uint32_t k_steps;       // of query . keys
  uint32_t value_panels;  // of weights . values

  uint64_t query_stride() const { return (kNumbers * k_steps | 1) * kCacheLine; }
  uint64_t key_panel() const { return k_steps * kStepBytes; }
  uint64_t value_stride() const { return uint64_t{value_panels} * Tiles::kLineBytes; }
  static constexpr uint64_t kScoreStride = kPagePositions * sizeof(float) + kCacheLine;
  static constexpr uint64_t kWeightStride =
      kPagePositions / kStep * kNumbers * kCacheLine + kCacheLine;
  static constexpr uint64_t kStepBytes = kNumbers * Tiles::kTileBytes;  // of a panel
  static constexpr uint64_t kValuePanel = kPagePositions / kStep * kStepBytes;

  uint64_t bytes() const {
    return n_queries * (query_stride() + value_stride() + 4 * sizeof(float)) +
           kPagePositions / Tiles::kLines * key_panel() + value_panels * kValuePanel +
           kBlockRows * (2 * (kScoreStride + kWeightStride) + value_stride());
  }
};

// What a slice keeps while it walks the pages of its kv head.
template <class Isa, uint32_t kNumbers>
struct TileState {
  using Layout = TileLayout<Isa, kNumbers>;

  TileState(const Layout& layout, std::byte* scratch) {
    const auto take = [&](uint64_t bytes) {
      std::byte* const result = scratch;
      scratch += bytes;
      return result;
    };
    queries = take(layout.n_queries * layout.query_stride());
    keys = take(kPagePositions / Isa::Tiles::kLines * layout.key_panel());
    values = take(layout.value_panels * Layout::kValuePanel);
    for (auto& each : scores) each = take(kBlockRows * Layout::kScoreStride);
    for (auto& each : weights) each = take(kBlockRows * Layout::kWeightStride);
    page_sums = take(kBlockRows * layout.value_stride());
    sums = take(layout.n_queries * layout.value_stride());
    largest = reinterpret_cast<float*>(take(layout.n_queries * sizeof(float)));
    denominators = reinterpret_cast<float*>(take(layout.n_queries * sizeof(float)));
  }

  std::byte* queries;     // bf16 [n_queries][query_stride]
  std::byte* keys;        // tiles [16 panels of positions][k_steps], of the page at hand
  std::byte* values;      // tiles [value_panels][8 steps of positions], likewise
  std::byte* scores[2];   // float [32][kScoreStride], of alternate blocks of queries
  std::byte* weights[2];  // bf16 [32][kWeightStride], likewise
  std::byte* page_sums;   // float [32][value_stride]: weights . values of the page
  std::byte* sums;        // float [n_queries][value_stride]: of the pages before
  float* largest;         // score, times log2 e
  float* denominators;    // sums of powers of 2 relative to it
};

template <class Isa, uint32_t kNumbers>
struct TileAttention {
  using Tiles = typename Isa::Tiles;
  using Wide = typename Isa::Wide;
  using Vector = typename Wide::Vector;
  using Activation = BfloatActivation<Wide, kNumbers>;
  using Cache = F16<Isa>;
  using Tiling = TileLayout<Isa, kNumbers>;
  using State = TileState<Isa, kNumbers>;
  using Keys = TileHalves<Isa, kNumbers>;

  static uint64_t slices(const Call& call) {
    const auto& params = *static_cast<const AttentionParams*>(call.params);
    return attention_slices(call, Tiling(params).block_rows, params.n_kv_heads);
  }

  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    const auto& params = *static_cast<const AttentionParams*>(call.params);
    const Tiling tiling(params);
    const State state(tiling, scratch);
    Tiles::configure(Tiles::kLines, Tiles::kLines);
    for_each_slice<Isa>(call, tiling.block_rows, params.n_kv_heads, begin, end,
                        [&](uint32_t first_row, uint32_t n_rows, uint32_t head) {
                          run_slice({call, params, tiling, state, first_row, n_rows, head});
                        });
    Tiles::release();
  }

  static uint64_t scratch_bytes(const Call& call) {
    return Tiling(*static_cast<const AttentionParams*>(call.params)).bytes();
  }

 private:
  struct Slice {
    const Call& call;
    const AttentionParams& params;
    const Tiling& tiling;
    const State& state;
    uint32_t first_row, n_rows;
    uint32_t head;  // of keys and values

    const Row& row(uint32_t r) const { return call.rows[first_row + r]; }
    Range seen(uint32_t r, uint32_t page) const {
      return seen_of_page(row(r), params.window, page);
    }
  };

  static uint32_t left(uint32_t n) { return n < Wide::kLanes ? n : Wide::kLanes; }

  static void run_slice(const Slice& slice) {
    const auto& [call, params, tiling, state, first_row, n_rows, head] = slice;
    take_queries(slice);
    for (uint32_t q = 0; q < tiling.n_queries; ++q) state.largest[q] = -__builtin_inff();
    const Range all = visible(&slice.row(0), n_rows, params.window);
    for (uint32_t page = all.begin / kPagePositions * kPagePositions; page < all.end;
         page += kPagePositions) {
      const Range needed = intersect(all, {page, page + kPagePositions});
      const bool all_finite = unpack_page(slice, page, {needed.begin - page, needed.end - page});
      attend_page(slice, page, all_finite);
    }
    write_out(slice);
  }

  // Copies the slice's queries as bf16. Rows that fill up a head's last block stay zero.
  static void take_queries(const Slice& slice) {
    const auto& [call, params, tiling, state, first_row, n_rows, head] = slice;
    const uint32_t dim = params.head_dim;
    const uint64_t stride = uint64_t{params.n_heads} * dim;
    __builtin_memset(state.queries, 0, tiling.n_queries * tiling.query_stride());
    for (uint32_t g = 0; g < tiling.group; ++g)
      for (uint32_t r = 0; r < n_rows; ++r) {
        const float* query = reinterpret_cast<const float*>(call.operands[0]) +
                             (first_row + r) * stride + (uint64_t{head} * tiling.group + g) * dim;
        // Rows are too far apart for the hardware prefetcher.
        prefetch_lines<kIntoL1>(query + kPrefetchRows * stride, dim * sizeof(float));
        auto* out = reinterpret_cast<uint16_t*>(state.queries + (g * tiling.block_rows + r) *
                                                                    tiling.query_stride());
        for (uint32_t i = 0; i < dim; i += Wide::kLanes)
          store_numbers(out, i, Wide::load(query + i, left(dim - i)));
      }
  }

  // 16 elements of a row from element i on.
  static void store_numbers(uint16_t* row, uint32_t i, Vector v) {
    uint16_t* const first = row + i / kStep * (kNumbers * kStep) + i % kStep;
    Isa::store_bfloats(first, v);
    if constexpr (kNumbers == 2) Isa::store_bfloat_rests(first + kStep, v);
  }

  // Of the slice's head in a cache, in bytes.
  static uint64_t page_offset(const Slice& slice, uint32_t page) {
    return cache_page<Cache>(slice.call, slice.params, slice.row(0).sequence, slice.head, page);
  }

  // Positions [needed) of a page, in whole steps; values of others in those steps become zero. Returns
  // false where a value is infinite or NaN. A zero takes its place: otherwise 0 * infinity would make NaN
  // of rows that do not see it. Rows that do see it get it in `add_not_finite`.
  static bool unpack_page(const Slice& slice, uint32_t page, Range needed) {
    const auto& [call, params, tiling, state, first_row, n_rows, head] = slice;
    const uint64_t offset = page_offset(slice, page), stride = Cache::row_bytes(params.head_dim);
    for (uint32_t i = needed.begin / kStep * kStep; i < needed.end; i += Tiles::kLines)
      Keys::unpack({call.operands[1] + offset + i * stride, stride}, params.head_dim,
                   state.keys + i / Tiles::kLines * tiling.key_panel());
    const std::byte* const values = call.operands[2] + offset;
    const bool all_finite =
        Wide::all_finite(reinterpret_cast<const uint16_t*>(values + needed.begin * stride),
                         uint64_t{needed.end - needed.begin} * params.head_dim);
    for (uint32_t i = needed.begin / kStep * kStep; i < needed.end; i += kStep)
      if (all_finite && params.head_dim % Wide::kLanes == 0 && i >= needed.begin &&
          i + kStep <= needed.end)
        unpack_values(slice, i, [&](uint32_t position, uint32_t d) {
          return Wide::load_half(reinterpret_cast<const uint16_t*>(values + position * stride) + d);
        });
      else
        unpack_values(slice, i, [&](uint32_t position, uint32_t d) {
          if (position < needed.begin || position >= needed.end) return Wide::zero();
          const auto* row = reinterpret_cast<const uint16_t*>(values + position * stride);
          return Wide::finite_or_zero(Wide::load_half(row + d, left(slice.params.head_dim - d)));
        });
    return all_finite;
  }

  // 32 positions from `first` on; load(position, d) returns a position's values from dimension d on.
  template <class Load>
  static void unpack_values(const Slice& slice, uint32_t first, const Load& load) {
    for (uint32_t pair = 0; pair < Tiles::kLines; ++pair) {
      std::byte* line =
          slice.state.values + first / kStep * Tiling::kStepBytes + pair * Tiles::kLineBytes;
      for (uint32_t d = 0; d < slice.params.head_dim;
           d += Wide::kLanes, line += Tiling::kValuePanel)
        store_pairs<Isa, kNumbers>(line, load(first + 2 * pair, d), load(first + 2 * pair + 1, d));
    }
  }

  // Up to 32 rows from r on of query head g, one page.
  struct Block {
    uint32_t g, r, n;
    Range steps;  // of 32 positions that any of them sees
    std::byte *scores, *weights;
    float largest[kBlockRows], denominators[kBlockRows];

    bool two_tiles() const { return n > Tiles::kLines; }
    uint32_t first_query(const Slice& slice) const { return g * slice.tiling.block_rows + r; }
  };

  // The block with that number; false where it sees nothing of the page.
  static bool find_block(const Slice& slice, uint32_t page, uint32_t number, Block& block) {
    const uint32_t n_blocks = (slice.n_rows + kBlockRows - 1) / kBlockRows;
    block.g = number / n_blocks;
    block.r = number % n_blocks * kBlockRows;
    block.n = slice.n_rows - block.r < kBlockRows ? slice.n_rows - block.r : kBlockRows;
    Range needed = slice.seen(block.r, page);
    for (uint32_t i = 1; i < block.n; ++i) needed = unite(needed, slice.seen(block.r + i, page));
    block.steps = {needed.begin / kStep, (needed.end + kStep - 1) / kStep};
    return needed.begin < needed.end;
  }

  // All queries of a slice, one page.
  static void attend_page(const Slice& slice, uint32_t page, bool all_finite) {
    const uint32_t n_blocks = slice.tiling.group * ((slice.n_rows + kBlockRows - 1) / kBlockRows);
    Block blocks[3];
    Block *before = nullptr, *here = nullptr, *next = nullptr;
    uint32_t n_found = 0;
    uint32_t number = 0;
    do {
      before = here;
      here = next;
      next = nullptr;
      for (; next == nullptr && number < n_blocks; ++number) {
        Block& block = blocks[n_found % 3];
        if (!find_block(slice, page, number, block)) continue;
        block.scores = slice.state.scores[n_found % 2];
        block.weights = slice.state.weights[n_found % 2];
        next = &block;
        ++n_found;
      }
      overlap(slice, page, before, here, next);
      if (before != nullptr) merge_block(slice, page, *before, all_finite);
    } while (here != nullptr || next != nullptr);
  }

  // Weights . values of `before`, the weights of `here`, query . keys of `next`; each may be null.
  static void overlap(const Slice& slice, uint32_t page, const Block* before, Block* here,
                      const Block* next) {
    const auto& tiling = slice.tiling;
    const uint32_t n_values = before == nullptr ? 0 : (tiling.value_panels + 1) / 2;
    const uint32_t n_keys = next == nullptr ? 0 : next->steps.end - next->steps.begin;
    BlockSequence<Tiles, kNumbers, kNumbers> sequence;
    uint32_t n_begun = 0, n_done = 0;
    const auto multiply_to = [&](uint32_t n_steps) {
      for (; n_done < n_steps; ++n_done) {
        if (sequence.product.n_steps == 0) {
          sequence.begin(n_begun < n_values ? value_product(slice, *before, n_begun)
                                            : key_product(slice, *next, n_begun - n_values));
          ++n_begun;
        }
        sequence.step();
      }
    };
    const uint32_t n_rows = here == nullptr ? 0 : here->n;
    const uint32_t n_steps =
        n_keys * tiling.k_steps +
        (before == nullptr ? 0 : n_values * (before->steps.end - before->steps.begin));
    // The maximum of the next row is found before this row's weights: it is one long chain of
    // instructions, and is ready when that row's weights need it.
    if (n_rows > 0) find_largest(slice, page, *here, 0);
    for (uint32_t i = 0; i < n_rows; ++i) {
      multiply_to(n_steps * (2 * i + 1) / (2 * n_rows));
      if (i + 1 < n_rows) find_largest(slice, page, *here, i + 1);
      multiply_to(n_steps * (2 * i + 2) / (2 * n_rows));
      weigh_row(slice, page, *here, i);
    }
    multiply_to(n_steps);
    sequence.end();
  }

  // The product with the keys of the block's step `i`, and that with the values of panels 2 i, 2 i + 1.
  static BlockProduct key_product(const Slice& slice, const Block& block, uint32_t i) {
    const auto& tiling = slice.tiling;
    const uint32_t step = block.steps.begin + i;
    return {block.two_tiles(),
            true,
            slice.state.queries + block.first_query(slice) * tiling.query_stride(),
            tiling.query_stride(),
            slice.state.keys + 2 * step * tiling.key_panel(),
            tiling.key_panel(),
            tiling.k_steps,
            {block.scores + step * kStep * sizeof(float), Tiles::kLines * Tiling::kScoreStride,
             Tiles::kLineBytes, Tiling::kScoreStride}};
  }
  static BlockProduct value_product(const Slice& slice, const Block& block, uint32_t i) {
    const auto& tiling = slice.tiling;
    return {
        block.two_tiles(),
        tiling.value_panels - 2 * i > 1,
        block.weights + block.steps.begin * kNumbers * kCacheLine,
        Tiling::kWeightStride,
        slice.state.values + 2 * i * Tiling::kValuePanel + block.steps.begin * Tiling::kStepBytes,
        Tiling::kValuePanel,
        block.steps.end - block.steps.begin,
        {slice.state.page_sums + 2 * i * Tiles::kLineBytes, Tiles::kLines * tiling.value_stride(),
         Tiles::kLineBytes, tiling.value_stride()}};
  }

  static float score_factor(const AttentionParams& params) {
    return params.soft_cap > 0 ? kLog2E : params.scale * kLog2E;
  }
  static void find_largest(const Slice& slice, uint32_t page, Block& block, uint32_t i) {
    const Range range = slice.seen(block.r + i, page);
    auto* scores = reinterpret_cast<float*>(block.scores + i * Tiling::kScoreStride);
    if (slice.params.soft_cap > 0) cap_scores(scores, range, slice.params);
    block.largest[i] = largest_of(scores, range) * score_factor(slice.params);
  }
  static void weigh_row(const Slice& slice, uint32_t page, Block& block, uint32_t i) {
    const auto* scores = reinterpret_cast<const float*>(block.scores + i * Tiling::kScoreStride);
    block.denominators[i] =
        weigh(scores, slice.seen(block.r + i, page), score_factor(slice.params), block.largest[i],
              block.steps, block.weights + i * Tiling::kWeightStride);
  }

  static void merge_block(const Slice& slice, uint32_t page, Block& block, bool all_finite) {
    const auto& [call, params, tiling, state, first_row, n_rows, head] = slice;
    const uint32_t first_query = block.first_query(slice);
    float keep[kBlockRows], take[kBlockRows];
    for (uint32_t i = block.n; i < round_up(block.n, Wide::kLanes); ++i) block.largest[i] = 0;
    for (uint32_t i = 0; i < block.n; i += Wide::kLanes) {
      const Vector before = Wide::load(state.largest + first_query + i);
      const Vector here = Wide::load(block.largest + i), largest = Wide::maximum(here, before);
      Wide::store(keep + i, exp2<Wide>(Wide::subtract(before, largest)));
      Wide::store(take + i, exp2<Wide>(Wide::subtract(here, largest)));
    }
    for (uint32_t i = 0; i < block.n; ++i) {
      const Range range = slice.seen(block.r + i, page);
      if (!all_finite) add_not_finite(slice, page, block, range, i);
      if (range.begin < range.end)
        merge(slice, first_query + i, state.page_sums + i * tiling.value_stride(), keep[i], take[i],
              block.largest[i], block.denominators[i]);
    }
  }

  // What `unpack_page` left out, for row i of the block at hand.
  static void add_not_finite(const Slice& slice, uint32_t page, const Block& block, Range range,
                             uint32_t i) {
    const uint32_t dim = slice.params.head_dim;
    const std::byte* cache = slice.call.operands[2] + page_offset(slice, page);
    const auto* weights =
        reinterpret_cast<const uint16_t*>(block.weights + i * Tiling::kWeightStride);
    auto* sums = reinterpret_cast<float*>(slice.state.page_sums + i * slice.tiling.value_stride());
    for (uint32_t position = range.begin; position < range.end; ++position)
      for (uint32_t d = 0; d < dim; ++d) {
        const float value = Cache::element(cache, uint64_t{position} * dim + d);
        if (!__builtin_isfinite(value))
          sums[d] += BF16<Isa>::element(reinterpret_cast<const std::byte*>(weights),
                                        position / kStep * (kNumbers * kStep) + position % kStep) *
                     value;
      }
  }

  // Vectors of 16 absolute positions that the range touches: use(first position, begin, end of the
  // lanes that belong to it).
  template <class Use>
  static void for_each_vector(Range range, const Use& use) {
    uint32_t i = range.begin / Wide::kLanes * Wide::kLanes;
    if (i < range.begin && i < range.end) {
      use(i, range.begin - i, left(range.end - i));
      i += Wide::kLanes;
    }
    for (; i + Wide::kLanes <= range.end; i += Wide::kLanes) use(i, 0, Wide::kLanes);
    if (i < range.end) use(i, 0, range.end - i);
  }

  static void cap_scores(float* scores, Range range, const AttentionParams& params) {
    const Vector factor = Wide::broadcast(params.scale), cap = Wide::broadcast(params.soft_cap);
    for_each_vector(range, [&](uint32_t i, uint32_t, uint32_t) {
      const Vector score = Wide::multiply(Wide::load(scores + i), factor);
      Wide::store(scores + i, Wide::multiply(cap, tanh<Wide>(Wide::divide(score, cap))));
    });
  }

  static float largest_of(const float* scores, Range range) {
    const Vector least = Wide::broadcast(-__builtin_inff());
    Vector largest = least;
    for_each_vector(range, [&](uint32_t i, uint32_t begin, uint32_t end) {
      largest =
          Wide::maximum(Wide::select_lanes(Wide::load(scores + i), begin, end, least), largest);
    });
    return Wide::max_lanes(largest);
  }

  // 2^(score * factor - largest) in bf16, 0 in the rest of the steps; returns the sum before rounding.
  static float weigh(const float* scores, Range range, float factor, float largest, Range steps,
                     std::byte* weights) {
    const Vector times = Wide::broadcast(factor), less = Wide::broadcast(-largest);
    auto* const out = reinterpret_cast<uint16_t*>(weights);
    const auto clear = [&](uint32_t begin, uint32_t end) {
      for (uint32_t i = begin; i < end; i += Wide::kLanes) store_numbers(out, i, Wide::zero());
    };
    clear(steps.begin * kStep, range.begin / Wide::kLanes * Wide::kLanes);
    clear(round_up(range.end, Wide::kLanes), steps.end * kStep);
    Vector sum = Wide::zero();
    for_each_vector(range, [&](uint32_t i, uint32_t begin, uint32_t end) {
      Vector weight = exp2<Wide>(Wide::multiply_add(Wide::load(scores + i), times, less));
      weight = Wide::select_lanes(weight, begin, end, Wide::zero());
      sum = Wide::add(sum, weight);
      store_numbers(out, i, weight);
    });
    return Wide::sum_lanes(sum);
  }

  // Adds the page's sums to those of the pages before. The factors `keep` and `take` make both relative
  // to the larger of their largest scores.
  static void merge(const Slice& slice, uint32_t query, const std::byte* page_sums, float keep,
                    float take, float here, float denominator) {
    const State& state = slice.state;
    auto* sums = reinterpret_cast<float*>(state.sums + query * slice.tiling.value_stride());
    const auto* added = reinterpret_cast<const float*>(page_sums);
    const float before = state.largest[query];
    if (before == -__builtin_inff()) {  // the first one: nothing is there yet
      __builtin_memcpy(sums, added, slice.tiling.value_stride());
      state.denominators[query] = denominator;
      state.largest[query] = here;
      return;
    }
    const Vector old_factor = Wide::broadcast(keep), new_factor = Wide::broadcast(take);
    for (uint32_t p = 0; p < slice.tiling.value_panels;
         ++p, sums += Wide::kLanes, added += Wide::kLanes)
      Wide::store(sums, Wide::multiply_add(Wide::load(added), new_factor,
                                           Wide::multiply(Wide::load(sums), old_factor)));
    state.denominators[query] = state.denominators[query] * keep + denominator * take;
    state.largest[query] = here > before ? here : before;
  }

  static void write_out(const Slice& slice) {
    const auto& [call, params, tiling, state, first_row, n_rows, head] = slice;
    const uint32_t dim = params.head_dim, k = params.n_heads * dim;
    for (uint32_t r = 0; r < n_rows; ++r) {
      std::byte* row = call.operands[3] + (first_row + r) * Activation::row_bytes(k);
      for (uint32_t g = 0; g < tiling.group; ++g) {
        const uint32_t query = g * tiling.block_rows + r, begin = (head * tiling.group + g) * dim;
        const auto* sums =
            reinterpret_cast<const float*>(state.sums + query * tiling.value_stride());
        const float sink =
            sink_share_of_2<Wide>(call, head * tiling.group + g, state.largest[query]);
        const Vector factor = Wide::broadcast(1.0f / (state.denominators[query] + sink));
        Activation::write(row, k, begin, begin + dim, [&](uint32_t i, uint32_t n) {
          return Wide::multiply(Wide::load(sums + (i - begin), n), factor);
        });
      }
    }
  }
};

template <uint32_t kNumbers, Operation kOperation = Operation::attention>
constexpr KernelEntry entry() {
  using Many = TileAttention<ThisIsa, kNumbers>;
  return {{kOperation, Many::Activation::kKind, {kAbsent, kAbsent, kAbsent}, Many::Cache::kFormat},
          {Many::slices, Many::run, Many::scratch_bytes}};
}

constexpr KernelEntry kEntries[] = {entry<1>(), entry<2>(), entry<1, Operation::sink_attention>(),
                                    entry<2, Operation::sink_attention>()};

}  // namespace

template <>
KernelList TileFamilies<ThisIsa>::attention() {
  return list_of(kEntries);
}

}  // namespace akunu::cpu
