// The primitives of the level `generic`: no instruction set assumed. Eight lanes as two vectors of
// four in the vector types of GCC and Clang, which become SSE2 on x86-64, NEON on ARM and plain
// registers elsewhere. The same primitives as isa/avx2.h. A multiply_add rounds twice here.
//
// 1. What it is for. Processors that no other level fits, and a second opinion in tests
//    (tests/unit/isa_levels.cpp). It is written to be right and short, and is as fast as what the
//    compiler makes of it.
// 2. Where to change it. A new primitive goes into every level's header; here in plain code.
#pragma once

#include <stdint.h>

#include <cstddef>

#include "cpu/isa/matmul_policy.h"
#include "cpu/isa/plain_bits.h"

namespace akunu::cpu {

struct GenericColumns;

struct Generic : PlainBits<Generic> {
  using Columns = GenericColumns;
  using Wide = Generic;  // where lanes may be as many as a register has
  typedef float Floats4 __attribute__((vector_size(16)));
  typedef int32_t Ints4 __attribute__((vector_size(16)));
  typedef uint32_t Bits4 __attribute__((vector_size(16)));

  struct Vector {
    Floats4 low, high;
  };

  static constexpr uint32_t kLanes = 8;
  // 16 registers of four lanes: a 2 x 2 tile holds 8 of them.
  static constexpr uint32_t kTileRows = 2;
  static constexpr uint32_t kFloatTileColumns = 2;
  static constexpr uint32_t kSingleRowColumns = 4;

  static Vector zero() { return broadcast(0.0f); }
  static Vector broadcast(float x) { return {Floats4{x, x, x, x}, Floats4{x, x, x, x}}; }
  static Vector load(const float* p) {
    Vector v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
  }
  static void store(float* p, Vector v) { __builtin_memcpy(p, &v, sizeof(v)); }

  // The first n lanes (1 to 8); the others are 0, and their memory isn't touched.
  static Vector load(const float* p, uint32_t n) {
    if (n >= kLanes) return load(p);
    float padded[kLanes] = {};
    for (uint32_t i = 0; i < n; ++i) padded[i] = p[i];
    return load(padded);
  }
  static void store(float* p, Vector v, uint32_t n) {
    if (n >= kLanes) return store(p, v);
    float padded[kLanes];
    store(padded, v);
    for (uint32_t i = 0; i < n; ++i) p[i] = padded[i];
  }

  static Vector load_half(const uint16_t* p) {
    return {half4(Bits4{p[0], p[1], p[2], p[3]}), half4(Bits4{p[4], p[5], p[6], p[7]})};
  }
  static Vector load_half(const uint16_t* p, uint32_t n) {
    if (n >= kLanes) return load_half(p);
    uint16_t padded[kLanes] = {};
    for (uint32_t i = 0; i < n; ++i) padded[i] = p[i];
    return load_half(padded);
  }
  static void store_half(uint16_t* p, Vector v) { store_half(p, v, kLanes); }
  static void store_half(uint16_t* p, Vector v, uint32_t n) {
    float lane[kLanes];
    store(lane, v);
    for (uint32_t i = 0; i < n; ++i) p[i] = float_to_half(lane[i]);
  }
  // bfloat16: the upper half of a float32.
  static Vector load_bfloat(const uint16_t* p) {
    return {floats(Bits4{p[0], p[1], p[2], p[3]} << 16),
            floats(Bits4{p[4], p[5], p[6], p[7]} << 16)};
  }
  static Vector load_bfloat(const uint16_t* p, uint32_t n) {
    if (n >= kLanes) return load_bfloat(p);
    uint16_t padded[kLanes] = {};
    for (uint32_t i = 0; i < n; ++i) padded[i] = p[i];
    return load_bfloat(padded);
  }
  // To nearest even; a NaN stays one.
  static void store_bfloat(uint16_t* p, Vector v) { store_bfloat(p, v, kLanes); }
  static void store_bfloat(uint16_t* p, Vector v, uint32_t n) {
    float lane[kLanes];
    store(lane, v);
    for (uint32_t i = 0; i < n; ++i) p[i] = float_to_bfloat(lane[i]);
  }
  // kLanes int8, and as many numbers of four bits (shift 0: the low ones of bytes, 4: the high ones), less 8.
  static Vector load_bytes(const int8_t* p) {
    float lane[kLanes];
    for (uint32_t i = 0; i < kLanes; ++i) lane[i] = p[i];
    return load(lane);
  }
  static Vector load_nibbles(const uint8_t* p, uint32_t shift) {
    int8_t codes[kLanes];
    for (uint32_t i = 0; i < kLanes; ++i) codes[i] = static_cast<int8_t>((p[i] >> shift & 15) - 8);
    return load_bytes(codes);
  }
  static float half_to_float(uint16_t h) { return half4(Bits4{h, 0, 0, 0})[0]; }
  static Vector broadcast_half(uint16_t h) { return broadcast(half_to_float(h)); }

