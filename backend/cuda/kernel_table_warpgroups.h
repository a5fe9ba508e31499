// Which matmuls and which attention of prompts run on wgmma (kernels/warpgroup_tile.cuh, kernels/warpgroup_attention.cuh).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "metal/kernel.h"

namespace akunu::cuda {

// Whether prompts run on them: where the GPU has compute capability 9.0 (here 90) and kernels for it are among
// `architectures`, unless the environment variable AKUNU_CUDA_PROMPTS says "plain". Throws ArgumentError where it says
// "warpgroups" and that cannot be, or anything else.
bool prompts_on_warpgroups(uint32_t capability, std::string_view architectures);

// Which launches of a kernel were replaced by ones on wgmma.
struct OnWarpgroups {
  bool is_any = false;
  bool is_all = false;
  std::array<bool, 2> rounds = {};  // the input is needed in f16; as pairs of bfloat16 numbers

  // Bytes of the workspace for the rounded inputs of this many rows.
  uint64_t workspace_bytes(uint32_t n_rows, uint32_t k) const;
};
// Replaces the launches of gemm and gemm_group whose shapes have a wgmma kernel, and adds launches before them that
// round the input. The launches that stay find their split input at the beginning of the workspace, before the rounded
// one.
OnWarpgroups put_on_warpgroups(const KernelRequest& request, uint32_t k, metal::Kernel& kernel);

// Replaces the launch of attention where its shape has a wgmma kernel: heads of 64 or 128 dimensions, a cache in F16, no
// soft cap, a positive scale. Returns whether it has.
bool put_attention_on_warpgroups(const KernelRequest& request, metal::Kernel& kernel);

}  // namespace akunu::cuda
