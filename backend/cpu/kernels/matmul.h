// matmul:       out[r, j] = sum_k weight[j, k] * input[r, k]
//   0 input: activation [rows, k]   1 weight: [n, k]   2 out: rows [rows, n]   25 MatmulParams
// matmul_add:   the same, added to 2 data
// matmul_group: up to three matmuls of one activation, each with its bias where one is bound
//   0 input   1-3 weights   4-6 biases: vector [n]   7-9 out   25 MatmulGroupParams
// gated_matmul: two of them, and gated_activation of what they make
//   0 input   1 gate, 2 up: [n, k]   3 out: activation [rows, n]   25 GatedMatmulParams
//   slices: Way::columns(k, rows) rows of the weight x Way::kRows rows of the input; those of one part of the
//           weight follow each other, so that a worker finds it in its second cache. Of a way that takes several
//           at once, those of one part of the input do
//   limit:  rows <= 16: memory, the weight is read once; many rows: the multipliers
//
// How a weight is multiplied is a way: multiply.h has those of vectors, tiles/multiply.h that of matrix
// units.
//
//   kFormat, kKind       the weight's format and the input's kind that it is for
//   kRows                input rows of a slice
//   columns(k, n_rows)   weight rows of a slice, a multiple of 32 where codes are, for a step of n_rows;
//                        never fewer for more of them
//   kAtOnce              slices beside each other that `run` takes as one, which costs less: what it reads of the
//                        input serves all of them
//   kRowByRow            `run` completes the input's rows one after the other, and calls the member's `row_done`
//   scratch_bytes(k)     of a worker
//   run(member, input, slice, scratch)
//                        the slice's input rows times its weight rows
//   ask_for(member, slice)
//                        has what a run of slices begins with on its way: within it, each slice sees
//                        to the next one
#pragma once

#include "cpu/kernel.h"
#include "cpu/kernels/panel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {

// One weight of a command.
struct MatmulMember {
  const std::byte* weight;
  const float* bias;  // null: none
  float* out;         // where row 0, column 0 is, or would be if scratch of a slice had it
  uint32_t n, k;
  uint64_t stride;                                // floats from row to row of `out`
  uint64_t first_cache_panel = 0;                 // as the kernel has it
  bool adds = false;                              // to what is there
  const std::byte* const* more_planes = nullptr;  // of the weight, behind the first
  // Of ways that are kRowByRow; null: nobody wants to know. With a stride of 0, the next row takes the place of this one.
  void (*row_done)(const void* context, uint64_t row) = nullptr;
  const void* context = nullptr;
};
// The planes of weight `i` of a call behind the first.
static inline const std::byte* const* more_planes_of(const Call& call, uint32_t i) {
  return call.operands + plane_slot(i, 1);
}
static inline float* out_at(const MatmulMember& member, uint64_t row, uint64_t j) {
  return member.out + row * member.stride + j;
}

// Where the results of input row r, columns from j on, go.
static inline void put(const MatmulMember& member, uint64_t row, uint64_t j, const float* sums,
                       uint32_t n) {
  float* out = out_at(member, row, j);
  for (uint32_t i = 0; i < n; ++i) {
    if (member.adds)
      out[i] = out[i] + sums[i];
    else
      out[i] = member.bias == nullptr ? sums[i] : sums[i] + member.bias[j + i];
  }
}

// What `put` does, for as many columns as a register has.
template <class Columns>
static inline void put_panel(const MatmulMember& member, uint64_t row, uint64_t j,
                             typename Columns::Floats sums) {
  float* out = out_at(member, row, j);
  if (member.adds)
    sums = Columns::add(Columns::load(out), sums);
  else if (member.bias != nullptr)
    sums = Columns::add(sums, Columns::load(member.bias + j));
  Columns::store(out, sums);
}

// The panel of `width` columns that begins with column j, of a slice that ends with column `end`.
// The last one of a weight begins early enough to be a whole one.
struct PanelPlace {
  uint64_t from;     // the weight's row that it begins with
  uint32_t skipped;  // rows that the panel before has as well
  uint32_t n;        // rows behind those that belong to the slice
};
static inline PanelPlace place_panel(uint32_t n, uint64_t j, uint64_t end, uint32_t width) {
  const uint64_t last = n < width ? 0 : n - width;
  const uint64_t from = j < last ? j : last;
  const uint64_t left = end - j;
  return {from, static_cast<uint32_t>(j - from),
          left < width ? static_cast<uint32_t>(left) : width};
}

// The weight's rows, or a copy in `room` with zeros behind where a panel would be longer.
template <class Format>
static inline Panel whole_panel(const MatmulMember& member, uint32_t width, std::byte* room) {
  const uint64_t row_bytes = Format::row_bytes(member.k);
  if (member.n >= width) return {member.weight, row_bytes};
  __builtin_memset(room, 0, width * row_bytes);
  __builtin_memcpy(room, member.weight, member.n * row_bytes);
  return {room, row_bytes};
}

