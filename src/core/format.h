// Number formats as data: block size, bytes per block, the name used in messages and kernel names.
// A backend adds the arithmetic (one small trait per format); nothing else in the engine asks which
// format a weight has.
//
// The numbers are our own and mean nothing outside this process: what a kind of file calls a format
// is the business of its reader in src/weight.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace akunu {

enum class Format : uint8_t {
  f32,
  f16,
  bf16,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  mlx4_64,
  mlx8_64,
};
constexpr uint32_t kFormatCount = static_cast<uint32_t>(Format::mlx8_64) + 1;

// A weight lies in one or more planes: runs of bytes of their own, each with the same rows. Most formats
// have one. MLX's have three, codes, scales and biases, each a tensor of its own in the file.
constexpr uint32_t kMaxPlanes = 4;

struct FormatInfo {
  Format format;
  std::string_view name;             // "q4_0"
  uint32_t block_size;               // weights per block
  uint32_t block_bytes;              // bytes per block, in all planes
  uint32_t n_planes;                 // 1 or more
  uint32_t plane_bytes[kMaxPlanes];  // bytes per block in each
};

const FormatInfo& format_info(Format format);
std::optional<Format> format_from_name(std::string_view name);

// Bytes of a row of `k` weights, in all planes and in one; `k` must be a multiple of the block size.
uint64_t row_bytes(Format format, uint64_t k);
uint64_t plane_row_bytes(Format format, uint32_t plane, uint64_t k);

}  // namespace akunu
