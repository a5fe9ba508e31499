#include "cuda/kernel_table_warpgroups.h"

#include <optional>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/kernel_params.h"
#include "cuda/kernel_table.h"
#include "metal/kernel_table.h"

namespace akunu::cuda {
namespace {

using metal::divide_up;
using metal::Grid;
using metal::Launch;
using metal::round_up;
using metal::Scope;

// kernels/warpgroup_tile.cuh
constexpr uint32_t kWeightRows = 128, kPaddedRows = 128;
constexpr uint32_t kSlab = 64;
constexpr uint32_t kTileThreads = 384, kRoundThreads = 256, kSharedBytes = 231424;
constexpr uint32_t kConstantBehind = 7, kBehindSplit = 1, kBehindHalves = 2;
constexpr uint32_t kCapability = 90;
constexpr std::string_view kArchitecture = "sm_90a";

// The formats that have these kernels; `multiple`: what k is a multiple of; `parts`: how many numbers of 16 bits stand for an input
// number; the fewest input rows of a tile.
struct Served {
  Format format;
  uint32_t multiple, parts, fewest_rows;
};
constexpr Served kServed[] = {
    {Format::q4_0, 256, 1, 32}, {Format::q4_1, 256, 1, 32}, {Format::q5_0, 256, 1, 32},
    {Format::q5_1, 256, 1, 32}, {Format::q8_0, 256, 1, 32}, {Format::q3_k, 256, 1, 32},
    {Format::q4_k, 256, 1, 32}, {Format::q5_k, 256, 1, 32}, {Format::q6_k, 256, 1, 32},
    {Format::f16, 64, 1, 128},  {Format::bf16, 64, 2, 128}};

// Multiprocessors of the GPUs that these kernels run on (H100 and H200), and the time of a tile by its input rows, relative to one of
// 128: measured on an H200 with the shapes of Llama-3.1-8B in Q4_0. (A tile of 256 rows, which left no registers for the warps that
// copy, took 2.2.)
constexpr uint32_t kMultiprocessors = 132;
struct TileSize {
  uint32_t rows;
  double cost;
};
constexpr TileSize kTileSizes[] = {{32, 0.46}, {64, 0.6}, {128, 1}};
// With more rows than this a tile has kMostTileRows.
constexpr uint32_t kManyRows = 512, kMostTileRows = 128, kRowStep = 32;

struct TileKernel {
  std::string name;
  uint32_t parts = 1;
  uint32_t fewest_rows = 0;
};
std::optional<TileKernel> function_for(const Launch& launch, uint32_t k) {
  for (const Served& served : kServed) {
    if (k == 0 || k % served.multiple != 0) continue;
    const std::string format(format_info(served.format).name);
    for (const std::string group : {"", "_group"})
      if (launch.function == "gemm" + group + "_" + format)
        return TileKernel{"warpgroup_matmul" + group + "_" + format, served.parts,
                          served.fewest_rows};
  }
  return std::nullopt;
}

uint32_t column_tiles(const KernelRequest& request, const Launch& launch) {
  if (request.operation != Operation::matmul_group)
    return divide_up(request.params.get<MatmulParams>().n, kWeightRows);
  uint32_t tiles = 0;
  for (const metal::FunctionConstant& constant : launch.constants)
    if (constant.index == metal::kConstantMembers)
      for (uint32_t m = 0; m < kMaxGroup; ++m)
        if (constant.value >> m & 1u)
          tiles += divide_up(request.params.get<MatmulGroupParams>().n[m], kWeightRows);
  return tiles;
}

// The input rows of the tiles that take the least time in all.
uint32_t tile_rows(const TileKernel& function, uint32_t columns, uint32_t n_rows) {
  if (n_rows > kManyRows) return kMostTileRows;
  uint32_t best = 0;
  double least = 0;
  for (const TileSize& size : kTileSizes) {
    if (size.rows < function.fewest_rows) continue;
    const double time =
        size.cost * divide_up(columns * divide_up(n_rows, size.rows), kMultiprocessors);
    if (best == 0 || time < least) best = size.rows, least = time;
  }
  return best;
}

// One launch for each range of rows with tiles of one size.
void add_launches(const Launch& launch, const TileKernel& function, uint32_t columns,
                  uint32_t behind, std::vector<Launch>& launches) {
  uint32_t first = 1;
  while (first != 0) {
    const uint32_t rows = tile_rows(function, columns, first);
    uint32_t last = round_up(first, kRowStep);
    while (last <= kManyRows && tile_rows(function, columns, last + 1) == rows) last += kRowStep;
    Launch& own = launches.emplace_back(launch);
    own.function = function.name + "_r" + std::to_string(rows);
    own.constants.push_back({kConstantBehind, behind, false});
    own.grid = [=](const Scope& scope) {
      return Grid{.threadgroups = {divide_up(scope.n_rows, rows), columns, 1},
                  .threads = {kTileThreads, 1, 1},
                  .threadgroup_bytes = {kSharedBytes}};
    };
    own.min_rows = first;
    own.max_rows = last > kManyRows ? UINT32_MAX : last;
    first = last > kManyRows ? 0 : last + 1;
  }
}

// kernels/warpgroup_attention.cuh: query rows of a warpgroup, positions of a block of keys, threads of the four warps that
// copy; bytes of shared memory for barriers, and for queries to begin at a multiple of 1,024.
constexpr uint32_t kQueryRows = 64, kTilePositions = 128, kAllCopyThreads = 128;
constexpr uint32_t kBytesBeforeQueries = 256 + 1024;

uint32_t attention_bytes(uint32_t head_dim, uint32_t rows) {
  const uint32_t stages = head_dim > 64 ? 3 : 4;
  return kBytesBeforeQueries + 2 * head_dim * (rows + 2 * stages * kTilePositions);
}

}  // namespace

bool prompts_on_warpgroups(uint32_t capability, std::string_view architectures) {
  const bool is_possible =
      capability == kCapability && architectures.find(kArchitecture) != std::string_view::npos;
  const std::optional<bool> asked = is_chosen("AKUNU_CUDA_PROMPTS", "warpgroups");
  if (!asked) return is_possible;
  if (!*asked || is_possible) return *asked;
  if (capability != kCapability)
    throw ArgumentError(
        "AKUNU_CUDA_PROMPTS=warpgroups is for GPUs of compute capability 9.0 (H100, H200); this "
        "one has " +
        std::to_string(capability / 10) + "." + std::to_string(capability % 10));
  throw ArgumentError(
      "AKUNU_CUDA_PROMPTS=warpgroups needs kernels for sm_90a; those here are for " +
      std::string(architectures));
}

OnWarpgroups put_on_warpgroups(const KernelRequest& request, uint32_t k, metal::Kernel& kernel) {
  size_t n_replaced = 0;
  OnWarpgroups found;
  for (const Launch& launch : kernel.launches)
    if (const std::optional<TileKernel> function = function_for(launch, k)) {
      ++n_replaced;
      found.rounds[function->parts - 1] = true;
    }
  found.is_any = n_replaced > 0;
  found.is_all = n_replaced == kernel.launches.size();
  if (!found.is_any) return found;
  const auto behind = [&](uint32_t parts) {
    return (found.is_all ? 0 : kBehindSplit) | (parts == 2 && found.rounds[0] ? kBehindHalves : 0);
  };
  std::vector<Launch> launches;
  const std::string name =
      request.operation == Operation::matmul_group ? "round_input_of_group_" : "round_input_";
  for (const uint32_t parts : {1u, 2u})
    if (found.rounds[parts - 1])
      launches.push_back({.function = name + std::to_string(parts),
                          .constants = {{kConstantBehind, behind(parts), false}},
                          .grid = [](const Scope& scope) {
                            return Grid{.threadgroups = {round_up(scope.n_rows, kPaddedRows), 1, 1},
                                        .threads = {kRoundThreads, 1, 1},
                                        .threadgroup_bytes = {
                                            round_up(4 * kRoundThreads / metal::kSimdWidth, 16)}};
                          }});
  for (const Launch& launch : kernel.launches) {
    if (const std::optional<TileKernel> function = function_for(launch, k))
      add_launches(launch, *function, column_tiles(request, launch), behind(function->parts),
                   launches);
    else
      launches.push_back(launch);
  }
  kernel.launches = std::move(launches);
  return found;
}

bool put_attention_on_warpgroups(const KernelRequest& request, metal::Kernel& kernel) {
  const auto shape = request.params.get<AttentionParams>();
  if (request.cache != Format::f16 || (shape.head_dim != 64 && shape.head_dim != 128) ||
      shape.soft_cap > 0.0f || !(shape.scale > 0.0f))
    return false;
  const Launch launch = kernel.launches.front();
  kernel.launches.clear();
  // Tiles of 64 rows where those of 128 would leave half of the multiprocessors idle.
  const uint32_t few_tiles_of_head = kMultiprocessors / 2 / shape.n_heads;
  const uint32_t few_rows = few_tiles_of_head * 2 * kQueryRows;
  for (const uint32_t groups : {1u, 2u}) {
    if (groups == 1 && few_rows == 0) continue;
    const uint32_t rows = groups * kQueryRows;
    Launch& own = kernel.launches.emplace_back(launch);
    own.function =
        "warpgroup_attention_d" + std::to_string(shape.head_dim) + "_x" + std::to_string(groups);
    own.grid = [=](const Scope& scope) {
      return Grid{.threadgroups = {shape.n_heads, scope.n_rows / rows + scope.n_spans, 1},
                  .threads = {2 * rows + kAllCopyThreads, 1, 1},
                  .threadgroup_bytes = {attention_bytes(shape.head_dim, rows)}};
    };
    own.min_rows = groups == 1 ? 1 : few_rows + 1;
    own.max_rows = groups == 1 ? few_rows : UINT32_MAX;
  }
  return true;
}

uint64_t OnWarpgroups::workspace_bytes(uint32_t n_rows, uint32_t k) const {
  const uint64_t slabs = uint64_t{divide_up(k, kSlab)} * 2 * kSlab;
  uint64_t row = 0;
  if (rounds[0]) row += slabs + 4;
  if (rounds[1]) row += 2 * slabs + 4;
  return round_up(n_rows, kPaddedRows) * row;
}

}  // namespace akunu::cuda
