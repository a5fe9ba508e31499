// The primitives of the level `avx512` (AVX-512 F, BW, DQ, VL and VNNI): the quantised matmuls have 16
// columns in a register and multiply four codes at once; floats use the primitives of avx2.h.
//
// 1. What bounds it. One row: transposing and shifting (of 109 instructions for two groups of
//    Q4_0, 47 transpose). Many rows: vpdpbusd, and the 32 registers (Avx512Policy counts them).
// 2. What is done about it. Two panels side by side, six rows (row_tile_multi_panel.h); codes of
//    Q2_K and Q3_K are multiplied with their small scales when a panel is packed (kWholeBytes).
// 3. What was tried and did not pay. Tiles of 5, 7 and 8 rows, three interleaved rows.
//    docs/decisions/weights-and-formats-on-the-cpu.md.
#pragma once

#include "cpu/isa/avxvnni.h"

namespace akunu::cpu {

struct Avx512Policy : X86Policy {
  // 32 registers: 16 accumulators, 8 codes, the products being computed.
  static constexpr uint32_t kTileRows = 16;
  // 12 accumulators, 12 dot products, two registers of codes, four bytes of a row. With 8 rows
  // accumulators spill; the int16 path has time for that.
  static constexpr uint32_t kMultiPanelRows = 6, kInt16Rows = 8;
  static constexpr bool kWholeBytes = true, kScalesInPlace = true, kHalfWidth = true;
};

template <class Level>
struct Avx512Columns {
  static constexpr uint32_t kCount = 16;
  using Floats = __m512;
  using Ints = __m512i;

  using Policy = Avx512Policy;

