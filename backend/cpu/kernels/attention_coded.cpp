// attention (see attention.cpp) of prompt rows over caches in F16, in whole numbers: queries and keys are
// multiplied as q16_32, weights and values as such codes with a scale that a value row has alone.
//   slices: up to kQueries / group rows of a span x the fewest kv heads whose output is whole groups of the
//           activation kind; a kv head's pages are unpacked once for all of them
//   limit:  the multipliers
//
// A row's arithmetic depends on its own range of positions only, as there: page by page, in steps of 32
// absolute positions. What a step has beyond a row's range gets the weight 0.
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/attention_range.h"
#include "cpu/kernels/formats_coded.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

constexpr uint32_t kQueries = 256;   // of a slice: what unpacked keys and values are used for
constexpr uint32_t kBlockRows = 32;  // of one query head, whose scores of a page take 32 KiB
constexpr uint32_t kStep = 32;       // positions
constexpr uint32_t kPageSteps = kPagePositions / kStep;
constexpr uint32_t kAhead = 4;  // rows

// How a call is cut, and where a worker's scratch holds what. Queries of a slice lie head by head.
template <class Isa>
struct CodedLayout {
  using Halves = Coded<Isa, F16<Isa>>;
  using Input = typename Halves::Input;
  using Group = ManyGroup<Isa, Halves>;
  static constexpr uint32_t kColumns = Isa::Columns::kCount * WordsFor<Isa, Halves>::Many::kPanels;

  CodedLayout(const AttentionParams& params, uint32_t out_group)
      : group(params.n_heads / params.n_kv_heads),
        unit(
            heads_of_whole_groups(params.n_kv_heads, uint64_t{group} * params.head_dim, out_group)),
        units((params.n_kv_heads + unit - 1) / unit),
        block_rows(group * kBlockRows < kQueries ? kQueries / group / kBlockRows * kBlockRows
                                                 : kBlockRows),
        head_groups(Input::whole(params.head_dim) / kStep),
        value_panels((params.head_dim + kColumns - 1) / kColumns),
        out_numbers(uint64_t{unit} * group * params.head_dim) {}

  uint32_t group;         // query heads per kv head
  uint32_t unit, units;   // kv heads per slice; slices per block of rows
  uint32_t block_rows;    // rows of a slice, a multiple of 32
  uint32_t head_groups;   // groups of 32 dimensions
  uint32_t value_panels;  // of dimensions, side by side
  uint64_t out_numbers;   // of a row of a slice's result

  static constexpr uint32_t kKeyPanels = kPagePositions / kColumns;
  static constexpr uint64_t kScoreStride = kPagePositions + kStep;  // floats
  uint64_t query_bytes() const { return Input::row_bytes(kStep * head_groups); }
  static uint64_t weight_bytes() { return Input::row_bytes(kPagePositions); }
  uint64_t value_stride() const { return uint64_t{value_panels} * kColumns; }  // floats
  uint32_t n_queries() const { return unit * group * block_rows; }

  uint64_t bytes() const {
    constexpr uint64_t kParts = 13;  // of CodedState, each in whole lines
    return kParts * kCacheLine +
           sizeof(Group) * (kKeyPanels * head_groups + value_panels * kPageSteps) +
           group * block_rows * query_bytes() + kBlockRows * weight_bytes() +
           sizeof(float) * (kPagePositions + kBlockRows * (kScoreStride + value_stride() + 2) +
                            n_queries() * (value_stride() + 2) + out_numbers + Isa::kLanes);
  }
};

// What a slice keeps while it walks the pages of its kv heads.
template <class Isa>
struct CodedState {
  using Layout = CodedLayout<Isa>;

