// attention (see attention.cpp) of prompt rows over caches in F16, on the int16 path.
//
// 1. What it computes. Queries and keys are rounded to q16_32 and multiplied in whole numbers;
//    weights and values too, where a value row has a single scale, which goes into the weight of
//    its position.
//      slices: up to kQueries / group rows of a span x the fewest kv heads whose output is whole
//      groups of the activation kind
// 2. What bounds it. The multipliers: of the time 75 % are products, 9 % softmax, 6 % unpacking
//    (one Zen 5 core, AVX-512).
// 3. What is done about it. Queries are the columns of a packed panel (panel.h), one in each lane.
//    Keys are the input rows, and so are values, transposed to a row for each dimension. A query's
//    largest score, denominator and scales stay in its lane: softmax needs no operation across
//    lanes. The keys and values of a page are unpacked once, and serve up to 256 queries.
// 4. What was tried and did not pay. Keys in the lanes (0.83 of the speed with AVX-512, 0.88 with
//    AVX2: scores had to be laid out again, and reduced across lanes); 512 queries for a page (4 %
//    faster, but half as many slices). docs/decisions/prompts-on-the-cpu.md.
// 5. Where to change it. Sizes of slices and scratch: attention_int16_scratch.h. Which positions a
//    row sees: attention_range.h. The products: `multiply_packed` (multiply_panels.h). Softmax:
//    `weigh_block`.
//
// Terms. A step: 32 positions. A block: the queries of two panels, in kLanes lanes. A unit: the kv heads
// of a slice. A rounding: of 32 numbers, the factor that makes whole numbers of them, and the scale that
// makes numbers of those again.
//
// A query's arithmetic depends on its own range of positions only: page by page, in steps of 32
// absolute positions. What a step has beyond a query's range gets the weight 0.
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/attention_int16_scratch.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/sink.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {

namespace {

constexpr uint32_t kPrefetchRows = 4;  // prefetch distance, in query rows

template <class Isa, class Activation>
struct Int16Attention {
  using Tiling = Int16Tiling<Isa>;
  using State = Int16State<Isa>;
  using Input = typename Tiling::Input;
  using Columns = typename Isa::Columns;
  using Floats = typename Columns::Floats;
  using Ints = typename Columns::Ints;
  using Cache = F16<Isa>;
  using Rounding = Rounding16<Columns>;
  using Wide = typename Isa::Wide;
  using Vector = typename Wide::Vector;

  // A block of queries: so many panels side by side.
  template <uint32_t kPanels>
  struct QueryBlock {
    using Format = Int16Panels<Isa, kPanels>;
    using Group = PackedGroup<Isa, Format>;
    static constexpr uint32_t kLanes = kPanels * Tiling::kCount, kVectors = kLanes / Wide::kLanes;
  };

  static uint64_t slices(const Call& call) {
    const Tiling tiling = tiling_of(call);
    return attention_slices(call, tiling.block_rows, tiling.units);
  }

  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    const auto& params = *static_cast<const AttentionParams*>(call.params);
    const Tiling tiling = tiling_of(call);
    const State state(tiling, scratch);
    for_each_slice<Isa>(call, tiling.block_rows, tiling.units, begin, end,
                        [&](uint32_t first_row, uint32_t n_rows, uint32_t unit) {
                          run_slice({call, params, tiling, state, first_row, n_rows}, unit);
                        });
  }

  static uint64_t scratch_bytes(const Call& call) { return State::bytes_of(tiling_of(call)); }

 private:
  struct Slice {
    const Call& call;
    const AttentionParams& params;
    const Tiling& tiling;
    const State& state;
    uint32_t first_row, n_rows;

    const Row& row(uint32_t r) const { return call.rows[first_row + r]; }
    uint32_t n_queries() const { return n_rows * tiling.group; }  // of a kv head
    uint32_t n_blocks() const { return (n_queries() + Tiling::kLanes - 1) / Tiling::kLanes; }
    // The number of a block of queries among all whose sums are kept.
    uint64_t place(uint32_t head, uint32_t block) const {
      return uint64_t{head % tiling.unit} * tiling.blocks + block;
    }
    // The query in a lane of a block; lanes behind the last query repeat it.
    uint32_t query(uint32_t block, uint32_t lane) const {
      const uint32_t q = block * Tiling::kLanes + lane;
      return q < n_queries() ? q : n_queries() - 1;
    }
  };

  static Tiling tiling_of(const Call& call) {
    return {*static_cast<const AttentionParams*>(call.params), Activation::kGroup};
  }

  static void run_slice(const Slice& slice, uint32_t unit) {
    const auto& [call, params, tiling, state, first_row, n_rows] = slice;
    const uint32_t first_head = unit * tiling.unit;
    const uint32_t last_head =
        first_head + tiling.unit < params.n_kv_heads ? first_head + tiling.unit : params.n_kv_heads;
    const Range all = visible(&slice.row(0), n_rows, params.window);
    put_value_scales(slice);
    for (uint32_t head = first_head; head < last_head; ++head) {
      for (uint32_t block = 0; block < slice.n_blocks(); ++block) {
        clear(slice, slice.place(head, block));
        with_panels(slice, block,
                    [&](auto panels) { take_queries<panels.value>(slice, head, block); });
      }
      for (uint32_t page = all.begin / kPagePositions * kPagePositions; page < all.end;
           page += kPagePositions) {
        const Range needed = intersect(all, {page, page + kPagePositions});
        const GroupRange steps = {(needed.begin - page) / kStep,
                                  (needed.end - page + kStep - 1) / kStep};
        const uint64_t offset = cache_page<Cache>(call, params, slice.row(0).sequence, head, page);
        unpack_keys(slice, call.operands[1] + offset, steps);
        unpack_values(slice, call.operands[2] + offset, steps);
        for (uint32_t block = 0; block < slice.n_blocks(); ++block)
          with_panels(slice, block,
                      [&](auto panels) { attend_block<panels.value>(slice, head, page, block); });
      }
      for (uint32_t block = 0; block < slice.n_blocks(); ++block)
        with_panels(slice, block, [&](auto panels) {
          transpose_sums<panels.value>(slice, slice.place(head, block));
        });
    }
    for (uint32_t r = 0; r < n_rows; ++r) write_row(slice, first_head, last_head, r);
  }

  // Scales of the rows of values are 1: a value's own scale is part of its position's weight.
  static void put_value_scales(const Slice& slice) {
    for (uint32_t d = 0; d < slice.tiling.dims; ++d) {
      auto* const scales =
          reinterpret_cast<float*>(slice.state.values + (d + 1) * Tiling::value_bytes()) -
          kPageSteps;
      for (uint32_t step = 0; step < kPageSteps; ++step) scales[step] = 1;
    }
  }

  static void clear(const Slice& slice, uint64_t place) {
    const State& state = slice.state;
    const uint64_t n = slice.tiling.block_sums();
    __builtin_memset(state.sums + place * n, 0, n * sizeof(float));
    __builtin_memset(state.denominators + place * Tiling::kLanes, 0,
                     Tiling::kLanes * sizeof(float));
    for (uint32_t lane = 0; lane < Tiling::kLanes; ++lane)
      state.largest[place * Tiling::kLanes + lane] = -__FLT_MAX__;
  }

  // Calls use with the number of panels: one where the block has no more queries than that.
  static void with_panels(const Slice& slice, uint32_t block, const auto& use) {
    if constexpr (Tiling::kCount % Wide::kLanes == 0)
      if (slice.n_queries() - block * Tiling::kLanes <= Tiling::kCount) return use(Constant<1>{});
    use(Constant<Tiling::kPanels>{});
  }

  template <uint32_t kPanels>
  static void take_queries(const Slice& slice, uint32_t head, uint32_t block) {
    const auto& [call, params, tiling, state, first_row, n_rows] = slice;
    const uint32_t dim = params.head_dim;
    for (uint32_t lane = 0; lane < QueryBlock<kPanels>::kLanes; ++lane) {
      const uint32_t q = slice.query(block, lane), r = q / tiling.group, g = q % tiling.group;
      const float* query =
          reinterpret_cast<const float*>(call.operands[0]) +
          (uint64_t{first_row + r} * params.n_heads + head * tiling.group + g) * dim;
      // Rows are too far apart for the hardware prefetcher.
      prefetch_lines<kIntoL1>(query + kPrefetchRows * params.n_heads * dim, dim * sizeof(float));
      Q16Activation<Isa>::write(state.query_rows + lane * tiling.key_bytes(), dim, 0, dim,
                                [&](uint32_t i, uint32_t n) { return Isa::load(query + i, n); });
    }
    auto* const groups = queries_of<kPanels>(slice, block);
    for (uint32_t p = 0; p < kPanels; ++p) {
      const uint64_t stride = tiling.key_bytes();
      const std::byte* const rows = state.query_rows + p * Tiling::kCount * stride;
      const std::byte* const scales = rows + stride - tiling.head_groups * sizeof(float);
      for (uint32_t g = 0; g < tiling.head_groups; ++g) {
        for (uint32_t j = 0; j < kStep / 2; j += 4) {
          Ints pairs[4];
          Columns::transpose(rows + (g * kStep / 2 + j) * sizeof(int32_t), stride, pairs,
                             no_prefetch);
          for (uint32_t i = 0; i < 4; ++i) groups[g].codes[j + i].of[p] = pairs[i];
        }
        float of_columns[Tiling::kCount];
        for (uint32_t c = 0; c < Tiling::kCount; ++c)
          of_columns[c] = load_unaligned<float>(scales + c * stride + g * sizeof(float));
        groups[g].scale[0].of[p] = Columns::load(of_columns);
      }
    }
  }
  template <uint32_t kPanels>
  static auto* queries_of(const Slice& slice, uint32_t block) {
    return reinterpret_cast<typename QueryBlock<kPanels>::Group*>(slice.state.queries +
                                                                  block * slice.tiling.head_groups);
  }
  static constexpr auto no_prefetch = [](const auto&...) {};

  // Calls use(g, halves) for every group of 32 dimensions of a row, the last one with zeros behind.
  static void for_each_group(const uint16_t* row, uint32_t dim, const auto& use) {
    const uint32_t whole = dim / kStep, rest = dim % kStep;
    for (uint32_t g = 0; g < whole; ++g) use(g, row + g * kStep);
    if (rest == 0) return;
    uint16_t last[kStep] = {};
    __builtin_memcpy(last, row + whole * kStep, rest * sizeof(*row));
    use(whole, last);
  }

  // The roundings of n runs of float16, from the largest magnitude of each.
  static void find_roundings(const State& state, uint32_t n) {
    // Halves are whole multiples of 2^-24; a run of zeros gets no scale that would make subnormal products.
    const Floats least = Columns::broadcast(power_of_two(kBias - 24));
    for (uint32_t i = 0; i < n; i += Tiling::kCount) {
      const Floats largest = Columns::load_halves(state.magnitudes + i);
      const auto rounding = Rounding::of(Columns::as_integers(Columns::maximum(least, largest)));
      Columns::store(state.wholes + i, rounding.whole);
      Columns::store(state.scales + i, rounding.scale);
    }
  }

  static void unpack_keys(const Slice& slice, const std::byte* keys, GroupRange steps) {
    const Tiling& tiling = slice.tiling;
    const State& state = slice.state;
    const uint32_t dim = tiling.head_dim, groups = tiling.head_groups;
    for (uint32_t step = steps.begin; step < steps.end; ++step) {
      const auto* const rows = reinterpret_cast<const uint16_t*>(keys) + step * kStep * dim;
      for (uint32_t i = 0; i < kStep; ++i) {
        prefetch_next_step(rows + i * dim, dim);
        for_each_group(rows + i * dim, dim, [&](uint32_t g, const uint16_t* halves) {
          state.magnitudes[i * groups + g] = Columns::largest_magnitude(halves);
        });
      }
      find_roundings(state, kStep * groups);
      for (uint32_t i = 0; i < kStep; ++i) {
        std::byte* const out = state.keys + (step * kStep + i) * tiling.key_bytes();
        for_each_group(rows + i * dim, dim, [&](uint32_t g, const uint16_t* halves) {
          const Floats whole = Columns::broadcast(state.wholes[i * groups + g]);
          for (uint32_t d = 0; d < kStep; d += 2 * Tiling::kCount) {
            Floats numbers[2];
            Columns::both_halves(load_pairs(halves + d), numbers);
            put_pairs(out + (g * kStep + d) * sizeof(uint16_t),
                      Rounding::pairs(Rounding::code(numbers[0], whole),
                                      Rounding::code(numbers[1], whole)));
          }
        });
        __builtin_memcpy(out + groups * kStep * sizeof(uint16_t), state.scales + i * groups,
                         groups * sizeof(float));
      }
    }
  }
  static void prefetch_next_step(const uint16_t* row, uint32_t dim) {
    prefetch_lines<kIntoL1>(row + kStep * dim, dim * sizeof(*row));
  }
  static Ints load_pairs(const uint16_t* halves) {
    return Columns::as_integers(Columns::load(reinterpret_cast<const float*>(halves)));
  }
  static void put_pairs(std::byte* out, Ints pairs) {
    Columns::store(reinterpret_cast<float*>(out), Columns::as_floats(pairs));
  }

  // Whole steps of 32 positions: positions that no query sees get the weight 0.
  static void unpack_values(const Slice& slice, const std::byte* values, GroupRange steps) {
    const Tiling& tiling = slice.tiling;
    const State& state = slice.state;
    const uint32_t dim = tiling.head_dim, whole_panels = dim / Tiling::kCount,
                   rest = dim % Tiling::kCount;
    for (uint32_t step = steps.begin; step < steps.end; ++step) {
      const auto* const rows = reinterpret_cast<const uint16_t*>(values) + step * kStep * dim;
      for (uint32_t i = 0; i < kStep; ++i) {
        uint16_t most = 0;
        prefetch_next_step(rows + i * dim, dim);
        for_each_group(rows + i * dim, dim, [&](uint32_t, const uint16_t* halves) {
          const uint16_t here = Columns::largest_magnitude(halves);
          most = here > most ? here : most;
        });
        state.magnitudes[i] = most;
      }
      find_roundings(state, kStep);
      __builtin_memcpy(state.value_scales + step * kStep, state.scales, kStep * sizeof(float));
      for (uint32_t j = 0; j < kStep / 2; ++j) {
        const uint16_t* const first = rows + 2 * j * dim;
        const uint16_t* const second = first + dim;
        const Floats whole = Columns::broadcast(state.wholes[2 * j]);
        const Floats whole_of_second = Columns::broadcast(state.wholes[2 * j + 1]);
        const auto take = [&](uint32_t panel, const uint16_t* low, const uint16_t* high) {
          state.pairs[panel * (kStep / 2) + j] =
              Rounding::pairs(Rounding::code(Columns::load_halves(low), whole),
                              Rounding::code(Columns::load_halves(high), whole_of_second));
        };
        for (uint32_t panel = 0; panel < whole_panels; ++panel)
          take(panel, first + panel * Tiling::kCount, second + panel * Tiling::kCount);
        if (rest != 0) {
          uint16_t last[2][Tiling::kCount] = {};
          __builtin_memcpy(last[0], first + dim - rest, rest * sizeof(uint16_t));
          __builtin_memcpy(last[1], second + dim - rest, rest * sizeof(uint16_t));
          take(whole_panels, last[0], last[1]);
        }
      }
      transpose_pairs(slice, step);
    }
  }

  // A step's pairs of positions, from dimensions side by side to a row of each.
  static void transpose_pairs(const Slice& slice, uint32_t step) {
    const auto& [call, params, tiling, state, first_row, n_rows] = slice;
    constexpr uint64_t kFour = 4 * sizeof(int32_t);
    for (uint32_t panel = 0; panel < tiling.dims / Tiling::kCount; ++panel)
      for (uint32_t j = 0; j < kStep / 2; j += Tiling::kCount)
        for (uint32_t four = 0; four < Tiling::kCount / 4; ++four) {
          Ints rows[4];
          Columns::transpose(
              reinterpret_cast<const std::byte*>(state.pairs + panel * (kStep / 2) + j) +
                  four * kFour,
              sizeof(Ints), rows, no_prefetch);
          for (uint32_t i = 0; i < 4; ++i)
            put_pairs(state.values +
                          (panel * Tiling::kCount + 4 * four + i) * Tiling::value_bytes() +
                          (step * (kStep / 2) + j) * sizeof(int32_t),
                      rows[i]);
        }
  }

  // What queries of a block see of a page.
  struct Seen {
    float begin[Tiling::kLanes], end[Tiling::kLanes];
    Range by_any, by_all;

    bool all_see(uint32_t step) const {
      return step * kStep >= by_all.begin && (step + 1) * kStep <= by_all.end;
    }
    // `score` in the lanes that see the position, in others `unseen`; v of kVectors.
    Vector where_seen(uint32_t position, uint32_t v, Vector score, Vector unseen) const {
      const Vector at = Wide::broadcast(static_cast<float>(position));
      const Vector first = Wide::load(begin + v * Wide::kLanes);
      const Vector last = Wide::load(end + v * Wide::kLanes);
      return Wide::select_less(at, first, unseen, Wide::select_less(at, last, score, unseen));
    }
  };
  static Seen seen_by(const Slice& slice, uint32_t page, uint32_t block, uint32_t n_lanes) {
    Seen seen;
    seen.by_any = {0, 0};
    seen.by_all = {0, kPagePositions};
    for (uint32_t lane = 0; lane < n_lanes; ++lane) {
      const Row& row = slice.row(slice.query(block, lane) / slice.tiling.group);
      const Range range = seen_of_page(row, slice.params.window, page);
      seen.begin[lane] = static_cast<float>(range.begin);
      seen.end[lane] = static_cast<float>(range.end);
      seen.by_any = unite(seen.by_any, range);
      seen.by_all = intersect(seen.by_all, range);
    }
    return seen;
  }

  // One block of queries, one page.
  template <uint32_t kPanels>
  static void attend_block(const Slice& slice, uint32_t head, uint32_t page, uint32_t block) {
    using Format = typename QueryBlock<kPanels>::Format;
    constexpr uint32_t kLanes = QueryBlock<kPanels>::kLanes;
    const auto& [call, params, tiling, state, first_row, n_rows] = slice;
    const Seen seen = seen_by(slice, page, block, kLanes);
    if (seen.by_any.begin >= seen.by_any.end) return;
    const GroupRange steps = {seen.by_any.begin / kStep, (seen.by_any.end + kStep - 1) / kStep};

    float* const scores = state.scores + steps.begin * kStep * kLanes;
    const InputRows keys{state.keys + steps.begin * kStep * tiling.key_bytes(), tiling.key_bytes(),
                         tiling.head_groups * kStep, (steps.end - steps.begin) * kStep};
    multiply_packed<Isa, Format>(keys, queries_of<kPanels>(slice, block), {0, tiling.head_groups},
                                 [&](uint32_t p, uint32_t row, Floats sums) {
                                   Columns::store(scores + row * kLanes + p * Tiling::kCount, sums);
                                 });

    Rescaled rescaled;
    weigh_block<kPanels>(slice, slice.place(head, block), seen, steps, rescaled);

    float* const sums = state.sums + slice.place(head, block) * tiling.block_sums();
    const InputRows values{state.values, Tiling::value_bytes(), kPagePositions, tiling.head_dim};
    multiply_packed<Isa, Format>(
        values, reinterpret_cast<const typename QueryBlock<kPanels>::Group*>(state.weights), steps,
        [&](uint32_t p, uint32_t d, Floats added) {
          const uint32_t lane = p * Tiling::kCount;
          float* const sum = sums + uint64_t{d} * kLanes + lane;
          Columns::store(
              sum, Columns::multiply_add(added, Columns::load(rescaled.added + lane),
                                         Columns::multiply(Columns::load(sum),
                                                           Columns::load(rescaled.before + lane))));
        });
  }

  // The factors of online softmax: they make the sums of the pages before, and of this page,
  // relative to the larger of their largest scores.
  struct Rescaled {
    float before[Tiling::kLanes], added[Tiling::kLanes];
  };

  // Softmax: turns a block's scores into the panel of weights, e^(score - largest) times the scales
  // of the values, and adds the exponentials to the denominators.
  template <uint32_t kPanels>
  static void weigh_block(const Slice& slice, uint64_t place, const Seen& seen, GroupRange steps,
                          Rescaled& rescaled) {
    constexpr uint32_t kLanes = QueryBlock<kPanels>::kLanes,
                       kVectors = QueryBlock<kPanels>::kVectors;
    const auto& [call, params, tiling, state, first_row, n_rows] = slice;
    constexpr float kLog2E = 0x1.715476p+0f;
    const auto factor = Wide::broadcast(kLog2E * (params.soft_cap > 0 ? 1.0f : params.scale));

    Vector largest[kVectors];
    for (auto& v : largest) v = Wide::broadcast(-__builtin_inff());
    for (uint32_t step = steps.begin; step < steps.end; ++step) {
      float* const scores = state.scores + step * kStep * kLanes;
      if (params.soft_cap > 0) cap_scores(params, scores, kStep * kLanes);
      if (!seen.all_see(step)) hide_scores<kVectors>(seen, step, scores);
      for (uint32_t i = 0; i < kStep; ++i)
        for (uint32_t v = 0; v < kVectors; ++v)
          largest[v] =
              Wide::maximum(Wide::load(scores + i * kLanes + v * Wide::kLanes), largest[v]);
    }

    Vector less[kVectors], denominators[kVectors];
    for (uint32_t v = 0; v < kVectors; ++v) {
      const uint32_t lane = v * Wide::kLanes;
      // Finite also for a query that sees nothing of the page: infinity less infinity would be NaN.
      largest[v] = Wide::maximum(Wide::broadcast(-__FLT_MAX__), Wide::multiply(largest[v], factor));
      float* const before = state.largest + place * Tiling::kLanes + lane;
      const Vector of_both = Wide::maximum(largest[v], Wide::load(before));
      Wide::store(rescaled.before + lane, exp2<Wide>(Wide::subtract(Wide::load(before), of_both)));
      Wide::store(rescaled.added + lane, exp2<Wide>(Wide::subtract(largest[v], of_both)));
      Wide::store(before, of_both);
      less[v] = Wide::subtract(Wide::zero(), largest[v]);
      denominators[v] = Wide::zero();
    }
    for (uint32_t step = steps.begin; step < steps.end; ++step) {
      if (seen.all_see(step))
        weigh_step<true>(slice, seen, step, factor, less, denominators);
      else
        weigh_step<false>(slice, seen, step, factor, less, denominators);
      round_step<kPanels>(state, step);
    }
    for (uint32_t v = 0; v < kVectors; ++v) {
      const uint32_t lane = v * Wide::kLanes;
      float* const denominator = state.denominators + place * Tiling::kLanes + lane;
      Wide::store(denominator,
                  Wide::multiply_add(
                      denominators[v], Wide::load(rescaled.added + lane),
                      Wide::multiply(Wide::load(denominator), Wide::load(rescaled.before + lane))));
    }
  }

  static void cap_scores(const AttentionParams& params, float* scores, uint32_t n) {
    const auto factor = Wide::broadcast(params.scale), cap = Wide::broadcast(params.soft_cap);
    for (uint32_t i = 0; i < n; i += Wide::kLanes) {
      const auto score = Wide::multiply(Wide::load(scores + i), factor);
      Wide::store(scores + i, Wide::multiply(cap, tanh<Wide>(Wide::divide(score, cap))));
    }
  }

  template <uint32_t kVectors>
  static void hide_scores(const Seen& seen, uint32_t step, float* scores) {
    for (uint32_t i = 0; i < kStep; ++i)
      for (uint32_t v = 0; v < kVectors; ++v, scores += Wide::kLanes)
        Wide::store(scores, seen.where_seen(step * kStep + i, v, Wide::load(scores),
                                            Wide::broadcast(-__builtin_inff())));
  }

  // Replaces the scores of a step by 2^(score * factor + less) times the scale of its value, and
  // adds them to the denominators without that scale.
  template <bool kAllSee, uint32_t kVectors>
  static void weigh_step(const Slice& slice, const Seen& seen, uint32_t step, Vector factor,
                         const Vector (&less)[kVectors], Vector (&denominators)[kVectors]) {
    const State& state = slice.state;
    float* score = state.scores + step * kStep * kVectors * Wide::kLanes;
    for (uint32_t i = 0; i < kStep; ++i) {
      const uint32_t position = step * kStep + i;
      const Vector scale = Wide::broadcast(state.value_scales[position]);
      for (uint32_t v = 0; v < kVectors; ++v, score += Wide::kLanes) {
        Vector weight = exp2<Wide>(Wide::multiply_add(Wide::load(score), factor, less[v]));
        if constexpr (!kAllSee) weight = seen.where_seen(position, v, weight, Wide::zero());
        denominators[v] = Wide::add(denominators[v], weight);
        weight = Wide::multiply(weight, scale);  // NaN where the value is not finite
        if constexpr (!kAllSee) weight = seen.where_seen(position, v, weight, Wide::zero());
        Wide::store(score, weight);
      }
    }
  }

  // Rounds a step's weights to codes.
  template <uint32_t kPanels>
  static void round_step(const State& state, uint32_t step) {
    constexpr uint32_t kLanes = QueryBlock<kPanels>::kLanes;
    auto& group = reinterpret_cast<typename QueryBlock<kPanels>::Group*>(state.weights)[step];
    for (uint32_t p = 0; p < kPanels; ++p) {
      const float* const weights = state.scores + step * kStep * kLanes + p * Tiling::kCount;
      const auto weight = [&](uint32_t i) { return Columns::load(weights + i * kLanes); };
      // Of floats that are not negative, the upper 16 bits are compared as whole numbers.
      Ints most = Columns::as_integers(weight(0));
      for (uint32_t i = 1; i < kStep; ++i)
        most = Columns::larger_of_pairs(most, Columns::as_integers(weight(i)));
      const auto rounding = Rounding::of(most);
      for (uint32_t j = 0; j < kStep / 2; ++j)
        group.codes[j].of[p] = Rounding::pairs(Rounding::code(weight(2 * j), rounding.whole),
                                               Rounding::code(weight(2 * j + 1), rounding.whole));
      group.scale[0].of[p] = rounding.scale;
    }
  }

  // The sums of a block of queries, from [dims][kLanes] to [kLanes][dims], in place.
  template <uint32_t kPanels>
  static void transpose_sums(const Slice& slice, uint64_t place) {
    constexpr uint32_t kLanes = QueryBlock<kPanels>::kLanes;
    const auto& [call, params, tiling, state, first_row, n_rows] = slice;
    float* const sums = state.sums + place * tiling.block_sums();
    for (uint32_t lane = 0; lane < kLanes; lane += 4)
      for (uint32_t d = 0; d < tiling.dims; d += Tiling::kCount) {
        Ints rows[4];
        Columns::transpose(reinterpret_cast<const std::byte*>(sums + uint64_t{d} * kLanes + lane),
                           kLanes * sizeof(float), rows, no_prefetch);
        for (uint32_t i = 0; i < 4; ++i)
          Columns::store(state.scores + uint64_t{lane + i} * tiling.dims + d,
                         Columns::as_floats(rows[i]));
      }
    __builtin_memcpy(sums, state.scores, uint64_t{kLanes} * tiling.dims * sizeof(float));
  }

  static void write_row(const Slice& slice, uint32_t first_head, uint32_t last_head, uint32_t r) {
    const auto& [call, params, tiling, state, first_row, n_rows] = slice;
    const uint32_t dim = params.head_dim, k = params.n_heads * dim;
    float* out = state.out;
    for (uint32_t head = first_head; head < last_head; ++head)
      for (uint32_t g = 0; g < tiling.group; ++g, out += dim) {
        const uint64_t query = slice.place(head, 0) * Tiling::kLanes + r * tiling.group + g;
        const float* sums = state.sums + query * tiling.dims;
        const float factor =
            1.0f / (state.denominators[query] +
                    sink_share_of_2<Isa>(call, head * tiling.group + g, state.largest[query]));
        for (uint32_t d = 0; d < dim; ++d) out[d] = sums[d] * factor;
      }
    const uint32_t begin = first_head * tiling.group * dim, end = last_head * tiling.group * dim;
    Activation::write(
        call.operands[3] + (first_row + r) * Activation::row_bytes(k), k, begin, end,
        [&](uint32_t i, uint32_t n) { return Isa::load(slice.state.out + (i - begin), n); });
  }
};

template <class Isa, template <class> class Activation, Operation kOperation = Operation::attention>
constexpr KernelEntry entry() {
  using Kernel = Int16Attention<Isa, Activation<Isa>>;
  return {{kOperation,
           Activation<Isa>::kKind,
           {kAbsent, kAbsent, kAbsent},
           Kernel::Cache::kFormat,
           Quant16Input<Isa>::kKind},
          {Kernel::slices, Kernel::run, Kernel::scratch_bytes}};
}

template <class Isa>
KernelList entries() {
  if constexpr (Isa::Columns::Policy::kInt16Rows > 0) {
    static constexpr KernelEntry kEntries[] = {
        entry<Isa, Q8Activation>(), entry<Isa, Q16Activation>(),
        entry<Isa, Q8Activation, Operation::sink_attention>(),
        entry<Isa, Q16Activation, Operation::sink_attention>()};
    return list_of(kEntries);
  } else {
    return {nullptr, 0};
  }
}

}  // namespace

template <>
KernelList Families<ThisIsa>::int16_attention() {
  return entries<ThisIsa>();
}

}  // namespace akunu::cpu
