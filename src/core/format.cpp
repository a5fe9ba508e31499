#include "core/format.h"

#include <array>

namespace akunu {
namespace {

constexpr std::array kFormats{
    FormatInfo{Format::f32, "f32", 1, 4},
    FormatInfo{Format::f16, "f16", 1, 2},
    FormatInfo{Format::q4_0, "q4_0", 32, 18},
    FormatInfo{Format::q8_0, "q8_0", 32, 34},
};

// ggml's tensor type numbers; an empty name was never used or has been withdrawn.
constexpr std::array<std::string_view, 42> kGgufTypeNames{
    "F32",    "F16",   "Q4_0",  "Q4_1",   "",      "",      "Q5_0",    "Q5_1",   "Q8_0",    "Q8_1",
    "Q2_K",   "Q3_K",  "Q4_K",  "Q5_K",   "Q6_K",  "Q8_K",  "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S",
    "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "I8",    "I16",   "I32",     "I64",    "F64",     "IQ1_M",
    "BF16",   "",      "",      "",       "TQ1_0", "TQ2_0", "",        "",       "",        "MXFP4",
};

}  // namespace

const FormatInfo& format_info(Format format) {
  switch (format) {
    case Format::f32:
      return kFormats[0];
    case Format::f16:
      return kFormats[1];
    case Format::q4_0:
      return kFormats[2];
    case Format::q8_0:
      return kFormats[3];
  }
  __builtin_unreachable();
}

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
