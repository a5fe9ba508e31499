// The primitives of the level `avx2` (AVX2, FMA, F16C): eight float lanes in one register. The same
// words as isa/generic.h; kernels are written against either. Everything is a member of the tag, so
// that no symbol goes without the level's name.
#pragma once

#include <immintrin.h>
#include <stdint.h>

namespace akunu::cpu {

struct Avx2 {
  using Vector = __m256;  // 8 floats
  using Ints = __m256i;   // 8 int32
  using Bytes = __m256i;  // 32 int8

  static constexpr uint32_t kLanes = 8;
  // Accumulators of a matmul tile, rows x columns. 16 registers: 12 sums, 3 weights, 1 activation;
  // a quantised tile also needs two scales, a product and the integers on their way.
  static constexpr uint32_t kTileRows = 4;
  static constexpr uint32_t kFloatTileColumns = 3;
  static constexpr uint32_t kQuantTileColumns = 2;
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

  static float sum_lanes(Vector v) {
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_shuffle_ps(sum, sum, 1)));
  }
  static float max_lanes(Vector v) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
  }

  // Integers: groups of 32 int8.
  static Bytes load_bytes(const int8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  // 16 bytes to 32 numbers 0..15: the low nibbles, then the high ones.
  static Bytes unpack_nibbles(const uint8_t* p) {
    const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m256i both = _mm256_set_m128i(_mm_srli_epi16(packed, 4), packed);
    return _mm256_and_si256(both, _mm256_set1_epi8(0x0f));
  }
  // Sums of products of four neighbours. Weights 0..15.
  static Ints dot_nibbles(Bytes weights, Bytes input) {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(weights, input), _mm256_set1_epi16(1));
  }
  // Weights -128..127, input -127..127: a pair sums to 2 * 128 * 127 at most, within an int16.
  static Ints dot_bytes(Bytes weights, Bytes input) {
    const __m256i pairs =
        _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(input, weights));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  }
  // x in lane 0, 0 elsewhere.
  static Ints first_lane(int32_t x) { return _mm256_zextsi128_si256(_mm_cvtsi32_si128(x)); }
  static Ints subtract_ints(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
  static Vector to_float(Ints v) { return _mm256_cvtepi32_ps(v); }
  // Rounds 32 numbers in [-127, 127] half to even and stores them; returns their sum.
  static int32_t store_rounded_bytes(int8_t* p, const Vector (&v)[4]) {
    const __m256i a = _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1]));
    const __m256i b = _mm256_packs_epi32(_mm256_cvtps_epi32(v[2]), _mm256_cvtps_epi32(v[3]));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b), order);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), bytes);
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
    __m256i sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1)));
  }

 private:
  static __m256i first(uint32_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

}  // namespace akunu::cpu
