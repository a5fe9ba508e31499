// add: data += other                   0 data, 1 other: rows [rows, n]          25 AddParams
// add_bias: data[r, j] += bias[j]      0 data: rows, 1 bias: vector [n]         25 BiasParams
// gather_head: out[head_row] = input[r] for rows with a head row
//                                      0 input: rows, 1 out: head_rows [., dim] 25 GatherParams
//   slices: one row   limit: latency; the row is in the second cache
#include "cpu/isa/isa.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa>
struct Add {
  static void row(const Call& call, const AddParams& params, uint64_t r, std::byte*) {
    float* data = operand<float>(call, 0, r, params.n);
    const float* other = operand<const float>(call, 1, r, params.n);
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

using AddRows = RowsKernel<ThisIsa, AddParams, Add<ThisIsa>>;
using AddBiasRows = RowsKernel<ThisIsa, BiasParams, AddBias<ThisIsa>>;
using GatherRows = RowsKernel<ThisIsa, GatherParams, GatherHead<ThisIsa>>;

constexpr KernelEntry kElementwiseEntries[] = {
    {{Operation::add}, {AddRows::slices, AddRows::run, nullptr}},
    {{Operation::add_bias}, {AddBiasRows::slices, AddBiasRows::run, nullptr}},
    {{Operation::gather_head}, {GatherRows::slices, GatherRows::run, nullptr}},
};

}  // namespace

template <>
KernelList Families<ThisIsa>::elementwise() {
  return list_of(kElementwiseEntries);
}

}  // namespace akunu::cpu