// A weight's work, cut into slices: `columns` rows of the weight x `rows` rows of the input. With several at
// once, slice + 1 has the columns behind those of `slice`, else the rows.
struct MatmulCut {
  uint32_t columns, rows, at_once;
};
static inline uint64_t column_parts(const MatmulCut& cut, uint32_t n) {
  return (uint64_t{n} + cut.columns - 1) / cut.columns;
}
static inline uint64_t row_parts(const MatmulCut& cut, uint32_t n_rows) {
  return (uint64_t{n_rows} + cut.rows - 1) / cut.rows;
}
static inline uint64_t count_slices(const MatmulCut& cut, uint32_t n, uint32_t n_rows) {
  return column_parts(cut, n) * row_parts(cut, n_rows);
}

// What a slice computes: columns [begin, end) of input rows from `first_row` on.
struct MatmulSlice {
  uint64_t first_row;
  uint32_t n_rows;
  uint64_t begin, end;
};

static inline MatmulSlice slice_of(const MatmulCut& cut, const Call& call, uint32_t n,
                                   uint64_t slice) {
  const bool along_columns = cut.at_once > 1;
  const uint64_t parts = along_columns ? column_parts(cut, n) : row_parts(cut, call.n_rows);
  const uint64_t quotient = slice / parts, rest = slice % parts;
  const uint64_t begin = (along_columns ? rest : quotient) * cut.columns, end = begin + cut.columns;
  const uint32_t part = static_cast<uint32_t>(along_columns ? quotient : rest) * cut.rows;
  const uint32_t left = call.n_rows - part;
  return {uint64_t{call.first_row} + part, left < cut.rows ? left : cut.rows, begin,
          end < n ? end : n};
}

// As many of slices [first, end) as may be taken at once, as one; `first` becomes the next behind them.
static inline MatmulSlice take_slices(const MatmulCut& cut, const Call& call, uint32_t n,
                                      uint64_t& first, uint64_t end) {
  MatmulSlice taken = slice_of(cut, call, n, first++);
  for (uint32_t i = 1; i < cut.at_once && first < end; ++i, ++first) {
    const MatmulSlice next = slice_of(cut, call, n, first);
    if (next.first_row != taken.first_row) break;
    taken.end = next.end;
  }
  return taken;
}

// What ways on vectors have in common.
struct OneSliceAtOnce {
  static constexpr uint32_t kAtOnce = 1;
  static constexpr bool kRowByRow = false;
};

// A way, as a Kernel's `members` point to it.
struct MatmulWay {
  int32_t format, activation;
  uint32_t rows, at_once;
  bool row_by_row;
  uint32_t (*columns)(uint32_t k, uint32_t n_rows);
  void (*run)(const MatmulMember& member, const std::byte* input, const MatmulSlice& slice,
              std::byte* scratch);
  void (*ask_for)(const MatmulMember& member, const MatmulSlice& slice);
  uint64_t (*scratch_bytes)(uint32_t k);
};
template <class Way>
static constexpr MatmulWay matmul_way() {
  return {Way::kFormat, Way::kKind, Way::kRows,   Way::kAtOnce,      Way::kRowByRow,
          Way::columns, Way::run,   Way::ask_for, Way::scratch_bytes};
}
static inline MatmulCut cut_of(const MatmulWay& way, uint32_t k, uint32_t n_rows) {
  return {way.columns(k, n_rows), way.rows, way.at_once};
}

// The ways that a level has, in lists of a file each.
struct MatmulWays {
  const MatmulWay* first;
  uint32_t count;
};
template <uint32_t N>
static constexpr MatmulWays list_of(const MatmulWay (&ways)[N]) {
  return {ways, N};
}

static inline const MatmulWay* way_of(const Call& call, uint32_t i) {
  return static_cast<const MatmulWay*>(call.kernel->members[i]);
}

// Null where `known` has none for weight i of a request.
template <uint32_t N>
static inline const MatmulWay* find_way(const MatmulWays (&known)[N], const KernelKey& request,
                                        uint32_t i) {
  for (const MatmulWays& ways : known)
    for (const MatmulWay* way = ways.first; way != ways.first + ways.count; ++way)
      if (way->format == request.weights[i] && way->activation == request.activation) return way;
  return nullptr;
}

template <class Isa>
struct Matmul {
  static uint64_t slices(const Call& call) {
    const auto& params = *static_cast<const MatmulParams*>(call.params);
    return count_slices(cut_of(*way_of(call, 0), params.k, call.n_rows), params.n, call.n_rows);
  }
  static uint64_t scratch_bytes(const Call& call) {
    return way_of(call, 0)->scratch_bytes(static_cast<const MatmulParams*>(call.params)->k);
  }
  static uint64_t at_once(const Call& call) { return way_of(call, 0)->at_once; }

