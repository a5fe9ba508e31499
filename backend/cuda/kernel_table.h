// Which kernels this device has beside those of every GPU (metal/kernel_table.h), which it takes where
// its own do not serve.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "metal/kernel.h"

namespace akunu::cuda {

struct KernelChoice {
  uint32_t block_bytes = 0;  // shared memory that a block may have on this GPU
  uint32_t multiprocessors = 0;
  // Weights are streamed for 1 to 16 rows (kernel_table_streamed.h).
  bool rows_are_streamed = false;
  // Matmuls and attention of prompts use wgmma (kernel_table_warpgroups.h).
  bool prompts_on_warpgroups = false;
};

// Whether an environment variable is set to `choice`, and not to "plain"; nothing where it is not set. Throws
// ArgumentError for any other value.
std::optional<bool> is_chosen(const char* variable, std::string_view choice);

// Whether weights are streamed for 1 to 16 rows: where the GPU has compute capability 9.0 or later (here 90) and kernels for
// it are among `architectures`, unless the environment variable AKUNU_CUDA_ROWS says "plain". Throws ArgumentError where it
// says "streamed" and that cannot be, or anything else.
bool rows_are_streamed(uint32_t capability, std::string_view architectures);

// (Launch::waits is for Metal: here every launch waits for the one before it.)
std::optional<metal::Kernel> find_kernel(const KernelRequest& request, const KernelChoice& choice);

}  // namespace akunu::cuda
