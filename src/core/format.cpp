#include "core/format.h"

#include <array>

namespace akunu {
namespace {

// In the order of the enumeration.
constexpr std::array<FormatInfo, kFormatCount> kFormats{{
    {Format::f32, "f32", 1, 4},
    {Format::f16, "f16", 1, 2},
    {Format::bf16, "bf16", 1, 2},
    {Format::q4_0, "q4_0", 32, 18},
    {Format::q4_1, "q4_1", 32, 20},
    {Format::q5_0, "q5_0", 32, 22},
    {Format::q5_1, "q5_1", 32, 24},
    {Format::q8_0, "q8_0", 32, 34},
    {Format::q2_k, "q2_k", 256, 84},
    {Format::q3_k, "q3_k", 256, 110},
    {Format::q4_k, "q4_k", 256, 144},
    {Format::q5_k, "q5_k", 256, 176},
    {Format::q6_k, "q6_k", 256, 210},
}};

constexpr bool every_format_is_in_its_place() {
  for (size_t i = 0; i < kFormats.size(); ++i)
    if (static_cast<size_t>(kFormats[i].format) != i || kFormats[i].block_bytes == 0) return false;
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

}  // namespace akunu
