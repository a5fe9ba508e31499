// The primitives of the level `avx2` (AVX2, FMA, F16C): eight float lanes in one register. The same
// primitives as isa/generic.h; kernels are written against either. Everything is a member of the level's
// type or of a template over it, so that no symbol goes without the level's name.
//
// 1. Avx2Primitives: vectors of floats, for norms, attention, sampling and weights of floats. The
//    primitives of quantised matmuls are in avx2_columns.h.
// 2. What a kernel may assume of a level is what generic.h has too; what a level does differently
//    is its policy (matmul_policy.h). A new primitive goes into every level's header.
#pragma once

#include <immintrin.h>
#include <stdint.h>

#include <cstddef>

#include "cpu/isa/avx2_columns.h"

namespace akunu::cpu {

// The primitives for floats, which the levels above avx2 use as well.
template <class Level>
struct Avx2Primitives {
  using Vector = __m256;  // 8 floats

  static constexpr uint32_t kLanes = 8;
  // Accumulators of a tile of floats, rows x columns. 16 registers: 12 sums, 3 weights, 1 input.
  static constexpr uint32_t kTileRows = 4;
  static constexpr uint32_t kFloatTileColumns = 3;
  static constexpr uint32_t kSingleRowColumns = 4;  // four chains hide the latency of an FMA

  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector broadcast(float x) { return _mm256_set1_ps(x); }
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }

  // The first n lanes (1 to 8); the others are 0, and their memory isn't touched.
  static Vector load(const float* p, uint32_t n) {
    return n >= kLanes ? load(p) : _mm256_maskload_ps(p, first(n));
  }
  static void store(float* p, Vector v, uint32_t n) {
    if (n >= kLanes)
      store(p, v);
    else
      _mm256_maskstore_ps(p, first(n), v);
  }