  static Vector add(Vector a, Vector b) { return {a.low + b.low, a.high + b.high}; }
  static Vector subtract(Vector a, Vector b) { return {a.low - b.low, a.high - b.high}; }
  static Vector multiply(Vector a, Vector b) { return {a.low * b.low, a.high * b.high}; }
  static Vector divide(Vector a, Vector b) { return {a.low / b.low, a.high / b.high}; }
  static Vector multiply_add(Vector a, Vector b, Vector c) {
    return {a.low * b.low + c.low, a.high * b.high + c.high};
  }
  // b where either is NaN.
  static Vector maximum(Vector a, Vector b) {
    return {select4(a.low > b.low, a.low, b.low), select4(a.high > b.high, a.high, b.high)};
  }
  static Vector minimum(Vector a, Vector b) {
    return {select4(a.low < b.low, a.low, b.low), select4(a.high < b.high, a.high, b.high)};
  }
  static Vector absolute(Vector v) {
    return {floats(bits(v.low) & 0x7fffffffu), floats(bits(v.high) & 0x7fffffffu)};
  }
  // |magnitude| with the sign of `sign`.
  static Vector copy_sign(Vector magnitude, Vector sign) {
    const Vector a = absolute(magnitude);
    return {floats(bits(a.low) | (bits(sign.low) & 0x80000000u)),
            floats(bits(a.high) | (bits(sign.high) & 0x80000000u))};
  }
  // Half to even, for |v| < 2^22: adding 1.5 * 2^23 leaves no bit for a fraction.
  static Vector round(Vector v) { return {(v.low + kWhole) - kWhole, (v.high + kWhole) - kWhole}; }
  // a < b ? x : y, lane by lane.
  static Vector select_less(Vector a, Vector b, Vector x, Vector y) {
    return {select4(a.low < b.low, x.low, y.low), select4(a.high < b.high, x.high, y.high)};
  }
  // Bit i: a[i] < b[i] does not hold (NaN included).
  static uint32_t not_less(Vector a, Vector b) {
    return ~(mask4(a.low < b.low) | mask4(a.high < b.high) << 4) & 0xffu;
  }
  static uint32_t is_nan(Vector a) { return mask4(a.low != a.low) | mask4(a.high != a.high) << 4; }

  // 2^v for whole numbers in [-126, 127].
  static Vector power_of_two(Vector v) { return {power4(v.low), power4(v.high)}; }
  // For a normal x > 0: the mantissa in [1, 2), and the exponent.
  static Vector mantissa(Vector x) {
    return {floats((bits(x.low) & 0x007fffffu) | 0x3f800000u),
            floats((bits(x.high) & 0x007fffffu) | 0x3f800000u)};
  }
  static Vector exponent(Vector x) {
    return {__builtin_convertvector((Ints4)(bits(x.low) >> 23) - 127, Floats4),
            __builtin_convertvector((Ints4)(bits(x.high) >> 23) - 127, Floats4)};
  }

