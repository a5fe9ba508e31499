#include "core/format.h"

#include <array>
#include <initializer_list>

namespace akunu {
namespace {

constexpr FormatInfo made_of(Format format, std::string_view name, uint32_t block_size,
                             std::initializer_list<uint32_t> plane_bytes) {
  FormatInfo info{format, name, block_size, 0, 0, {}};
  for (const uint32_t bytes : plane_bytes) {
    info.plane_bytes[info.n_planes++] = bytes;
    info.block_bytes += bytes;
  }
  return info;
}

// In the order of the enumeration.
constexpr std::array<FormatInfo, kFormatCount> kFormats{{
    made_of(Format::f32, "f32", 1, {4}),
    made_of(Format::f16, "f16", 1, {2}),
    made_of(Format::bf16, "bf16", 1, {2}),
    made_of(Format::q4_0, "q4_0", 32, {18}),
    made_of(Format::q4_1, "q4_1", 32, {20}),
    made_of(Format::q5_0, "q5_0", 32, {22}),
    made_of(Format::q5_1, "q5_1", 32, {24}),
    made_of(Format::q8_0, "q8_0", 32, {34}),
    made_of(Format::q2_k, "q2_k", 256, {84}),
    made_of(Format::q3_k, "q3_k", 256, {110}),
    made_of(Format::q4_k, "q4_k", 256, {144}),
    made_of(Format::q5_k, "q5_k", 256, {176}),
    made_of(Format::q6_k, "q6_k", 256, {210}),
    made_of(Format::mlx4_64, "mlx4_64", 64, {32, 2, 2}),
    made_of(Format::mlx8_64, "mlx8_64", 64, {64, 2, 2}),
}};

constexpr bool every_format_is_in_its_place() {
  for (size_t i = 0; i < kFormats.size(); ++i)
    if (static_cast<size_t>(kFormats[i].format) != i || kFormats[i].n_planes == 0) return false;
  return true;
}
static_assert(every_format_is_in_its_place());

}  // namespace

const FormatInfo& format_info(Format format) { return kFormats[static_cast<size_t>(format)]; }

std::optional<Format> format_from_name(std::string_view name) {
  for (const FormatInfo& info : kFormats)
    if (info.name == name) return info.format;
  return std::nullopt;
}

uint64_t row_bytes(Format format, uint64_t k) {
  const FormatInfo& info = format_info(format);
  return k / info.block_size * info.block_bytes;
}

uint64_t plane_row_bytes(Format format, uint32_t plane, uint64_t k) {
  const FormatInfo& info = format_info(format);
  return k / info.block_size * info.plane_bytes[plane];
}

}  // namespace akunu
