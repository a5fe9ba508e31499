// BF16, the upper half of a float32; see formats.h for what a trait is.
#pragma once

#include "cpu/kernels/formats.h"

namespace akunu::cpu {

template <class Isa>
struct BF16 : FloatFormat<Isa, BF16<Isa>, uint16_t> {
  using Vector = typename Isa::Vector;
  static constexpr int32_t kFormat = number_of(Format::bf16);

  static float element(const std::byte* row, uint64_t i) {
    const uint32_t bits = uint32_t{load_unaligned<uint16_t>(row + 2 * i)} << 16;
    float value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
  }
  static Vector load(const std::byte* row, uint64_t i, uint32_t n) {
    return Isa::load_bfloat(reinterpret_cast<const uint16_t*>(row + 2 * i), n);
  }
};

}  // namespace akunu::cpu