  static float sum_lanes(Vector v) {
    const Floats4 sum = v.low + v.high;
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
  }
  // sum_lanes of each.
  static void store_sums(float* p, const Vector (&v)[4]) {
    for (uint32_t i = 0; i < 4; ++i) p[i] = sum_lanes(v[i]);
  }
  static float max_lanes(Vector v) {
    const Floats4 m = select4(v.low > v.high, v.low, v.high);
    const float a = m[0] > m[2] ? m[0] : m[2];
    const float b = m[1] > m[3] ? m[1] : m[3];
    return a > b ? a : b;
  }

  // Rounds 32 numbers in [-127, 127] half to even and stores them, and the sums of both halves.
  static void store_rounded_bytes(int8_t* p, int16_t* half_sums, const Vector (&v)[4]) {
    int32_t sum = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      if (i % 2 == 0) sum = 0;
      float lane[kLanes];
      store(lane, round(v[i]));
      for (uint32_t j = 0; j < kLanes; ++j) {
        const int32_t q = static_cast<int32_t>(lane[j]);
        p[8 * i + j] = static_cast<int8_t>(q);
        sum += q;
      }
      half_sums[i / 2] = static_cast<int16_t>(sum);
    }
  }
  // The largest magnitude of 32 numbers, as its bits: infinities and NaN are larger than numbers.
  static uint32_t largest_magnitude(const Vector (&v)[4]) {
    uint32_t largest = 0;
    for (const Vector& eight : v) {
      const Vector magnitude = absolute(eight);
      for (uint32_t j = 0; j < 4; ++j) {
        const uint32_t low = bits(magnitude.low)[j], high = bits(magnitude.high)[j];
        const uint32_t larger = low > high ? low : high;
        largest = larger > largest ? larger : largest;
      }
    }
    return largest;
  }
  // Rounds 32 numbers that fit an int16 half to even and stores them.
  static void store_rounded_pairs(int16_t* p, const Vector (&v)[4]) {
    for (uint32_t i = 0; i < 4; ++i) {
      float lane[kLanes];
      store(lane, round(v[i]));
      for (uint32_t j = 0; j < kLanes; ++j) p[8 * i + j] = static_cast<int16_t>(lane[j]);
    }
  }

 private:
  friend struct GenericColumns;
  static constexpr float kWhole = 12582912.0f;  // 1.5 * 2^23

