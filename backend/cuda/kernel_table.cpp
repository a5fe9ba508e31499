#include "cuda/kernel_table.h"

#include <algorithm>

#include "metal/kernel_table.h"

namespace akunu::cuda {
namespace {

using metal::divide_up;
using metal::Grid;
using metal::Kernel;
using metal::Scope;

// kernels/attention_rows.metal
constexpr uint32_t kThreads = 128;
constexpr uint32_t kSplits = 32;
constexpr uint32_t kConstantSplits = 3;
constexpr uint32_t kUnit = 64;
constexpr uint32_t kChunk = 8;                           // query heads of a block, at most
constexpr uint32_t kPartsPerQuery = 256, kRunning = 32;  // floats

// How many query heads the kernel has room for: the fewest of 1, 2, 4 and 8.
uint32_t queries_of(uint32_t per_kv_head) {
  uint32_t queries = 1;
  while (queries < std::min(per_kv_head, kChunk)) queries *= 2;
  return queries;
}

// The shared kernel of the operation, with another function for its first launch.
template <class Params>
std::optional<Kernel> attention_of_rows(const KernelRequest& request, const std::string& name,
                                        bool has_own_keys) {
  const auto params = request.params.get<Params>();
  std::optional<Kernel> kernel = metal::find_kernel(request);
  if (!kernel || params.head_dim % 8 != 0) return kernel;
  const uint32_t queries = queries_of(params.n_heads / params.n_kv_heads);
  metal::Launch& launch = kernel->launches.front();
  launch.function =
      name + "_" + std::string(format_info(request.cache).name) + "_q" + std::to_string(queries);
  launch.grid = [=](const Scope& scope) {
    const uint32_t chunks = divide_up(params.n_heads / params.n_kv_heads, kChunk);
    const uint32_t own_keys = has_own_keys ? scope.n_rows * params.head_dim : 0;
    return Grid{.threadgroups = {kSplits, params.n_kv_heads * chunks, scope.n_rows},
                .threads = {kThreads, 1, 1},
                .threadgroup_bytes = {4 * (queries * (params.head_dim + kUnit + kPartsPerQuery) +
                                           kRunning + own_keys)}};
  };
  return kernel;
}

}  // namespace

std::optional<Kernel> find_kernel(const KernelRequest& request) {
  if (request.row_class != RowClass::many) {
    if (request.operation == Operation::attention)
      return attention_of_rows<AttentionParams>(request, "attention_rows", false);
    if (request.operation == Operation::rope_attention)
      return attention_of_rows<RopeAttentionParams>(request, "rope_attention_rows", true);
  }
  return metal::find_kernel(request);
}

}  // namespace akunu::cuda
