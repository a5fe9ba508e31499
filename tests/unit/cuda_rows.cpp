// Tests which kernels the device cuda launches for matmuls of generated rows.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/kernel_params.h"
#include "cuda/kernel_table.h"
#include "cuda/kernel_table_streamed.h"
#include "cuda/modules.h"
#include "metal/kernel_table.h"
#include "unit/check.h"

namespace akunu::test {
namespace {

using metal::Kernel;
using metal::Launch;
using metal::Scope;

constexpr uint32_t kBlockBytes = 232448;  // of an H100
constexpr uint32_t kConstantBytes = 32;   // of every kernel

Kernel kernel_for(Operation operation, std::vector<Format> weights, const auto& params,
                  bool are_streamed = true) {
  KernelRequest request{.operation = operation, .row_class = RowClass::few, .params = {}};
  std::copy(weights.begin(), weights.end(), request.weights.begin());
  request.params.set(params);
  const auto kernel = cuda::find_kernel(
      request,
      {.block_bytes = kBlockBytes, .multiprocessors = 132, .rows_are_streamed = are_streamed});
  check(kernel.has_value(), "there is such a kernel");
  return *kernel;
}

// The functions that run for so many rows.
std::string functions_of(const Kernel& kernel, uint32_t n_rows) {
  std::string all;
  for (const Launch& launch : kernel.launches)
    if (launch.min_rows <= n_rows && n_rows <= launch.max_rows) all += launch.function + " ";
  return all;
}

uint32_t members_of(const Launch& launch) {
  for (const metal::FunctionConstant& constant : launch.constants)
    if (constant.index == metal::kConstantMembers) return constant.value;
  return 0;
}

void test_the_variable() {
  const auto asked = [](const char* value, uint32_t capability) {
    setenv("AKUNU_CUDA_ROWS", value, 1);
    const bool is_on = cuda::rows_are_streamed(capability, "sm_80 sm_90a newer");
    unsetenv("AKUNU_CUDA_ROWS");
    return is_on;
  };
  unsetenv("AKUNU_CUDA_ROWS");
  check(cuda::rows_are_streamed(90, "sm_90a") && cuda::rows_are_streamed(100, "sm_80 newer") &&
            !cuda::rows_are_streamed(89, "sm_80 sm_90a newer") &&
            !cuda::rows_are_streamed(90, "sm_80") && !cuda::rows_are_streamed(100, "sm_90a"),
        "GPUs with bulk copies, and kernels that have them");
  check(asked("", 90) && asked("streamed", 90) && !asked("plain", 90) && !asked("", 80),
        "what it may be");
  std::string message = message_of<ArgumentError>([&] { asked("fast", 90); });
  check(contains(message, "plain or streamed, not \"fast\""), message);
  message = message_of<ArgumentError>([&] { asked("streamed", 89); });
  check(contains(message, "this one has 8.9, and the kernels are for sm_80 sm_90a"), message);
  unsetenv("AKUNU_CUDA_ROWS");
}

void test_streamed_rows() {
  const MatmulParams params{4096, 1024, {}};
  const Kernel streamed = kernel_for(Operation::matmul, {Format::q4_0}, params);
  for (const auto& [rows, names] : {std::pair{1u, "streamed_matmul_q4_0_q0 "},
                                    {2u, "round_rows_q1 streamed_matmul_q4_0_q1 "},
                                    {4u, "round_rows_q1 streamed_matmul_q4_0_q1 "},
                                    {5u, "round_rows_q2 streamed_matmul_q4_0_q2 "},
                                    {9u, "round_rows_q4 streamed_tile_matmul_q4_0_q4 "},
                                    {16u, "round_rows_q4 streamed_tile_matmul_q4_0_q4 "},
                                    {17u, "round_rows_q8 streamed_tile_matmul_q4_0_q8 "},
                                    {32u, "round_rows_q8 streamed_tile_matmul_q4_0_q8 "},
                                    {33u, "round_rows_q16 streamed_tile_matmul_q4_0_q16 "},
                                    {512u, "round_rows_q16 streamed_tile_matmul_q4_0_q16 "},
                                    {513u, ""}})
    check(functions_of(streamed, rows) == names, functions_of(streamed, rows));
  check(streamed.most_rows() == 512, "as many as there are texts");
  const Scope scope{reinterpret_cast<const std::byte*>(&params), 130, 1};
  const auto grid = streamed.launches.back().grid(scope);
  check(grid.threadgroups[0] == 3 && grid.threadgroups[1] == 16 && grid.threads[0] == 640,
        "groups of 64 rows, tiles of 256 weight rows");
  check(grid.threadgroup_bytes[0] == 256 + 1024 + 3 * (8 * 64 * 64 + 256 * 144) &&
            grid.threadgroup_bytes[0] + kConstantBytes <= kBlockBytes,
        "memory of a tile");
  // 48 tiles of all groups leave room for two blocks of each, 16 for eight.
  check(grid.threadgroups[2] == 2, "blocks of a tile");
  const Scope few{reinterpret_cast<const std::byte*>(&params), 64, 1};
  check(streamed.launches.back().grid(few).threadgroups[2] == 8, "blocks of a tile of few");
  const auto rounding = streamed.launches[streamed.launches.size() - 2].grid(scope);
  check(rounding.threadgroups[0] == 3 * 64 && rounding.threadgroup_bytes[0] == 0,
        "rows of whole groups are rounded");
  // 64 bytes for 32 numbers of 64 rows; of each eight scales and sums of squares. Behind them the sums of eight classes of
  // 66 tiles.
  const uint64_t rounded = 2 * (1024 / 32 * 64 * 64 + 64 * 16 * 4);
  check(streamed.workspace_bytes(reinterpret_cast<const std::byte*>(&params), 65) ==
            rounded + 66ull * 8 * 256 * 64 * 4,
        "room for two groups");
  check(streamed.workspace_bytes(reinterpret_cast<const std::byte*>(&params), 8) == rounded / 2,
        "few rows go by no tiles");
  const MatmulParams wide{32000, 1024, {}};
  const Kernel large = kernel_for(Operation::matmul, {Format::q8_0}, wide);
  check(contains(functions_of(large, 32), "q8_0_q8 ") && contains(functions_of(large, 33), "_q16 "),
        functions_of(large, 33));
  const auto of_large = large.launches.back().grid(few);
  check(of_large.threadgroups[1] == 250 && of_large.threadgroups[2] == 1 &&
            of_large.threads[0] == 384,
        "tiles of 128 weight rows of larger formats");
  const Kernel plain = kernel_for(Operation::matmul, {Format::q4_0}, params, false);
  check(functions_of(plain, 16) == "stage_rows_q4_0 rows_matvec_q4_0 ", functions_of(plain, 16));
  for (const auto& [format, k] :
       {std::pair{Format::q4_0, 1056u}, {Format::q2_k, 1024u}, {Format::f16, 1024u}}) {
    const MatmulParams other{4096, k, {}};
    check(!contains(functions_of(kernel_for(Operation::matmul, {format}, other), 1), "streamed"),
          "rows of whole windows, and the formats that are served");
  }
}

// Each plan fits into the shared memory of a block, and its numbers into the bits that they are packed in.
void test_plans() {
  for (const uint32_t window_bytes : {110u, 144u, 160u, 176u, 192u, 210u, 272u})
    for (const uint32_t k :
         {256u, 1024u, 1536u, 2560u, 3584u, 4096u, 9728u, 14336u, 27136u, 28672u, 65280u})
      for (const uint32_t tiles : {1u, 64u, 256u, 1792u, 8016u})
        for (const uint32_t quads : {0u, 1u, 2u, 4u}) {
          const cuda::StreamPlan plan =
              cuda::plan_stream(quads, k, window_bytes, tiles, {kBlockBytes, 132});
          const std::string which = std::to_string(window_bytes) + " " + std::to_string(k) + " " +
                                    std::to_string(tiles) + " " + std::to_string(quads);
          if (plan.n_stages == 0) {
            check(false, "there is room: " + which);
            continue;
          }
          const uint32_t windows = k / 256, pass = plan.pass == 0 ? windows : plan.pass;
          const uint32_t rows = quads == 0 ? 1 : 4 * quads;
          const uint32_t slack = window_bytes % 16 == 0 ? 0 : 14;
          const uint32_t waiting = plan.pass == 0 ? 0 : 1024 * std::max(2 * quads, 4u);
          const uint32_t bytes =
              384 + pass * 8 * 64 * rows + plan.n_slots * (waiting + 512 * rows) +
              plan.n_stages * 256 * ((plan.chunk * window_bytes + slack + 15) / 16 | 1u);
          check(plan.bytes == bytes && bytes + kConstantBytes <= kBlockBytes,
                "the memory: " + which);
          check(plan.blocks == 1 ||
                    (plan.blocks == 2 && 2 * (bytes + kConstantBytes + 1024) <= kBlockBytes + 1024),
                "two blocks share a multiprocessor: " + which);
          check(plan.n_stages <= 16 && plan.chunk > 0 && plan.chunk <= 16 && plan.n_slots > 0 &&
                    plan.n_slots <= 16 && plan.pass < windows,
                "the numbers: " + which);
        }
}

void test_staged_rows() {
  const MatmulParams params{1024, 3072, {}};
  const Kernel kernel = kernel_for(Operation::matmul_add, {Format::q6_k}, params, false);
  check(functions_of(kernel, 2) == "stage_rows_q6_k rows_matvec_q6_k ", functions_of(kernel, 2));
  check(functions_of(kernel_for(Operation::matmul, {Format::f16}, params), 2) == "matvec_f16_r4 ",
        "numbers lie so that neighbours load neighbours");
  // 36 floats for 32 numbers.
  check(kernel.workspace_bytes(reinterpret_cast<const std::byte*>(&params), 64) ==
            64ull * 3072 / 32 * 36 * 4,
        "room for every row");
  // Of 16 rows four warps share a block's two weight rows, of 4 rows each takes its own.
  for (const auto& [rows, blocks, threads] : {std::array{2u, 128u, 128u},
                                              {4u, 128u, 128u},
                                              {5u, 256u, 128u},
                                              {9u, 512u, 96u},
                                              {16u, 512u, 128u}}) {
    const Scope scope{reinterpret_cast<const std::byte*>(&params), rows, 1};
    const auto grid = kernel.launches.back().grid(scope);
    check(grid.threadgroups[0] == blocks && grid.threads[0] == threads,
          std::to_string(rows) + " rows: " + std::to_string(grid.threadgroups[0]) + " blocks of " +
              std::to_string(grid.threads[0]));
    check(kernel.launches[kernel.launches.size() - 2].grid(scope).threadgroups[1] == rows,
          "every row is staged");
  }
}

void test_groups() {
  const NormMatmulGroupParams group{2048, {2048, 512, 512}, 1e-6f, {}};
  const Kernel one = kernel_for(Operation::norm_matmul_group,
                                {Format::q4_0, Format::q4_0, Format::q4_0}, group, false);
  check(functions_of(one, 3) == "stage_rows_of_group_q4_0 rows_matvec_group_q4_0 ",
        functions_of(one, 3));
  const Kernel two = kernel_for(Operation::norm_matmul_group,
                                {Format::q4_k, Format::q4_k, Format::q6_k}, group, false);
  check(functions_of(two, 3) ==
            "stage_rows_of_group_q4_k rows_matvec_group_q4_k stage_rows_of_group_q6_k "
            "rows_matvec_group_q6_k ",
        functions_of(two, 3));
  uint32_t members[2] = {};
  for (const Launch& launch : two.launches) {
    if (launch.function == "rows_matvec_group_q4_k") members[0] = members_of(launch);
    if (launch.function == "rows_matvec_group_q6_k") members[1] = members_of(launch);
  }
  check(members[0] == 3 && members[1] == 4, "each member is multiplied once");
  const NormGatedMatmulParams gated{2048, 8192, 0, 1e-6f};
  const Kernel feed =
      kernel_for(Operation::norm_gated_matmul, {Format::q4_0, Format::q4_0}, gated, false);
  check(functions_of(feed, 3) == "stage_rows_of_gated_q4_0 rows_matvec_gated_q4_0 ",
        functions_of(feed, 3));
}

// Of a group with a format that is not streamed the other members are; both have room in one workspace.
void test_a_group_that_is_streamed_in_part() {
  const NormMatmulGroupParams group{2048, {2048, 512, 512}, 1e-6f, {}};
  const Kernel kernel =
      kernel_for(Operation::norm_matmul_group, {Format::q4_k, Format::q4_k, Format::q2_k}, group);
  check(functions_of(kernel, 1) == "streamed_matmul_group_q4_k_q0 matvec_group_q2_k_q4_k_r1 ",
        functions_of(kernel, 1));
  check(functions_of(kernel, 3) ==
            "round_rows_of_group_q1 streamed_matmul_group_q4_k_q1 stage_rows_of_group_q2_k "
            "rows_matvec_group_q2_k ",
        functions_of(kernel, 3));
  const auto* params = reinterpret_cast<const std::byte*>(&group);
  check(kernel.workspace_bytes(params, 2) == 2048 / 32 * 64 * 64 + 64 * 16 * 4,
        "of 64 rounded rows");
  check(kernel.workspace_bytes(params, 64) > 64ull * 2048 / 32 * 36 * 4, "of 64 staged rows");
}

// Parts of a group read the same rounded rows.
void test_formats_of_a_group() {
  const NormMatmulGroupParams group{4096, {4096, 1024, 1024}, 1e-6f, {}};
  const Kernel kernel =
      kernel_for(Operation::norm_matmul_group, {Format::q4_k, Format::q4_k, Format::q6_k}, group);
  check(functions_of(kernel, 40) ==
            "round_rows_of_group_q16 streamed_tile_matmul_group_q4_k_q16 "
            "streamed_tile_matmul_group_q6_k_q16 ",
        functions_of(kernel, 40));
}

// Members of one group streamed, staged, and in two formats: each is multiplied once, whatever rows there are.
void test_members_are_multiplied_once() {
  const NormMatmulGroupParams group{4096, {4096, 1024, 4096}, 1e-6f, {}};
  for (const bool are_streamed : {false, true})
    for (const Format last : {Format::q4_k, Format::q6_k, Format::q2_k})
      for (uint32_t rows = 1; rows <= 100; ++rows) {
        const Kernel kernel = kernel_for(Operation::norm_matmul_group,
                                         {Format::q4_k, Format::q4_k, last}, group, are_streamed);
        uint32_t members = 0, sum = 0;
        for (const Launch& launch : kernel.launches) {
          if (rows < launch.min_rows || rows > launch.max_rows ||
              launch.function.starts_with("stage_rows") ||
              launch.function.starts_with("round_rows"))
            continue;
          members |= members_of(launch);
          sum += members_of(launch);
        }
        check(members == 7 && sum == 7,
              std::to_string(rows) + " rows: " + functions_of(kernel, rows));
      }
}

}  // namespace
}  // namespace akunu::test

namespace akunu::cuda {

// Which launches there are is asked for here; none runs.
std::span<const KernelImage> kernel_images() { return {}; }
std::string_view kernel_architectures() { return {}; }

}  // namespace akunu::cuda

int main() {
  using namespace akunu::test;
  test_the_variable();
  test_streamed_rows();
  test_plans();
  test_staged_rows();
  test_groups();
  test_a_group_that_is_streamed_in_part();
  test_formats_of_a_group();
  test_members_are_multiplied_once();
  return summary();
}
