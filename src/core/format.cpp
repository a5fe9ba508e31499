#include "core/format.h"

#include <array>

namespace akunu {
namespace {

// Every format that the engine knows, by increasing number.
constexpr std::array kFormats{
    FormatInfo{Format::f32, "f32", 1, 4},       FormatInfo{Format::f16, "f16", 1, 2},
    FormatInfo{Format::q4_0, "q4_0", 32, 18},   FormatInfo{Format::q4_1, "q4_1", 32, 20},
    FormatInfo{Format::q5_0, "q5_0", 32, 22},   FormatInfo{Format::q5_1, "q5_1", 32, 24},
    FormatInfo{Format::q8_0, "q8_0", 32, 34},   FormatInfo{Format::q2_k, "q2_k", 256, 84},
    FormatInfo{Format::q3_k, "q3_k", 256, 110}, FormatInfo{Format::q4_k, "q4_k", 256, 144},
    FormatInfo{Format::q5_k, "q5_k", 256, 176}, FormatInfo{Format::q6_k, "q6_k", 256, 210},
    FormatInfo{Format::bf16, "bf16", 1, 2},
};

// The place of a format in kFormats. The switch has no default, so that the compiler asks for every
// new format.
constexpr size_t place_of(Format format) {
  switch (format) {
    case Format::f32:
      return 0;
    case Format::f16:
      return 1;
    case Format::q4_0:
      return 2;
    case Format::q4_1:
      return 3;
    case Format::q5_0:
      return 4;
    case Format::q5_1:
      return 5;
    case Format::q8_0:
      return 6;
    case Format::q2_k:
      return 7;
    case Format::q3_k:
      return 8;
    case Format::q4_k:
      return 9;
    case Format::q5_k:
      return 10;
    case Format::q6_k:
      return 11;
    case Format::bf16:
      return 12;
  }
  __builtin_unreachable();
}

constexpr bool every_format_is_in_its_place() {
  for (size_t i = 0; i < kFormats.size(); ++i)
    if (place_of(kFormats[i].format) != i) return false;
  return true;
}
static_assert(every_format_is_in_its_place());

// ggml's tensor type numbers; an empty name was never used or has been withdrawn.
constexpr std::array<std::string_view, 42> kGgufTypeNames{
    "F32",    "F16",   "Q4_0",  "Q4_1",   "",      "",      "Q5_0",    "Q5_1",   "Q8_0",    "Q8_1",
    "Q2_K",   "Q3_K",  "Q4_K",  "Q5_K",   "Q6_K",  "Q8_K",  "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S",
    "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "I8",    "I16",   "I32",     "I64",    "F64",     "IQ1_M",
    "BF16",   "",      "",      "",       "TQ1_0", "TQ2_0", "",        "",       "",        "MXFP4",
};

}  // namespace

const FormatInfo& format_info(Format format) { return kFormats[place_of(format)]; }

std::optional<Format> format_from_gguf(uint32_t number) {
  for (const FormatInfo& info : kFormats)
    if (static_cast<uint32_t>(info.format) == number) return info.format;
  return std::nullopt;
}

std::string_view gguf_type_name(uint32_t number) {
  return number < kGgufTypeNames.size() ? kGgufTypeNames[number] : std::string_view{};
}

std::string known_formats() {
  std::string names;
  for (const FormatInfo& info : kFormats)
    names += (names.empty() ? "" : ", ") +
             std::string(gguf_type_name(static_cast<uint32_t>(info.format)));
  return names;
}

}  // namespace akunu
