// The primitives of the level `neon` (ARMv8.2 with the dot products of int8): eight float lanes in two
// registers. The same primitives as isa/avx2.h, and the same order of every sum, so that results are those
// of `generic` with one rounding where multiply_add has one (tests/unit/isa_levels.cpp). Templates over
// the level, so that no symbol goes without its name.
//
// 1. NeonColumns: the quantised matmuls, four columns in a register, products of signed codes
//    (SDOT). NeonPrimitives: vectors of floats, for all else.
// 2. What bounds it. As at the other levels: memory for one row, products for many. 32 registers
//    hold tiles of 16 rows.
#pragma once

#include <arm_neon.h>
#include <stdint.h>

#include <cstddef>

#include "cpu/isa/matmul_policy.h"
#include "cpu/isa/plain_bits.h"

namespace akunu::cpu {

struct NeonPolicy : MatmulPolicy {
  // 32 registers: 16 accumulators, 8 codes, the input and the products being computed.
  static constexpr uint32_t kTileRows = 16;
  static constexpr uint32_t kSignedOffset = 0;  // products of signed codes
  static constexpr bool kSignedProducts = true;
};

// The primitives of the quantised matmuls: a lane is a column of the result, see kernels/panel.h.
template <class Level>
struct NeonColumns {
  static constexpr uint32_t kCount = 4;
  using Floats = float32x4_t;
  using Ints = int32x4_t;  // an int32 per column, or four codes, or two int16

  using Policy = NeonPolicy;

  static Floats zero() { return vdupq_n_f32(0.0f); }
  static Floats broadcast(float x) { return vdupq_n_f32(x); }
  static Floats load(const float* p) { return vld1q_f32(p); }
  static void store(float* p, Floats v) { vst1q_f32(p, v); }
  static Floats add(Floats a, Floats b) { return vaddq_f32(a, b); }
  static Floats multiply(Floats a, Floats b) { return vmulq_f32(a, b); }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
  static Floats negate(Floats a) { return vnegq_f32(a); }
  static Floats to_float(Ints v) { return vcvtq_f32_s32(v); }
  // The halves in the low 16 bits of each lane; the upper bits are ignored.
  static Floats low_halves(Ints v) { return vcvt_f32_f16(vreinterpret_f16_s16(vmovn_s32(v))); }
  static void both_halves(Ints v, Floats (&out)[2]) {
    out[0] = low_halves(v);
    out[1] = vcvt_f32_f16(vreinterpret_f16_s16(vshrn_n_s32(v, 16)));
  }
  static Floats gather_halves(const std::byte* first, uint64_t stride) {
    uint16_t halves[kCount];
    for (uint32_t c = 0; c < kCount; ++c)
      __builtin_memcpy(&halves[c], first + c * stride, sizeof(halves[c]));
    return load_halves(halves);
  }
  static Floats load_halves(const uint16_t* p) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
  }

  static Ints integers(uint32_t x) { return vreinterpretq_s32_u32(vdupq_n_u32(x)); }
  static Ints bit_and(Ints a, Ints b) { return vandq_s32(a, b); }
  static Ints bit_or(Ints a, Ints b) { return vorrq_s32(a, b); }
  static Ints bit_xor(Ints a, Ints b) { return veorq_s32(a, b); }
  static Ints and_or(Ints a, Ints mask, Ints b) { return bit_or(bit_and(a, mask), b); }
  static Ints low_and_high(Ints low, Ints high) {
    return vbslq_s32(vdupq_n_u32(0xffff), low, high);
  }
  static Ints halves_swapped(Ints v) {
    return vreinterpretq_s32_s16(vrev32q_s16(vreinterpretq_s16_s32(v)));
  }
  static Floats as_floats(Ints v) { return vreinterpretq_f32_s32(v); }
  static Ints add(Ints a, Ints b) { return vaddq_s32(a, b); }
  static Ints subtract(Ints a, Ints b) { return vsubq_s32(a, b); }
  static Ints multiply_low(Ints a, Ints b) { return vmulq_s32(a, b); }
  static Ints look_up(Ints codes, const int8_t (&table)[16]) {
    return vreinterpretq_s32_s8(vqtbl1q_s8(vld1q_s8(table), vreinterpretq_u8_s32(codes)));
  }
  // As in avx2.h.
  static Ints bytes_of_bits(Ints bits, uint32_t j) {
    const uint32x4_t own = {0, 0x04040404, 0x08080808, 0x0c0c0c0c};
    const uint32x4_t byte = vaddq_u32(own, vdupq_n_u32(j / 2 * 0x01010101u));
    const uint8x16_t four =
        vreinterpretq_u8_u32(vdupq_n_u32(j % 2 == 0 ? 0x08040201u : 0x80402010u));
    return vreinterpretq_s32_u8(
        vtstq_u8(vqtbl1q_u8(vreinterpretq_u8_s32(bits), vreinterpretq_u8_u32(byte)), four));
  }
  // Operators, not intrinsics: those take no shift by 0.
  template <int kBits>
  static Ints shift_right(Ints v) {
    return vreinterpretq_s32_u32(vreinterpretq_u32_s32(v) >> kBits);
  }
  template <int kBits>
  static Ints shift_left(Ints v) {
    return vreinterpretq_s32_u32(vreinterpretq_u32_s32(v) << kBits);
  }
  template <int kBits>
  static Ints shift_right_signed(Ints v) {
    return v >> kBits;
  }

