#include "cuda/kernel_table.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "cuda/kernel_table_streamed.h"
#include "cuda/kernel_table_warpgroups.h"
#include "cuda/launch_shape.h"
#include "metal/kernel_table.h"

namespace akunu::cuda {
namespace {

using metal::divide_up;
using metal::Grid;
using metal::Kernel;
using metal::Scope;

// kernels/multiply_tile.cuh: bytes of a tile's row of 32 numbers, parts of a number, columns; steps that shared
// memory holds of either operand.
constexpr uint32_t kTileRowBytes = 64, kInputParts = 3, kTileColumns = 64;
constexpr uint32_t kInputStages = 3, kWeightStages = 2;
// Fewer threadgroups than this leave multiprocessors of a large GPU idle: then tiles are smaller.
constexpr uint32_t kManyTiles = 128;

metal::Grid gemm_grid(Format weight, uint32_t column_tiles, uint32_t n_rows) {
  const bool large = n_rows > 64 && column_tiles * divide_up(n_rows, 128) >= kManyTiles;
  const uint32_t rows = large ? 128 : 64;
  const uint32_t parts = weight == Format::f32 ? 3 : weight == Format::f16 ? 2 : 1;
  const bool is_float = weight == Format::f32 || weight == Format::f16 || weight == Format::bf16;
  const uint32_t scales = is_float ? 0 : 16 * kTileColumns, sums = is_float ? 0 : 8 * rows;
  return Grid{
      .threadgroups = {column_tiles, divide_up(n_rows, rows), 1},
      .threads = {2 * rows, 1, 1},
      .threadgroup_bytes = {kInputStages * (kInputParts * rows * kTileRowBytes + sums) +
                            kWeightStages * (parts * kTileColumns * kTileRowBytes + scales)}};
}

// Experts of prompts have no tensor cores yet: multiply_tile.cuh takes rows that lie in order.
constexpr metal::GemmTiles kTiles{.grid = gemm_grid, .of_experts = false};

// kernels/split_input.cuh: bytes of a row's step of 32 numbers, its two sums among them.
constexpr uint32_t kStep = 32, kSplitStepBytes = kInputParts * 64 + 2 * 4;
constexpr uint32_t kSplitThreads = 256;
// kernels/warpgroup_matmul.cuh: a rounded input after a split one begins at a multiple of this many bytes.
constexpr uint64_t kWorkspaceAlignment = 256;

// The kernel of a prompt's matmul that Metal has too, after a launch that splits its input (split_input.cuh); where prompts
// are on warpgroups, wgmma kernels for the shapes that have one.
template <class Params>
std::optional<Kernel> matmul_of_prompts(const KernelRequest& request, const std::string& split,
                                        const KernelChoice& choice) {
  std::optional<Kernel> kernel = metal::find_kernel(request, kTiles);
  if (!kernel) return kernel;
  OnWarpgroups on_warpgroups;
  if (choice.prompts_on_warpgroups)
    on_warpgroups = put_on_warpgroups(request, request.params.get<Params>().k, *kernel);
  if (on_warpgroups.is_all) {
    kernel->workspace_bytes = [=](const std::byte* params, uint32_t max_rows) {
      return on_warpgroups.workspace_bytes(max_rows, reinterpret_cast<const Params*>(params)->k);
    };
    return kernel;
  }
  kernel->launches.insert(
      kernel->launches.begin(),
      {.function = split, .constants = {}, .grid = [](const Scope& scope) {
         const uint32_t eights = 4 * divide_up(scope.get<Params>().k, kStep);
         return Grid{.threadgroups = {divide_up(eights * scope.n_rows, kSplitThreads), 1, 1},
                     .threads = {kSplitThreads, 1, 1}};
       }});
  kernel->workspace_bytes = [=](const std::byte* params, uint32_t max_rows) {
    const uint32_t k = reinterpret_cast<const Params*>(params)->k;
    const uint64_t bytes = uint64_t{max_rows} * divide_up(k, kStep) * kSplitStepBytes;
    if (!on_warpgroups.is_any) return bytes;
    return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment +
           on_warpgroups.workspace_bytes(max_rows, k);
  };
  return kernel;
}

// kernels/multiply_rows.cuh: a function constant, terms of a run at most, warps of a block, and as many warps of a
// launch as keep a large GPU's multiprocessors busy.
constexpr uint32_t kConstantWide = 6, kRunTerms = 14, kMostWarps = 8, kManyWarps = 2048;
constexpr uint32_t kUnitsOfLanes = 32, kUnitWeights = 32, kMostWideInputs = 16384;

// kernels/staged_matvec.cuh: formats that have such kernels (numbers lie so that neighbours load neighbours), threads of
// a block, blocks of which a large GPU runs all at the same time, and bytes of a unit of the staged input and of 32.
constexpr Format kStagedFormats[] = {Format::q4_0, Format::q4_1, Format::q5_0, Format::q5_1,
                                     Format::q8_0, Format::q2_k, Format::q3_k, Format::q4_k,
                                     Format::q5_k, Format::q6_k};
constexpr uint32_t kStagedThreads = 256, kStagedBlocks = 264;
constexpr uint32_t kStagedUnitBytes = (kUnitWeights + 4) * sizeof(float);
constexpr uint32_t kStagedBytes = kUnitsOfLanes * kStagedUnitBytes;
// They are faster from this many weights and warps on. A warp takes two weight rows where four would leave warps idle.
constexpr uint64_t kLargeWeight = 2 << 20;
constexpr uint32_t kFewWarps = 512, kEnoughWarps = kStagedBlocks * kStagedThreads / 32;

bool can_stage(const metal::Launch& launch) {
  for (const Format format : kStagedFormats)
    for (const char* family : {"matvec", "matvec_group", "matvec_gated"})
      if (launch.function ==
          std::string(family) + "_" + std::string(format_info(format).name) + "_r1")
        return true;
  return false;
}

// Puts the kernel that stages its input in the place of a launch of one row, where that is faster.
bool stage(const KernelRequest& request, uint32_t units_of_lane, metal::Launch& launch) {
  if (!can_stage(launch)) return false;
  const uint32_t of_four = pieces_of(request, launch, 4);
  if (uint64_t{of_four} * 4 * units_of_lane * kUnitsOfLanes * kUnitWeights < kLargeWeight)
    return false;
  const uint32_t outputs = of_four >= kEnoughWarps ? 4 : 2;
  const uint32_t warps = pieces_of(request, launch, outputs);
  if (warps < kFewWarps) return false;
  launch.function.replace(launch.function.size() - 2, 2, "o" + std::to_string(outputs));
  launch.function.insert(0, "staged_");
  launch.constants.push_back({kConstantWide, warps, false});
  launch.grid = [=](const Scope&) {
    const uint32_t blocks = divide_up(warps, kStagedThreads / 32);
    return Grid{.threadgroups = {std::min(blocks, kStagedBlocks), 1, 1},
                .threads = {kStagedThreads, 1, 1},
                .threadgroup_bytes = {units_of_lane * kStagedBytes}};
  };
  return true;
}

// kernels/staged_rows.cuh: weight rows and input rows of a warp, input rows and warps of a block; threads that stage.
constexpr uint32_t kRowOutputs = 2, kRowsOfWarp = 4, kRowsOfBlock = 16, kWarpsOfRows = 4;
constexpr uint32_t kStageThreads = 128;

// A staged format of a launch of matvec_FORMAT_r4, matvec_group_FORMAT_r4, matvec_gated_FORMAT_r4 or
// matvec_group_FORMAT_SECOND_r4, and which members of the group are in it.
struct StagedFormat {
  std::string_view name;
  uint32_t members = 0;
};
std::vector<StagedFormat> staged_formats_of(const metal::Launch& launch, std::string_view family) {
  const auto is = [&](std::string_view formats) {
    return launch.function == std::string(family) + "_" + std::string(formats) + "_r4";
  };
  const uint32_t members = constant_of(launch, metal::kConstantMembers);
  for (const Format format : kStagedFormats) {
    const std::string_view name = format_info(format).name;
    if (is(name)) return {{name, members}};
    for (const Format other : kStagedFormats) {
      const std::string_view second = format_info(other).name;
      if (!is(std::string(name) + "_" + std::string(second))) continue;
      const uint32_t in_second = constant_of(launch, kConstantSecond);
      return {{name, members & ~in_second}, {second, members & in_second}};
    }
  }
  return {};
}

// Puts two kernels in the place of a launch for several rows: one stages the input as the weight's format wants it, the
// other multiplies. Where a group has two formats, two for each. False where a format has none.
bool put_on_staged_rows(const KernelRequest& request, uint32_t k, const metal::Launch& launch,
                        std::vector<metal::Launch>& launches) {
  const std::string_view of = request.operation == Operation::norm_gated_matmul ? "_gated"
                              : request.operation == Operation::matmul_group ||
                                      request.operation == Operation::norm_matmul_group
                                  ? "_group"
                                  : "";
  const std::string family = "matvec" + std::string(of);
  const std::vector<StagedFormat> formats = staged_formats_of(launch, family);
  for (const auto& [name, members] : formats) {
    if (of == "_group" && members == 0) continue;
    metal::Launch own = launch;
    for (metal::FunctionConstant& constant : own.constants)
      if (constant.index == metal::kConstantMembers) constant.value = members;
    const uint32_t warps = pieces_of(request, own, kRowOutputs);
    own.function =
        "stage_rows" + (of.empty() ? "" : "_of" + std::string(of)) + "_" + std::string(name);
    own.grid = [=](const Scope& scope) {
      return Grid{.threadgroups = {divide_up(k / 16, kStageThreads), scope.n_rows, 1},
                  .threads = {kStageThreads, 1, 1}};
    };
    launches.push_back(own);
    own.function = "rows_" + family + "_" + std::string(name);
    own.grid = [=](const Scope& scope) {
      const uint32_t quads = divide_up(std::min(scope.n_rows, kRowsOfBlock), kRowsOfWarp);
      const uint32_t side_by_side = kWarpsOfRows / quads;
      return Grid{.threadgroups = {divide_up(warps, side_by_side),
                                   divide_up(scope.n_rows, kRowsOfBlock), 1},
                  .threads = {32 * quads * side_by_side, 1, 1}};
    };
    launches.push_back(own);
  }
  return !formats.empty();
}

// The launches for several rows.
void stage_rows(const KernelRequest& request, uint32_t k, Kernel& kernel) {
  std::vector<metal::Launch> launches;
  bool is_any = false;
  for (const metal::Launch& launch : kernel.launches) {
    if (launch.max_rows > 1 && put_on_staged_rows(request, k, launch, launches))
      is_any = true;
    else
      launches.push_back(launch);
  }
  if (is_any)
    // Other launches of the kernel have the same workspace, one after the other.
    kernel.workspace_bytes = [=, others = kernel.workspace_bytes](const std::byte* params,
                                                                  uint32_t max_rows) {
      const uint64_t bytes = uint64_t{max_rows} * (k / kUnitWeights) * kStagedUnitBytes;
      return others ? std::max(bytes, others(params, max_rows)) : bytes;
    };
  kernel.launches = std::move(launches);
}

// The shared kernel; of one row, several warps take a weight row's numbers where one would leave the GPU idle.
std::optional<Kernel> matmul_of_rows(const KernelRequest& request, const KernelChoice& choice) {
  std::optional<Kernel> kernel = metal::find_kernel(request, kTiles);
  const uint32_t k = inputs_of(request);
  if (!kernel) return kernel;
  if (choice.rows_are_streamed)
    put_on_streams(request, {choice.block_bytes, choice.multiprocessors}, *kernel);
  stage_rows(request, k, *kernel);
  if (k > kMostWideInputs) return kernel;
  const uint32_t units_of_lane = divide_up(k, kUnitsOfLanes * kUnitWeights);
  for (metal::Launch& launch : kernel->launches) {
    if (launch.max_rows != 1 || launch.function.starts_with("streamed_") ||
        stage(request, units_of_lane, launch))
      continue;
    const Scope scope{request.params.data(), 1, 1};
    const uint32_t warps = launch.grid(scope).threadgroups[0] * launch.grid(scope).threads[0] / 32;
    const uint32_t together =
        std::min({units_of_lane, kMostWarps, divide_up(kManyWarps, std::max(warps, 1u))});
    if (together < 2) continue;
    launch.constants.push_back({kConstantWide, 1, false});
    launch.grid = [=, grid = launch.grid](const Scope& of) {
      Grid wide = grid(of);
      wide.threadgroups[0] *= wide.threads[0] / 32;
      wide.threads[0] = 32 * together;
      wide.threadgroup_bytes = {4 * 2 * kRunTerms * units_of_lane * kUnitsOfLanes};
      return wide;
    };
  }
  return kernel;
}

// kernels/rows_attention.cuh: threads of a block, positions of a unit, splits, query heads that a block has room for, dimensions of a
// head that it is compiled for, halves between two rows, bytes of its state.
constexpr uint32_t kThreads = 128, kUnit = 64, kSplits = 32, kFewHeads = 4, kManyHeads = 8;
constexpr uint32_t kFewDims = 128, kMostDims = 256, kDimStep = 16;
constexpr uint32_t kPad = 8, kStateBytes = 256;
// A row has a block for each split while a launch has at most so many blocks, which run at the same time on a large GPU. In larger
// launches a block takes several splits, or all of a row.
constexpr uint32_t kManyBlocks = 640;

uint32_t row_attention_bytes(uint32_t head_dim, uint32_t heads) {
  const uint32_t row = 2 * (head_dim + kPad), weights = 2 * (kUnit + kPad);
  return 2 * heads * (row + weights) + 4 * heads * std::max(head_dim, kUnit) + kStateBytes +
         2 * kUnit * row + 2 * 2 * head_dim;
}

// One launch in the place of the shared kernel's two, where there is one. Both operations go the same way, so that fusing changes no
// bit.
template <class Params>
std::optional<Kernel> attention_of_rows(const KernelRequest& request, const std::string& name,
                                        uint32_t block_bytes) {
  const auto shape = request.params.get<Params>();
  std::optional<Kernel> kernel = metal::find_kernel(request, kTiles);
  const uint32_t per_kv_head = shape.n_heads / shape.n_kv_heads;
  const uint32_t heads = per_kv_head > kFewHeads ? kManyHeads : kFewHeads;
  const uint32_t chunks = shape.n_kv_heads * divide_up(per_kv_head, heads);
  const uint32_t bytes = row_attention_bytes(shape.head_dim, heads);
  if (!kernel || request.cache != Format::f16 || shape.head_dim % kDimStep != 0 ||
      shape.head_dim > kMostDims || bytes > block_bytes)
    return kernel;
  kernel->launches.pop_back();  // what joins the splits
  const auto blocks = [=](uint32_t n_rows) {
    return std::clamp(kManyBlocks / (chunks * n_rows), 1u, kSplits);
  };
  // Rows whose splits are those of several blocks.
  const uint32_t most_shared = std::max(kManyBlocks / 2 / chunks, 1u);
  kernel->workspace_bytes = [=](const std::byte*, uint32_t max_rows) {
    return uint64_t{4} * std::min(max_rows, most_shared) * shape.n_heads * kSplits *
           (shape.head_dim + 2);
  };
  metal::Launch& launch = kernel->launches.front();
  launch.max_rows = UINT32_MAX;
  launch.function = name + "_d" + std::to_string(shape.head_dim > kFewDims ? kMostDims : kFewDims) +
                    "_q" + std::to_string(heads);
  launch.grid = [=](const Scope& scope) {
    return Grid{.threadgroups = {blocks(scope.n_rows), chunks, scope.n_rows},
                .threads = {kThreads, 1, 1},
                .threadgroup_bytes = {bytes}};
  };
  return kernel;
}

// kernels/attention_prompt.cu: rows and positions of a tile, by the dimensions that it has room for.
std::optional<Kernel> attention_of_prompts(const KernelRequest& request,
                                           const KernelChoice& choice) {
  const uint32_t head_dim = request.params.get<AttentionParams>().head_dim;
  std::optional<Kernel> kernel = metal::find_kernel(request, kTiles);
  if (kernel && choice.prompts_on_warpgroups && put_attention_on_warpgroups(request, *kernel))
    return kernel;
  if (!kernel || request.cache != Format::f16 || head_dim % 8 != 0 || head_dim > kMostDims)
    return kernel;
  const uint32_t dims = head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : kMostDims;
  const uint32_t rows = dims > 128 ? 32 : 64, positions = rows;
  const uint32_t row_bytes = 2 * (dims + kPad);
  const uint32_t values = std::max(positions * row_bytes, 4 * rows * (positions + 1));
  metal::Launch& launch = kernel->launches.front();
  launch.function = "attention_prompt_d" + std::to_string(dims);
  launch.grid = [=](const Scope& scope) {
    return Grid{
        .threadgroups = {scope.n_rows / rows + scope.n_spans, scope.get<AttentionParams>().n_heads,
                         1},
        .threads = {2 * rows, 1, 1},
        .threadgroup_bytes = {metal::round_up((2 * rows + positions) * row_bytes + values, 16)}};
  };
  return kernel;
}

// kernels/all_reduce.cu: a word of the exchange has two numbers.
std::optional<Kernel> sum_of_ranks(const KernelRequest& request) {
  if (request.params.get<AllReduceParams>().n % 2 != 0) return {};
  Kernel kernel{.operation = request.operation, .launches = {}, .workspace_bytes = {}};
  kernel.launches.push_back(
      {.function = std::string(operation_info(request.operation).name),
       .grid = [](const Scope& scope) {
         const uint64_t pairs = uint64_t{scope.n_rows} * scope.get<AllReduceParams>().n / 2;
         const uint64_t blocks = (pairs + kExchangeThreads - 1) / kExchangeThreads;
         return Grid{.threadgroups = {static_cast<uint32_t>(
                                          std::clamp<uint64_t>(blocks, 1, kExchangeBlocks)),
                                      1, 1},
                     .threads = {kExchangeThreads, 1, 1}};
       }});
  return kernel;
}

}  // namespace

std::optional<bool> is_chosen(const char* variable, std::string_view choice) {
  const char* set = std::getenv(variable);
  const std::string_view asked = set == nullptr ? "" : set;
  if (asked.empty()) return std::nullopt;
  if (asked != "plain" && asked != choice)
    throw ArgumentError(std::string(variable) + " must be plain or " + std::string(choice) +
                        ", not \"" + std::string(asked) + "\"");
  return asked == choice;
}

// Bulk copies.
constexpr uint32_t kStreamCapability = 90;

bool rows_are_streamed(uint32_t capability, std::string_view architectures) {
  // Older kernels run on this GPU from PTX alone, without bulk copies.
  const std::string own = "sm_" + std::to_string(capability / 10);
  const bool has_kernels = architectures.find(own) != std::string_view::npos ||
                           architectures.find("newer") != std::string_view::npos;
  const bool is_possible = capability >= kStreamCapability && has_kernels;
  const std::optional<bool> asked = is_chosen("AKUNU_CUDA_ROWS", "streamed");
  if (asked == true && !is_possible)
    throw ArgumentError(
        "AKUNU_CUDA_ROWS is streamed, which needs a GPU of compute capability 9.0 or later and "
        "kernels for it: this one has " +
        std::to_string(capability / 10) + "." + std::to_string(capability % 10) +
        ", and the kernels are for " + std::string(architectures));
  return asked.value_or(is_possible);
}

std::optional<Kernel> find_kernel(const KernelRequest& request, const KernelChoice& choice) {
  if (is_all_reduce(request.operation)) return sum_of_ranks(request);
  if (request.row_class == RowClass::many) {
    switch (request.operation) {
      case Operation::attention:
        return attention_of_prompts(request, choice);
      case Operation::matmul:
      case Operation::matmul_add:
        return matmul_of_prompts<MatmulParams>(request, "split_input", choice);
      case Operation::matmul_group:
        return matmul_of_prompts<MatmulGroupParams>(request, "split_input_of_group", choice);
      default:
        break;
    }
  } else {
    switch (request.operation) {
      case Operation::attention:
        return attention_of_rows<AttentionParams>(request, "attention_rows", choice.block_bytes);
      case Operation::rope_attention:
        return attention_of_rows<RopeAttentionParams>(request, "rope_attention_rows",
                                                      choice.block_bytes);
      case Operation::matmul:
      case Operation::matmul_add:
      case Operation::matmul_group:
      case Operation::norm_matmul_group:
      case Operation::norm_gated_matmul:
        return matmul_of_rows(request, choice);
      default:
        break;
    }
  }
  return metal::find_kernel(request, kTiles);
}

}  // namespace akunu::cuda
