// The shape that most small operations share: a slice is one row.
#pragma once

#include "cpu/kernel.h"

namespace akunu::cpu {

// `Operation::row(call, params, row, scratch)` computes one row, given by its number in the step.
template <class Isa, class Params, class Operation>
struct RowsKernel {
  static uint64_t slices(const Call& call) { return call.n_rows; }
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    const auto& params = *static_cast<const Params*>(call.params);
    for (uint64_t slice = begin; slice < end; ++slice)
      Operation::row(call, params, call.first_row + slice, scratch);
  }
};

template <class T>
static inline T* operand(const Call& call, uint32_t slot, uint64_t row, uint64_t stride) {
  return reinterpret_cast<T*>(call.operands[slot]) + row * stride;
}

}  // namespace akunu::cpu
