// Which launches multiply a prompt on an NVIDIA GPU, on warpgroups and without.
#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/kernel_params.h"
#include "cuda/kernel_table.h"
#include "cuda/kernel_table_warpgroups.h"
#include "cuda/modules.h"
#include "unit/check.h"

namespace akunu::test {
namespace {

using metal::Kernel;
using metal::Launch;
using metal::Scope;

bool asked(const char* value, uint32_t capability = 90,
           const char* architectures = "sm_80 sm_90a") {
  setenv("AKUNU_CUDA_PROMPTS", value, 1);
  const bool is_on = cuda::prompts_on_warpgroups(capability, architectures);
  unsetenv("AKUNU_CUDA_PROMPTS");
  return is_on;
}

void test_the_variable() {
  unsetenv("AKUNU_CUDA_PROMPTS");
  check(cuda::prompts_on_warpgroups(90, "sm_90a"), "on where it can be");
  check(!cuda::prompts_on_warpgroups(90, "sm_80") && !cuda::prompts_on_warpgroups(100, "sm_90a"),
        "and not elsewhere");
  check(asked("") && !asked("plain") && asked("warpgroups"), "what it may be");
  check(!asked("plain", 80), "plain is for every GPU");
  const auto refusal = [](const auto&... arguments) {
    const std::string message = message_of<ArgumentError>([&] { asked(arguments...); });
    unsetenv("AKUNU_CUDA_PROMPTS");
    return message;
  };
  check(contains(refusal("fast"), "plain or warpgroups, not \"fast\""), refusal("fast"));
  check(contains(refusal("warpgroups", 89u), "this one has 8.9"), refusal("warpgroups", 89u));
  check(contains(refusal("warpgroups", 100u), "this one has 10.0"), refusal("warpgroups", 100u));
  check(contains(refusal("warpgroups", 90u, "sm_80 newer"), "sm_90a; those here are for sm_80"),
        refusal("warpgroups", 90u, "sm_80 newer"));
}

Kernel kernel_for(Operation operation, std::vector<Format> weights, const auto& params,
                  bool on_warpgroups = true, Format cache = Format::f16) {
  KernelRequest request{
      .operation = operation, .row_class = RowClass::many, .cache = cache, .params = {}};
  std::copy(weights.begin(), weights.end(), request.weights.begin());
  request.params.set(params);
  const auto kernel =
      cuda::find_kernel(request, {.block_bytes = 232448, .prompts_on_warpgroups = on_warpgroups});
  check(kernel.has_value(), "there is such a kernel");
  return *kernel;
}
std::string functions_of(const Kernel& kernel) {
  std::string all;
  for (const Launch& launch : kernel.launches)
    if (!contains(all, launch.function)) all += launch.function + " ";
  return all;
}
uint32_t constant_of(const Launch& launch, uint32_t index) {
  for (const metal::FunctionConstant& constant : launch.constants)
    if (constant.index == index) return constant.value;
  return 99;
}

void test_which_shapes() {
  const MatmulParams long_row{4096, 4096, {}};
  const auto functions = [](Format format, const MatmulParams& params, bool on = true) {
    return functions_of(kernel_for(Operation::matmul, {format}, params, on));
  };
  check(functions(Format::q4_0, long_row, false) == "split_input gemm_q4_0 ", "without warpgroups");
  check(functions(Format::q4_0, long_row) ==
            "round_input_1 warpgroup_matmul_q4_0_r32 warpgroup_matmul_q4_0_r64 "
            "warpgroup_matmul_q4_0_r128 ",
        functions(Format::q4_0, long_row));
  check(functions(Format::q6_k, long_row) ==
            "round_input_1 warpgroup_matmul_q6_k_r32 warpgroup_matmul_q6_k_r64 "
            "warpgroup_matmul_q6_k_r128 ",
        functions(Format::q6_k, long_row));
  check(functions(Format::q4_0, {4096, 4128, {}}) == "split_input gemm_q4_0 ",
        "a row is no multiple of 256");
  check(functions(Format::f16, {7, 64, {}}) == "round_input_1 warpgroup_matmul_f16_r128 ",
        "halves in rows of 64");
  check(functions(Format::q2_k, long_row) == "split_input gemm_q2_k ", "a format without");
  const Kernel added = kernel_for(Operation::matmul_add, {Format::q4_0}, long_row);
  check(constant_of(added.launches[1], 1) == 1, "it adds");
}

// Of every number of rows one launch, whose tiles cover it.
void test_rows() {
  for (const uint32_t n : {1u, 128u, 1000u, 4096u, 28672u}) {
    const MatmulParams params{n, 4096, {}};
    const Kernel kernel = kernel_for(Operation::matmul, {Format::q4_0}, params);
    for (uint32_t rows = 1; rows < 9000; rows += rows < 700 ? 1 : 61) {
      const Scope scope{reinterpret_cast<const std::byte*>(&params), rows, 0};
      uint32_t serving = 0;
      for (const Launch& launch : kernel.launches) {
        if (rows < launch.min_rows || rows > launch.max_rows) continue;
        const metal::Grid grid = launch.grid(scope);
        if (launch.function == "round_input_1") {
          check(grid.threadgroups[0] == (rows + 127) / 128 * 128, "rows that fill up a tile, too");
          continue;
        }
        ++serving;
        const auto tile = static_cast<uint32_t>(
            std::stoi(launch.function.substr(launch.function.rfind('r') + 1)));
        check(grid.threadgroups[0] == (rows + tile - 1) / tile && grid.threads[0] == 384 &&
                  grid.threadgroups[1] == (n + 127) / 128,
              "the tiles of " + std::to_string(rows) + " rows");
      }
      check(serving == 1,
            std::to_string(rows) + " rows have " + std::to_string(serving) + " launches");
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(&params);
    // Of each row: F16 numbers and a float32 factor.
    check(kernel.workspace_bytes(bytes, 300) == 384ull * (4096 * 2 + 4),
          "what a rounded input takes");
  }
}

void test_groups() {
  MatmulGroupParams params{};
  params.k = 512;
  params.n[0] = 300;
  params.n[1] = 128;
  params.n[2] = 64;
  const Kernel mixed =
      kernel_for(Operation::matmul_group, {Format::q4_k, Format::q4_k, Format::q6_k}, params);
  check(functions_of(mixed) ==
            "round_input_of_group_1 warpgroup_matmul_group_q4_k_r32 "
            "warpgroup_matmul_group_q4_k_r128 "
            "warpgroup_matmul_group_q6_k_r32 warpgroup_matmul_group_q6_k_r128 ",
        functions_of(mixed));
  const Scope scope{reinterpret_cast<const std::byte*>(&params), 20, 0};
  check(mixed.launches[1].grid(scope).threadgroups[1] == 4 &&
            mixed.launches.back().grid(scope).threadgroups[1] == 1,
        "tiles of the members of a launch");
  check(constant_of(mixed.launches.front(), 7) == 0, "the workspace is theirs");

  // One member stays with tensor cores of single warps: the input is there twice.
  const Kernel both = kernel_for(Operation::matmul_group, {Format::q4_0, Format::q2_k}, params);
  check(both.launches[0].function == "split_input_of_group" &&
            both.launches[1].function == "round_input_of_group_1" &&
            both.launches.back().function == "gemm_group_q2_k",
        functions_of(both));
  check(constant_of(both.launches[1], 7) == 1 && constant_of(both.launches[2], 7) == 1,
        "the rounded input is behind the other one");
  const auto* bytes = reinterpret_cast<const std::byte*>(&params);
  check(
      both.workspace_bytes(bytes, 21) == (21 * 16 * 200 + 255) / 256 * 256 + 128ull * (512 * 2 + 4),
      "there is room for both");

  // Halves and pairs of bfloat16 numbers.
  const Kernel numbers = kernel_for(Operation::matmul_group, {Format::bf16, Format::f16}, params);
  check(functions_of(numbers) ==
            "round_input_of_group_1 round_input_of_group_2 warpgroup_matmul_group_bf16_r128 "
            "warpgroup_matmul_group_f16_r128 ",
        functions_of(numbers));
  check(constant_of(numbers.launches[0], 7) == 0 && constant_of(numbers.launches[1], 7) == 2 &&
            constant_of(numbers.launches[2], 7) == 2 &&
            constant_of(numbers.launches.back(), 7) == 0,
        "pairs are behind halves");
  check(numbers.workspace_bytes(bytes, 21) == 128ull * (512 * 2 + 4) + 128ull * (512 * 4 + 4),
        "there is room for both kinds");
}

// Attention of heads of 64 or 128 dimensions over a cache of halves, without a soft cap.
void test_attention() {
  AttentionParams params{};
  params.n_heads = 6;
  params.n_kv_heads = 2;
  params.head_dim = 128;
  params.window = 100;
  params.scale = 0.1f;
  const auto function = [&](bool on_warpgroups = true, Format cache = Format::f16) {
    return functions_of(kernel_for(Operation::attention, {}, params, on_warpgroups, cache));
  };
  check(function() == "warpgroup_attention_d128_x1 warpgroup_attention_d128_x2 ", function());
  check(function(false) == "attention_prompt_d128 ", "without warpgroups");
  check(!contains(function(true, Format::f32), "warpgroup"), "a cache in F32");
  const Kernel kernel = kernel_for(Operation::attention, {}, params);
  for (const uint32_t rows : {1u, 63u, 65u, 1408u, 1409u, 3000u}) {
    uint32_t serving = 0;
    for (const Launch& launch : kernel.launches) {
      if (rows < launch.min_rows || rows > launch.max_rows) continue;
      ++serving;
      const metal::Grid grid =
          launch.grid(Scope{reinterpret_cast<const std::byte*>(&params), rows, 3});
      // 11 tiles of 128 rows for each of six heads are half as many as there are multiprocessors.
      const uint32_t tile = rows <= 1408 ? 64 : 128;
      check(grid.threadgroups[0] == 6 && grid.threadgroups[1] >= (rows + tile - 1) / tile + 2 &&
                grid.threads[0] == 128 + 2 * tile,
            "tiles of " + std::to_string(rows) + " rows in three spans");
      // Queries, three blocks of keys and of values, barriers: what a block may have.
      check(grid.threadgroup_bytes[0] == 1280 + 2 * 128 * (tile + 6 * 128) &&
                grid.threadgroup_bytes[0] <= 232448,
            "shared memory");
    }
    check(serving == 1, std::to_string(rows) + " rows have one launch");
  }
  params.n_heads = 128;
  check(function() == "warpgroup_attention_d128_x2 ", "one tile for each head fills the GPU");
  params.head_dim = 64;
  check(function() == "warpgroup_attention_d64_x2 ", function());
  params.soft_cap = 30.0f;
  check(function() == "attention_prompt_d64 ", "a soft cap");
  params.soft_cap = 0.0f;
  params.head_dim = 96;
  check(function() == "attention_prompt_d128 ", "heads of another size");
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
  test_which_shapes();
  test_rows();
  test_groups();
  test_attention();
  return summary();
}
