// matmul and what is fused with it: kernels/matvec.h for the classes `single` and `few`,
// kernels/gemm.h for `many`.
#include <algorithm>
#include <array>
#include <string>

#include "metal/kernel_table.h"

namespace akunu::metal {
namespace {

// kernels/matmul.h and kernels/matvec.h
constexpr uint32_t kAccumulate = 1, kSecond = 5;  // function constants
constexpr uint32_t kRowsTogether = 4;             // of the kernels for several rows
constexpr uint32_t kMaxTogether = 16;             // rows of a threadgroup
constexpr uint32_t kSimdgroupsOfOneRow = 2;       // small threadgroups fill small weights' tails

// kernels/gemm.h
constexpr uint32_t kTile = 64;        // columns
constexpr uint32_t kTileStride = 36;  // floats

// What a matvec's launch covers: `outputs` weight rows for one row of input, half of them with more.
struct Outputs {
  uint32_t one_row, several_rows;
};
constexpr Outputs kOutputs = {4, 2};
constexpr Outputs kGatedOutputs = {2, 1};  // of each of the two weights

uint32_t members_of(const KernelRequest& request, Format format) {
  uint32_t members = 0;
  for (uint32_t m = 0; m < kMaxGroup; ++m)
    if (request.weights[m] == format) members |= 1u << m;
  return members;
}

// Weight rows of a launch, in blocks of `outputs`; a group's members begin new blocks.
using Blocks = std::function<uint32_t(const std::byte* params, uint32_t outputs)>;

template <class Params>
uint32_t blocks_of(const std::byte* params, uint32_t outputs) {
  return divide_up(reinterpret_cast<const Params*>(params)->n, outputs);
}
// MatmulGroupParams and NormMatmulGroupParams begin alike.
Blocks blocks_of_group(uint32_t members) {
  return [members](const std::byte* params, uint32_t outputs) {
    const auto* group = reinterpret_cast<const MatmulGroupParams*>(params);
    uint32_t blocks = 0;
    for (uint32_t m = 0; m < kMaxGroup; ++m)
      if (members >> m & 1u) blocks += divide_up(group->n[m], outputs);
    return blocks;
  };
}
static_assert(offsetof(MatmulGroupParams, n) == offsetof(NormMatmulGroupParams, n) &&
              offsetof(MatmulGroupParams, k) == offsetof(NormMatmulGroupParams, k) &&
              offsetof(NormMatmulGroupParams, epsilon) == 4 * (1 + kMaxGroup));

std::vector<FunctionConstant> with_constants_of(Format format,
                                                std::vector<FunctionConstant> constants) {
  for (const FunctionConstant& more : constants_of(format)) constants.push_back(more);
  return constants;
}

void add_matvec(Kernel& kernel, const std::string& name, const Blocks& blocks, Outputs outputs,
                const std::vector<FunctionConstant>& constants, bool waits) {
  kernel.launches.push_back({
      .function = name + "_r1",
      .constants = constants,
      .grid =
          [=](const Scope& scope) {
            return Grid{.threadgroups = {divide_up(blocks(scope.params, outputs.one_row),
                                                   kSimdgroupsOfOneRow),
                                         1, 1},
                        .threads = {kSimdWidth * kSimdgroupsOfOneRow, 1, 1}};
          },
      .max_rows = 1,
      .waits = waits,
  });
  kernel.launches.push_back({
      .function = name + "_r4",
      .constants = constants,
      .grid =
          [=](const Scope& scope) {
            const uint32_t quads = divide_up(std::min(scope.n_rows, kMaxTogether), kRowsTogether);
            const uint32_t side_by_side = quads == 1 ? 4 : 2;  // blocks of a threadgroup
            return Grid{.threadgroups = {divide_up(blocks(scope.params, outputs.several_rows),
                                                   side_by_side),
                                         divide_up(scope.n_rows, kMaxTogether), 1},
                        .threads = {kSimdWidth * quads * side_by_side, 1, 1}};
          },
      .min_rows = 2,
      .waits = waits,
  });
}

// kernels/gemm.h
Grid tile_grid(uint32_t column_tiles, uint32_t n_rows) {
  const uint32_t simdgroups = n_rows <= kTile / 2 ? 2 : 4;
  const uint32_t tile_rows = 16 * simdgroups;
  const uint32_t tiles = (kTile + tile_rows) * kTileStride, results = tile_rows * kTile;
  return Grid{.threadgroups = {column_tiles, divide_up(n_rows, tile_rows), 1},
              .threads = {kSimdWidth * simdgroups, 1, 1},
              .threadgroup_bytes = {4 * std::max(tiles, results)}};
}

void add_gemm(Kernel& kernel, const std::string& family, Format format, const Blocks& blocks,
              const std::vector<FunctionConstant>& constants, bool waits, GemmGrid grid) {
  kernel.launches.push_back({
      .function = function_of(family, format),
      .constants = with_constants_of(format, constants),
      .grid =
          [=](const Scope& scope) {
            return grid(format, blocks(scope.params, kTile), scope.n_rows);
          },
      .waits = waits,
  });
}

// kernels/expert_matvec.h: threadgroups for each pair of a row and its expert, or for each expert.
void add_expert_matvec(Kernel& kernel, Format format) {
  const auto launch = [&](const char* rows, uint32_t outputs, uint32_t simdgroups,
                          uint32_t min_rows, uint32_t max_rows) {
    kernel.launches.push_back({
        .function = function_of("expert_matvec", format) + rows,
        .constants = constants_of(format),
        .grid =
            [=](const Scope& scope) {
              const auto& params = scope.get<ExpertMatmulParams>();
              const uint32_t blocks = divide_up(params.n, outputs);
              const uint64_t pairs = uint64_t{scope.n_rows} * params.n_chosen;
              return Grid{.threadgroups = {divide_up(blocks, simdgroups),
                                           static_cast<uint32_t>(
                                               std::min<uint64_t>(pairs, params.n_experts)),
                                           1},
                          .threads = {kSimdWidth * simdgroups, 1, 1}};
            },
        .min_rows = min_rows,
        .max_rows = max_rows,
    });
  };
  launch("_r1", kOutputs.one_row, kSimdgroupsOfOneRow, 1, 1);
  launch("_r4", kOutputs.several_rows, 4, 2, UINT32_MAX);
}

// kernels/expert_gemm.h: tiles for each expert, as many at the same time as twice the pairs that it
// has on average need.
void add_expert_gemm(Kernel& kernel, Format format) {
  kernel.launches.push_back({
      .function = function_of("expert_gemm", format),
      .constants = constants_of(format),
      .grid =
          [](const Scope& scope) {
            const auto& params = scope.get<ExpertMatmulParams>();
            const uint64_t pairs = uint64_t{scope.n_rows} * params.n_chosen;
            const auto twice = static_cast<uint32_t>(
                std::min<uint64_t>(2 * pairs / params.n_experts + 1, scope.n_rows));
            Grid grid = tile_grid(divide_up(params.n, kTile), twice);
            const uint32_t tile_rows = grid.threads[0] / kSimdWidth * 16;
            grid.threadgroups = {grid.threadgroups[0], params.n_experts, grid.threadgroups[1]};
            grid.threadgroup_bytes[1] = round_up(4 * (tile_rows + 1), 16);
            return grid;
          },
  });
}

// kernels/matvec_pairs.metal
using FormatPair = std::array<Format, 2>;
constexpr std::array<FormatPair, 7> kPairs{{{Format::q2_k, Format::q3_k},
                                            {Format::q2_k, Format::q4_k},
                                            {Format::q3_k, Format::q4_k},
                                            {Format::q3_k, Format::q5_k},
                                            {Format::q4_k, Format::q5_k},
                                            {Format::q4_k, Format::q6_k},
                                            {Format::q5_k, Format::q6_k}}};

// The pair that all members of a group are in, if one launch can take them.
const FormatPair* pair_of(const KernelRequest& request) {
  uint32_t all = 0;
  for (uint32_t m = 0; m < kMaxGroup; ++m)
    if (request.weights[m]) all |= 1u << m;
  for (const FormatPair& pair : kPairs) {
    const uint32_t first = members_of(request, pair[0]), second = members_of(request, pair[1]);
    if (first != 0 && second != 0 && (first | second) == all) return &pair;
  }
  return nullptr;
}

// Up to three weights of one input: one launch where they are in one format or in a pair that there
// is, else one per format; the members of a group write different outputs.
Kernel group_kernel(const KernelRequest& request, bool many, GemmGrid grid) {
  Kernel kernel;
  if (const FormatPair* pair = many ? nullptr : pair_of(request)) {
    const uint32_t second = members_of(request, (*pair)[1]);
    const uint32_t members = members_of(request, (*pair)[0]) | second;
    add_matvec(kernel, function_of(function_of("matvec_group", (*pair)[0]), (*pair)[1]),
               blocks_of_group(members), kOutputs,
               {{kConstantMembers, members, false}, {kSecond, second, false}}, true);
    return kernel;
  }
  for (uint32_t m = 0; m < kMaxGroup; ++m) {
    if (!request.weights[m]) continue;
    const Format format = *request.weights[m];
    const uint32_t members = members_of(request, format);
    if (members & ((1u << m) - 1)) continue;  // with an earlier one
    const bool waits = kernel.launches.empty();
    if (many)
      add_gemm(kernel, "gemm_group", format, blocks_of_group(members),
               {{kConstantMembers, members, false}}, waits, grid);
    else
      add_matvec(
          kernel, function_of("matvec_group", format), blocks_of_group(members), kOutputs,
          with_constants_of(format, {{kConstantMembers, members, false}, {kSecond, 0, false}}),
          waits);
  }
  return kernel;
}

}  // namespace

Grid gemm_grid(Format, uint32_t column_tiles, uint32_t n_rows) {
  return tile_grid(column_tiles, n_rows);
}

std::optional<Kernel> find_matmul_kernel(const KernelRequest& request, GemmTiles tiles) {
  const GemmGrid grid = tiles.grid;
  const bool many = request.row_class == RowClass::many;
  Kernel kernel;
  switch (request.operation) {
    case Operation::matmul:
    case Operation::matmul_add: {
      if (!request.weights[0]) return std::nullopt;
      const uint32_t accumulate = request.operation == Operation::matmul_add;
      const std::vector<FunctionConstant> constants = {{kAccumulate, accumulate, true}};
      if (many)
        add_gemm(kernel, "gemm", *request.weights[0], blocks_of<MatmulParams>, constants, true,
                 grid);
      else
        add_matvec(kernel, function_of("matvec", *request.weights[0]), blocks_of<MatmulParams>,
                   kOutputs, with_constants_of(*request.weights[0], constants), true);
      return kernel;
    }
    case Operation::expert_matmul:
      if (!request.weights[0]) return std::nullopt;
      if (many && tiles.of_experts)
        add_expert_gemm(kernel, *request.weights[0]);
      else
        add_expert_matvec(kernel, *request.weights[0]);
      return kernel;
    // Prompts norm once for all tiles, and gate on results that lie in the last cache.
    case Operation::norm_matmul_group:
      if (many) return std::nullopt;
      [[fallthrough]];
    case Operation::matmul_group:
      if (!request.weights[0]) return std::nullopt;
      return group_kernel(request, many, grid);
    case Operation::norm_gated_matmul:
      if (many || !request.weights[0] || !request.weights[1]) return std::nullopt;
      if (request.weights[0] == request.weights[1]) {
        add_matvec(kernel, function_of("matvec_gated", *request.weights[0]),
                   blocks_of<NormGatedMatmulParams>, kGatedOutputs,
                   with_constants_of(*request.weights[0], {{kConstantPart, 0, false}}), true);
      } else {
        for (const uint32_t part : {1u, 2u})
          add_matvec(kernel, function_of("matvec_gated", *request.weights[part - 1]),
                     blocks_of<NormGatedMatmulParams>, kOutputs,
                     with_constants_of(*request.weights[part - 1], {{kConstantPart, part, false}}),
                     true);
      }
      return kernel;
    default:
      return std::nullopt;
  }
}

}  // namespace akunu::metal
