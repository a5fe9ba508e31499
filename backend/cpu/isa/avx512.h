// The primitives of the level `avx512` (AVX-512 F, BW, DQ, VL and VNNI): the quantised matmuls have 16
// columns in a register and multiply four codes at once; floats use the words of avx2.h.
#pragma once

#include "cpu/isa/avx2.h"

namespace akunu::cpu {

struct Avx512Columns {
  static constexpr uint32_t kCount = 16;
  using Floats = __m512;
  using Ints = __m512i;

  // 32 registers: 16 sums, 8 codes, the products on their way.
  static constexpr uint32_t kTileRows = 16;
  static constexpr uint32_t kSignedOffset = 128;

  static Floats zero() { return _mm512_setzero_ps(); }
  static Floats broadcast(float x) { return _mm512_set1_ps(x); }
  static Floats load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Floats v) { _mm512_storeu_ps(p, v); }
  static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static Floats negate(Floats a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
  static Floats to_float(Ints v) { return _mm512_cvtepi32_ps(v); }
  static Floats low_halves(Ints v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
  // Not by a gather: where processors are patched against leaks of its data, it is very slow.
  static Floats gather_halves(const std::byte* first, uint64_t stride) {
    const __m128i low = Avx2Columns::eight_halves(first, stride);
    const __m128i high = Avx2Columns::eight_halves(first + 8 * stride, stride);
    return _mm512_cvtph_ps(_mm256_set_m128i(high, low));
  }

  static Ints integers(uint32_t x) { return _mm512_set1_epi32(static_cast<int32_t>(x)); }
  static Ints bit_and(Ints a, Ints b) { return _mm512_and_si512(a, b); }
  static Ints bit_or(Ints a, Ints b) { return _mm512_or_si512(a, b); }
  static Ints bit_xor(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
  static Ints subtract(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
  static Ints multiply_low(Ints a, Ints b) { return _mm512_mullo_epi32(a, b); }
  template <int kBits>
  static Ints shift_right(Ints v) {
    return _mm512_srli_epi32(v, kBits);
  }
  template <int kBits>
  static Ints shift_left(Ints v) {
    return _mm512_slli_epi32(v, kBits);
  }
  template <int kBits>
  static Ints shift_right_signed(Ints v) {
    return _mm512_srai_epi32(v, kBits);
  }

  static Ints broadcast_pair(const int16_t* p) {
    int32_t both;
    __builtin_memcpy(&both, p, sizeof(both));
    return _mm512_set1_epi32(both);
  }
  static Ints multiply_pairs(Ints a, Ints b) { return _mm512_madd_epi16(a, b); }

  static void transpose(const std::byte* first, uint64_t stride, Ints (&out)[4]) {
    const auto load = [&](uint64_t c) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(first + c * stride));
    };
    Ints rows[4];
    for (uint32_t i = 0; i < 4; ++i) {
      rows[i] = _mm512_castsi128_si512(load(i));
      rows[i] = _mm512_inserti32x4(rows[i], load(i + 4), 1);
      rows[i] = _mm512_inserti32x4(rows[i], load(i + 8), 2);
      rows[i] = _mm512_inserti32x4(rows[i], load(i + 12), 3);
    }
    const Ints low01 = _mm512_unpacklo_epi32(rows[0], rows[1]);
    const Ints high01 = _mm512_unpackhi_epi32(rows[0], rows[1]);
    const Ints low23 = _mm512_unpacklo_epi32(rows[2], rows[3]);
    const Ints high23 = _mm512_unpackhi_epi32(rows[2], rows[3]);
    out[0] = _mm512_unpacklo_epi64(low01, low23);
    out[1] = _mm512_unpackhi_epi64(low01, low23);
    out[2] = _mm512_unpacklo_epi64(high01, high23);
    out[3] = _mm512_unpackhi_epi64(high01, high23);
  }

  // Two chains: an instruction takes five cycles, and a sum of whole numbers has no order.
  template <uint32_t, uint32_t kRegisters>
  static Ints dot(Ints start, const Ints* codes, const int8_t* x) {
    Ints even = start, odd = _mm512_setzero_si512();
    for (uint32_t i = 0; i < kRegisters; i += 2) {
      even = _mm512_dpbusd_epi32(even, codes[i], broadcast_four(x + 4 * i));
      odd = _mm512_dpbusd_epi32(odd, codes[i + 1], broadcast_four(x + 4 * i + 4));
    }
    return _mm512_add_epi32(even, odd);
  }
  // The instruction wants the codes unsigned: 128 more than they are.
  static Ints signed_codes(Ints codes) {
    return _mm512_xor_si512(codes, _mm512_set1_epi8(static_cast<char>(0x80)));
  }
  template <uint32_t kRegisters>
  static Ints dot_signed(Ints start, const Ints* codes, const int8_t* x) {
    return dot<255, kRegisters>(start, codes, x);
  }

 private:
  static Ints broadcast_four(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof(four));
    return _mm512_set1_epi32(four);
  }
};

struct Avx512 : Avx2Words<Avx512> {
  using Columns = Avx512Columns;
  static constexpr uint32_t kTileRows = 4;  // 32 registers of 8 floats: 16 sums, 4 weights, 1 input
  static constexpr uint32_t kFloatTileColumns = 4;
  static constexpr uint32_t kSingleRowColumns = 4;
};

}  // namespace akunu::cpu
