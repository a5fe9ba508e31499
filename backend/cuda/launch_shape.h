// What a launch of the kernels for one row or few says of itself.
#pragma once

#include <cstdint>
#include <string>

#include "metal/kernel.h"
#include "metal/kernel_table.h"

namespace akunu::cuda {

// A function constant; 0 where the launch has none of this index.
uint32_t constant_of(const metal::Launch& launch, uint32_t index);

// In how many pieces of `outputs` weight rows the matrices of a launch fall. Of gate and up together half of the rows
// are of either.
uint32_t pieces_of(const KernelRequest& request, const metal::Launch& launch, uint32_t outputs);

// Length of an input row of the matmuls for one row or few, 0 of other operations.
uint32_t inputs_of(const KernelRequest& request);

// matvec.h: which members of a group in a pair of formats are in the second.
inline constexpr uint32_t kConstantSecond = 5;

}  // namespace akunu::cuda
