// matmul:       out[r, j] = sum_k weight[j, k] * input[r, k]
//   0 input: activation [rows, k]   1 weight: [n, k]   2 out: rows [rows, n]   25 MatmulParams
// matmul_add:   the same, added to 2 data
// matmul_group: up to three matmuls of one activation, each with its bias where one is bound
//   0 input   1-3 weights   4-6 biases: vector [n]   7-9 out   25 MatmulGroupParams
//   slices: kSliceBytes of weight (whole column tiles) x kSliceRows rows; the rows of one part of the
//           weight follow each other, so that a worker finds it in its second cache
//   limit:  rows <= 16: memory, the weight is read once; many rows: the multipliers
//
// The tile and the order of a sum are in matmul_tile.h; formats.h has what a format adds.
#pragma once

#include "cpu/kernel.h"
#include "cpu/kernels/matmul_tile.h"

namespace akunu::cpu {

constexpr uint64_t kSliceBytes = 96 * 1024;  // a few microseconds of reading, and well inside L2
constexpr uint32_t kSliceRows = 64;
constexpr uint32_t kColumnStep = 12;  // every tile's number of columns divides it

// One weight of a command.
struct MatmulMember {
  const std::byte* weight;
  const float* bias;  // null: none
  float* out;
  uint32_t n;
};

template <class Isa, class Format>
struct MatmulSlices {
  static uint32_t columns(uint32_t k) {
    const uint64_t fit = kSliceBytes / (Format::row_bytes(k) + 1) / kColumnStep * kColumnStep;
    return static_cast<uint32_t>(fit < kColumnStep ? kColumnStep : fit > 192 ? 192 : fit);
  }
  static uint64_t row_parts(uint32_t n_rows) { return (n_rows + kSliceRows - 1) / kSliceRows; }
  static uint64_t count(uint32_t n, uint32_t k, uint32_t n_rows) {
    return (n + uint64_t{columns(k)} - 1) / columns(k) * row_parts(n_rows);
  }

  template <bool kAdd>
  static void run(const Call& call, const MatmulMember& member, uint32_t k, uint64_t slice) {
    using Input = typename Format::Input;
    const uint64_t parts = row_parts(call.n_rows);
    const uint32_t n = member.n;
    const uint64_t begin = slice / parts * columns(k);
    const uint64_t end = begin + columns(k) < n ? begin + columns(k) : n;
    const uint32_t part = static_cast<uint32_t>(slice % parts) * kSliceRows;
    const uint32_t left = call.n_rows - part;
    const uint32_t n_inputs = left < kSliceRows ? left : kSliceRows;
    const uint64_t first_row = uint64_t{call.first_row} + part;

    typename Input::Row inputs[kSliceRows];
    for (uint32_t r = 0; r < n_inputs; ++r)
      inputs[r] = Input::row(call.operands[0] + (first_row + r) * Input::row_bytes(k), k);
    float* out = member.out + first_row * n;
    const float* bias = member.bias;
    multiply_panel<Isa, Format>(inputs, n_inputs, member.weight, Format::row_bytes(k),
                                static_cast<uint32_t>(begin), static_cast<uint32_t>(end), k,
                                [&](uint32_t r, uint32_t j, float sum) {
                                  float& result = out[uint64_t{r} * n + j];
                                  if constexpr (kAdd)
                                    result = result + sum;
                                  else
                                    result = bias == nullptr ? sum : sum + bias[j];
                                });
  }
};

template <class Isa, class Format, bool kAdd>
struct MatmulKernel {
  using Slices = MatmulSlices<Isa, Format>;

  static uint64_t slices(const Call& call) {
    const auto& params = *static_cast<const MatmulParams*>(call.params);
    return Slices::count(params.n, params.k, call.n_rows);
  }
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
    const auto& params = *static_cast<const MatmulParams*>(call.params);
    const MatmulMember member{call.operands[1], nullptr, reinterpret_cast<float*>(call.operands[2]),
                              params.n};
    for (uint64_t slice = begin; slice < end; ++slice)
      Slices::template run<kAdd>(call, member, params.k, slice);
  }
  static constexpr Kernel kernel() { return {slices, run, nullptr}; }
};

// Stands for a member that the group doesn't have.
struct Absent {};

template <class Isa, class Format0, class Format1, class Format2>
struct MatmulGroupKernel {
  static uint64_t slices(const Call& call) {
    const auto& params = *static_cast<const MatmulGroupParams*>(call.params);
    return count<Format0>(call, params, 0) + count<Format1>(call, params, 1) +
           count<Format2>(call, params, 2);
  }
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
    const auto& params = *static_cast<const MatmulGroupParams*>(call.params);
    for (uint64_t slice = begin; slice < end; ++slice) {
      uint64_t rest = slice;
      if (run_member<Format0>(call, params, 0, rest)) continue;
      if (run_member<Format1>(call, params, 1, rest)) continue;
      run_member<Format2>(call, params, 2, rest);
    }
  }
  static constexpr Kernel kernel() { return {slices, run, nullptr}; }

 private:
  template <class Format>
  static uint64_t count(const Call& call, const MatmulGroupParams& params, uint32_t i) {
    if constexpr (__is_same(Format, Absent))
      return 0;
    else
      return MatmulSlices<Isa, Format>::count(params.n[i], params.k, call.n_rows);
  }
  // Runs slice `slice` of member i, or counts the member's slices off it.
  template <class Format>
  static bool run_member(const Call& call, const MatmulGroupParams& params, uint32_t i,
                         uint64_t& slice) {
    if constexpr (!__is_same(Format, Absent)) {
      const uint64_t own = count<Format>(call, params, i);
      if (slice < own) {
        const MatmulMember member{call.operands[1 + i],
                                  reinterpret_cast<const float*>(call.operands[4 + i]),
                                  reinterpret_cast<float*>(call.operands[7 + i]), params.n[i]};
        MatmulSlices<Isa, Format>::template run<false>(call, member, params.k, slice);
        return true;
      }
      slice -= own;
    }
    return false;
  }
};

}  // namespace akunu::cpu
