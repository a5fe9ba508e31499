// add: data[r, t, j] += other[r, j]    0 data: rows [rows, n_times, n], 1 other: rows [rows, n]
//                                                                               25 AddParams
// add_bias: data[r, j] += bias[j]      0 data: rows, 1 bias: vector [n]         25 BiasParams
// gather_head: out[head_row] = input[r] for rows with a head row
//                                      0 input: rows, 1 out: head_rows [., dim] 25 GatherParams
// soft_cap: data = cap * tanh(data / cap)
//                                      0 data: rows [rows, n]                   25 SoftCapParams
// scale: data = data * factor          0 data: rows [rows, n]                   25 ScaleParams
// split_heads: each head of the input has 2 * head_dim numbers: the first half goes to out, the second to rest
//                                      0 input: rows [rows, n_heads, 2 * head_dim]
//                                      1 out, 2 rest: rows [rows, n_heads, head_dim]
//                                                                               25 SplitHeadsParams
//   slices: one row; for soft_cap and scale kPiece numbers of a row, since rows of logits are long
//   limit: latency; the row is in L2
#include "cpu/isa/isa.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa>
struct Add {
  static void row(const Call& call, const AddParams& params, uint64_t r, std::byte*) {
    const uint32_t n_times = params.n_times > 1 ? params.n_times : 1;
    float* data = operand<float>(call, 0, r, uint64_t{n_times} * params.n);
    const float* other = operand<const float>(call, 1, r, params.n);
    for (uint32_t time = 0; time < n_times; ++time, data += params.n)
      for (uint32_t i = 0; i < params.n; ++i) data[i] = data[i] + other[i];
  }
};

template <class Isa>
struct AddBias {
  static void row(const Call& call, const BiasParams& params, uint64_t r, std::byte*) {
    float* data = operand<float>(call, 0, r, params.n);
    const float* bias = operand<const float>(call, 1, 0, 0);
    for (uint32_t i = 0; i < params.n; ++i) data[i] = data[i] + bias[i];
  }
};

template <class Isa>
struct GatherHead {
  static void row(const Call& call, const GatherParams& params, uint64_t r, std::byte*) {
    const uint32_t head_row = call.rows[r].head_row;
    if (head_row == kNone) return;
    __builtin_memcpy(operand<float>(call, 1, head_row, params.dim),
                     operand<const float>(call, 0, r, params.dim), uint64_t{4} * params.dim);
  }
};

template <class Isa>
struct SplitHeads {
  static void row(const Call& call, const SplitHeadsParams& params, uint64_t r, std::byte*) {
    const uint64_t dim = params.head_dim, n = params.n_heads * dim;
    const float* input = operand<const float>(call, 0, r, 2 * n);
    float* out = operand<float>(call, 1, r, n);
    float* rest = operand<float>(call, 2, r, n);
    for (uint32_t head = 0; head < params.n_heads; ++head, input += 2 * dim) {
      __builtin_memcpy(out + head * dim, input, sizeof(float) * dim);
      __builtin_memcpy(rest + head * dim, input + dim, sizeof(float) * dim);
    }
  }
};

template <class Isa>
struct JoinRows {
  static void row(const Call& call, const JoinRowsParams& params, uint64_t r, std::byte*) {
    const uint64_t lengths[] = {params.n_first, params.n_second, params.n_third};
    float* out = operand<float>(call, 3, r, lengths[0] + lengths[1] + lengths[2]);
    for (uint32_t i = 0; i < 3; out += lengths[i], ++i)
      if (lengths[i] > 0)  // the third may be absent
        __builtin_memcpy(out, operand<const float>(call, i, r, lengths[i]),
                         sizeof(float) * lengths[i]);
  }
};

// Applies `Function` to the numbers of rows in place, kPiece of them in a slice.
template <class Isa, class Params, class Function>
struct InPieces {
  static constexpr uint32_t kPiece = 4096;

  static uint64_t slices(const Call& call) { return call.n_rows * pieces(call); }
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
    const auto& params = *static_cast<const Params*>(call.params);
    const auto by = Isa::broadcast(Function::number(params));
    for (uint64_t slice = begin; slice < end; ++slice) {
      float* data = operand<float>(call, 0, call.first_row + slice / pieces(call), params.n);
      uint32_t i = static_cast<uint32_t>(slice % pieces(call)) * kPiece;
      const uint32_t last = params.n - i < kPiece ? params.n : i + kPiece;
      for (; i + Isa::kLanes <= last; i += Isa::kLanes)
        Isa::store(data + i, Function::of(Isa::load(data + i), by));
      if (i < last) Isa::store(data + i, Function::of(Isa::load(data + i, last - i), by), last - i);
    }
  }

 private:
  static uint64_t pieces(const Call& call) {
    return (uint64_t{static_cast<const Params*>(call.params)->n} + kPiece - 1) / kPiece;
  }
};

template <class Isa>
struct SoftCap {
  static float number(const SoftCapParams& params) { return params.cap; }
  static typename Isa::Vector of(typename Isa::Vector v, typename Isa::Vector cap) {
    return Isa::multiply(cap, tanh<Isa>(Isa::divide(v, cap)));
  }
};

template <class Isa>
struct Scale {
  static float number(const ScaleParams& params) { return params.factor; }
  static typename Isa::Vector of(typename Isa::Vector v, typename Isa::Vector factor) {
    return Isa::multiply(v, factor);
  }
};

using AddRows = RowsKernel<ThisIsa, AddParams, Add<ThisIsa>>;
using AddBiasRows = RowsKernel<ThisIsa, BiasParams, AddBias<ThisIsa>>;
using GatherRows = RowsKernel<ThisIsa, GatherParams, GatherHead<ThisIsa>>;
using SplitRows = RowsKernel<ThisIsa, SplitHeadsParams, SplitHeads<ThisIsa>>;
using JoinedRows = RowsKernel<ThisIsa, JoinRowsParams, JoinRows<ThisIsa>>;
using SoftCapPieces = InPieces<ThisIsa, SoftCapParams, SoftCap<ThisIsa>>;
using ScalePieces = InPieces<ThisIsa, ScaleParams, Scale<ThisIsa>>;

constexpr KernelEntry kElementwiseEntries[] = {
    {{Operation::add}, {AddRows::slices, AddRows::run, nullptr}},
    {{Operation::add_bias}, {AddBiasRows::slices, AddBiasRows::run, nullptr}},
    {{Operation::gather_head}, {GatherRows::slices, GatherRows::run, nullptr}},
    {{Operation::split_heads}, {SplitRows::slices, SplitRows::run, nullptr}},
    {{Operation::join_rows}, {JoinedRows::slices, JoinedRows::run, nullptr}},
    {{Operation::soft_cap}, {SoftCapPieces::slices, SoftCapPieces::run, nullptr}},
    {{Operation::scale}, {ScalePieces::slices, ScalePieces::run, nullptr}},
};

}  // namespace

template <>
KernelList Families<ThisIsa>::elementwise() {
  return list_of(kElementwiseEntries);
}

}  // namespace akunu::cpu