  static Bits4 bits(Floats4 v) { return (Bits4)v; }
  static Floats4 floats(Bits4 v) { return (Floats4)v; }
  static Floats4 select4(Ints4 mask, Floats4 a, Floats4 b) {
    return floats(((Bits4)mask & bits(a)) | (~(Bits4)mask & bits(b)));
  }
  static uint32_t mask4(Ints4 mask) {
    const Bits4 set = (Bits4)mask;
    return (set[0] & 1u) | (set[1] & 2u) | (set[2] & 4u) | (set[3] & 8u);
  }
  static Floats4 power4(Floats4 v) {
    return (Floats4)((__builtin_convertvector(v, Ints4) + 127) << 23);
  }
  // Shifted into place, a half's exponent is 112 too small. A subnormal half gets an exponent and
  // loses it again by subtraction: a product would do, but on a slow path of many processors.
  static Floats4 half4(Bits4 h) {
    const Bits4 magnitude = (h & 0x7fffu) << 13;
    const Bits4 special = (Bits4)(magnitude >= (0x7c00u << 13)) & 0x7f800000u;
    const Bits4 normal = (magnitude + (112u << 23)) | special;
    const Floats4 subnormal = floats(magnitude + (113u << 23)) - 0x1p-14f;
    const Floats4 size = select4((Ints4)(magnitude < (0x0400u << 13)), subnormal, floats(normal));
    return floats(bits(size) | (h & 0x8000u) << 16);
  }
  static uint16_t float_to_bfloat(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof(bits));
    if (x != x) return static_cast<uint16_t>(bits >> 16 | 0x40u);
    return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
  static uint16_t float_to_half(float x) {
    uint32_t all;
    __builtin_memcpy(&all, &x, sizeof(all));
    const uint32_t sign = all >> 16 & 0x8000u;
    const uint32_t a = all & 0x7fffffffu;
    if (a > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
    if (a >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
    if (a < 0x38800000u) {  // below 2^-14: the sum's unit in the last place is a half's
      float magnitude;
      __builtin_memcpy(&magnitude, &a, sizeof(a));
      magnitude += 0.5f;
      uint32_t rounded;
      __builtin_memcpy(&rounded, &magnitude, sizeof(rounded));
      return static_cast<uint16_t>(sign | (rounded - 0x3f000000u));
    }
    return static_cast<uint16_t>(sign | ((a + 0xfffu + (a >> 13 & 1u) - (112u << 23)) >> 13));
  }
};

// The primitives of the quantised matmuls: a lane is a column of the result, see kernels/panel.h.
struct GenericColumns {
  static constexpr uint32_t kCount = 4;
  using Floats = Generic::Floats4;
  using Ints = Generic::Ints4;  // an int32 per column, or four codes, or two int16

  using Policy = MatmulPolicy;

  static Floats zero() { return Floats{}; }
  static Floats broadcast(float x) { return Floats{x, x, x, x}; }
  static Floats load(const float* p) {
    Floats v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
  }
  static void store(float* p, Floats v) { __builtin_memcpy(p, &v, sizeof(v)); }
  static Floats add(Floats a, Floats b) { return a + b; }
  static Floats multiply(Floats a, Floats b) { return a * b; }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return a * b + c; }
  static Floats negate(Floats a) { return -a; }
  static Floats maximum(Floats a, Floats b) { return Generic::select4(a > b, a, b); }
  static Floats to_float(Ints v) { return __builtin_convertvector(v, Floats); }
  // The same bits.
  static Floats as_floats(Ints v) { return (Floats)v; }
  static Ints as_integers(Floats v) { return (Ints)v; }
  // The halves in the low 16 bits of each lane; the upper bits are ignored.
  static Floats low_halves(Ints v) { return Generic::half4((Generic::Bits4)v & 0xffffu); }
  static void both_halves(Ints v, Floats (&out)[2]) {
    out[0] = low_halves(v);
    out[1] = low_halves(shift_right<16>(v));
  }
  static Floats load_halves(const uint16_t* p) {
    return Generic::half4(Generic::Bits4{p[0], p[1], p[2], p[3]});
  }
  static Floats gather_halves(const std::byte* first, uint64_t stride) {
    const auto half = [&](uint64_t c) {
      uint16_t bits;
      __builtin_memcpy(&bits, first + c * stride, sizeof(bits));
      return uint32_t{bits};
    };
    return Generic::half4(Generic::Bits4{half(0), half(1), half(2), half(3)});
  }

  static Ints integers(uint32_t x) {
    const int32_t i = static_cast<int32_t>(x);
    return Ints{i, i, i, i};
  }
  static Ints bit_and(Ints a, Ints b) { return a & b; }
  static Ints bit_or(Ints a, Ints b) { return a | b; }
  static Ints bit_xor(Ints a, Ints b) { return a ^ b; }
  static Ints and_or(Ints a, Ints mask, Ints b) { return (a & mask) | b; }
  // The low 16 bits of every lane of one, the high ones of the other.
  static Ints low_and_high(Ints low, Ints high) {
    return (low & 0xffff) | (Ints)((Generic::Bits4)high & 0xffff0000u);
  }
  static Ints halves_swapped(Ints v) { return shift_left<16>(v) | shift_right<16>(v); }
  static Ints add(Ints a, Ints b) { return (Ints)((Generic::Bits4)a + (Generic::Bits4)b); }
  static Ints subtract(Ints a, Ints b) { return (Ints)((Generic::Bits4)a - (Generic::Bits4)b); }
  // Each byte (0 .. 15) becomes the number that is there in the table.
  static Ints look_up(Ints codes, const int8_t (&table)[16]) {
    uint8_t places[16];
    int8_t numbers[16];
    __builtin_memcpy(places, &codes, sizeof(places));
    for (uint32_t i = 0; i < 16; ++i) numbers[i] = table[places[i] & 15];
    __builtin_memcpy(&codes, numbers, sizeof(numbers));
    return codes;
  }
  // Byte b is 255 where bit 4 j + b of the lane is set, else 0: a product puts bit i at bit 8 i too.
  static Ints bytes_of_bits(Ints bits, uint32_t j) {
    const Ints four = (Ints)((Generic::Bits4)bits >> 4 * j) & 15;
    return multiply_low(multiply_low(four, integers(0x00204081u)) & 0x01010101, integers(255));
  }
  static Ints multiply_low(Ints a, Ints b) { return (Ints)((Generic::Bits4)a * (Generic::Bits4)b); }
  template <int kBits>
  static Ints shift_right(Ints v) {
    return (Ints)((Generic::Bits4)v >> kBits);
  }
  template <int kBits>
  static Ints shift_left(Ints v) {
    return (Ints)((Generic::Bits4)v << kBits);
  }
  template <int kBits>
  static Ints shift_right_signed(Ints v) {
    return v >> kBits;
  }

  // Four neighbouring bytes, or two int16, in every lane.
  static Ints broadcast_four(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof(four));
    return Ints{four, four, four, four};
  }
  // Of two uint16 in every lane.
  static Ints larger_of_pairs(Ints a, Ints b) {
    const auto of = [](Ints v) { return (Halfwords8)v; };
    return (Ints)(of(a) > of(b) ? of(a) : of(b));
  }

