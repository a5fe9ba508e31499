// F32, F16 and BF16: rounded to the nearest, no blocks.
#include <cmath>
#include <cstring>

#include "quantize/half.h"
#include "quantize/rows.h"

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {
namespace {

bool encode_f32(std::span<const float> x, std::span<const float>, std::byte* out) {
  std::memcpy(out, x.data(), x.size_bytes());
  return true;
}

void decode_f32(const std::byte* in, std::span<float> x) {
  std::memcpy(x.data(), in, x.size_bytes());
}

template <uint16_t (*narrow)(float), float (*widen)(uint16_t)>
bool encode_16(std::span<const float> x, std::span<const float>, std::byte* out) {
  bool all_fit = true;
  for (size_t i = 0; i < x.size(); ++i) {
    const uint16_t bits = narrow(x[i]);
    all_fit &= std::isfinite(widen(bits));
    std::memcpy(out + 2 * i, &bits, 2);
  }
  return all_fit;
}

template <float (*widen)(uint16_t)>
void decode_16(const std::byte* in, std::span<float> x) {
  for (size_t i = 0; i < x.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, in + 2 * i, 2);
    x[i] = widen(bits);
  }
}

constexpr RowCoder kFloatCoders[] = {
    {0, encode_f32, decode_f32},
    {1, encode_16<half_from_float, float_from_half>, decode_16<float_from_half>},
    {30, encode_16<bf16_from_float, float_from_bf16>, decode_16<float_from_bf16>},
};

}  // namespace

std::span<const RowCoder> float_coders() { return kFloatCoders; }

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
