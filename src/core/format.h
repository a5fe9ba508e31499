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
};
// A weight may lie in several runs of bytes: codes, scales, biases.
constexpr uint32_t kMaxPlanes = 4;

constexpr uint32_t kFormatCount = static_cast<uint32_t>(Format::q6_k) + 1;

struct FormatInfo {
  Format format;
  std::string_view name;  // "q4_0"
  uint32_t block_size;    // weights per block
  uint32_t block_bytes;   // bytes per block
};

const FormatInfo& format_info(Format format);
std::optional<Format> format_from_name(std::string_view name);

// Bytes of a row of `k` weights; `k` must be a multiple of the block size.
uint64_t row_bytes(Format format, uint64_t k);

}  // namespace akunu
