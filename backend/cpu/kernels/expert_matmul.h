// expert_matmul: out[r, s, j] = sum_k weight[e * n + j, k] * input[.., k] (+ bias[e * n + j]), e the
//                expert of routes[r, s]
//   0 input: activation [rows * n_inputs, k]   1 weight: [n_experts * n, k]
//   2 routes: ExpertRoute [rows, n_chosen]     3 bias: vector [n_experts * n], optional
//   4 out: rows [rows, n_chosen * n]           25 ExpertMatmulParams
//   slices: an expert x columns(k, rows) rows of its weight, all its input rows. Slices of one expert follow each
//           other
//
// 1. What it computes. A pair is a row and one of its experts. A slice looks up the pairs of its
//    expert, copies their input rows one behind the other and multiplies them by the matmul kernel
//    of the format, whose bits do not depend on which rows it is given together. So a row's bits
//    do not depend on whom it shares an expert with.
// 2. What bounds it. Few rows: memory. A chosen expert's weight is read once, others not at all.
//    Many rows: the multipliers.
// 3. What is done about it. With fewer pairs than experts slices are numbered by pairs, and the
//    first pair with an expert does it for all: so the slices of a generated row are all work, and
//    alike. With more they are numbered by experts; that some are longer, or empty, is evened out
//    by workers that take over slices. A single row is neither copied nor are its results.
#pragma once

#include "cpu/kernels/matmul.h"

namespace akunu::cpu {

template <class Isa>
struct ExpertMatmul {
  static uint64_t slices(const Call& call) {
    return groups(call) * column_parts(tiling(call), params_of(call).n);
  }
  static uint64_t at_once(const Call& call) { return kernel_of(call, 0)->at_once; }

  // The numbers of pairs, their input rows, their results, and what multiplying them takes.
  static uint64_t scratch_bytes(const Call& call) {
    return Scratch(call).total + kernel_of(call, 0)->scratch_bytes(params_of(call).k);
  }

  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    const MatmulTiling tiles = tiling(call);
    const uint32_t n = params_of(call).n;
    const uint64_t parts = column_parts(tiles, n);
    while (begin < end) {
      const uint64_t group = begin / parts, first = group * parts;
      const uint64_t last = end < first + parts ? end : first + parts;
      const uint64_t columns_end = (last - first) * tiles.columns;
      if (const uint32_t expert = expert_of(call, group); expert != kNone)
        multiply(call, expert, (begin - first) * tiles.columns, columns_end < n ? columns_end : n,
                 scratch);
      begin = last;
    }
  }

  // False where `known` has no kernel for the weight.
  template <uint32_t N>
  static bool find(const MatmulKernels (&known)[N], const KernelKey& request, Kernel& kernel) {
    kernel = {slices, run, scratch_bytes, at_once};
    kernel.members[0] = find_matmul_kernel(known, request, 0);
    return kernel.members[0] != nullptr;
  }

 private:
  static const ExpertMatmulParams& params_of(const Call& call) {
    return *static_cast<const ExpertMatmulParams*>(call.params);
  }
  static MatmulTiling tiling(const Call& call) {
    return tiling_of(*kernel_of(call, 0), params_of(call).k, call.n_rows);
  }
  static uint64_t n_pairs(const Call& call) {
    return uint64_t{call.n_rows} * params_of(call).n_chosen;
  }
  // Of the rows at hand, from the first one on.
  static const ExpertRoute* routes_of(const Call& call) {
    return reinterpret_cast<const ExpertRoute*>(call.operands[2]) +
           uint64_t{call.first_row} * params_of(call).n_chosen;
  }

  // Slices go by pairs, or by experts where there are fewer of them.
  static uint64_t groups(const Call& call) {
    const uint64_t pairs = n_pairs(call), experts = params_of(call).n_experts;
    return pairs < experts ? pairs : experts;
  }
  // kNone: a group before it has the expert.
  static uint32_t expert_of(const Call& call, uint64_t group) {
    if (n_pairs(call) > params_of(call).n_experts) return static_cast<uint32_t>(group);
    const ExpertRoute* const routes = routes_of(call);
    for (uint64_t before = 0; before < group; ++before)
      if (routes[before].expert == routes[group].expert) return kNone;
    return routes[group].expert;
  }

