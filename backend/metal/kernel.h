// What a Metal kernel is to the host: functions of the library, their constants, and how large a
// launch of each is. The table of kernels (kernel_table.cpp) stands beside the sources in kernels/;
// the device (metal_device.cpp) knows nothing of either but this.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/device.h"

namespace akunu::metal {

// What the size of a launch may depend on; all of it is known when a step is submitted.
struct Scope {
  const std::byte* params = nullptr;  // the operation's parameter struct
  uint32_t n_rows = 0;                // rows, or head rows where the command's extent is head_rows
  uint32_t n_spans = 0;               // spans of the pass

  template <class Params>
  const Params& get() const {
    return *reinterpret_cast<const Params*>(params);
  }
};

struct Grid {
  std::array<uint32_t, 3> threadgroups = {1, 1, 1};
  std::array<uint32_t, 3> threads = {32, 1, 1};  // per threadgroup
  // Bytes of [[threadgroup(n)]], each a multiple of 16; their sum is 32 KB at most.
  std::array<uint32_t, 4> threadgroup_bytes = {};
  // Threadgroups next to each other in z that run at the same time and wait for one another. (CUDA's clusters.)
  uint32_t cluster = 1;
};

// [[function_constant(index)]]; every constant of ours is a uint or a bool.
struct FunctionConstant {
  uint32_t index = 0;
  uint32_t value = 0;
  bool is_bool = false;
  bool operator==(const FunctionConstant&) const = default;
};

// Every function may have this constant: bit n says that operand slot n is bound. The device sets it.
constexpr uint32_t kConstantBoundSlots = 0;

// One launch of an operation.
struct Launch {
  std::string function;  // its [[host_name]]
  std::vector<FunctionConstant> constants = {};
  std::function<Grid(const Scope&)> grid = {};
  // Runs only for so many rows: kernels for few rows are written for tiles of rows.
  uint32_t min_rows = 1;
  uint32_t max_rows = UINT32_MAX;
  // False: may run beside the launch before it. The first launch of a command waits as the command
  // does.
  bool waits = true;
};

struct Kernel {
  Operation operation = Operation::add;
  std::vector<Launch> launches;  // in order
  // Bytes at slot 24 for at most so many rows; null: none. The memory is the command's own while it
  // runs and holds nothing in between.
  std::function<uint64_t(const std::byte* params, uint32_t max_rows)> workspace_bytes;

  // Of a pass: some launch serves each number of rows up to this.
  uint32_t most_rows() const {
    uint32_t most = 0;
    for (const Launch& launch : launches) most = std::max(most, launch.max_rows);
    return most;
  }
};

// The size of a launch for many rows (kernels/gemm.h): `column_tiles` tiles of 64 weight rows each,
// and 16 rows for each SIMD-group of a threadgroup.
using GemmGrid = Grid (*)(Format weight, uint32_t column_tiles, uint32_t n_rows);
Grid gemm_grid(Format weight, uint32_t column_tiles, uint32_t n_rows);

// How a device multiplies many rows.
struct GemmTiles {
  GemmGrid grid = gemm_grid;
  bool of_experts = true;  // false: rows with experts go through the kernels for few rows
};

// The kernel for a request, or nothing where there is none. A device whose tiles are others says so.
std::optional<Kernel> find_kernel(const KernelRequest& request, GemmTiles tiles = {});
// See Device::unsupported_shape.
std::string unsupported_shape(const KernelRequest& request);

}  // namespace akunu::metal
