// attention and rope_attention: kernels/attention_split.h for the classes `single` and `few`,
// kernels/attention_tiled.metal for prompts.
#include <algorithm>
#include <string>

#include "core/error.h"
#include "metal/kernel_table.h"

namespace akunu::metal {
namespace {

// kernels/attention_split.h
constexpr uint32_t kConstantSplits = 3;
constexpr uint32_t kSplits = 32;     // of single rows and few
constexpr uint32_t kSimdgroups = 4;  // splits of a threadgroup
constexpr uint32_t kChunk = 8;       // query heads of a threadgroup
constexpr uint32_t kBlockPositions = 32;
constexpr uint32_t kMaxHeadDim = 256;

// Dimensions that a lane owns, for heads up to 64, 128 and 256.
constexpr std::array kLaneDims = {2u, 4u, 8u};

bool takes_head_dim(uint32_t lane_dims, uint32_t head_dim) {
  const uint32_t most = kSimdWidth * lane_dims;
  const bool is_smallest = lane_dims == kLaneDims.front();
  return head_dim <= most && (is_smallest || head_dim > most / 2);
}

template <class Params>
Grid split_grid(const Scope& scope, uint32_t lane_dims, uint32_t own_keys) {
  const auto& params = scope.get<Params>();
  Grid grid;
  if (!takes_head_dim(lane_dims, params.head_dim)) {
    grid.threadgroups = {0, 0, 0};  // another launch's
    return grid;
  }
  const uint32_t chunks = divide_up(params.n_heads / params.n_kv_heads, kChunk);
  const uint32_t stride = round_up(params.head_dim, 4);
  grid.threadgroups = {kSplits / kSimdgroups, params.n_kv_heads * chunks, scope.n_rows};
  grid.threads = {kSimdWidth * kSimdgroups, 1, 1};
  grid.threadgroup_bytes = {
      4 * ((kChunk + own_keys) * stride + kSimdgroups * kChunk * kBlockPositions)};
  return grid;
}

void check_head_dim(uint32_t head_dim) {
  if (head_dim > kMaxHeadDim)
    throw UnsupportedModelError("attention on Metal takes heads of up to " +
                                std::to_string(kMaxHeadDim) + " dimensions; this model's have " +
                                std::to_string(head_dim));
}

template <class Params>
uint64_t split_workspace(const std::byte* bytes, uint32_t max_rows) {
  const auto& params = *reinterpret_cast<const Params*>(bytes);
  check_head_dim(params.head_dim);
  return uint64_t{4} * std::min(max_rows, kMaxFewRows) * params.n_heads * kSplits *
         (params.head_dim + 2);
}

template <class Params>
Grid combine_grid(const Scope& scope) {
  const auto& params = scope.get<Params>();
  const uint32_t threads = round_up(params.head_dim, kSimdWidth);
  return {.threadgroups = {params.n_heads, scope.n_rows, 1},
          .threads = {std::min(threads, kMaxHeadDim), 1, 1}};
}

// `has_own_keys`: the keys of a row's span lie in threadgroup memory, up to as many as there are
// rows, and few they are.
template <class Params>
Kernel split_attention(const std::string& name, const std::string& cache, bool has_own_keys) {
  const std::vector<FunctionConstant> constants = {{kConstantSplits, kSplits, false}};
  Kernel kernel;
  for (const uint32_t lane_dims : kLaneDims)
    kernel.launches.push_back({
        .function = name + "_" + cache + "_d" + std::to_string(lane_dims),
        .constants = constants,
        .grid =
            [=](const Scope& scope) {
              return split_grid<Params>(scope, lane_dims, has_own_keys ? scope.n_rows : 0);
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

// Tiles of 32 / parts rows and positions; a tile belongs to one span, so there may be one per span
// that is not full.
Kernel tiled_attention(const std::string& cache) {
  Kernel kernel;
  for (const uint32_t parts : {1u, 2u})
    kernel.launches.push_back({
        .function = "attention_tiled_" + cache + "_p" + std::to_string(parts),
        .constants = {},
        .grid =
            [=](const Scope& scope) {
              const auto& params = scope.get<AttentionParams>();
              Grid grid;
              if ((params.head_dim > kMaxHeadDim / 2) != (parts == 2)) {
                grid.threadgroups = {0, 0, 0};  // the other launch's
                return grid;
              }
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
  kernel.workspace_bytes = [](const std::byte* bytes, uint32_t) -> uint64_t {
    check_head_dim(reinterpret_cast<const AttentionParams*>(bytes)->head_dim);
    return 0;
  };
  return kernel;
}

}  // namespace

std::optional<Kernel> find_attention_kernel(const KernelRequest& request) {
  if (request.cache != Format::f16 && request.cache != Format::f32) return std::nullopt;
  const std::string cache(format_info(request.cache).name);
  const bool many = request.row_class == RowClass::many;
  switch (request.operation) {
    case Operation::attention:
      return many ? tiled_attention(cache)
                  : split_attention<AttentionParams>("attention", cache, false);
    case Operation::rope_attention:
      if (many) return std::nullopt;
      return split_attention<RopeAttentionParams>("rope_attention", cache, true);
    default:
      return std::nullopt;
  }
}

}  // namespace akunu::metal