  CodedState(const Layout& layout, std::byte* scratch) {
    const auto take = [&]<class T>(T*& part, uint64_t n) {
      part = reinterpret_cast<T*>(scratch);
      scratch += (n * sizeof(T) + kCacheLine - 1) / kCacheLine * kCacheLine;
    };
    take(keys, Layout::kKeyPanels * layout.head_groups);
    take(values, layout.value_panels * kPageSteps);
    take(queries, layout.group * layout.block_rows * layout.query_bytes());
    take(weights, kBlockRows * Layout::weight_bytes());
    take(value_scales, kPagePositions);
    take(scores, kBlockRows * Layout::kScoreStride);
    take(page_sums, kBlockRows * layout.value_stride());
    take(page_largest, kBlockRows);
    take(page_masses, kBlockRows);
    take(sums, layout.n_queries() * layout.value_stride());
    take(largest, layout.n_queries());
    take(masses, layout.n_queries());
    take(out, layout.out_numbers + Isa::kLanes);
  }

  typename Layout::Group* keys;    // [panels of positions][head_groups], of the page at hand
  typename Layout::Group* values;  // [value_panels][8 steps], likewise
  std::byte* queries;              // q16_32 [group][block_rows], of the kv head at hand
  std::byte* weights;              // q16_32 [32], of a block's queries and a page
  float* value_scales;             // of the page's positions
  float* scores;                   // [32][kScoreStride], then their exponentials
  float* page_sums;                // [32][value_stride]: weights . values of the page
  float* page_largest;             // score
  float* page_masses;              // sums of exponentials relative to it
  float* sums;                     // [n_queries][value_stride]: of the pages before
  float *largest, *masses;         // likewise
  float* out;                      // a row of the slice's result
};

template <class Isa, class Activation>
struct CodedAttention {
  using Cut = CodedLayout<Isa>;
  using State = CodedState<Isa>;
  using Halves = typename Cut::Halves;
  using Input = typename Cut::Input;
  using Columns = typename Isa::Columns;
  using Floats = typename Columns::Floats;
  using Cache = F16<Isa>;
  using Wide = typename Isa::Wide;

