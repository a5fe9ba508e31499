// Number formats as data: block size, bytes per block, the name used in messages and kernel names.
// A backend adds the arithmetic (one small trait per format); nothing else in the engine asks which
// format a weight has. The formats themselves are an enum in core/kinds.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/kinds.h"

namespace akunu {

struct FormatInfo {
  Format format;
  std::string_view name;             // "q4_0", "mlx4_64" (its scales are f16), "mlx4_64_bf16"
  uint32_t block_size;               // weights per block
  uint32_t block_bytes;              // bytes per block, in all planes
  uint32_t n_planes;                 // 1 or more
  uint32_t plane_bytes[kMaxPlanes];  // bytes per block in each
};

// The bits, group and type of scale of a format of MLX's family.
constexpr MlxFormat mlx_format_of(Format affine) {
  return mlx_format_at(static_cast<uint32_t>(affine) - static_cast<uint32_t>(Format::mlx_first));
}
// The format of MLX's family; nothing for bits or a group that there is none of.
constexpr std::optional<Format> mlx_format(const MlxFormat& wanted) {
  for (uint32_t i = 0; i < kMlxFormatCount; ++i)
    if (mlx_format_at(i) == wanted)
      return static_cast<Format>(static_cast<uint32_t>(Format::mlx_first) + i);
  return std::nullopt;
}

// A cache's format is that of its values. Keys are kept in the same, but beside values in Q4_0 in Q8_0: attention
// needs more of a key (docs/decisions/attention-and-cache.md).
constexpr Format format_of_keys(Format cache) {
  return cache == Format::q4_0 ? Format::q8_0 : cache;
}

const FormatInfo& format_info(Format format);
std::optional<Format> format_from_name(std::string_view name);

// Bytes of a row of `k` weights, in all planes and in one; `k` must be a multiple of the block size.
uint64_t row_bytes(Format format, uint64_t k);
uint64_t plane_row_bytes(Format format, uint32_t plane, uint64_t k);

}  // namespace akunu
