// gated_matmul on vectors: a slice multiplies its columns of gate and of up into scratch, and
// writes the activation of both.
//
// 1. What bounds it. As matmul; a few rows: memory.
// 2. What is done about it. Gate and up never go to memory: 24 KiB a row of a model of 1,024
//    dimensions. A few rows take several slices of gate before those of up: changing to another
//    weight costs half a microsecond. docs/decisions/prefetching-on-the-cpu.md.
#pragma once

#include "cpu/kernels/activation.h"
#include "cpu/kernels/gate.h"
#include "cpu/kernels/matmul.h"

namespace akunu::cpu {

template <class Isa, class Activation>
struct GatedMatmul {
  static uint64_t slices(const Call& call) {
    const auto& params = *static_cast<const GatedMatmulParams*>(call.params);
    return count_slices(tiling_of(*kernel_of(call, 0), params.k, call.n_rows), params.n,
                        call.n_rows);
  }

  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    const auto& params = *static_cast<const GatedMatmulParams*>(call.params);
    const MatmulKernel& kernel = *kernel_of(call, 0);
    const MatmulTiling tiling = tiling_of(kernel, params.k, call.n_rows);
    MatmulSlice slice = slice_of(tiling, call, params.n, begin);
    for (uint32_t slot = 1; slot <= 2; ++slot)
      kernel.prefetch({call.operands[slot], nullptr, nullptr, params.n, params.k, 0}, slice);
    // Several slices of few rows at once, as many as scratch holds: going from one weight to the
    // other costs half a microsecond, a sixth of what reading a slice takes.
    const uint64_t at_once = row_parts(tiling, call.n_rows) == 1 ? tiling.rows / call.n_rows : 1;
    while (begin < end) {
      const uint64_t next = end - begin < at_once ? end : begin + at_once;
      slice = slice_of(tiling, call, params.n, begin);
      slice.end = slice_of(tiling, call, params.n, next - 1).end;
      with_activation<Isa>(params.activation, [&](const auto& function) {
        run_slices(call, params, slice, scratch, function);
      });
      begin = next;
    }
  }

  // Gate and up of a slice, in front of what multiplying them takes.
  static uint64_t scratch_bytes(const Call& call) {
    const auto& params = *static_cast<const GatedMatmulParams*>(call.params);
    const MatmulKernel& kernel = *kernel_of(call, 0);
    return 2 * sums_bytes(tiling_of(kernel, params.k, UINT32_MAX)) + kernel.scratch_bytes(params.k);
  }

  // Both weights in one format: their slices are the same then.
  template <uint32_t N>
  static bool find(const MatmulKernels (&known)[N], const KernelKey& request, Kernel& kernel) {
    if (request.weights[0] != request.weights[1]) return false;
    kernel = {slices, run, scratch_bytes};
    kernel.members[0] = find_matmul_kernel(known, request, 0);
    return kernel.members[0] != nullptr;
  }

 private:
  static uint64_t sums_bytes(const MatmulTiling& tiling) {
    return (sizeof(float) * tiling.rows * tiling.columns + 63) / 64 * 64;
  }

  template <class Function>
  static void run_slices(const Call& call, const GatedMatmulParams& params,
                         const MatmulSlice& slice, std::byte* scratch, const Function& function) {
    const MatmulKernel& kernel = *kernel_of(call, 0);
    const uint64_t bytes = sums_bytes(tiling_of(kernel, params.k, call.n_rows));
    auto* const gate = reinterpret_cast<float*>(scratch);
    auto* const up = reinterpret_cast<float*>(scratch + bytes);
    std::byte* const rest = scratch + 2 * bytes;
    // From results[0], the slice's first row and column, to the address that output [0, 0] would have.
    const uint64_t columns = slice.end - slice.begin;
    const uint64_t origin = slice.first_row * columns + slice.begin;
    const auto member = [&](uint32_t slot, float* sums) -> MatmulMember {
      return {call.operands[slot],
              nullptr,
              sums - origin,
              params.n,
              params.k,
              columns,
              call.kernel->l1_panel_bytes,
              false,
              more_planes_of(call, slot - 1)};
    };
    kernel.run(member(1, gate), call.operands[0], slice, rest);
    kernel.run(member(2, up), call.operands[0], slice, rest);
    for (uint32_t r = 0; r < slice.n_rows; ++r) {
      const float* const gates = gate + r * columns;
      const float* const ups = up + r * columns;
      const uint32_t begin = static_cast<uint32_t>(slice.begin);
      Activation::write(call.operands[3] + (slice.first_row + r) * Activation::row_bytes(params.n),
                        params.n, begin, static_cast<uint32_t>(slice.end),
                        [&](uint32_t i, uint32_t n) {
                          return Isa::multiply(function(Isa::load(gates + (i - begin), n)),
                                               Isa::load(ups + (i - begin), n));
                        });
    }
  }
};

}  // namespace akunu::cpu
