// Which launches multiply 1 to 16 rows on an NVIDIA GPU.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/kernel_params.h"
#include "cuda/kernel_table.h"
#include "cuda/modules.h"
#include "metal/kernel_table.h"
#include "unit/check.h"

namespace akunu::test {
namespace {

using metal::Kernel;
using metal::Launch;
using metal::Scope;

Kernel kernel_for(Operation operation, std::vector<Format> weights, const auto& params,
                  bool on_tensor = true) {
  KernelRequest request{.operation = operation, .row_class = RowClass::few, .params = {}};
  std::copy(weights.begin(), weights.end(), request.weights.begin());
  request.params.set(params);
  const auto kernel =
      cuda::find_kernel(request, {.block_bytes = 232448, .rows_on_tensor = on_tensor});
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
  const auto asked = [](const char* value) {
    setenv("AKUNU_CUDA_ROWS", value, 1);
    const bool is_on = cuda::rows_on_tensor_cores();
    unsetenv("AKUNU_CUDA_ROWS");
    return is_on;
  };
  unsetenv("AKUNU_CUDA_ROWS");
  check(cuda::rows_on_tensor_cores() && asked("") && asked("tensor") && !asked("plain"),
        "what it may be");
  const std::string message = message_of<ArgumentError>([&] { asked("fast"); });
  unsetenv("AKUNU_CUDA_ROWS");
  check(contains(message, "plain or tensor, not \"fast\""), message);
}

void test_large_weights() {
  const MatmulParams large{4096, 4096, {}};
  const Kernel on_tensor = kernel_for(Operation::matmul, {Format::q4_0}, large);
  for (const auto& [rows, name] : {std::pair{1u, "rows_matmul_q4_0_e0 "},
                                   {8u, "rows_matmul_q4_0_e1 "},
                                   {16u, "rows_matmul_q4_0_e2 "}})
    check(functions_of(on_tensor, rows) == name, functions_of(on_tensor, rows));
  const Kernel plain = kernel_for(Operation::matmul, {Format::q4_0}, large, false);
  check(functions_of(plain, 16) == "stage_rows_q4_0 rows_matvec_q4_0 ", functions_of(plain, 16));
  check(!contains(functions_of(plain, 1), "rows_"), "one row has a kernel of its own");
}

void test_staged_rows() {
  const MatmulParams params{1024, 3072, {}};
  const Kernel kernel = kernel_for(Operation::matmul_add, {Format::q6_k}, params);
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
  const Kernel one =
      kernel_for(Operation::norm_matmul_group, {Format::q4_0, Format::q4_0, Format::q4_0}, group);
  check(functions_of(one, 3) == "stage_rows_of_group_q4_0 rows_matvec_group_q4_0 ",
        functions_of(one, 3));
  const Kernel two =
      kernel_for(Operation::norm_matmul_group, {Format::q4_k, Format::q4_k, Format::q6_k}, group);
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
  const Kernel feed = kernel_for(Operation::norm_gated_matmul, {Format::q4_0, Format::q4_0}, gated);
  check(functions_of(feed, 3) == "stage_rows_of_gated_q4_0 rows_matvec_gated_q4_0 ",
        functions_of(feed, 3));
}

// Members of one group on tensor cores, staged, and in two formats: each is multiplied once, whatever rows there are.
void test_members_are_multiplied_once() {
  const NormMatmulGroupParams group{4096, {4096, 1024, 4096}, 1e-6f, {}};
  for (const bool on_tensor : {false, true})
    for (const Format last : {Format::q4_k, Format::q6_k})
      for (uint32_t rows = 1; rows <= 33; ++rows) {
        const Kernel kernel = kernel_for(Operation::norm_matmul_group,
                                         {Format::q4_k, Format::q4_k, last}, group, on_tensor);
        uint32_t members = 0, sum = 0;
        for (const Launch& launch : kernel.launches) {
          if (rows < launch.min_rows || rows > launch.max_rows ||
              launch.function.starts_with("stage_rows"))
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
  test_large_weights();
  test_staged_rows();
  test_groups();
  test_members_are_multiplied_once();
  return summary();
}
