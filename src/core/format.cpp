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

// In the order of the enumeration, without MLX's family.
constexpr std::array kNamedFormats{
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
    made_of(Format::iq4_nl, "iq4_nl", 32, {18}),
    made_of(Format::iq4_xs, "iq4_xs", 256, {136}),
    made_of(Format::mxfp4, "mxfp4", 32, {17}),
    made_of(Format::nvfp4, "nvfp4", 64, {36}),
    made_of(Format::iq2_xxs, "iq2_xxs", 256, {66}),
    made_of(Format::iq2_xs, "iq2_xs", 256, {74}),
    made_of(Format::iq2_s, "iq2_s", 256, {82}),
    made_of(Format::iq3_xxs, "iq3_xxs", 256, {98}),
    made_of(Format::iq3_s, "iq3_s", 256, {110}),
    made_of(Format::mlx_mxfp4, "mlx_mxfp4", 32, {16, 1}),
};

// "mlx4_128_bf16", and how long it is.
struct MlxName {
  std::array<char, 16> text{};
  size_t length = 0;

  constexpr void append(std::string_view more) {
    for (const char letter : more) text[length++] = letter;
  }
  constexpr std::string_view view() const { return {text.data(), length}; }
};

constexpr MlxName mlx_name(const MlxFormat& format) {
  MlxName name;
  name.append("mlx");
  name.text[name.length++] = static_cast<char>('0' + format.bits);
  name.append(format.group == 32 ? "_32" : format.group == 64 ? "_64" : "_128");
  name.append(format.scale == MlxScale::f16    ? ""
              : format.scale == MlxScale::bf16 ? "_bf16"
                                               : "_f32");
  return name;
}

constexpr auto kMlxNames = [] {
  std::array<MlxName, kMlxFormatCount> names{};
  for (uint32_t i = 0; i < kMlxFormatCount; ++i) names[i] = mlx_name(mlx_format_at(i));
  return names;
}();

constexpr auto kFormats = [] {
  std::array<FormatInfo, kFormatCount> formats{};
  for (size_t i = 0; i < kNamedFormats.size(); ++i) formats[i] = kNamedFormats[i];
  for (uint32_t i = 0; i < kMlxFormatCount; ++i) {
    const MlxFormat format = mlx_format_at(i);
    const uint32_t scale = format.scale == MlxScale::f32 ? 4 : 2;
    formats[kNamedFormats.size() + i] =
        made_of(*mlx_format(format), kMlxNames[i].view(), format.group,
                {format.group * format.bits / 8, scale, scale});
  }
  return formats;
}();

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