  // As in avx2.h, always to L2.
  template <int>
  static void prefetch(const std::byte* line, auto read) {
    asm volatile("prfm pldl2keep, %0" : : "Q"(*line), "w"(read));
  }
  template <int>
  static void prefetch_in_order(const std::byte* line, auto read) {
    asm volatile("prfm pldl2keep, %0" : : "Q"(*line), "w"(read) : "memory");
  }
  // out[j], lane c: bytes 4 j to 4 j + 3 of the 16 that begin at `first + c * stride`. Calls
  // prefetch(0, what has been read).
  static void transpose(const std::byte* first, uint64_t stride, Ints (&out)[4],
                        const auto& prefetch) {
    const auto load = [&](uint64_t c) {
      return vreinterpretq_s32_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(first + c * stride)));
    };
    const Ints a = load(0), b = load(1), c = load(2), d = load(3);
    prefetch(0, d);
    out[0] = join(vtrn1q_s32(a, b), vtrn1q_s32(c, d));
    out[1] = join(vtrn2q_s32(a, b), vtrn2q_s32(c, d));
    out[2] = join_upper(vtrn1q_s32(a, b), vtrn1q_s32(c, d));
    out[3] = join_upper(vtrn2q_s32(a, b), vtrn2q_s32(c, d));
  }

  // sums += the products of each column's codes (0 .. 127) with x.
  template <uint32_t kLargest, uint32_t kRegisters>
  static void dot(Ints (&sums)[1], const Ints* codes, const int8_t* const (&x)[1]) {
    static_assert(kLargest <= 127);
    dot_signed<kRegisters>(sums, codes, x);
  }
  // Signed codes as they are.
  static Ints signed_codes(Ints codes) { return codes; }
  template <uint32_t kRegisters>
  static void dot_signed(Ints (&sums)[1], const Ints* codes, const int8_t* const (&x)[1]) {
    static_assert(kRegisters % 4 == 0);
    Ints sum = sums[0];
    for (uint32_t i = 0; i < kRegisters; i += 4) {
      const int8x16_t sixteen = vld1q_s8(x[0] + 4 * i);
      sum = vdotq_laneq_s32(sum, vreinterpretq_s8_s32(codes[i]), sixteen, 0);
      sum = vdotq_laneq_s32(sum, vreinterpretq_s8_s32(codes[i + 1]), sixteen, 1);
      sum = vdotq_laneq_s32(sum, vreinterpretq_s8_s32(codes[i + 2]), sixteen, 2);
      sum = vdotq_laneq_s32(sum, vreinterpretq_s8_s32(codes[i + 3]), sixteen, 3);
    }
    sums[0] = sum;
  }

 private:
  // The lower two lanes of both, and the upper two.
  static Ints join(Ints a, Ints b) {
    return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
  }
  static Ints join_upper(Ints a, Ints b) {
    return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
  }
};

// The primitives of the level, which the level above it uses as well.
template <class Level>
struct NeonPrimitives : PlainBits<Level> {
  using Columns = NeonColumns<Level>;
  using Wide = Level;

  struct Vector {  // 8 floats
    float32x4_t low, high;
  };

  static constexpr uint32_t kLanes = 8;
  // Accumulators of a tile of floats, rows x columns, two registers each: 16 of 32 for sums.
  static constexpr uint32_t kTileRows = 4;
  static constexpr uint32_t kFloatTileColumns = 2;
  static constexpr uint32_t kSingleRowColumns = 4;

