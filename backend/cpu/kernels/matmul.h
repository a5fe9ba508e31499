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
#include "cpu/kernels/panel.h"

namespace akunu::cpu {

constexpr uint64_t kSliceBytes = 96 * 1024;  // a few microseconds of reading, and well inside L2
constexpr uint32_t kMaxSliceColumns = 192;
constexpr uint32_t kSliceRows = 64;

// One weight of a command.
struct MatmulMember {
  const std::byte* weight;
  const float* bias;  // null: none
  float* out;
  uint32_t n, k;
};

// Where the results of input row r, columns from j on, go.
template <bool kAdd>
static inline void put(const MatmulMember& member, uint64_t row, uint64_t j, const float* sums,
                       uint32_t n) {
  float* out = member.out + row * member.n + j;
  for (uint32_t i = 0; i < n; ++i) {
    if constexpr (kAdd)
      out[i] = out[i] + sums[i];
    else
      out[i] = member.bias == nullptr ? sums[i] : sums[i] + member.bias[j + i];
  }
}

// How a weight of floats is multiplied: tiles of input rows x weight rows, lanes along k.
template <class Isa, class Format, class Input = typename Format::Input>
struct Multiply {
  static constexpr uint32_t kColumnStep = 12;  // every tile's number of columns divides it
  static constexpr uint64_t scratch_bytes(uint32_t) { return 0; }

  template <bool kAdd>
  static void run(const MatmulMember& member, const std::byte* input, uint64_t first_row,
                  uint32_t n_inputs, uint64_t begin, uint64_t end, std::byte*) {
    typename Input::Row inputs[kSliceRows];
    const uint64_t stride = Input::row_bytes(member.k);
    for (uint32_t r = 0; r < n_inputs; ++r)
      inputs[r] = Input::row(input + (first_row + r) * stride, member.k);
    multiply_panel<Isa, Format>(
        inputs, n_inputs, member.weight, Format::row_bytes(member.k), static_cast<uint32_t>(begin),
        static_cast<uint32_t>(end), member.k,
        [&](uint32_t r, uint32_t j, float sum) { put<kAdd>(member, first_row + r, j, &sum, 1); });
  }
};

// How a quantised weight is: panels of columns, see panel.h.
template <class Isa, class Format>
struct Multiply<Isa, Format, QuantInput<Isa>> {
  using Columns = typename Isa::Columns;
  static constexpr uint32_t kColumnStep = Columns::kCount;
  // An unpacked panel, or a weight with fewer rows than a panel.
  static constexpr uint64_t scratch_bytes(uint32_t k) {
    return panel_room<Isa, Format>(k) + kColumnStep * Format::row_bytes(k);
  }

  // What `put` does, for a whole panel.
  template <bool kAdd>
  static void put_panel(const MatmulMember& member, uint64_t row, uint64_t j,
                        typename Columns::Floats sums) {
    float* out = member.out + row * member.n + j;
    if constexpr (kAdd)
      sums = Columns::add(Columns::load(out), sums);
    else if (member.bias != nullptr)
      sums = Columns::add(sums, Columns::load(member.bias + j));
    Columns::store(out, sums);
  }

