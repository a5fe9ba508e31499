// Which kernels this device has beside those of every GPU (metal/kernel_table.h), which it takes where
// its own do not serve.
#pragma once

#include <optional>
#include <string>

#include "metal/kernel.h"

namespace akunu::cuda {

std::optional<metal::Kernel> find_kernel(const KernelRequest& request);

}  // namespace akunu::cuda
