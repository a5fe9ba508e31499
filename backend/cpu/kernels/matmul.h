// matmul:       out[r, j] = sum_k weight[j, k] * input[r, k]
//   0 input: activation [rows, k]   1 weight: [n, k]   2 out: rows [rows, n]   25 MatmulParams
// matmul_add:   the same, added to 2 data
// matmul_group: up to three matmuls of one activation, each with its bias where one is bound
//   0 input   1-3 weights   4-6 biases: vector [n]   7-9 out   25 MatmulGroupParams
// gated_matmul: two of them, and gated_activation of what they make
//   0 input   1 gate, 2 up: [n, k]   3 out: activation [rows, n]   25 GatedMatmulParams
//   slices: columns(k, rows) rows of the weight x kRows rows of the input. Slices of the same weight rows are
//           numbered consecutively, so that a worker finds those rows in its L2. Of a kernel with kAtOnce > 1, slices
//           of the same input rows are
//
// 1. What bounds it. Up to 16 rows: memory, the weight is read once. Many rows: the multipliers.
// 2. What is done about it. Slices are small enough for a worker's L2, and numbered so that what
//    they share stays there.
// 3. What was tried and did not pay. The next matmul's first 13 to 128 KiB, prefetched before a
//    worker waits for the others; slices by the number of threads: then tests on two would not run
//    what sixteen run. docs/decisions/prefetching-on-the-cpu.md, prompts-on-the-cpu.md.
//
// One weight is multiplied by a matmul kernel: multiply.h has those of vectors, tiles/multiply.h
// that of matrix units.
//
//   kFormat, kKind       the weight's format and the input's activation kind
//   kRows                input rows of a slice
//   columns(k, n_rows)   weight rows of a slice in a step of n_rows; a multiple of 32 for quantised weights;
//                        never fewer for more rows
//   kAtOnce              so many neighbouring slices may be given to `run` as one: their input is read once
//   kRowByRow            `run` completes the input's rows in order, and calls the member's `row_done` for each
//   scratch_bytes(k)     of a worker
//   input_row_bytes(k)   from one input row to the next
//   run(member, input, slice, scratch)
//                        the slice's input rows times its weight rows
//   prefetch(member, slice)
//                        prefetches the start of a run of slices; inside the run each slice prefetches the next
#pragma once

#include "cpu/kernel.h"
#include "cpu/kernels/panel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {

// One weight of a command.
struct MatmulMember {
  const std::byte* weight;
  const float* bias;  // null: none
  // Address of output [0, 0]; for results that go to scratch, the address it would have (may lie
  // before the buffer).
  float* out;
  uint32_t n, k;
  uint64_t stride;                                // floats from row to row of `out`
  uint64_t l1_panel_bytes = 0;                    // as the kernel has it
  bool adds = false;                              // to the output, instead of storing
  const std::byte* const* more_planes = nullptr;  // of the weight, behind the first
  // Called by kRowByRow kernels behind each row; null: not wanted. With a stride of 0 the next row
  // overwrites this one.
  void (*row_done)(const void* context, uint64_t row) = nullptr;
  const void* context = nullptr;
};
// The planes of weight `i` of a call behind the first.
static inline const std::byte* const* more_planes_of(const Call& call, uint32_t i) {
  return call.operands + plane_slot(i, 1);
}
static inline float* output_at(const MatmulMember& member, uint64_t row, uint64_t j) {
  return member.out + row * member.stride + j;
}

// The epilogue of n columns, from j on, of an output row: adds the bias, or the output as it was, and stores.
static inline void store_results(const MatmulMember& member, uint64_t row, uint64_t j,
                                 const float* sums, uint32_t n) {
  float* out = output_at(member, row, j);
  for (uint32_t i = 0; i < n; ++i) {
    if (member.adds)
      out[i] = out[i] + sums[i];
    else
      out[i] = member.bias == nullptr ? sums[i] : sums[i] + member.bias[j + i];
  }
}

// The same, for as many columns as a register has.
template <class Columns>
static inline void store_panel(const MatmulMember& member, uint64_t row, uint64_t j,
                               typename Columns::Floats sums) {
  float* out = output_at(member, row, j);
  if (member.adds)
    sums = Columns::add(Columns::load(out), sums);
  else if (member.bias != nullptr)
    sums = Columns::add(sums, Columns::load(member.bias + j));
  Columns::store(out, sums);
}

// Where the panel of `width` columns for column j begins, in a slice that ends with column `end`.
// The last panel of a weight begins earlier, so that it is a whole one; what it has in common with
// the panel before is skipped.
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

// The weight's rows; of a weight with fewer than `width`, a copy in `room` that is padded with zeros.
template <class Format>
static inline Panel padded_panel(const MatmulMember& member, uint32_t width, std::byte* room) {
  const uint64_t row_bytes = Format::row_bytes(member.k);
  if (member.n >= width) return {member.weight, row_bytes};
  __builtin_memset(room, 0, width * row_bytes);
  __builtin_memcpy(room, member.weight, member.n * row_bytes);
  return {room, row_bytes};
}

