// The numbers that GGUF gives to types of values and of tensors.
#include "weight/gguf.h"

namespace akunu {
namespace {

// Sizes as ggml's C structs have them. 0: never given (36-38 never reached files), or withdrawn
// (4 Q4_2, 5 Q4_3, 31-33 Q4_0_4_4 and its kin): their size is nobody's knowledge any more.
constexpr std::array<GgufBlock, 42> kBlocks{{
    {1, 4},      //  0 F32
    {1, 2},      //  1 F16
    {32, 18},    //  2 Q4_0
    {32, 20},    //  3 Q4_1
    {0, 0},      //  4
    {0, 0},      //  5
    {32, 22},    //  6 Q5_0
    {32, 24},    //  7 Q5_1
    {32, 34},    //  8 Q8_0
    {32, 36},    //  9 Q8_1: two halves and 32 bytes (it had floats once; no file ever held it)
    {256, 84},   // 10 Q2_K
    {256, 110},  // 11 Q3_K
    {256, 144},  // 12 Q4_K
    {256, 176},  // 13 Q5_K
    {256, 210},  // 14 Q6_K
    {256, 292},  // 15 Q8_K
    {256, 66},   // 16 IQ2_XXS
    {256, 74},   // 17 IQ2_XS
    {256, 98},   // 18 IQ3_XXS
    {256, 50},   // 19 IQ1_S
    {32, 18},    // 20 IQ4_NL
    {256, 110},  // 21 IQ3_S
    {256, 82},   // 22 IQ2_S
    {256, 136},  // 23 IQ4_XS
    {1, 1},      // 24 I8
    {1, 2},      // 25 I16
    {1, 4},      // 26 I32
    {1, 8},      // 27 I64
    {1, 8},      // 28 F64
    {256, 56},   // 29 IQ1_M
    {1, 2},      // 30 BF16
    {0, 0},      // 31
    {0, 0},      // 32
    {0, 0},      // 33
    {256, 54},   // 34 TQ1_0
    {256, 66},   // 35 TQ2_0
    {0, 0},      // 36
    {0, 0},      // 37
    {0, 0},      // 38
    {32, 17},    // 39 MXFP4
    {64, 36},    // 40 NVFP4
    {128, 18},   // 41 Q1_0
}};

}  // namespace

std::optional<GgufBlock> gguf_block(uint32_t type) {
  if (type >= kBlocks.size() || kBlocks[type].block_size == 0) return std::nullopt;
  return kBlocks[type];
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