  static Floats zero() { return _mm512_setzero_ps(); }
  static Floats broadcast(float x) { return _mm512_set1_ps(x); }
  static Floats load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Floats v) { _mm512_storeu_ps(p, v); }
  static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static Floats negate(Floats a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
  static Floats maximum(Floats a, Floats b) { return _mm512_max_ps(a, b); }
  static Floats to_float(Ints v) { return _mm512_cvtepi32_ps(v); }
  static Ints to_integer(Floats v) { return _mm512_cvtps_epi32(v); }
  static Floats as_floats(Ints v) { return _mm512_castsi512_ps(v); }
  static Ints as_integers(Floats v) { return _mm512_castps_si512(v); }
  static Floats low_halves(Ints v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
  static Floats join_halves(__m256 first, __m256 second) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(first), second, 1);
  }
  static void both_halves(Ints v, Floats (&out)[2]) {
    out[0] = low_halves(v);
    out[1] = low_halves(shift_right<16>(v));
  }
  static Floats load_halves(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  // Not by a gather: where processors are patched against leaks of its data, it is very slow.
  static Floats gather_halves(const std::byte* first, uint64_t stride) {
    const __m128i low = EightColumns<Level>::eight_halves(first, stride);
    const __m128i high = EightColumns<Level>::eight_halves(first + 8 * stride, stride);
    return _mm512_cvtph_ps(_mm256_set_m128i(high, low));
  }

  static void store_integers(void* p, Ints v) { _mm512_storeu_si512(p, v); }
  static Ints integers(uint32_t x) { return _mm512_set1_epi32(static_cast<int32_t>(x)); }
  static Ints bit_and(Ints a, Ints b) { return _mm512_and_si512(a, b); }
  static Ints bit_or(Ints a, Ints b) { return _mm512_or_si512(a, b); }
  static Ints bit_xor(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
  static Ints and_or(Ints a, Ints mask, Ints b) {
    constexpr int kAndOr = 0xea;  // of the truth table's bits
    return _mm512_ternarylogic_epi32(a, mask, b, kAndOr);
  }
  static Ints low_and_high(Ints low, Ints high) {
    return _mm512_mask_blend_epi16(0xaaaaaaaa, low, high);
  }
  static Ints halves_swapped(Ints v) { return _mm512_rol_epi32(v, 16); }
  static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static Ints subtract(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
  static Ints multiply_low(Ints a, Ints b) { return _mm512_mullo_epi32(a, b); }
  static Ints look_up(Ints codes, const int8_t (&table)[16]) {
    const __m128i numbers = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(numbers), codes);
  }
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

  static Ints broadcast_four(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof(four));
    return _mm512_set1_epi32(four);
  }
  // As EightColumns.
  static void add_sixteen_where_set(Ints bits, Ints (&codes)[8]) {
    const Ints four[] = {integers(0x08040201u), integers(0x80402010u)};
    for (uint32_t j = 0; j < 8; ++j) {
      const Ints byte = _mm512_shuffle_epi8(
          bits, _mm512_broadcast_i32x4(EightColumns<Level>::byte_of_lanes(j / 2)));
      codes[j] = _mm512_mask_add_epi8(codes[j], _mm512_test_epi8_mask(byte, four[j % 2]), codes[j],
                                      _mm512_set1_epi8(16));
    }
  }
  static Ints bytes_of_bits(Ints bits, uint32_t j) {
    const Ints four = integers(j % 2 == 0 ? 0x08040201u : 0x80402010u);
    const Ints byte = _mm512_shuffle_epi8(
        bits, _mm512_broadcast_i32x4(EightColumns<Level>::byte_of_lanes(j / 2)));
    return _mm512_movm_epi8(_mm512_test_epi8_mask(byte, four));
  }
  static Ints larger_of_pairs(Ints a, Ints b) { return _mm512_max_epu16(a, b); }
  static uint16_t largest_magnitude(const uint16_t* halves) {
    return EightColumns<Level>::largest_magnitude(halves);
  }

  static Ints add_pairs(Ints sum, Ints a, Ints b) {
    return keep_order(_mm512_dpwssd_epi32(sum, a, b));
  }

  template <int kInto>
  static void prefetch(const std::byte* line, auto read) {
    EightColumns<Level>::template prefetch<kInto>(line, read);
  }
  template <int kInto>
  static void prefetch_in_order(const std::byte* line, auto read) {
    EightColumns<Level>::template prefetch_in_order<kInto>(line, read);
  }
  static void transpose(const std::byte* first, uint64_t stride, Ints (&out)[4],
                        const auto& prefetch) {
    RowAddresses<Level> row(first, stride), later(first + 8 * stride, stride);
    const auto load = [](const std::byte* p) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    };
    for (uint32_t i = 0; i < 4; ++i) {
      out[i] = _mm512_castsi128_si512(load(row(i)));
      out[i] = _mm512_inserti32x4(out[i], load(row(i + 4)), 1);
      out[i] = _mm512_inserti32x4(out[i], load(later(i)), 2);
      out[i] = _mm512_inserti32x4(out[i], load(later(i + 4)), 3);
      prefetch(i, out[i]);
    }
    transpose_lanes(out);
  }
  static void transpose(const std::byte* first, uint64_t stride, Ints (&out)[8],
                        const auto& prefetch) {
    RowAddresses<Level> row(first, stride), later(first + 8 * stride, stride);
    const auto load = [](const std::byte* p) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    };
    Ints low[4], high[4];  // of the first eight columns, and of the others
    for (uint32_t i = 0; i < 4; ++i) {
      low[i] = _mm512_inserti64x4(_mm512_castsi256_si512(load(row(i))), load(row(i + 4)), 1);
      prefetch(2 * i, low[i]);
      high[i] = _mm512_inserti64x4(_mm512_castsi256_si512(load(later(i))), load(later(i + 4)), 1);
      prefetch(2 * i + 1, high[i]);
    }
    transpose_lanes(low);
    transpose_lanes(high);
    for (uint32_t j = 0; j < 4; ++j) {
      out[j] = _mm512_shuffle_i32x4(low[j], high[j], 0x88);      // even lanes of 128 bits
      out[4 + j] = _mm512_shuffle_i32x4(low[j], high[j], 0xdd);  // odd ones
    }
  }

  template <uint32_t, uint32_t kRegisters>
  static void dot(Ints (&sums)[1], const Ints* codes, const auto (&x)[1]) {
    dot_in_chains<Avx512Columns, kRegisters>(sums[0], codes, x[0], add_products);
  }
  template <uint32_t kUpperFactor, uint32_t kRegisters>
  static void dot_upper_scaled(Ints& sum, const Ints* codes, const auto& x) {
    dot_in_chains<Avx512Columns, kRegisters, kUpperFactor>(sum, codes, x, add_products);
  }
  template <uint32_t, uint32_t kRegisters, class Registers, uint32_t N>
  static void dot(Registers (&sums)[N], const Registers* codes, const auto (&x)[N]) {
    dot_interleaved<Avx512Columns, kRegisters>(sums, codes, x, [](Ints sum, Ints some, Ints four) {
      return keep_order(add_products(sum, some, four));
    });
  }
  // The instruction wants the codes unsigned: 128 more than they are.
  static Ints signed_codes(Ints codes) {
    return _mm512_xor_si512(codes, _mm512_set1_epi8(static_cast<char>(0x80)));
  }
  template <uint32_t kRegisters>
  static void dot_signed(auto& sums, const auto* codes, const auto& x) {
    dot<255, kRegisters>(sums, codes, x);
  }

 private:
  static Ints add_products(Ints sum, Ints some, Ints four) {
    return _mm512_dpbusd_epi32(sum, some, four);
  }
  // Among several rows: see dot_interleaved.
  static Ints keep_order(Ints sum) {
    asm("" : "+v"(sum));
    return sum;
  }
  // In each lane of 128 bits.
  static void transpose_lanes(Ints (&rows)[4]) {
    const Ints low01 = _mm512_unpacklo_epi32(rows[0], rows[1]);
    const Ints high01 = _mm512_unpackhi_epi32(rows[0], rows[1]);
    const Ints low23 = _mm512_unpacklo_epi32(rows[2], rows[3]);
    const Ints high23 = _mm512_unpackhi_epi32(rows[2], rows[3]);
    rows[0] = _mm512_unpacklo_epi64(low01, low23);
    rows[1] = _mm512_unpackhi_epi64(low01, low23);
    rows[2] = _mm512_unpacklo_epi64(high01, high23);
    rows[3] = _mm512_unpackhi_epi64(high01, high23);
  }
};

