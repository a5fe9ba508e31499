// The parts of the table of kernels, one per family, and what their grids share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "metal/kernel.h"

namespace akunu::metal {

// Each gives the kernel for a request of its operations, or nothing where there is none.
std::optional<Kernel> find_matmul_kernel(const KernelRequest& request, GemmTiles tiles);
std::optional<Kernel> find_attention_kernel(const KernelRequest& request);
std::optional<Kernel> find_row_kernel(const KernelRequest& request);

// What of an attention's shape is beyond these kernels, in words; empty where it is not.
std::string unsupported_attention(const KernelRequest& request);

// What the kernels of a family for a format are called, and the constants that they need for it.
std::string function_of(std::string_view family, Format format);
std::vector<FunctionConstant> constants_of(Format format);
// Function constants: kernels/matmul.h, matvec.h and formats_mlx.h.
constexpr uint32_t kConstantMembers = 2, kConstantPart = 4, kConstantMlxGroup = 7;

// What kernels of keys and values read and write (kernels/cache.h).
constexpr bool is_cache_format(Format format) {
  return format == Format::f16 || format == Format::f32 || format == Format::q8_0 ||
         format == Format::q4_0;
}

constexpr uint32_t kSimdWidth = 32;

constexpr uint32_t divide_up(uint32_t n, uint32_t by) { return n / by + (n % by != 0); }
constexpr uint32_t round_up(uint32_t n, uint32_t to) { return divide_up(n, to) * to; }

}  // namespace akunu::metal