// A matmul's slices: `columns` rows of the weight x `rows` rows of the input each. Neighbouring
// slices go along the columns where a kernel takes several at once, else along the rows.
struct MatmulTiling {
  uint32_t columns, rows, at_once;
};
static inline uint64_t column_parts(const MatmulTiling& tiling, uint32_t n) {
  return (uint64_t{n} + tiling.columns - 1) / tiling.columns;
}
static inline uint64_t row_parts(const MatmulTiling& tiling, uint32_t n_rows) {
  return (uint64_t{n_rows} + tiling.rows - 1) / tiling.rows;
}
static inline uint64_t count_slices(const MatmulTiling& tiling, uint32_t n, uint32_t n_rows) {
  return column_parts(tiling, n) * row_parts(tiling, n_rows);
}

// What a slice computes: columns [begin, end) of input rows from `first_row` on.
struct MatmulSlice {
  uint64_t first_row;
  uint32_t n_rows;
  uint64_t begin, end;
};

static inline MatmulSlice slice_of(const MatmulTiling& tiling, const Call& call, uint32_t n,
                                   uint64_t slice) {
  const bool along_columns = tiling.at_once > 1;
  const uint64_t parts = along_columns ? column_parts(tiling, n) : row_parts(tiling, call.n_rows);
  const uint64_t quotient = slice / parts, rest = slice % parts;
  const uint64_t begin = (along_columns ? rest : quotient) * tiling.columns,
                 end = begin + tiling.columns;
  const uint32_t part = static_cast<uint32_t>(along_columns ? quotient : rest) * tiling.rows;
  const uint32_t left = call.n_rows - part;
  return {uint64_t{call.first_row} + part, left < tiling.rows ? left : tiling.rows, begin,
          end < n ? end : n};
}

// Takes as many of the slices [first, end) as a kernel may run at once, as one slice; `first`
// becomes the next slice.
static inline MatmulSlice take_slices(const MatmulTiling& tiling, const Call& call, uint32_t n,
                                      uint64_t& first, uint64_t end) {
  MatmulSlice taken = slice_of(tiling, call, n, first++);
  for (uint32_t i = 1; i < tiling.at_once && first < end; ++i, ++first) {
    const MatmulSlice next = slice_of(tiling, call, n, first);
    if (next.first_row != taken.first_row) break;
    taken.end = next.end;
  }
  return taken;
}

// What the matmul kernels on vectors have in common.
struct OneSliceAtOnce {
  static constexpr uint32_t kAtOnce = 1;
  static constexpr bool kRowByRow = false;
};

// A matmul kernel as data: what a Kernel's `members` point to.
struct MatmulKernel {
  int32_t format, activation;
  uint32_t rows, at_once;
  bool row_by_row;
  uint32_t (*columns)(uint32_t k, uint32_t n_rows);
  void (*run)(const MatmulMember& member, const std::byte* input, const MatmulSlice& slice,
              std::byte* scratch);
  void (*prefetch)(const MatmulMember& member, const MatmulSlice& slice);
  uint64_t (*scratch_bytes)(uint32_t k);
  uint64_t (*input_row_bytes)(uint32_t k);
};
template <class Implementation>
static constexpr MatmulKernel matmul_kernel() {
  return {Implementation::kFormat,       Implementation::kKind,
          Implementation::kRows,         Implementation::kAtOnce,
          Implementation::kRowByRow,     Implementation::columns,
          Implementation::run,           Implementation::prefetch,
          Implementation::scratch_bytes, Implementation::input_row_bytes};
}
static inline MatmulTiling tiling_of(const MatmulKernel& kernel, uint32_t k, uint32_t n_rows) {
  return {kernel.columns(k, n_rows), kernel.rows, kernel.at_once};
}

// A level's matmul kernels: a list for each file of them.
struct MatmulKernels {
  const MatmulKernel* first;
  uint32_t count;
};
template <uint32_t N>
static constexpr MatmulKernels list_of(const MatmulKernel (&kernels)[N]) {
  return {kernels, N};
}

static inline const MatmulKernel* kernel_of(const Call& call, uint32_t i) {
  return static_cast<const MatmulKernel*>(call.kernel->members[i]);
}

// The kernel for weight i of a request; null where `known` has none.
template <uint32_t N>
static inline const MatmulKernel* find_matmul_kernel(const MatmulKernels (&known)[N],
                                                     const KernelKey& request, uint32_t i) {
  for (const MatmulKernels& kernels : known)
    for (const MatmulKernel* kernel = kernels.first; kernel != kernels.first + kernels.count;
         ++kernel)
      if (kernel->format == request.weights[i] && kernel->activation == request.activation)
        return kernel;
  return nullptr;
}

template <class Isa>
struct Matmul {
  static uint64_t slices(const Call& call) {
    const auto& params = *static_cast<const MatmulParams*>(call.params);
    return count_slices(tiling_of(*kernel_of(call, 0), params.k, call.n_rows), params.n,
                        call.n_rows);
  }
  static uint64_t scratch_bytes(const Call& call) {
    return kernel_of(call, 0)->scratch_bytes(static_cast<const MatmulParams*>(call.params)->k);
  }
  static uint64_t at_once(const Call& call) { return kernel_of(call, 0)->at_once; }