template <class Level>
struct Avx512Products {
  static __m256i add_bytes(__m256i sum, __m256i codes, __m256i four) {
    return _mm256_dpbusd_epi32(sum, codes, four);
  }
};
// Half as many columns, with this level's instructions: a single row takes half a panel at a time
// where a whole one does not fit L1 (kernels/panel.h).
template <class Level>
struct Avx512HalfColumns : VnniColumns<Level, Avx512Products<Level>> {
  using typename EightColumns<Level>::Floats;
  using typename EightColumns<Level>::Ints;

  static Floats low_halves(Ints v) { return _mm256_cvtph_ps(_mm256_cvtepi32_epi16(v)); }
  static Ints and_or(Ints a, Ints mask, Ints b) {
    constexpr int kAndOr = 0xea;  // of the truth table's bits
    return _mm256_ternarylogic_epi32(a, mask, b, kAndOr);
  }
};
template <class Level>
struct Avx512HalfWidth : Avx2Primitives<Level> {
  using Columns = Avx512HalfColumns<Level>;
};

// Primitives for sixteen floats, under the names of those for eight: for math.h and its callers.
template <class Level>
struct Avx512Floats {
  using Vector = __m512;

  static constexpr uint32_t kLanes = 16;
  // A tile of floats: 24 sums, an input; weights come with the multiplications.
  static constexpr uint32_t kTileRows = 4, kTileRegisters = 6;