  static Vector zero() { return broadcast(0.0f); }
  static Vector broadcast(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
  static Vector load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
  static void store(float* p, Vector v) {
    vst1q_f32(p, v.low);
    vst1q_f32(p + 4, v.high);
  }

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
    return {Columns::load_halves(p), Columns::load_halves(p + 4)};
  }
  static Vector load_half(const uint16_t* p, uint32_t n) {
    if (n >= kLanes) return load_half(p);
    uint16_t padded[kLanes] = {};
    for (uint32_t i = 0; i < n; ++i) padded[i] = p[i];
    return load_half(padded);
  }
  static void store_half(uint16_t* p, Vector v) {
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v.low)));
    vst1_u16(p + 4, vreinterpret_u16_f16(vcvt_f16_f32(v.high)));
  }
  static void store_half(uint16_t* p, Vector v, uint32_t n) {
    if (n >= kLanes) return store_half(p, v);
    uint16_t padded[kLanes];
    store_half(padded, v);
    for (uint32_t i = 0; i < n; ++i) p[i] = padded[i];
  }
  // bfloat16: the upper half of a float32.
  static Vector load_bfloat(const uint16_t* p) {
    return {vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)),
            vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4), 16))};
  }
  static Vector load_bfloat(const uint16_t* p, uint32_t n) {
    if (n >= kLanes) return load_bfloat(p);
    uint16_t padded[kLanes] = {};
    for (uint32_t i = 0; i < n; ++i) padded[i] = p[i];
    return load_bfloat(padded);
  }
  // To nearest even; a NaN stays one.
  static void store_bfloat(uint16_t* p, Vector v) {
    vst1q_u16(p, vcombine_u16(four_bfloats(v.low), four_bfloats(v.high)));
  }
  static void store_bfloat(uint16_t* p, Vector v, uint32_t n) {
    if (n >= kLanes) return store_bfloat(p, v);
    uint16_t padded[kLanes];
    store_bfloat(padded, v);
    for (uint32_t i = 0; i < n; ++i) p[i] = padded[i];
  }
  // kLanes int8, and as many numbers of four bits (shift 0: the low ones of bytes, 4: the high ones), less 8.
  static Vector load_bytes(const int8_t* p) { return to_floats(vld1_s8(p)); }
  static Vector load_nibbles(const uint8_t* p, uint32_t shift) {
    const uint8x8_t codes =
        vand_u8(vshl_u8(vld1_u8(p), vdup_n_s8(static_cast<int8_t>(-static_cast<int32_t>(shift)))),
                vdup_n_u8(15));
    return to_floats(vsub_s8(vreinterpret_s8_u8(codes), vdup_n_s8(8)));
  }
  static float half_to_float(uint16_t h) { return vgetq_lane_f32(four_halves(h), 0); }
  static Vector broadcast_half(uint16_t h) { return {four_halves(h), four_halves(h)}; }

  static Vector add(Vector a, Vector b) {
    return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
  }
  static Vector subtract(Vector a, Vector b) {
    return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)};
  }
  static Vector multiply(Vector a, Vector b) {
    return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
  }
  static Vector divide(Vector a, Vector b) {
    return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)};
  }
  // a * b + c, rounded once.
  static Vector multiply_add(Vector a, Vector b, Vector c) {
    return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
  }
  // b where either is NaN, which vmaxq and vminq would make NaN.
  static Vector maximum(Vector a, Vector b) {
    return {maximum4(a.low, b.low), maximum4(a.high, b.high)};
  }
  static Vector minimum(Vector a, Vector b) {
    return {vbslq_f32(vcltq_f32(a.low, b.low), a.low, b.low),
            vbslq_f32(vcltq_f32(a.high, b.high), a.high, b.high)};
  }
  static Vector absolute(Vector v) { return {vabsq_f32(v.low), vabsq_f32(v.high)}; }
  // |magnitude| with the sign of `sign`.
  static Vector copy_sign(Vector magnitude, Vector sign) {
    const uint32x4_t mask = vdupq_n_u32(0x80000000u);
    return {vbslq_f32(mask, sign.low, magnitude.low), vbslq_f32(mask, sign.high, magnitude.high)};
  }
  // Half to even.
  static Vector round(Vector v) { return {vrndnq_f32(v.low), vrndnq_f32(v.high)}; }
  // a < b ? x : y, lane by lane.
  static Vector select_less(Vector a, Vector b, Vector x, Vector y) {
    return {vbslq_f32(vcltq_f32(a.low, b.low), x.low, y.low),
            vbslq_f32(vcltq_f32(a.high, b.high), x.high, y.high)};
  }
  // Bit i: a[i] < b[i] does not hold (NaN included).
  static uint32_t not_less(Vector a, Vector b) {
    return ~mask(vcltq_f32(a.low, b.low), vcltq_f32(a.high, b.high)) & 0xffu;
  }
  static uint32_t is_nan(Vector a) {
    return ~mask(vceqq_f32(a.low, a.low), vceqq_f32(a.high, a.high)) & 0xffu;
  }

  // 2^v for whole numbers in [-126, 127].
  static Vector power_of_two(Vector v) { return {power4(v.low), power4(v.high)}; }
  // For a normal x > 0: the mantissa in [1, 2), and the exponent.
  static Vector mantissa(Vector x) { return {mantissa4(x.low), mantissa4(x.high)}; }
  static Vector exponent(Vector x) { return {exponent4(x.low), exponent4(x.high)}; }

  static float sum_lanes(Vector v) {
    const float32x4_t four = vaddq_f32(v.low, v.high);
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  // sum_lanes of each.
  static void store_sums(float* p, const Vector (&v)[4]) {
    for (uint32_t i = 0; i < 4; ++i) p[i] = sum_lanes(v[i]);
  }
  static float max_lanes(Vector v) {
    const float32x4_t four = maximum4(v.low, v.high);
    const float32x2_t low = vget_low_f32(four), high = vget_high_f32(four);
    const float32x2_t two = vbsl_f32(vcgt_f32(low, high), low, high);
    const float a = vget_lane_f32(two, 0), b = vget_lane_f32(two, 1);
    return a > b ? a : b;
  }

  // Rounds 32 numbers in [-127, 127] half to even and stores them, and the sums of both halves.
  static void store_rounded_bytes(int8_t* p, int16_t* half_sums, const Vector (&v)[4]) {
    for (uint32_t i = 0; i < 2; ++i) {
      const int8x16_t bytes =
          vcombine_s8(vmovn_s16(rounded(v[2 * i])), vmovn_s16(rounded(v[2 * i + 1])));
      vst1q_s8(p + 16 * i, bytes);
      half_sums[i] = vaddlvq_s8(bytes);
    }
  }
  // The largest magnitude of 32 numbers, as its bits: infinities and NaN are larger than numbers.
  static uint32_t largest_magnitude(const Vector (&v)[4]) {
    uint32x4_t largest = vdupq_n_u32(0);
    for (const Vector& eight : v) {
      largest = vmaxq_u32(largest, vreinterpretq_u32_f32(vabsq_f32(eight.low)));
      largest = vmaxq_u32(largest, vreinterpretq_u32_f32(vabsq_f32(eight.high)));
    }
    return vmaxvq_u32(largest);
  }
  // Rounds 32 numbers that fit an int16 half to even and stores them.
  static void store_rounded_pairs(int16_t* p, const Vector (&v)[4]) {
    for (uint32_t i = 0; i < 4; ++i) vst1q_s16(p + 8 * i, rounded(v[i]));
  }

 private:
  static Vector to_floats(int8x8_t bytes) {
    const int16x8_t wide = vmovl_s8(bytes);
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide))),
            vcvtq_f32_s32(vmovl_s16(vget_high_s16(wide)))};
  }
  static uint16x4_t four_bfloats(float32x4_t v) {
    const uint32x4_t bits = vreinterpretq_u32_f32(v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x00400000));
    return vshrn_n_u32(vbslq_u32(vceqq_f32(v, v), rounded, quiet), 16);
  }
  static float32x4_t four_halves(uint16_t h) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(h)));
  }
  static float32x4_t maximum4(float32x4_t a, float32x4_t b) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
  }
  // Lanes of all ones as bits 0 to 7.
  static uint32_t mask(uint32x4_t low, uint32x4_t high) {
    const uint32x4_t bits = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(low, bits)) | vaddvq_u32(vandq_u32(high, bits)) << 4;
  }
  static float32x4_t power4(float32x4_t v) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(v), vdupq_n_s32(127)), 23));
  }
  static float32x4_t mantissa4(float32x4_t x) {
    const uint32x4_t fraction = vandq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0x007fffff));
    return vreinterpretq_f32_u32(vorrq_u32(fraction, vdupq_n_u32(0x3f800000)));
  }
  static float32x4_t exponent4(float32x4_t x) {
    const uint32x4_t biased = vshrq_n_u32(vreinterpretq_u32_f32(x), 23);
    return vcvtq_f32_s32(vsubq_s32(vreinterpretq_s32_u32(biased), vdupq_n_s32(127)));
  }
  static int16x8_t rounded(Vector v) {
    return vcombine_s16(vmovn_s32(vcvtnq_s32_f32(v.low)), vmovn_s32(vcvtnq_s32_f32(v.high)));
  }
};

struct Neon : NeonPrimitives<Neon> {};

}  // namespace akunu::cpu