  static uint64_t slices(const Call& call) {
    const Cut cut = cut_of(call);
    return attention_slices(call, cut.block_rows, cut.units);
  }

  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    const auto& params = *static_cast<const AttentionParams*>(call.params);
    const Cut cut = cut_of(call);
    const State state(cut, scratch);
    for_each_slice<Isa>(call, cut.block_rows, cut.units, begin, end,
                        [&](uint32_t first_row, uint32_t n_rows, uint32_t unit) {
                          run_slice({call, params, cut, state, first_row, n_rows}, unit);
                        });
  }

  static uint64_t scratch_bytes(const Call& call) { return cut_of(call).bytes(); }

 private:
  struct Slice {
    const Call& call;
    const AttentionParams& params;
    const Cut& cut;
    const State& state;
    uint32_t first_row, n_rows;

    const Row& row(uint32_t r) const { return call.rows[first_row + r]; }
    Range seen(uint32_t r, uint32_t page) const {
      return seen_of_page(row(r), params.window, page);
    }
    // Number of a query, of those of the slice.
    uint32_t query(uint32_t head, uint32_t g, uint32_t r) const {
      return (head % cut.unit * cut.group + g) * cut.block_rows + r;
    }
  };

  static Cut cut_of(const Call& call) {
    return {*static_cast<const AttentionParams*>(call.params), Activation::kGroup};
  }

  static void run_slice(const Slice& slice, uint32_t unit) {
    const auto& [call, params, cut, state, first_row, n_rows] = slice;
    const uint32_t first_head = unit * cut.unit;
    const uint32_t last_head =
        first_head + cut.unit < params.n_kv_heads ? first_head + cut.unit : params.n_kv_heads;
    for (uint32_t head = first_head; head < last_head; ++head)
      for (uint32_t g = 0; g < cut.group; ++g) clear(slice, slice.query(head, g, 0));
    const Range all = visible(&slice.row(0), n_rows, params.window);
    for (uint32_t head = first_head; head < last_head; ++head) {
      take_queries(slice, head);
      for (uint32_t page = all.begin / kPagePositions * kPagePositions; page < all.end;
           page += kPagePositions) {
        const Range needed = intersect(all, {page, page + kPagePositions});
        const GroupRange steps = {(needed.begin - page) / kStep,
                                  (needed.end - page + kStep - 1) / kStep};
        const uint64_t offset = cache_page<Cache>(call, params, slice.row(0).sequence, head, page);
        unpack_keys(slice, call.operands[1] + offset, steps);
        unpack_values(slice, call.operands[2] + offset, steps);
        for (uint32_t g = 0; g < cut.group; ++g)
          for (uint32_t r = 0; r < n_rows; r += kBlockRows) attend_block(slice, head, page, g, r);
      }
    }
    for (uint32_t r = 0; r < n_rows; ++r) write_row(slice, first_head, last_head, r);
  }

  // The sums of a query head, which lie from `query` on.
  static void clear(const Slice& slice, uint32_t query) {
    const State& state = slice.state;
    const uint64_t stride = slice.cut.value_stride();
    __builtin_memset(state.sums + query * stride, 0, slice.n_rows * stride * sizeof(float));
    for (uint32_t r = 0; r < slice.n_rows; ++r) {
      state.largest[query + r] = -__builtin_inff();
      state.masses[query + r] = 0;
    }
  }

  static void take_queries(const Slice& slice, uint32_t head) {
    const auto& [call, params, cut, state, first_row, n_rows] = slice;
    const uint32_t dim = params.head_dim;
    for (uint32_t g = 0; g < cut.group; ++g)
      for (uint32_t r = 0; r < n_rows; ++r) {
        const float* query =
            reinterpret_cast<const float*>(call.operands[0]) +
            (uint64_t{first_row + r} * params.n_heads + head * cut.group + g) * dim;
        // Rows lie too far apart for a processor to see where the next one begins.
        ask_for_lines<kIntoFirstCache>(query + kAhead * params.n_heads * dim, dim * sizeof(float));
        Q16Activation<Isa>::write(state.queries + (g * cut.block_rows + r) * cut.query_bytes(), dim,
                                  0, dim,
                                  [&](uint32_t i, uint32_t n) { return Isa::load(query + i, n); });
      }
  }

  static void unpack_keys(const Slice& slice, const std::byte* keys, GroupRange steps) {
    const auto& cut = slice.cut;
    const uint64_t stride = Cache::row_bytes(slice.params.head_dim);
    constexpr uint32_t kPanels = Cut::kColumns / Columns::kCount;
    for (uint32_t i = steps.begin * kStep; i < steps.end * kStep; i += Cut::kColumns) {
      Panel panels[kPanels];
      for (uint32_t p = 0; p < kPanels; ++p)
        panels[p] = {keys + (i + p * Columns::kCount) * stride, stride};
      unpack_panels<Isa, Halves>(panels, kPanels, cut.head_groups * kStep,
                                 slice.state.keys + i / Cut::kColumns * cut.head_groups);
    }
  }

  // What makes codes of a value row: adding `whole` leaves them in the low bits (formats_coded.h).
  struct RowScale {
    float whole, scale;
  };
  static RowScale scale_of(const uint16_t* row, uint32_t dim) {
    uint16_t most = 0;
    for (uint32_t d = 0; d < dim; ++d) {
      const uint16_t magnitude = row[d] & 0x7fff;
      most = magnitude > most ? magnitude : most;
    }
    const float largest = Isa::half_to_float(most);
    uint32_t bits;
    __builtin_memcpy(&bits, &largest, sizeof(bits));
    constexpr uint32_t kLeast = kBias - 24, kNotFinite = 255;  // the smallest half is 2^-24
    uint32_t exponent = bits >> 23;
    if (exponent == kNotFinite) return {1.5f * power_of_two(kBias + 23), __builtin_nanf("")};
    exponent = exponent < kLeast ? kLeast : exponent;
    return {1.5f * power_of_two(exponent + 23 - kCodeBits16), power_of_two(exponent - kCodeBits16)};
  }

  // Steps of 32 positions, whole ones: weights of what no row sees are zeros. So are dimensions beyond
  // the last.
  static void unpack_values(const Slice& slice, const std::byte* values, GroupRange steps) {
    const auto& [call, params, cut, state, first_row, n_rows] = slice;
    const uint32_t dim = params.head_dim;
    constexpr uint32_t kPanels = Cut::kColumns / Columns::kCount;
    const auto* const halves = reinterpret_cast<const uint16_t*>(values);
    for (uint32_t step = steps.begin; step < steps.end; ++step)
      for (uint32_t j = 0; j < kStep / 2; ++j) {
        const uint32_t position = step * kStep + 2 * j;
        const uint16_t* const rows[2] = {halves + uint64_t{position} * dim,
                                         halves + (uint64_t{position} + 1) * dim};
        Floats wholes[2];
        for (uint32_t i = 0; i < 2; ++i) {
          const RowScale row = scale_of(rows[i], dim);
          wholes[i] = Columns::broadcast(row.whole);
          state.value_scales[position + i] = row.scale;
        }
        const auto code = [&](uint32_t i, uint32_t d) {
          uint16_t rest[Columns::kCount] = {};
          const uint16_t* from = rows[i] + d;
          if (d + Columns::kCount > dim) {
            if (d < dim) __builtin_memcpy(rest, from, (dim - d) * sizeof(uint16_t));
            from = rest;
          }
          return Columns::as_integers(Columns::add(Columns::load_halves(from), wholes[i]));
        };
        for (uint32_t d = 0; d < cut.value_stride(); d += Columns::kCount) {
          auto& group = state.values[d / Cut::kColumns * kPageSteps + step];
          const uint32_t p = d / Columns::kCount % kPanels;
          group.codes[j].of[p] = Columns::and_or(code(0, d), Columns::integers(0xffffu),
                                                 Columns::template shift_left<16>(code(1, d)));
          if (j == 0) group.scale[0].of[p] = Columns::broadcast(1.0f);  // theirs are in the weights
        }
      }
  }

  // Up to 32 rows from r on of query head g, one page.
  static void attend_block(const Slice& slice, uint32_t head, uint32_t page, uint32_t g,
                           uint32_t r) {
    const auto& [call, params, cut, state, first_row, n_rows] = slice;
    const uint32_t n = n_rows - r < kBlockRows ? n_rows - r : kBlockRows;
    Range needed = slice.seen(r, page);
    for (uint32_t i = 1; i < n; ++i) needed = unite(needed, slice.seen(r + i, page));
    if (needed.begin >= needed.end) return;
    const GroupRange steps = {needed.begin / kStep, (needed.end + kStep - 1) / kStep};

    float* const scores = state.scores;
    const InputRows queries{state.queries + (g * cut.block_rows + r) * cut.query_bytes(),
                            cut.query_bytes(), cut.head_groups * kStep, n};
    for (uint32_t i = steps.begin * kStep; i < steps.end * kStep; i += Cut::kColumns)
      multiply_unpacked<Isa, Halves>(
          queries, state.keys + i / Cut::kColumns * cut.head_groups, {0, cut.head_groups},
          [&](uint32_t p, uint32_t row, Floats sums) {
            Columns::store(scores + row * Cut::kScoreStride + i + p * Columns::kCount, sums);
          });
    for (uint32_t i = 0; i < n; ++i) weigh_row(slice, slice.seen(r + i, page), steps, i);
    const InputRows weights{state.weights, Cut::weight_bytes(), kPagePositions, n};
    const uint64_t stride = cut.value_stride();
    for (uint32_t panel = 0; panel < cut.value_panels; ++panel) {
      float* const out = state.page_sums + panel * Cut::kColumns;
      multiply_unpacked<Isa, Halves>(weights, state.values + panel * kPageSteps, steps,
                                     [&](uint32_t p, uint32_t row, Floats sums) {
                                       Columns::store(out + row * stride + p * Columns::kCount,
                                                      sums);
                                     });
    }
    merge_block(slice, slice.query(head, g, r), n);
  }

  static void fill(float* scores, uint32_t begin, uint32_t end, float value) {
    for (uint32_t i = begin; i < end; ++i) scores[i] = value;
  }

  // From the scores of row i of a block its largest one, the sum of exponentials, and the codes of those
  // times the scales of the values; zeros in the rest of the block's steps.
  static void weigh_row(const Slice& slice, Range range, GroupRange steps, uint32_t i) {
    const auto& [call, params, cut, state, first_row, n_rows] = slice;
    auto* const codes = reinterpret_cast<int16_t*>(state.weights + i * Cut::weight_bytes());
    auto* const scales = reinterpret_cast<float*>(codes + kPagePositions);
    const Range own = {range.begin / kStep * kStep, round_up(range.end, kStep)};
    for (uint32_t step = steps.begin; step < steps.end; ++step)
      if (step * kStep < own.begin || step * kStep >= own.end) {
        __builtin_memset(codes + step * kStep, 0, kStep * sizeof(*codes));
        scales[step] = 0;
      }
    state.page_masses[i] = 0;
    if (range.begin >= range.end) return;

    float* const scores = state.scores + i * Cut::kScoreStride;
    const auto beside = [&](float value) {  // the range, in the steps that it touches
      fill(scores, own.begin, range.begin, value);
      fill(scores, range.end, own.end, value);
    };
    if (params.soft_cap > 0) cap_scores(params, scores, own);
    const float factor = params.soft_cap > 0 ? 1.0f : params.scale;
    beside(-__builtin_inff());
    state.page_largest[i] = largest_of(scores, own) * factor;
    state.page_masses[i] =
        exponentiate(scores, own, factor, state.page_largest[i], state.value_scales);
    beside(0);
    for (uint32_t j = own.begin; j < own.end; j += kStep) {
      typename Isa::Vector weights[4];
      for (uint32_t v = 0; v < 4; ++v) weights[v] = Isa::load(scores + j + v * Isa::kLanes);
      quantize16<Isa>(weights, codes + j, scales + j / kStep);
    }
  }

  static void cap_scores(const AttentionParams& params, float* scores, Range range) {
    const auto factor = Wide::broadcast(params.scale), cap = Wide::broadcast(params.soft_cap);
    for (uint32_t i = range.begin; i < range.end; i += Wide::kLanes) {
      const auto score = Wide::multiply(Wide::load(scores + i), factor);
      Wide::store(scores + i, Wide::multiply(cap, tanh<Wide>(Wide::divide(score, cap))));
    }
  }

  static float largest_of(const float* scores, Range range) {
    auto largest = Wide::broadcast(-__builtin_inff());
    for (uint32_t i = range.begin; i < range.end; i += Wide::kLanes)
      largest = Wide::maximum(Wide::load(scores + i), largest);
    return Wide::max_lanes(largest);
  }

  // Replaces scores by e^(score * factor - largest), each times the scale of its value; returns their
  // sum without that, of 16 lanes at every level.
  static float exponentiate(float* scores, Range range, float factor, float largest,
                            const float* scales) {
    constexpr uint32_t kSumLanes = 16, kSums = kSumLanes / Wide::kLanes;
    const auto times = Wide::broadcast(factor), less = Wide::broadcast(-largest);
    typename Wide::Vector sums[kSums];
    for (auto& sum : sums) sum = Wide::zero();
    for (uint32_t i = range.begin; i < range.end; i += kSumLanes)
      for (uint32_t j = 0; j < kSums; ++j) {
        const uint32_t at = i + j * Wide::kLanes;
        const auto weight = exp<Wide>(Wide::multiply_add(Wide::load(scores + at), times, less));
        sums[j] = Wide::add(sums[j], weight);
        Wide::store(scores + at, Wide::multiply(weight, Wide::load(scales + at)));
      }
    float lanes[kSumLanes];
    for (uint32_t j = 0; j < kSums; ++j) Wide::store(lanes + j * Wide::kLanes, sums[j]);
    return Isa::sum_lanes(Isa::add(Isa::load(lanes), Isa::load(lanes + Isa::kLanes)));
  }

  // Takes the page's sums of n rows into those of the pages before, which lie from `query` on.
  static void merge_block(const Slice& slice, uint32_t query, uint32_t n) {
    const auto& [call, params, cut, state, first_row, n_rows] = slice;
    float keep[kBlockRows], take[kBlockRows];
    for (uint32_t i = 0; i < n; i += Isa::kLanes) {  // a block's rows that are not there have room
      const auto before = Isa::load(state.largest + query + i);
      const auto here = Isa::load(state.page_largest + i), largest = Isa::maximum(here, before);
      Isa::store(keep + i, exp<Isa>(Isa::subtract(before, largest)));
      Isa::store(take + i, exp<Isa>(Isa::subtract(here, largest)));
    }
    for (uint32_t i = 0; i < n; ++i) {
      const float here = state.page_largest[i], before = state.largest[query + i];
      if (state.page_masses[i] == 0) continue;  // it sees nothing of the page
      const auto old_factor = Wide::broadcast(keep[i]), new_factor = Wide::broadcast(take[i]);
      float* sums = state.sums + (query + i) * cut.value_stride();
      const float* added = state.page_sums + i * cut.value_stride();
      for (uint64_t d = 0; d < cut.value_stride(); d += Wide::kLanes)
        Wide::store(sums + d, Wide::multiply_add(Wide::load(added + d), new_factor,
                                                 Wide::multiply(Wide::load(sums + d), old_factor)));
      state.masses[query + i] = state.masses[query + i] * keep[i] + state.page_masses[i] * take[i];
      state.largest[query + i] = here > before ? here : before;
    }
  }

  static void write_row(const Slice& slice, uint32_t first_head, uint32_t last_head, uint32_t r) {
    const auto& [call, params, cut, state, first_row, n_rows] = slice;
    const uint32_t dim = params.head_dim, k = params.n_heads * dim;
    float* out = state.out;
    for (uint32_t head = first_head; head < last_head; ++head)
      for (uint32_t g = 0; g < cut.group; ++g, out += dim) {
        const uint32_t query = slice.query(head, g, r);
        const float* sums = state.sums + query * cut.value_stride();
        const float factor = 1.0f / state.masses[query];
        for (uint32_t d = 0; d < dim; ++d) out[d] = sums[d] * factor;
      }
    const uint32_t begin = first_head * cut.group * dim, end = last_head * cut.group * dim;
    Activation::write(
        call.operands[3] + (first_row + r) * Activation::row_bytes(k), k, begin, end,
        [&](uint32_t i, uint32_t n) { return Isa::load(slice.state.out + (i - begin), n); });
  }
};

template <class Isa, template <class> class Activation>
constexpr KernelEntry entry() {
  using Kernel = CodedAttention<Isa, Activation<Isa>>;
  return {{Operation::attention,
           Activation<Isa>::kKind,
           {kAbsent, kAbsent, kAbsent},
           Kernel::Cache::kFormat,
           Quant16Input<Isa>::kKind},
          {Kernel::slices, Kernel::run, Kernel::scratch_bytes}};
}

template <class Isa>
KernelList entries() {
  if constexpr (requires { Isa::Columns::add_pairs; }) {
    static constexpr KernelEntry kEntries[] = {entry<Isa, Q8Activation>(),
                                               entry<Isa, Q16Activation>()};
    return list_of(kEntries);
  } else {
    return {nullptr, 0};
  }
}

}  // namespace

template <>
KernelList Families<ThisIsa>::coded_attention() {
  return entries<ThisIsa>();
}

}  // namespace akunu::cpu