  template <bool kAdds>
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    const auto& params = *static_cast<const MatmulParams*>(call.params);
    const MatmulKernel& kernel = *kernel_of(call, 0);
    const MatmulTiling tiling = tiling_of(kernel, params.k, call.n_rows);
    const MatmulMember member{call.operands[1],
                              nullptr,
                              reinterpret_cast<float*>(call.operands[2]),
                              params.n,
                              params.k,
                              params.n,
                              call.kernel->l1_panel_bytes,
                              kAdds,
                              more_planes_of(call, 0)};
    kernel.prefetch(member, slice_of(tiling, call, params.n, begin));
    while (begin < end)
      kernel.run(member, call.operands[0], take_slices(tiling, call, params.n, begin, end),
                 scratch);
  }

  // False where `known` has no kernel for the weight.
  template <uint32_t N>
  static bool find(const MatmulKernels (&known)[N], const KernelKey& request, Kernel& kernel) {
    const bool adds = request.operation == Operation::matmul_add;
    kernel = {slices, adds ? run<true> : run<false>, scratch_bytes, at_once};
    kernel.members[0] = find_matmul_kernel(known, request, 0);
    return kernel.members[0] != nullptr;
  }
};

// The slices of a group's member, and how many rows its weight has; 0: it is absent.
struct MatmulPart {
  MatmulTiling tiling;
  uint32_t n;
};
// The slices of a group are those of its members, part_of(0) to part_of(kMaxGroup - 1), one after the other.
static inline uint64_t count_group_slices(const Call& call, const auto& part_of) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < kMaxGroup; ++i)
    if (const MatmulPart part = part_of(i); part.n > 0)
      n += count_slices(part.tiling, part.n, call.n_rows);
  return n;
}
// Calls run(i, member_of(i), slice) for slices [begin, end). Neighbouring slices that a kernel computes
// together are one call. The first slice of each member is prefetched.
static inline void run_group_slices(const Call& call, uint64_t begin, uint64_t end,
                                    const auto& part_of, const auto& member_of, const auto& run) {
  uint64_t first = 0;  // the member's first slice
  for (uint32_t i = 0; i < kMaxGroup && begin < end; ++i) {
    const MatmulPart part = part_of(i);
    if (part.n == 0) continue;
    const uint64_t count = count_slices(part.tiling, part.n, call.n_rows);
    const MatmulMember member = member_of(i);
    const uint64_t last = end - first < count ? end - first : count;
    uint64_t slice = begin - first;
    if (slice < last)
      kernel_of(call, i)->prefetch(member, slice_of(part.tiling, call, part.n, slice));
    while (slice < last) run(i, member, take_slices(part.tiling, call, part.n, slice, last));
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
      if (const MatmulKernel* kernel = kernel_of(call, i)) {
        const uint64_t bytes = kernel->scratch_bytes(params.k);
        if (bytes > most) most = bytes;
      }
    return most;
  }

  static uint64_t at_once(const Call& call) {
    uint64_t most = 1;
    for (uint32_t i = 0; i < kMaxGroup; ++i)
      if (const MatmulKernel* kernel = kernel_of(call, i);
          kernel != nullptr && kernel->at_once > most)
        most = kernel->at_once;
    return most;
  }

  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    run_group_slices(
        call, begin, end, [&](uint32_t i) { return part_of(call, i); },
        [&](uint32_t i) { return member(call, i); },
        [&](uint32_t i, const MatmulMember& member, const MatmulSlice& slice) {
          kernel_of(call, i)->run(member, call.operands[0], slice, scratch);
        });
  }

  // False where `known` has no kernel for a weight of the request.
  template <uint32_t N>
  static bool find(const MatmulKernels (&known)[N], const KernelKey& request, Kernel& kernel) {
    kernel = {slices, run, scratch_bytes, at_once};
    for (uint32_t i = 0; i < kMaxGroup; ++i) {
      if (request.weights[i] == kAbsent) continue;
      kernel.members[i] = find_matmul_kernel(known, request, i);
      if (kernel.members[i] == nullptr) return false;
    }
    return kernel.members[0] != nullptr;
  }

 private:
  static MatmulPart part_of(const Call& call, uint32_t i) {
    const auto& params = *static_cast<const MatmulGroupParams*>(call.params);
    const MatmulKernel* const kernel = kernel_of(call, i);
    if (kernel == nullptr) return {};
    return {tiling_of(*kernel, params.k, call.n_rows), params.n[i]};
  }
  static MatmulMember member(const Call& call, uint32_t i) {
    const auto& params = *static_cast<const MatmulGroupParams*>(call.params);
    return {call.operands[kGroupWeight + i],
            reinterpret_cast<const float*>(call.operands[kGroupBias + i]),
            reinterpret_cast<float*>(call.operands[kGroupOut + i]),
            params.n[i],
            params.k,
            params.n[i],
            call.kernel->l1_panel_bytes,
            false,
            more_planes_of(call, i)};
  }
};

}  // namespace akunu::cpu
