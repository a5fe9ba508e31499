#include "cuda/kernel_table_streamed.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/kernel_params.h"
#include "cuda/launch_shape.h"
#include "metal/kernel_table.h"

namespace akunu::cuda {
namespace {

using metal::divide_up;
using metal::Grid;
using metal::Launch;
using metal::Scope;

// kernels/streamed_rows.cuh
constexpr uint32_t kStreamWarps = 8, kStreamThreads = 32 * kStreamWarps, kStreamTileRows = 16;
constexpr uint32_t kStreamWindow = 256, kStreamUnit = 32;
constexpr uint32_t kMostStages = 16, kStreamGroup = 16, kBytesBeforeInputs = 384;
constexpr uint32_t kConstantPlan = 6;
// A multiprocessor's memory is that of its largest block and 1 KiB more; of each block the system takes 1 KiB.
// A kernel's constants take some too (kernels/constants.cuh).
constexpr uint32_t kSystemBytes = 1024, kConstantBytes = 32;
// A stage is to have as many windows as possible: a short copy takes as long as one of a thousand bytes. As many stages are to
// be on their way.
constexpr uint32_t kMostChunk = 16, kLeastCopy = 1000, kEnoughStages = 4;
constexpr uint32_t kMostSlots = 16, kSlotsOfPasses = 8;

// A launch has few tiles if it has at most this many for each multiprocessor and its rows are shorter than kLongRow.
constexpr uint32_t kFewTiles = 4, kLongRow = 8192;

constexpr Format kStreamFormats[] = {Format::q4_0, Format::q4_1, Format::q5_0,
                                     Format::q5_1, Format::q8_0, Format::q3_k,
                                     Format::q4_k, Format::q5_k, Format::q6_k};
// Input rows of a launch at most, in fours; 0: one row.
constexpr uint32_t kQuads[] = {0, 1, 2, 4}, kMostQuads = 4;

// kernels/streamed_tile.cuh: tiles of more rows than these. Rows of a group of large tiles, in fours.
constexpr uint32_t kMostRowsWithoutTiles = 8, kLargeTileQuads = 16;
constexpr uint32_t kCopyThreads = 128, kTileWarpRows = 16, kTileBlocks[] = {8, 4, 2, 1};
constexpr uint32_t kMostClusterBlocks = 4;
constexpr uint32_t kTileSharedBytes = 231424, kTileBarrierBytes = 256, kTileAlignment = 1024;
constexpr uint32_t kMostTileStages = 5;
// The most rows of a pass: the texts of chip.h.
constexpr uint32_t kMostStreamRows = 512;

uint32_t window_bytes_of(Format format) {
  const FormatInfo& info = format_info(format);
  return kStreamWindow / info.block_size * info.block_bytes;
}
uint32_t rows_of(uint32_t quads) { return quads == 0 ? 1 : 4 * quads; }
uint32_t group_rows(uint32_t quads) { return std::max(rows_of(quads), kStreamGroup); }
uint32_t unit_bytes(uint32_t quads) { return 64 * rows_of(quads); }
uint32_t slot_bytes(uint32_t quads) { return kStreamWarps * kStreamTileRows * rows_of(quads) * 4; }
// Sums of a tile between passes.
uint32_t waiting_bytes(uint32_t quads) { return kStreamThreads * std::max(2 * quads, 4u) * 4; }
// A row's scales and sums of squares follow its numbers.
uint64_t group_bytes(uint32_t quads, uint32_t k) {
  return uint64_t{k / kStreamUnit} * unit_bytes(quads) +
         uint64_t{rows_of(quads)} * 2 * kStreamWarps * 4;
}
uint32_t stage_bytes(uint32_t chunk, uint32_t window_bytes) {
  const uint32_t slack = window_bytes % 16 == 0 ? 0 : 14;
  return kStreamTileRows * 16 * ((chunk * window_bytes + slack + 15) / 16 | 1u);
}

// A format of a launch's weights, and the members of the launch that are in it.
struct Part {
  Format format;
  uint32_t members;
};
std::vector<Part> parts_of(const KernelRequest& request, const Launch& launch) {
  const uint32_t members = constant_of(launch, metal::kConstantMembers);
  switch (request.operation) {
    case Operation::matmul_group:
    case Operation::norm_matmul_group: {
      std::vector<Part> parts;
      for (uint32_t m = 0; m < kMaxGroup; ++m) {
        if ((members >> m & 1u) == 0) continue;
        const auto same = std::find_if(parts.begin(), parts.end(), [&](const Part& part) {
          return part.format == request.weights[m];
        });
        if (same != parts.end())
          same->members |= 1u << m;
        else
          parts.push_back({*request.weights[m], 1u << m});
      }
      return parts;
    }
    case Operation::norm_gated_matmul:
      return {{*request.weights[constant_of(launch, metal::kConstantPart) == 2 ? 1 : 0], members}};
    default:
      return {{*request.weights[0], members}};
  }
}
// Weight rows of a tile; its shared memory; what a tile's blocks leave for one another.
uint32_t tile_rows(uint32_t window_bytes) { return window_bytes <= 160 ? 256 : 128; }
uint32_t tile_bytes(uint32_t quads, uint32_t window_bytes) {
  const uint32_t weight_rows = tile_rows(window_bytes);
  const uint32_t stage = kStreamWindow / kStreamUnit * unit_bytes(quads) +
                         weight_rows / kStreamTileRows * stage_bytes(1, window_bytes);
  const uint32_t before = kTileBarrierBytes + kTileAlignment;
  return before + std::min((kTileSharedBytes - before) / stage, kMostTileStages) * stage;
}
uint64_t part_bytes(uint32_t quads, uint32_t window_bytes) {
  return uint64_t{kStreamWarps} * tile_rows(window_bytes) * rows_of(quads) * 4;
}
// As many blocks have a tile as find a multiprocessor each.
uint32_t blocks_of_tile(uint32_t tiles, uint32_t multiprocessors) {
  return *std::find_if(std::begin(kTileBlocks), std::end(kTileBlocks), [&](uint32_t blocks) {
    return blocks == 1 || blocks * tiles <= multiprocessors;
  });
}
bool is_served(Format format) {
  return std::find(std::begin(kStreamFormats), std::end(kStreamFormats), format) !=
         std::end(kStreamFormats);
}
void set_members(Launch& launch, uint32_t members) {
  for (metal::FunctionConstant& constant : launch.constants)
    if (constant.index == metal::kConstantMembers) constant.value = members;
}

const char* family_of(Operation operation) {
  switch (operation) {
    case Operation::matmul_group:
    case Operation::norm_matmul_group:
      return "_group";
    case Operation::norm_gated_matmul:
      return "_gated";
    default:
      return "";
  }
}

// Which kernel serves this many rows: those of kQuads up to 16 rows, then tiles if the GPU has the memory.
struct RowRange {
  uint32_t quads, min_rows, max_rows;
  bool is_tile = false;
};
std::vector<RowRange> ranges_of(const Launch& launch, const StreamLimits& limits) {
  if (launch.max_rows == 1) return {{0, 1, 1}};
  const bool are_tiles = limits.block_bytes >= kTileSharedBytes + kConstantBytes;
  if (!are_tiles) return {{1, 2, 4}, {2, 5, 8}, {kMostQuads, 9, kMostStreamRows}};
  return {
      {1, 2, 4}, {2, 5, 8}, {4, 9, 16, true}, {8, 17, 32, true}, {16, 33, kMostStreamRows, true}};
}

// Adds the launches of one part, for one row or for several, which are rounded first unless another part of the launch has
// done so.
void add_launches(const KernelRequest& request, const Launch& own, Format weight,
                  const std::vector<RowRange>& ranges, bool is_rounded, uint32_t k,
                  const StreamLimits& limits, std::vector<Launch>& launches) {
  const std::string of = family_of(request.operation);
  const std::string format(format_info(weight).name);
  for (const auto& [quads, min_rows, max_rows, is_tile] : ranges) {
    const std::string suffix = "_q" + std::to_string(quads);
    if (quads != 0 && !is_rounded) {
      Launch& rounding = launches.emplace_back(own);
      rounding.function = "round_rows" + (of.empty() ? "" : "_of" + of) + suffix;
      rounding.min_rows = min_rows;
      rounding.max_rows = max_rows;
      rounding.grid = [quads = quads](const Scope& scope) {
        return Grid{
            .threadgroups = {divide_up(scope.n_rows, group_rows(quads)) * rows_of(quads), 1, 1},
            .threads = {kStreamThreads, 1, 1}};
      };
    }
    Launch& streaming = launches.emplace_back(own);
    streaming.min_rows = min_rows;
    streaming.max_rows = max_rows;
    if (is_tile) {
      streaming.function = "streamed_tile_matmul" + of + "_" + format + suffix;
      const uint32_t window_bytes = window_bytes_of(weight), weight_rows = tile_rows(window_bytes);
      streaming.grid = [quads = quads, weight_rows, tiles = pieces_of(request, own, weight_rows),
                        multiprocessors = limits.multiprocessors,
                        bytes = tile_bytes(quads, window_bytes)](const Scope& scope) {
        const uint32_t groups = divide_up(scope.n_rows, rows_of(quads));
        const uint32_t blocks = blocks_of_tile(groups * tiles, multiprocessors);
        return Grid{.threadgroups = {groups, tiles, blocks},
                    .threads = {32 * (weight_rows / kTileWarpRows) + kCopyThreads, 1, 1},
                    .threadgroup_bytes = {bytes},
                    .cluster = blocks > kMostClusterBlocks ? 1 : blocks};
      };
      continue;
    }
    const StreamPlan plan = plan_stream(quads, k, window_bytes_of(weight),
                                        pieces_of(request, own, kStreamTileRows), limits);
    streaming.function = "streamed_matmul" + of + "_" + format + suffix;
    streaming.constants.push_back({kConstantPlan, plan.packed(), false});
    streaming.grid = [plan, quads = quads,
                      multiprocessors = limits.multiprocessors](const Scope& scope) {
      return Grid{
          .threadgroups = {multiprocessors, divide_up(scope.n_rows, kStreamGroup), plan.blocks},
          .threads = {kStreamThreads + (quads == 0 ? 32 : 64), 1, 1},
          .threadgroup_bytes = {plan.bytes}};
    };
  }
}

}  // namespace

StreamPlan plan_stream(uint32_t quads, uint32_t k, uint32_t window_bytes, uint32_t tiles,
                       const StreamLimits& limits) {
  const uint32_t windows = k / kStreamWindow;
  struct Share {
    uint32_t blocks, bytes, few_stages;
  };
  // Chunks as large as they can be, with enough stages or, of smaller chunks, few.
  const auto divide = [&](const Share& share, uint32_t pass, uint32_t n_slots, uint32_t least_copy,
                          uint32_t few_stages) -> std::optional<StreamPlan> {
    const uint32_t waiting = pass < windows ? waiting_bytes(quads) : 0;
    const uint64_t before = kBytesBeforeInputs +
                            uint64_t{pass} * (kStreamWindow / kStreamUnit) * unit_bytes(quads) +
                            uint64_t{n_slots} * (slot_bytes(quads) + waiting);
    if (before >= share.bytes) return {};
    const uint32_t of_block = divide_up(tiles, limits.multiprocessors * share.blocks);
    for (const uint32_t least_stages : {kEnoughStages, few_stages})
      for (uint32_t parts = divide_up(pass, kMostChunk); parts <= pass; ++parts) {
        const uint32_t chunk = divide_up(pass, parts), bytes = stage_bytes(chunk, window_bytes);
        if (parts > 1 && chunk * window_bytes < least_copy) break;
        const uint32_t chunks = of_block * divide_up(windows, pass) * divide_up(pass, chunk);
        const auto fit = static_cast<uint32_t>((share.bytes - before) / bytes);
        const uint32_t stages = std::min({fit, chunks, kMostStages});
        if (stages < std::min(least_stages, chunks)) continue;
        return StreamPlan{stages,       chunk,
                          n_slots,      pass == windows ? 0 : pass,
                          share.blocks, static_cast<uint32_t>(before) + stages * bytes};
      }
    return {};
  };
  const uint32_t whole = limits.block_bytes - kConstantBytes;
  const uint32_t half = (limits.block_bytes + kSystemBytes) / 2 - kSystemBytes - kConstantBytes;
  // Few tiles are over soonest where one block has them, which leaves room for the next launch.
  const bool are_few = quads == 0 && tiles <= kFewTiles * limits.multiprocessors && k < kLongRow;
  const bool is_alone = quads == kMostQuads;
  const Share shares[] = {{are_few || is_alone ? 1u : 2u, is_alone ? whole : half, 3},
                          {1, whole, 2}};
  // All of the input at once, or as few passes as possible. The sums of all tiles of a batch wait between passes.
  for (uint32_t passes = 1; passes <= windows && (quads > 0 || passes == 1); ++passes)
    for (const Share& share : shares) {
      const uint32_t of_block = divide_up(tiles, limits.multiprocessors * share.blocks);
      const uint32_t most = passes > 1 ? kSlotsOfPasses : quads == 0 ? kMostSlots : 2;
      const auto plan = divide(share, divide_up(windows, passes), std::min(of_block, most),
                               kLeastCopy, share.few_stages);
      if (plan) return *plan;
    }
  // What is left: many tiles of long rows.
  for (uint32_t passes = 1; passes <= windows && (quads > 0 || passes == 1); ++passes)
    if (const auto plan = divide(shares[1], divide_up(windows, passes), 1, 0, 1)) return *plan;
  return {};
}

void put_on_streams(const KernelRequest& request, const StreamLimits& limits,
                    metal::Kernel& kernel) {
  const uint32_t k = inputs_of(request);
  if (k == 0 || k % kStreamWindow != 0 || k / kStreamWindow > 255) return;
  std::vector<Launch> launches;
  bool is_any = false;
  uint64_t most_part_bytes = 0;
  for (const Launch& launch : kernel.launches) {
    uint32_t left = 0;  // members of other formats
    bool is_left = false;
    std::vector<std::pair<Format, Launch>> own;
    for (const Part& part : parts_of(request, launch)) {
      Launch of_part = launch;
      set_members(of_part, part.members);
      // One row goes this way where several do: it has the same bits then.
      const bool has_room = std::all_of(std::begin(kQuads), std::end(kQuads), [&](uint32_t quads) {
        return plan_stream(quads, k, window_bytes_of(part.format),
                           pieces_of(request, of_part, kStreamTileRows), limits)
                   .n_stages != 0;
      });
      if (is_served(part.format) && has_room) {
        own.emplace_back(part.format, std::move(of_part));
        most_part_bytes =
            std::max(most_part_bytes, part_bytes(kLargeTileQuads, window_bytes_of(part.format)));
        continue;
      }
      left |= part.members;
      is_left = true;
    }
    const std::vector<RowRange> ranges = ranges_of(launch, limits);
    for (size_t i = 0; i < own.size(); ++i)
      add_launches(request, own[i].second, own[i].first, ranges, i > 0, k, limits, launches);
    is_any |= !own.empty();
    if (!is_left) continue;
    launches.push_back(launch);
    set_members(launches.back(), left);
  }
  if (!is_any) return;
  kernel.launches = std::move(launches);
  // Rounded rows, and the sums that blocks of a tile leave. A launch with such blocks has at most this many tiles.
  const uint64_t parts = uint64_t{limits.multiprocessors / 2} * most_part_bytes;
  kernel.workspace_bytes = [=](const std::byte*, uint32_t max_rows) {
    const uint32_t groups =
        divide_up(std::min(max_rows, kMostStreamRows), rows_of(kLargeTileQuads));
    return uint64_t{groups} * group_bytes(kLargeTileQuads, k) +
           (max_rows > kMostRowsWithoutTiles ? parts : 0);
  };
}

}  // namespace akunu::cuda