  struct Scratch {
    explicit Scratch(const Call& call) {
      const MatmulKernel& kernel = *kernel_of(call, 0);
      const uint32_t k = params_of(call).k;
      const uint64_t columns = uint64_t{kernel.columns(k, UINT32_MAX)} * kernel.at_once;
      pairs = rounded(sizeof(uint64_t) * kernel.rows);
      inputs = rounded(kernel.input_row_bytes(k) * kernel.rows);
      results = rounded(sizeof(float) * columns * kernel.rows);
      total = pairs + inputs + results;
    }
    uint64_t pairs, inputs, results, total;  // bytes

   private:
    static uint64_t rounded(uint64_t bytes) { return (bytes + 63) / 64 * 64; }
  };

  static const std::byte* input_of(const Call& call, uint64_t pair, uint64_t stride) {
    const ExpertMatmulParams& params = params_of(call);
    const uint64_t row = params.n_inputs == 1 ? call.first_row + pair / params.n_chosen
                                              : uint64_t{call.first_row} * params.n_chosen + pair;
    return call.operands[0] + row * stride;
  }

  // Columns [begin, end) of an expert, for all of its rows.
  static void multiply(const Call& call, uint32_t expert, uint64_t begin, uint64_t end,
                       std::byte* scratch) {
    const ExpertMatmulParams& params = params_of(call);
    const MatmulKernel& kernel = *kernel_of(call, 0);
    const MatmulTiling tiles = tiling(call);
    const Scratch room(call);
    auto* const pairs = reinterpret_cast<uint64_t*>(scratch);
    std::byte* const gathered = scratch + room.pairs;
    auto* const results = reinterpret_cast<float*>(scratch + room.pairs + room.inputs);
    const uint64_t stride = kernel.input_row_bytes(params.k);
    const uint64_t first_column = uint64_t{expert} * params.n, step = tiles.columns * tiles.at_once;
    float* const out = reinterpret_cast<float*>(call.operands[4]) +
                       uint64_t{call.first_row} * params.n_chosen * params.n;
    const ExpertRoute* const routes = routes_of(call);

    MatmulMember member{call.operands[1],
                        reinterpret_cast<const float*>(call.operands[3]),
                        nullptr,
                        params.n_experts * params.n,
                        params.k,
                        0,
                        call.kernel->l1_panel_bytes,
                        false,
                        more_planes_of(call, 0)};
    for (uint64_t next = 0, count = n_pairs(call); next < count;) {
      uint32_t n = 0;
      for (; next < count && n < kernel.rows; ++next)
        if (routes[next].expert == expert) pairs[n++] = next;
      if (n == 0) return;
      const std::byte* inputs = input_of(call, pairs[0], stride);
      if (n > 1) {
        for (uint32_t r = 0; r < n; ++r)
          __builtin_memcpy(gathered + r * stride, input_of(call, pairs[r], stride), stride);
        inputs = gathered;
      }
      for (uint64_t j = begin; j < end; j += step) {
        const uint64_t width = end - j < step ? end - j : step;
        const MatmulSlice slice{0, n, first_column + j, first_column + j + width};
        member.stride = n == 1 ? 0 : width;
        member.out = n == 1 ? out + pairs[0] * params.n - first_column : results - slice.begin;
        if (j == begin) kernel.prefetch(member, slice);
        kernel.run(member, inputs, slice, scratch + room.total);
        for (uint32_t r = 0; n > 1 && r < n; ++r)
          __builtin_memcpy(out + pairs[r] * params.n + j, results + r * width,
                           sizeof(float) * width);
      }
    }
  }
};

}  // namespace akunu::cpu
