// Which kernels this device has beside those of every GPU (metal/kernel_table.h), which it takes where
// its own do not serve.
#pragma once

#include <optional>
#include <string>

#include "metal/kernel.h"

namespace akunu::cuda {

struct KernelChoice {
  uint32_t block_bytes = 0;  // shared memory that a block may have on this GPU
  // Large weights times 1 to 16 rows use tensor cores (kernels/tensor_rows.h).
  bool rows_on_tensor = false;
  // Matmuls and attention of prompts use wgmma (kernel_table_warpgroups.h).
  bool prompts_on_warpgroups = false;
};

// Whether an environment variable is set to `choice`, and not to "plain"; nothing where it is not set. Throws
// ArgumentError for any other value.
std::optional<bool> is_chosen(const char* variable, std::string_view choice);

// Reads the environment variable AKUNU_CUDA_ROWS: "tensor", the default, or "plain". Throws ArgumentError for any
// other value.
bool rows_on_tensor_cores();

// (Launch::waits is for Metal: here every launch waits for the one before it.)
std::optional<metal::Kernel> find_kernel(const KernelRequest& request, const KernelChoice& choice);

}  // namespace akunu::cuda