  static Vector twice(__m256 v) { return _mm512_broadcast_f32x8(v); }
  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector broadcast(float x) { return _mm512_set1_ps(x); }
  static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
  // The first n lanes (0 to 16); the others are 0, and their memory isn't touched.
  static Vector load(const float* p, uint32_t n) { return _mm512_maskz_loadu_ps(lanes(0, n), p); }
  static Vector load_half(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Vector load_half(const uint16_t* p, uint32_t n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes(0, n), p));
  }
  static Vector load_bfloat(const uint16_t* p, uint32_t n) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes(0, n), p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
  // To nearest even; a NaN stays one.
  static void store_bfloat(uint16_t* p, Vector v) { _mm256_storeu_si256((__m256i*)p, bfloats(v)); }
  static void store_bfloat(uint16_t* p, Vector v, uint32_t n) {
    _mm256_mask_storeu_epi16(p, lanes(0, n), bfloats(v));
  }
  // kLanes int8, and as many numbers of four bits (shift 0: the low ones of bytes, 4: the high ones), less 8.
  static Vector load_bytes(const int8_t* p) {
    return to_floats(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Vector load_nibbles(const uint8_t* p, uint32_t shift) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i codes = _mm_and_si128(
        _mm_srl_epi16(bytes, _mm_cvtsi32_si128(static_cast<int32_t>(shift))), _mm_set1_epi8(15));
    return to_floats(_mm_sub_epi8(codes, _mm_set1_epi8(8)));
  }
  static Vector broadcast_half(uint16_t h) {
    return _mm512_cvtph_ps(_mm256_set1_epi16(static_cast<int16_t>(h)));
  }
  // Whether none of n halves is infinite or NaN.
  static bool all_finite(const uint16_t* halves, uint64_t n) {
    const __m512i magnitude = _mm512_set1_epi16(0x7fff);
    __m512i largest = _mm512_setzero_si512();
    for (uint64_t i = 0; i < n; i += 32) {
      const __mmask32 there = n - i < 32 ? (1u << (n - i)) - 1 : ~0u;
      largest = _mm512_max_epu16(
          largest, _mm512_and_si512(magnitude, _mm512_maskz_loadu_epi16(there, halves + i)));
    }
    return _mm512_cmpge_epu16_mask(largest, _mm512_set1_epi16(0x7c00)) == 0;
  }
  // Zeros where v is infinite or NaN.
  static Vector finite_or_zero(Vector v) {
    constexpr int kQuietNan = 0x01, kInfinity = 0x08, kMinusInfinity = 0x10, kSignallingNan = 0x80;
    const __mmask16 not_finite =
        _mm512_fpclass_ps_mask(v, kQuietNan | kInfinity | kMinusInfinity | kSignallingNan);
    return _mm512_maskz_mov_ps(static_cast<__mmask16>(~not_finite), v);
  }
  // v where begin <= lane < end, elsewhere `other`.
  static Vector select_lanes(Vector v, uint32_t begin, uint32_t end, Vector other) {
    return _mm512_mask_blend_ps(lanes(begin, end), other, v);
  }

  static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Vector subtract(Vector a, Vector b) { return _mm512_sub_ps(a, b); }
  static Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  static Vector divide(Vector a, Vector b) { return _mm512_div_ps(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static Vector maximum(Vector a, Vector b) { return _mm512_max_ps(a, b); }
  static Vector minimum(Vector a, Vector b) { return _mm512_min_ps(a, b); }
  static Vector absolute(Vector v) { return _mm512_abs_ps(v); }
  static Vector copy_sign(Vector magnitude, Vector sign) {
    return _mm512_or_ps(absolute(magnitude), _mm512_and_ps(_mm512_set1_ps(-0.0f), sign));
  }
  static Vector round(Vector v) {
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Vector select_less(Vector a, Vector b, Vector x, Vector y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
  }
  // v * 2^floor(n), rounded once.
  static Vector scale(Vector v, Vector n) { return _mm512_scalef_ps(v, n); }
  static float sum_lanes(Vector v) { return _mm512_reduce_add_ps(v); }
  static float max_lanes(Vector v) { return _mm512_reduce_max_ps(v); }

 private:
  static Vector to_floats(__m128i bytes) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)); }
  static __m256i bfloats(Vector v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m512i quiet = _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(quiet, 16));
  }
  static __mmask16 lanes(uint32_t begin, uint32_t end) {
    return static_cast<__mmask16>((1u << end) - (1u << begin));
  }
};

// The primitives of the level, which the levels above it use as well.
template <class Level>
struct Avx512Primitives : Avx2Primitives<Level> {
  using Columns = Avx512Columns<Level>;
  using Wide = Avx512Floats<Level>;
  using HalfWidth = Avx512HalfWidth<Level>;
  static constexpr uint32_t kFloatTileColumns = 4;  // 32 registers: 16 sums, 4 weights, 1 input
};

struct Avx512 : Avx512Primitives<Avx512> {};

}  // namespace akunu::cpu
