// attention and rope_attention: kernels/attention_split.h for the classes `single` and `few`,
// kernels/attention_tiled.metal for prompts.
#include <algorithm>
#include <string>

#include "metal/kernel_table.h"

namespace akunu::metal {
namespace {

// kernels/attention_split.h
constexpr uint32_t kConstantSplits = 3;
constexpr uint32_t kSplits = 32;     // of single rows and few
constexpr uint32_t kSimdgroups = 4;  // splits of a threadgroup
constexpr uint32_t kChunk = 8;       // query heads of a threadgroup
constexpr uint32_t kBlockPositions = 32;
constexpr uint32_t kMaxHeadDim = 512;
// A row's own keys beside its queries: more does not fit into 32 KB of threadgroup memory.
constexpr uint32_t kMaxHeadDimWithOwnKeys = 256;
constexpr uint32_t kDimsOfPart = 128;  // of a SIMD-group in a tile

// Dimensions that a lane owns: the fewest of 2, 4, 8 and 16 that make a head, up to 64, 128, 256 and 512.
uint32_t lane_dims(uint32_t head_dim) {
  uint32_t dims = 2;
  while (kSimdWidth * dims < head_dim) dims *= 2;
  return dims;
}

template <class Params>
Grid split_grid(const Scope& scope, uint32_t own_keys) {
  const auto& params = scope.get<Params>();
  Grid grid;
  const uint32_t chunks = divide_up(params.n_heads / params.n_kv_heads, kChunk);
  const uint32_t stride = round_up(params.head_dim, 4);
  grid.threadgroups = {kSplits / kSimdgroups, params.n_kv_heads * chunks, scope.n_rows};
  grid.threads = {kSimdWidth * kSimdgroups, 1, 1};
  grid.threadgroup_bytes = {
      4 * ((kChunk + own_keys) * stride + kSimdgroups * kChunk * kBlockPositions)};
  return grid;
}

template <class Params>
uint64_t split_workspace(const std::byte* bytes, uint32_t max_rows) {
  const auto& params = *reinterpret_cast<const Params*>(bytes);
  return uint64_t{4} * std::min(max_rows, kMaxFewRows) * params.n_heads * kSplits *
         (params.head_dim + 2);
}

template <class Params>
Grid combine_grid(const Scope& scope) {
  const auto& params = scope.get<Params>();
  const uint32_t threads = round_up(params.head_dim, kSimdWidth);
  return {.threadgroups = {params.n_heads, scope.n_rows, 1},
          .threads = {std::min(threads, 256u), 1, 1}};
}

// `has_own_keys`: the keys of a row's span lie in threadgroup memory, up to as many as there are
// rows, and few they are.
template <class Params>
Kernel split_attention(const std::string& name, const std::string& cache, uint32_t head_dim,
                       bool has_own_keys) {
  const std::vector<FunctionConstant> constants = {{kConstantSplits, kSplits, false}};
  Kernel kernel;
  kernel.launches.push_back({
      .function = name + "_" + cache + "_d" + std::to_string(lane_dims(head_dim)),
      .constants = constants,
      .grid =
          [=](const Scope& scope) {
            return split_grid<Params>(scope, has_own_keys ? scope.n_rows : 0);
          },
      .max_rows = kMaxFewRows,
  });
  kernel.launches.push_back({
      .function = name + "_combine",
      .constants = constants,
      .grid = combine_grid<Params>,
      .max_rows = kMaxFewRows,
  });
  kernel.workspace_bytes = split_workspace<Params>;
  return kernel;
}

// Tiles of 32 rows and positions, of 16 where a head has more dimensions than a SIMD-group takes, of 8 where
// two do not do; a tile belongs to one span, so there may be one per span that is not full.
Kernel tiled_attention(const std::string& cache, uint32_t head_dim) {
  const uint32_t parts = head_dim > 2 * kDimsOfPart ? 4 : head_dim > kDimsOfPart ? 2 : 1;
  Kernel kernel;
  kernel.launches.push_back({
      .function = "attention_tiled_" + cache + "_p" + std::to_string(parts),
      .constants = {},
      .grid =
          [=](const Scope& scope) {
            const auto& params = scope.get<AttentionParams>();
            Grid grid;
            const uint32_t tile = 32 / parts;
            const uint32_t stride = round_up(params.head_dim, 8) + 4;
            constexpr uint32_t kScratch = 64;  // floats per SIMD-group
            grid.threadgroups = {scope.n_rows / tile + scope.n_spans, params.n_heads, 1};
            grid.threads = {kSimdWidth * kSimdgroups, 1, 1};
            grid.threadgroup_bytes = {
                4 * (tile * stride + kSimdgroups * (8 * (tile + 4) + kScratch)), 16};
            return grid;
          },
  });
  return kernel;
}

uint32_t head_dim_of(const KernelRequest& request) {
  return request.operation != Operation::rope_attention
             ? request.params.get<AttentionParams>().head_dim
             : request.params.get<RopeAttentionParams>().head_dim;
}

}  // namespace

std::string unsupported_attention(const KernelRequest& request) {
  if (request.operation != Operation::attention && request.operation != Operation::sink_attention &&
      request.operation != Operation::rope_attention)
    return {};
  const uint32_t head_dim = head_dim_of(request);
  const uint32_t most =
      request.operation == Operation::rope_attention ? kMaxHeadDimWithOwnKeys : kMaxHeadDim;
  if (head_dim <= most) return {};
  return "head_dim is " + std::to_string(head_dim) + ", the most here is " + std::to_string(most);
}

std::optional<Kernel> find_attention_kernel(const KernelRequest& request) {
  if (!is_cache_format(request.cache)) return std::nullopt;
  const std::string cache(format_info(request.cache).name);
  const bool many = request.row_class == RowClass::many;
  switch (request.operation) {
    case Operation::attention:
    case Operation::sink_attention:  // one function: sinks are there where their slot is bound
      return many ? tiled_attention(cache, head_dim_of(request))
                  : split_attention<AttentionParams>("attention", cache, head_dim_of(request),
                                                     false);
    case Operation::rope_attention:
      // In blocks a row's own keys would have to be rounded together: they are written first (kernels/cache.h).
      if (many || format_info(request.cache).block_size > 1) return std::nullopt;
      return split_attention<RopeAttentionParams>("rope_attention", cache, head_dim_of(request),
                                                  true);
    default:
      return std::nullopt;
  }
}

}  // namespace akunu::metal