  static Vector load_half(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Vector load_half(const uint16_t* p, uint32_t n) {
    if (n >= kLanes) return load_half(p);
    uint16_t padded[kLanes] = {};
    for (uint32_t i = 0; i < n; ++i) padded[i] = p[i];
    return load_half(padded);
  }
  static void store_half(uint16_t* p, Vector v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static void store_half(uint16_t* p, Vector v, uint32_t n) {
    if (n >= kLanes) return store_half(p, v);
    uint16_t padded[kLanes];
    store_half(padded, v);
    for (uint32_t i = 0; i < n; ++i) p[i] = padded[i];
  }
  // bfloat16: the upper half of a float32.
  static Vector load_bfloat(const uint16_t* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static Vector load_bfloat(const uint16_t* p, uint32_t n) {
    if (n >= kLanes) return load_bfloat(p);
    uint16_t padded[kLanes] = {};
    for (uint32_t i = 0; i < n; ++i) padded[i] = p[i];
    return load_bfloat(padded);
  }
  // To nearest even; a NaN stays one.
  static void store_bfloat(uint16_t* p, Vector v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(upper, upper), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }
  static void store_bfloat(uint16_t* p, Vector v, uint32_t n) {
    if (n >= kLanes) return store_bfloat(p, v);
    uint16_t padded[kLanes];
    store_bfloat(padded, v);
    for (uint32_t i = 0; i < n; ++i) p[i] = padded[i];
  }
  // kLanes int8, and as many numbers of four bits (shift 0: the low ones of bytes, 4: the high ones), less 8.
  static Vector load_bytes(const int8_t* p) {
    return to_floats(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static Vector load_nibbles(const uint8_t* p, uint32_t shift) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    const __m128i codes = _mm_and_si128(
        _mm_srl_epi16(bytes, _mm_cvtsi32_si128(static_cast<int32_t>(shift))), _mm_set1_epi8(15));
    return to_floats(_mm_sub_epi8(codes, _mm_set1_epi8(8)));
  }
  static float half_to_float(uint16_t h) { return _cvtsh_ss(h); }
  // Spread before it is converted: one instruction less on the port that shuffles.
  static Vector broadcast_half(uint16_t h) {
    return _mm256_cvtph_ps(_mm_set1_epi16(static_cast<int16_t>(h)));
  }

  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector subtract(Vector a, Vector b) { return _mm256_sub_ps(a, b); }
  static Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
  static Vector divide(Vector a, Vector b) { return _mm256_div_ps(a, b); }
  // a * b + c, rounded once.
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  // b where either is NaN.
  static Vector maximum(Vector a, Vector b) { return _mm256_max_ps(a, b); }
  static Vector minimum(Vector a, Vector b) { return _mm256_min_ps(a, b); }
  static Vector absolute(Vector v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v); }
  // |magnitude| with the sign of `sign`.
  static Vector copy_sign(Vector magnitude, Vector sign) {
    return _mm256_or_ps(absolute(magnitude), _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
  }
  // Half to even.
  static Vector round(Vector v) {
    return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  // a < b ? x : y, lane by lane.
  static Vector select_less(Vector a, Vector b, Vector x, Vector y) {
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
  }
  // Bit i: a[i] < b[i] does not hold (NaN included).
  static uint32_t not_less(Vector a, Vector b) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_NLT_UQ)));
  }
  static uint32_t is_nan(Vector a) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)));
  }

  // 2^v for whole numbers in [-126, 127].
  static Vector power_of_two(Vector v) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(v), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
  }
  // For a normal x > 0: the mantissa in [1, 2), and the exponent.
  static Vector mantissa(Vector x) {
    const __m256i bits = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x007fffff));
    return _mm256_castsi256_ps(_mm256_or_si256(bits, _mm256_set1_epi32(0x3f800000)));
  }
  static Vector exponent(Vector x) {
    const __m256i biased = _mm256_srli_epi32(_mm256_castps_si256(x), 23);
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(biased, _mm256_set1_epi32(127)));
  }

  // A word of 32 bits for each lane.
  using Bits = __m256i;

  static Bits broadcast_bits(uint32_t x) { return _mm256_set1_epi32(static_cast<int32_t>(x)); }
  static Bits load_bits(const uint32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  // first, first + 1, ...
  static Bits count_from(uint32_t first) {
    return _mm256_add_epi32(broadcast_bits(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static uint32_t first_lane(Bits v) { return static_cast<uint32_t>(_mm256_cvtsi256_si32(v)); }
  static Bits exclusive_or(Bits a, Bits b) { return _mm256_xor_si256(a, b); }
  // Both halves of the products with `factor`. The instruction takes every other lane.
  static void multiply_wide(Bits v, uint32_t factor, Bits& high, Bits& low) {
    constexpr int kOdd = 0xaa;  // lanes
    const Bits even = _mm256_mul_epu32(v, broadcast_bits(factor));
    const Bits odd = _mm256_mul_epu32(_mm256_srli_epi64(v, 32), broadcast_bits(factor));
    high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, kOdd);
    low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), kOdd);
  }
  // The upper 24 bits of each as a number.
  static Vector upper_24(Bits v) { return _mm256_cvtepi32_ps(_mm256_srli_epi32(v, 8)); }

  static float sum_lanes(Vector v) {
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_shuffle_ps(sum, sum, 1)));
  }
  // sum_lanes of each.
  static void store_sums(float* p, const Vector (&v)[4]) {
    const auto halves_of = [](Vector a, Vector b) {  // those of a, and those of b
      return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    };
    const __m256d even = _mm256_castps_pd(halves_of(v[0], v[2]));
    const __m256d odd = _mm256_castps_pd(halves_of(v[1], v[3]));
    const Vector pairs = _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(even, odd)),
                                       _mm256_castpd_ps(_mm256_unpackhi_pd(even, odd)));
    const __m128 first_two = _mm256_castps256_ps128(pairs);
    const __m128 last_two = _mm256_extractf128_ps(pairs, 1);
    _mm_storeu_ps(p, _mm_add_ps(_mm_shuffle_ps(first_two, last_two, 0x88),
                                _mm_shuffle_ps(first_two, last_two, 0xdd)));
  }
  static float max_lanes(Vector v) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
  }

  // Rounds 32 numbers in [-127, 127] half to even and stores them, and the sums of both halves.
  static void store_rounded_bytes(int8_t* p, int16_t* half_sums, const Vector (&v)[4]) {
    const __m256i a = _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1]));
    const __m256i b = _mm256_packs_epi32(_mm256_cvtps_epi32(v[2]), _mm256_cvtps_epi32(v[3]));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b), order);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), bytes);
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
    const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    const __m256i eights = _mm256_add_epi32(fours, _mm256_shuffle_epi32(fours, 0xb1));
    const __m256i halves = _mm256_add_epi32(eights, _mm256_shuffle_epi32(eights, 0x4e));
    half_sums[0] = static_cast<int16_t>(_mm256_cvtsi256_si32(halves));
    half_sums[1] = static_cast<int16_t>(_mm256_extract_epi32(halves, 4));
  }
  // The largest magnitude of 32 numbers, as its bits: infinities and NaN are larger than numbers.
  static uint32_t largest_magnitude(const Vector (&v)[4]) {
    const auto magnitude = [&](uint32_t i) { return _mm256_castps_si256(absolute(v[i])); };
    const __m256i eight = _mm256_max_epi32(_mm256_max_epi32(magnitude(0), magnitude(1)),
                                           _mm256_max_epi32(magnitude(2), magnitude(3)));
    __m128i largest =
        _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    largest = _mm_max_epi32(largest, _mm_shuffle_epi32(largest, 0x4e));
    largest = _mm_max_epi32(largest, _mm_shuffle_epi32(largest, 0xb1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(largest));
  }
  // Rounds 32 numbers that fit an int16 half to even and stores them.
  static void store_rounded_pairs(int16_t* p, const Vector (&v)[4]) {
    for (uint32_t i = 0; i < 4; i += 2) {
      const __m256i packed =
          _mm256_packs_epi32(_mm256_cvtps_epi32(v[i]), _mm256_cvtps_epi32(v[i + 1]));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8 * i),
                          _mm256_permute4x64_epi64(packed, 0xd8));
    }
  }

 private:
  static Vector to_floats(__m128i bytes) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)); }
  static __m256i first(uint32_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

struct Avx2 : Avx2Primitives<Avx2> {
  using Columns = Avx2Columns<Avx2>;
  using Wide = Avx2;
};

}  // namespace akunu::cpu