  // The largest magnitude of 32 halves, as one.
  static uint16_t largest_magnitude(const uint16_t* halves) {
    uint16_t most = 0;
    for (uint32_t i = 0; i < 32; ++i) {
      const uint16_t magnitude = halves[i] & 0x7fff;
      most = magnitude > most ? magnitude : most;
    }
    return most;
  }

  // Prefetches a line into L2.
  template <int>
  static void prefetch(const std::byte* line, const auto&) {
    __builtin_prefetch(line, 0, 2);
  }
  template <int kInto>
  static void prefetch_in_order(const std::byte* line, const auto& read) {
    prefetch<kInto>(line, read);
  }
  // out[j], lane c: bytes 4 j to 4 j + 3 of the 16 that begin at `first + c * stride`. Calls
  // prefetch(i, what has been read) after each 64 bytes.
  static void transpose(const std::byte* first, uint64_t stride, Ints (&out)[4],
                        const auto& prefetch) {
    int32_t rows[4][4];
    for (uint32_t c = 0; c < 4; ++c) __builtin_memcpy(rows[c], first + c * stride, 16);
    for (uint32_t j = 0; j < 4; ++j) out[j] = Ints{rows[0][j], rows[1][j], rows[2][j], rows[3][j]};
    prefetch(0, out[3]);
  }

  // sums += the products of each column's codes (0 .. 255) with x, in order. One product fits an
  // int16, so even and odd codes are multiplied apart.
  template <uint32_t, uint32_t kRegisters>
  static void dot(Ints (&sums)[1], const Ints* codes, const int8_t* const (&x)[1]) {
    for (uint32_t i = 0; i < kRegisters; ++i) {
      const int8_t* four = x[0] + 4 * i;
      const Ints even = products(codes[i] & 0x00ff00ff, four[0], four[2]);
      const Ints odd = products(shift_right<8>(codes[i]) & 0x00ff00ff, four[1], four[3]);
      sums[0] += (low16(even) + low16(odd)) + ((even >> 16) + (odd >> 16));
    }
  }
  // Signed codes as unsigned ones: 128 more than they are.
  static Ints signed_codes(Ints codes) { return codes ^ integers(0x80808080u); }
  template <uint32_t kRegisters>
  static void dot_signed(Ints (&sums)[1], const Ints* codes, const int8_t* const (&x)[1]) {
    dot<255, kRegisters>(sums, codes, x);
  }

 private:
  typedef int16_t Shorts8 __attribute__((vector_size(16)));
  typedef uint16_t Halfwords8 __attribute__((vector_size(16)));

  static Ints low16(Ints v) { return shift_left<16>(v) >> 16; }
  static Ints products(Ints codes, int16_t a, int16_t b) {
    return (Ints)((Shorts8)codes * Shorts8{a, b, a, b, a, b, a, b});
  }
};

}  // namespace akunu::cpu
