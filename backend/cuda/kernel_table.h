// Which kernels this device has beside those of every GPU (metal/kernel_table.h), which it takes where
// its own do not serve.
#pragma once

#include <optional>
#include <string>

#include "metal/kernel.h"

namespace akunu::cuda {

// `block_bytes`: shared memory that a block may have on this GPU.
std::optional<metal::Kernel> find_kernel(const KernelRequest& request, uint32_t block_bytes);

}  // namespace akunu::cuda
