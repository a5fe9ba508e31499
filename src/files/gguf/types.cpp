// The numbers that GGUF gives to types of values and of tensors.
#include "files/gguf/gguf.h"

namespace akunu {
namespace {

// A tensor type of ggml. The table is indexed by the number that a GGUF file gives it.
struct TensorType {
  std::string_view name;
  uint32_t block_size;
  uint32_t block_bytes;
  std::optional<Format> format;  // if the engine has it
};

// Sizes as ggml's C structs have them. No name and no size: never given (36-38 never reached
// files), or withdrawn (4 Q4_2, 5 Q4_3, 31-33 Q4_0_4_4 and its kin): their size is nobody's
// knowledge any more.
constexpr std::array<TensorType, 42> kTypes{{
    {"F32", 1, 4, Format::f32},      //  0
    {"F16", 1, 2, Format::f16},      //  1
    {"Q4_0", 32, 18, Format::q4_0},  //  2
    {"Q4_1", 32, 20, Format::q4_1},  //  3
    {},                              //  4
    {},                              //  5
    {"Q5_0", 32, 22, Format::q5_0},  //  6
    {"Q5_1", 32, 24, Format::q5_1},  //  7
    {"Q8_0", 32, 34, Format::q8_0},  //  8
    {"Q8_1", 32, 36, {}},  //  9, two halves and 32 bytes (it had floats once; no file ever held it)
    {"Q2_K", 256, 84, Format::q2_k},        // 10
    {"Q3_K", 256, 110, Format::q3_k},       // 11
    {"Q4_K", 256, 144, Format::q4_k},       // 12
    {"Q5_K", 256, 176, Format::q5_k},       // 13
    {"Q6_K", 256, 210, Format::q6_k},       // 14
    {"Q8_K", 256, 292, {}},                 // 15
    {"IQ2_XXS", 256, 66, Format::iq2_xxs},  // 16
    {"IQ2_XS", 256, 74, Format::iq2_xs},    // 17
    {"IQ3_XXS", 256, 98, Format::iq3_xxs},  // 18
    {"IQ1_S", 256, 50, {}},                 // 19
    {"IQ4_NL", 32, 18, Format::iq4_nl},     // 20
    {"IQ3_S", 256, 110, Format::iq3_s},     // 21
    {"IQ2_S", 256, 82, Format::iq2_s},      // 22
    {"IQ4_XS", 256, 136, Format::iq4_xs},   // 23
    {"I8", 1, 1, {}},                       // 24
    {"I16", 1, 2, {}},                      // 25
    {"I32", 1, 4, {}},                      // 26
    {"I64", 1, 8, {}},                      // 27
    {"F64", 1, 8, {}},                      // 28
    {"IQ1_M", 256, 56, {}},                 // 29
    {"BF16", 1, 2, Format::bf16},           // 30
    {},                                     // 31
    {},                                     // 32
    {},                                     // 33
    {"TQ1_0", 256, 54, {}},                 // 34
    {"TQ2_0", 256, 66, {}},                 // 35
    {},                                     // 36
    {},                                     // 37
    {},                                     // 38
    {"MXFP4", 32, 17, Format::mxfp4},       // 39
    {"NVFP4", 64, 36, Format::nvfp4},       // 40
    {"Q1_0", 128, 18, {}},                  // 41
}};

}  // namespace

std::optional<GgufBlock> gguf_block(uint32_t type) {
  if (type >= kTypes.size() || kTypes[type].block_size == 0) return std::nullopt;
  return GgufBlock{kTypes[type].block_size, kTypes[type].block_bytes};
}

std::string_view gguf_type_name(uint32_t type) {
  return type < kTypes.size() ? kTypes[type].name : std::string_view();
}

std::optional<Format> format_from_gguf(uint32_t type) {
  return type < kTypes.size() ? kTypes[type].format : std::nullopt;
}

std::string gguf_types_with_a_format() {
  std::string names;
  for (const TensorType& type : kTypes)
    if (type.format) names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names;
}

std::string_view name_of(GgufValueType type) {
  switch (type) {
    case GgufValueType::uint8:
      return "UINT8";
    case GgufValueType::int8:
      return "INT8";
    case GgufValueType::uint16:
      return "UINT16";
    case GgufValueType::int16:
      return "INT16";
    case GgufValueType::uint32:
      return "UINT32";
    case GgufValueType::int32:
      return "INT32";
    case GgufValueType::float32:
      return "FLOAT32";
    case GgufValueType::boolean:
      return "BOOL";
    case GgufValueType::string:
      return "STRING";
    case GgufValueType::array:
      return "ARRAY";
    case GgufValueType::uint64:
      return "UINT64";
    case GgufValueType::int64:
      return "INT64";
    case GgufValueType::float64:
      return "FLOAT64";
  }
  __builtin_unreachable();
}

uint32_t size_of(GgufValueType type) {
  switch (type) {
    case GgufValueType::uint8:
    case GgufValueType::int8:
    case GgufValueType::boolean:
      return 1;
    case GgufValueType::uint16:
    case GgufValueType::int16:
      return 2;
    case GgufValueType::uint32:
    case GgufValueType::int32:
    case GgufValueType::float32:
      return 4;
    case GgufValueType::uint64:
    case GgufValueType::int64:
    case GgufValueType::float64:
      return 8;
    case GgufValueType::string:
    case GgufValueType::array:
      return 0;
  }
  __builtin_unreachable();
}

}  // namespace akunu
