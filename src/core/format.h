// Number formats as data: block size, bytes per block, the name used in messages and kernel names.
// A backend adds the arithmetic (one small trait per format); nothing else in the engine asks which
// format a weight has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace akunu {

// The values are those of the GGUF tensor type field, so that a file's number is our number.
enum class Format : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  bf16 = 30,
};

struct FormatInfo {
  Format format;
  std::string_view name;  // "q4_0"
  uint32_t block_size;    // weights per block
  uint32_t block_bytes;   // bytes per block
};

const FormatInfo& format_info(Format format);

// The format with the number that a GGUF file gives it, if the engine has it.
std::optional<Format> format_from_gguf(uint32_t number);

// The name that GGUF gives the type number ("Q4_K"); empty when it gives none.
std::string_view gguf_type_name(uint32_t number);

// "F32, F16, Q4_0, ...": those that the engine has, by their GGUF names.
std::string known_formats();

// Bytes of a row of `k` weights; `k` must be a multiple of the block size.
inline uint64_t row_bytes(Format format, uint64_t k) {
  const FormatInfo& info = format_info(format);
  return k / info.block_size * info.block_bytes;
}

}  // namespace akunu