  template <bool kAdds>
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    const auto& params = *static_cast<const MatmulParams*>(call.params);
    const MatmulWay& way = *way_of(call, 0);
    const MatmulCut cut = cut_of(way, params.k, call.n_rows);
    const MatmulMember member{call.operands[1],
                              nullptr,
                              reinterpret_cast<float*>(call.operands[2]),
                              params.n,
                              params.k,
                              params.n,
                              call.kernel->first_cache_panel,
                              kAdds,
                              more_planes_of(call, 0)};
    way.ask_for(member, slice_of(cut, call, params.n, begin));
    while (begin < end)
      way.run(member, call.operands[0], take_slices(cut, call, params.n, begin, end), scratch);
  }

  // False where `known` has no way.
  template <uint32_t N>
  static bool find(const MatmulWays (&known)[N], const KernelKey& request, Kernel& kernel) {
    const bool adds = request.operation == Operation::matmul_add;
    kernel = {slices, adds ? run<true> : run<false>, scratch_bytes, at_once};
    kernel.members[0] = find_way(known, request, 0);
    return kernel.members[0] != nullptr;
  }
};

// How a member of a group is cut, and how many rows its weight has; 0: it is absent.
struct MatmulPart {
  MatmulCut cut;
  uint32_t n;
};
// The slices of a group are those of its members, part_of(0) to part_of(kMaxGroup - 1), one after the other.
static inline uint64_t count_group_slices(const Call& call, const auto& part_of) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < kMaxGroup; ++i)
    if (const MatmulPart part = part_of(i); part.n > 0)
      n += count_slices(part.cut, part.n, call.n_rows);
  return n;
}
// Calls run(i, member_of(i), cut, slice) for slices [begin, end), of which each member's first one is asked for;
// those that a member takes at once are one.
static inline void run_group_slices(const Call& call, uint64_t begin, uint64_t end,
                                    const auto& part_of, const auto& member_of, const auto& run) {
  uint64_t first = 0;  // the member's first slice
  for (uint32_t i = 0; i < kMaxGroup && begin < end; ++i) {
    const MatmulPart part = part_of(i);
    if (part.n == 0) continue;
    const uint64_t count = count_slices(part.cut, part.n, call.n_rows);
    const MatmulMember member = member_of(i);
    const uint64_t last = end - first < count ? end - first : count;
    uint64_t slice = begin - first;
    if (slice < last) way_of(call, i)->ask_for(member, slice_of(part.cut, call, part.n, slice));
    while (slice < last) run(i, member, take_slices(part.cut, call, part.n, slice, last));
    begin = first + slice;
    first += count;
  }
}

// Members of any formats that read one activation kind.
template <class Isa>
struct MatmulGroup {
  static uint64_t slices(const Call& call) {
    return count_group_slices(call, [&](uint32_t i) { return part_of(call, i); });
  }

  static uint64_t scratch_bytes(const Call& call) {
    const auto& params = *static_cast<const MatmulGroupParams*>(call.params);
    uint64_t most = 0;
    for (uint32_t i = 0; i < kMaxGroup; ++i)
      if (const MatmulWay* way = way_of(call, i)) {
        const uint64_t bytes = way->scratch_bytes(params.k);
        if (bytes > most) most = bytes;
      }
    return most;
  }

  static uint64_t at_once(const Call& call) {
    uint64_t most = 1;
    for (uint32_t i = 0; i < kMaxGroup; ++i)
      if (const MatmulWay* way = way_of(call, i); way != nullptr && way->at_once > most)
        most = way->at_once;
    return most;
  }

  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    run_group_slices(
        call, begin, end, [&](uint32_t i) { return part_of(call, i); },
        [&](uint32_t i) { return member(call, i); },
        [&](uint32_t i, const MatmulMember& member, const MatmulSlice& slice) {
          way_of(call, i)->run(member, call.operands[0], slice, scratch);
        });
  }

  // False where `known` has no way for a weight of the request.
  template <uint32_t N>
  static bool find(const MatmulWays (&known)[N], const KernelKey& request, Kernel& kernel) {
    kernel = {slices, run, scratch_bytes, at_once};
    for (uint32_t i = 0; i < kMaxGroup; ++i) {
      if (request.weights[i] == kAbsent) continue;
      kernel.members[i] = find_way(known, request, i);
      if (kernel.members[i] == nullptr) return false;
    }
    return kernel.members[0] != nullptr;
  }

 private:
  static MatmulPart part_of(const Call& call, uint32_t i) {
    const auto& params = *static_cast<const MatmulGroupParams*>(call.params);
    const MatmulWay* const way = way_of(call, i);
    if (way == nullptr) return {};
    return {cut_of(*way, params.k, call.n_rows), params.n[i]};
  }
  static MatmulMember member(const Call& call, uint32_t i) {
    const auto& params = *static_cast<const MatmulGroupParams*>(call.params);
    return {call.operands[kGroupWeight + i],
            reinterpret_cast<const float*>(call.operands[kGroupBias + i]),
            reinterpret_cast<float*>(call.operands[kGroupOut + i]),
            params.n[i],
            params.k,
            params.n[i],
            call.kernel->first_cache_panel,
            false,
            more_planes_of(call, i)};
  }
};

}  // namespace akunu::cpu