  template <bool kAdd>
  static void run(const MatmulMember& member, const std::byte* input, uint64_t first_row,
                  uint32_t n_inputs, uint64_t begin, uint64_t end, std::byte* scratch) {
    const uint64_t row_bytes = Format::row_bytes(member.k),
                   stride = QuantInput<Isa>::row_bytes(member.k);
    const InputRows inputs{input + first_row * stride, stride, member.k};
    Panel panel{member.weight, row_bytes};
    if (member.n < kColumnStep) {
      std::byte* copy = scratch + panel_room<Isa, Format>(member.k);
      __builtin_memset(copy, 0, kColumnStep * row_bytes);
      __builtin_memcpy(copy, member.weight, member.n * row_bytes);
      panel.first = copy;
    }
    for (uint64_t j = begin; j < end; j += kColumnStep) {
      // The last panel begins early enough to be a whole one.
      const uint64_t whole = member.n < kColumnStep ? 0 : member.n - kColumnStep;
      const uint64_t from = j < whole ? j : whole;
      const uint32_t skipped = static_cast<uint32_t>(j - from);
      const uint32_t n = end - j < kColumnStep ? static_cast<uint32_t>(end - j) : kColumnStep;
      const Panel here{panel.first + from * row_bytes, row_bytes};
      multiply_panel_columns<Isa, Format>(
          inputs, n_inputs, here, scratch, [&](uint32_t r, typename Columns::Floats sums) {
            if (n == kColumnStep) return put_panel<kAdd>(member, first_row + r, j, sums);
            float lanes[kColumnStep];
            Columns::store(lanes, sums);
            put<kAdd>(member, first_row + r, j, lanes + skipped, n);
          });
    }
  }
};

// A weight's work, cut into slices.
template <class Isa, class Format>
struct MatmulSlices {
  using Way = Multiply<Isa, Format>;

  static uint32_t columns(uint32_t k) {
    constexpr uint32_t kStep = Way::kColumnStep;
    const uint64_t fit = kSliceBytes / (Format::row_bytes(k) + 1) / kStep * kStep;
    return static_cast<uint32_t>(fit < kStep              ? kStep
                                 : fit > kMaxSliceColumns ? kMaxSliceColumns
                                                          : fit);
  }
  static uint64_t row_parts(uint32_t n_rows) { return (n_rows + kSliceRows - 1) / kSliceRows; }
  static uint64_t count(uint32_t n, uint32_t k, uint32_t n_rows) {
    return (n + uint64_t{columns(k)} - 1) / columns(k) * row_parts(n_rows);
  }

  template <bool kAdd>
  static void run(const Call& call, const MatmulMember& member, uint64_t slice,
                  std::byte* scratch) {
    const uint64_t parts = row_parts(call.n_rows), width = columns(member.k);
    const uint64_t begin = slice / parts * width;
    const uint64_t end = begin + width < member.n ? begin + width : member.n;
    const uint32_t part = static_cast<uint32_t>(slice % parts) * kSliceRows;
    const uint32_t left = call.n_rows - part;
    Way::template run<kAdd>(member, call.operands[0], uint64_t{call.first_row} + part,
                            left < kSliceRows ? left : kSliceRows, begin, end, scratch);
  }
};

template <class Isa, class Format, bool kAdd>
struct MatmulKernel {
  using Slices = MatmulSlices<Isa, Format>;

  static uint64_t slices(const Call& call) {
    const auto& params = *static_cast<const MatmulParams*>(call.params);
    return Slices::count(params.n, params.k, call.n_rows);
  }
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    const auto& params = *static_cast<const MatmulParams*>(call.params);
    const MatmulMember member{call.operands[1], nullptr, reinterpret_cast<float*>(call.operands[2]),
                              params.n, params.k};
    for (uint64_t slice = begin; slice < end; ++slice)
      Slices::template run<kAdd>(call, member, slice, scratch);
  }
  static uint64_t scratch_bytes(const Call& call) {
    return Slices::Way::scratch_bytes(static_cast<const MatmulParams*>(call.params)->k);
  }
  static constexpr Kernel kernel() { return {slices, run, scratch_bytes}; }
};

// What matmul_group asks of a member's format; a Kernel's `members` point to these.
struct GroupMember {
  uint64_t (*count)(uint32_t n, uint32_t k, uint32_t n_rows);
  void (*run)(const Call& call, const MatmulMember& member, uint64_t slice, std::byte* scratch);
  uint64_t (*scratch_bytes)(uint32_t k);
};

template <class Isa, class Format>
static constexpr GroupMember group_member() {
  using Slices = MatmulSlices<Isa, Format>;
  return {Slices::count, Slices::template run<false>, Slices::Way::scratch_bytes};
}

}  // namespace akunu::cpu
