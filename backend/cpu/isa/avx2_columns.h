// The primitives of the quantised matmuls (kernels/panel.h) with AVX2: eight columns in a register,
// one in each lane.
//
// 1. EightColumns: decoding, floats and prefetches, for every level of x86-64 with eight columns.
//    Avx2Columns: products of codes.
// 2. What bounds it. One row: transposing and shifting, two instructions a cycle. Many rows:
//    vpmaddubsw and vpmaddwd.
// 3. What is done about it. The small scales of K formats take the place of the ones that add pairs
//    up (dot_scaled); sums of products that share a scale stay in int16 while they fit.
#pragma once

#include <immintrin.h>
#include <stdint.h>

#include <cstddef>

#include "cpu/isa/dot_interleaved.h"
#include "cpu/isa/matmul_policy.h"
#include "cpu/isa/prefetch.h"

namespace akunu::cpu {

// Where eight rows begin, out of four registers. The empty statement hides how the addresses of
// successive groups hang together: a compiler that sees it keeps a register for each of 16 rows, more
// than there are. Not as a const object: GCC 12 keeps one whose constructor does anything in memory.
template <class Level>
struct RowAddresses {
  const std::byte *first, *fifth;
  uint64_t stride, three;

  RowAddresses(const std::byte* p, uint64_t bytes) : first(p), stride(bytes) {
    asm("" : "+r"(stride));
    fifth = first + 4 * stride;
    three = 3 * stride;
  }
  const std::byte* operator()(uint32_t row) const {
    const std::byte* const p = row < 4 ? first : fifth;
    return row % 4 == 3 ? p + three : p + row % 4 * stride;
  }
};

// What the levels of x86-64 have in common.
struct X86Policy : MatmulPolicy {
  static constexpr bool kReadsEight = true, kRotatesInput = true, kSetsFifthBits = true;
  static constexpr bool kPrefetchesIntoL1 = true;
};

// The primitives of the quantised matmuls, without products of codes: the levels above avx2 have
// instructions of their own for those. A lane is a column of the result, see kernels/panel.h.
template <class Level>
struct EightColumns {
  static constexpr uint32_t kCount = 8;
  using Floats = __m256;
  using Ints = __m256i;  // an int32 per column, or four codes, or two int16

  static Floats zero() { return _mm256_setzero_ps(); }
  static Floats broadcast(float x) { return _mm256_set1_ps(x); }
  static Floats load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Floats v) { _mm256_storeu_ps(p, v); }
  static Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static Floats negate(Floats a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
  // b where either is NaN.
  static Floats maximum(Floats a, Floats b) { return _mm256_max_ps(a, b); }
  static Floats to_float(Ints v) { return _mm256_cvtepi32_ps(v); }
  static Ints to_integer(Floats v) { return _mm256_cvtps_epi32(v); }  // half to even
  // The same bits.
  static Floats as_floats(Ints v) { return _mm256_castsi256_ps(v); }
  static Ints as_integers(Floats v) { return _mm256_castps_si256(v); }
  // The halves in the low 16 bits of each lane; the upper bits are ignored.
  static Floats low_halves(Ints v) {
    const __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
    const __m256i packed = _mm256_packus_epi32(low, low);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
  }
  // Those in the low and in the high 16 bits of each lane.
  static void both_halves(Ints v, Floats (&out)[2]) {
    const __m256i low_and_high = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    const __m256i apart = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(v, low_and_high), 0xd8);
    out[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(apart));
    out[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(apart, 1));
  }
  static Floats load_halves(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  // The halves at first + c * stride, for every column c.
  static Floats gather_halves(const std::byte* first, uint64_t stride) {
    return _mm256_cvtph_ps(eight_halves(first, stride));
  }
  template <int kColumn>
  static __m128i with_half(__m128i halves, const RowAddresses<Level>& row) {
    uint16_t bits;
    __builtin_memcpy(&bits, row(kColumn), sizeof(bits));
    return _mm_insert_epi16(halves, bits, kColumn);
  }
  static __m128i eight_halves(const std::byte* first, uint64_t stride) {
    RowAddresses<Level> row(first, stride);
    __m128i halves = _mm_setzero_si128();
    halves = with_half<0>(halves, row);
    halves = with_half<1>(halves, row);
    halves = with_half<2>(halves, row);
    halves = with_half<3>(halves, row);
    halves = with_half<4>(halves, row);
    halves = with_half<5>(halves, row);
    halves = with_half<6>(halves, row);
    return with_half<7>(halves, row);
  }

  static Ints integers(uint32_t x) { return _mm256_set1_epi32(static_cast<int32_t>(x)); }
  static Ints bit_and(Ints a, Ints b) { return _mm256_and_si256(a, b); }
  static Ints bit_or(Ints a, Ints b) { return _mm256_or_si256(a, b); }
  static Ints bit_xor(Ints a, Ints b) { return _mm256_xor_si256(a, b); }
  // (a & mask) | b
  static Ints and_or(Ints a, Ints mask, Ints b) { return bit_or(bit_and(a, mask), b); }
  static Ints low_and_high(Ints low, Ints high) { return _mm256_blend_epi16(low, high, 0xaa); }
  static Ints halves_swapped(Ints v) {
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                      2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)));
  }
  static Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  static Ints subtract(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
  static Ints multiply_low(Ints a, Ints b) { return _mm256_mullo_epi32(a, b); }
  // Each byte (0 .. 15) becomes the number that is there in the table.
  static Ints look_up(Ints codes, const int8_t (&table)[16]) {
    const __m128i numbers = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(numbers), codes);
  }
  template <int kBits>
  static Ints shift_right(Ints v) {
    return _mm256_srli_epi32(v, kBits);
  }
  template <int kBits>
  static Ints shift_left(Ints v) {
    return _mm256_slli_epi32(v, kBits);
  }
  template <int kBits>
  static Ints shift_right_signed(Ints v) {
    return _mm256_srai_epi32(v, kBits);
  }

  // Adds 16 to byte b of codes[j], which is less, where bit 4 j + b of the lane is set. (A product
  // that spreads four bits takes twice as long.)
  static void add_sixteen_where_set(Ints bits, Ints (&codes)[8]) {
    const Ints four = integers(0x80402010u), sixteen = _mm256_set1_epi8(16);
    const Ints upper[] = {shift_left<4>(bits), bits};  // the four in the upper half of their byte
    for (uint32_t j = 0; j < 8; ++j) {
      const Ints byte =
          _mm256_shuffle_epi8(upper[j % 2], _mm256_broadcastsi128_si256(byte_of_lanes(j / 2)));
      codes[j] = bit_or(codes[j], _mm256_min_epu8(bit_and(byte, four), sixteen));
    }
  }
  // Byte b is 255 where bit 4 j + b of the lane is set, else 0.
  static Ints bytes_of_bits(Ints bits, uint32_t j) {
    const Ints four = integers(j % 2 == 0 ? 0x08040201u : 0x80402010u);
    const Ints byte = _mm256_shuffle_epi8(bits, _mm256_broadcastsi128_si256(byte_of_lanes(j / 2)));
    return _mm256_cmpeq_epi8(bit_and(byte, four), four);
  }
  // For a shuffle in 128 bits: byte `byte` of every lane, four times.
  static __m128i byte_of_lanes(uint32_t byte) {
    const int first = static_cast<int>(byte * 0x01010101u);
    return _mm_add_epi32(_mm_set1_epi32(first),
                         _mm_set_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0));
  }
  // Four neighbouring bytes, or two int16, in every lane.
  static Ints broadcast_four(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof(four));
    return _mm256_set1_epi32(four);
  }
  // Of two uint16 in every lane.
  static Ints larger_of_pairs(Ints a, Ints b) { return _mm256_max_epu16(a, b); }

  // The largest magnitude of 32 halves, as one.
  static uint16_t largest_magnitude(const uint16_t* halves) {
    const __m256i magnitude = _mm256_set1_epi16(0x7fff);
    const auto load = [&](uint32_t i) {
      return _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves + i)),
                              magnitude);
    };
    const __m256i most = _mm256_max_epu16(load(0), load(16));
    const __m128i eight =
        _mm_max_epu16(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    // There is an instruction for the least of eight.
    const __m128i least = _mm_minpos_epu16(_mm_xor_si128(eight, _mm_set1_epi16(-1)));
    return static_cast<uint16_t>(~_mm_cvtsi128_si32(least));
  }

  // Prefetches a line into L1 or L2, in the program not before `read` has been computed: many prefetches in a
  // burst would fill the line fill buffers, which other loads need too.
  template <int kInto>
  static void prefetch(const std::byte* line, auto read) {
    if constexpr (kInto == kIntoL1)
      asm volatile("prefetcht0 %0" : : "m"(*line), "v"(read));
    else
      asm volatile("prefetcht1 %0" : : "m"(*line), "v"(read));
  }
  // The same, and the compiler moves no load past it.
  template <int kInto>
  static void prefetch_in_order(const std::byte* line, auto read) {
    if constexpr (kInto == kIntoL1)
      asm volatile("prefetcht0 %0" : : "m"(*line), "v"(read) : "memory");
    else
      asm volatile("prefetcht1 %0" : : "m"(*line), "v"(read) : "memory");
  }
  // out[j], lane c: bytes 4 j to 4 j + 3 of the 16 that begin at `first + c * stride`. Calls
  // prefetch(i, what has been read) after each 64 bytes.
  static void transpose(const std::byte* first, uint64_t stride, Ints (&out)[4],
                        const auto& prefetch) {
    RowAddresses<Level> row(first, stride);
    const auto load = [](const std::byte* p) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    };
    for (uint32_t i = 0; i < 4; ++i) {
      out[i] = _mm256_set_m128i(load(row(i + 4)), load(row(i)));
      if (i % 2 == 1) prefetch(i / 2, out[i]);
    }
    transpose_lanes(out);
  }
  static void transpose(const std::byte* first, uint64_t stride, Ints (&out)[8],
                        const auto& prefetch) {
    RowAddresses<Level> row(first, stride);
    Ints low[4], high[4];  // of the first four columns, and of the others
    for (uint32_t i = 0; i < 4; ++i) {
      low[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row(i)));
      high[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row(i + 4)));
      prefetch(i, high[i]);
    }
    transpose_lanes(low);
    transpose_lanes(high);
    for (uint32_t j = 0; j < 4; ++j) {
      out[j] = _mm256_permute2x128_si256(low[j], high[j], 0x20);
      out[4 + j] = _mm256_permute2x128_si256(low[j], high[j], 0x31);
    }
  }
  // In each lane of 128 bits.
  static void transpose_lanes(Ints (&rows)[4]) {
    const Ints low01 = _mm256_unpacklo_epi32(rows[0], rows[1]);
    const Ints high01 = _mm256_unpackhi_epi32(rows[0], rows[1]);
    const Ints low23 = _mm256_unpacklo_epi32(rows[2], rows[3]);
    const Ints high23 = _mm256_unpackhi_epi32(rows[2], rows[3]);
    rows[0] = _mm256_unpacklo_epi64(low01, low23);
    rows[1] = _mm256_unpackhi_epi64(low01, low23);
    rows[2] = _mm256_unpacklo_epi64(high01, high23);
    rows[3] = _mm256_unpackhi_epi64(high01, high23);
  }
};

struct Avx2Policy : X86Policy {
  static constexpr uint32_t kTileRows = 4, kMultiPanelRows = 4, kInt16Rows = 4;
  static constexpr uint32_t kInterleavedRows = 4;
  static constexpr uint32_t kSignedOffset = 0;  // see Avx2Columns::signed_codes
  static constexpr bool kWidensSigned =
      true;  // dot_signed moves signs, a third of Q8_0's instructions
  static constexpr bool kInt16Scales = true;  // dot_scaled
};

// Products of bytes in pairs, added up in int16 and then in int32.
template <class Level>
struct Avx2Columns : EightColumns<Level> {
  using Base = EightColumns<Level>;
  using Base::broadcast_four;
  using typename Base::Floats;
  using typename Base::Ints;

  using Policy = Avx2Policy;

  // sums[i] += the products of each column's codes (0 .. kLargest) with x[i]. Products of two
  // neighbours fit an int16 up to codes of 127, and those of more of them for smaller codes, or
  // where no x[i] is larger than kLargestInput. Registers: Ints, or several of them side by side
  // (kernels/row_tile.h).
  template <uint32_t kLargest, uint32_t kRegisters, uint32_t kLargestInput = 127, class Registers,
            uint32_t N>
  static void dot(Registers (&sums)[N], const Registers* codes, const auto (&x)[N]) {
    Registers ones;
#pragma GCC unroll 8
    for (uint32_t p = 0; p < sizeof(Registers) / sizeof(Ints); ++p)
      at(ones, p) = _mm256_set1_epi16(1);
    dot_times<kLargest, kRegisters, kLargestInput>(sums, codes, x, ones);
  }
  // sums[i] += the products of codes (up to 255) with 128 times x[i] plus x[i] + 32, all of which are
  // at most 64 in size: two such products fit an int16.
  template <uint32_t kLargest, uint32_t kRegisters, class Registers, uint32_t N>
  static void dot_halves(Registers (&sums)[N], const Registers* codes,
                         const int8_t* const (&x)[N]) {
    Registers factors;
    const int8_t* low[N];
#pragma GCC unroll 8
    for (uint32_t i = 0; i < N; ++i) low[i] = x[i] + 32;
#pragma GCC unroll 8
    for (uint32_t p = 0; p < sizeof(Registers) / sizeof(Ints); ++p)
      at(factors, p) = _mm256_set1_epi16(128);
    dot_times<kLargest, kRegisters, 64>(sums, codes, x, factors);
    dot<kLargest, kRegisters, 64>(sums, codes, low);
  }
  // sums[i] += those products * scale, where a lane of `scale` holds the scale twice, as int16.
  // Accumulation begins with starts[i] (two int16 a lane), which removes the offset of the codes.
  // The final sums fit an int16; on the way there additions may wrap around.
  template <uint32_t kLargest, uint32_t kOffset, uint32_t kRegisters, class Registers, uint32_t N>
  static void dot_scaled(Registers (&sums)[N], Registers (&starts)[N], const Registers* codes,
                         const int8_t* const (&x)[N], const Registers& scale) {
    if constexpr (kOffset == 0) return dot_times<kLargest, kRegisters, 127>(sums, codes, x, scale);
    constexpr uint32_t kMost = kOffset > kLargest - kOffset ? kOffset : kLargest - kOffset;
    static_assert(kOffset == 0 || 2 * 127 * kRegisters * kMost <= 32767);
    constexpr uint32_t P = sizeof(Registers) / sizeof(Ints);
    dot_interleaved<Avx2Columns, kRegisters>(starts, codes, x, [](Ints sum, Ints some, Ints four) {
      return keep_order<N>(_mm256_add_epi16(sum, _mm256_maddubs_epi16(some, four)));
    });
#pragma GCC unroll 8
    for (uint32_t i = 0; i < N; ++i)
#pragma GCC unroll 8
      for (uint32_t p = 0; p < P; ++p)
        at(sums[i], p) = keep_order<N>(
            _mm256_add_epi32(at(sums[i], p), _mm256_madd_epi16(at(starts[i], p), at(scale, p))));
  }
  static Ints pairs_of(Floats whole) {
    const Ints low = _mm256_and_si256(Base::to_integer(whole), _mm256_set1_epi32(0xffff));
    return _mm256_or_si256(low, _mm256_slli_epi32(low, 16));
  }
  // What those sums begin with, for each half of a row's 32 codes: -kOffset times the sum of the
  // codes that are added to each int16.
  template <uint32_t kOffset>
  static void pair_starts(const int8_t* codes, int32_t (&halves)[2]) {
    const __m256i pairs = _mm256_maddubs_epi16(
        _mm256_set1_epi8(1), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)));
    const __m256i fours = _mm256_add_epi16(pairs, _mm256_shuffle_epi32(pairs, 0x4e));
    const __m256i eights = _mm256_add_epi16(fours, _mm256_shuffle_epi32(fours, 0xb1));
    const __m256i starts =
        _mm256_mullo_epi16(eights, _mm256_set1_epi16(-static_cast<int16_t>(kOffset)));
    halves[0] = _mm256_cvtsi256_si32(starts);
    halves[1] = _mm256_extract_epi32(starts, 4);
  }
  // Signed codes, as the level multiplies them: here as they are, since a pair of 255 * 127 would
  // not fit an int16. 2 * 128 * 127 does.
  static Ints signed_codes(Ints codes) { return codes; }
  template <uint32_t kRegisters, uint32_t N>
  static void dot_signed(Ints (&sums)[N], const Ints* codes, const auto (&x)[N]) {
#pragma GCC unroll 8
    for (uint32_t j = 0; j < kRegisters; ++j) {
      const Ints magnitudes = _mm256_abs_epi8(codes[j]);
#pragma GCC unroll 8
      for (uint32_t i = 0; i < N; ++i) {
        const Ints four = _mm256_sign_epi8(broadcast_four(x[i] + 4 * j), codes[j]);
        const Ints pairs = _mm256_maddubs_epi16(magnitudes, four);
        sums[i] = keep_order<N>(
            _mm256_add_epi32(sums[i], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))));
      }
    }
  }

  // Codes as int16, of four neighbours the even ones and the odd ones: a register of each, and the 32
  // of an input row likewise.
  static void widen(Ints codes, Ints& even, Ints& odd) {
    even = _mm256_srai_epi16(_mm256_slli_epi16(codes, 8), 8);
    odd = _mm256_srai_epi16(codes, 8);
  }
  static void widen_codes(const int8_t* codes, std::byte* out) {
    Ints even, odd;
    widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)), even, odd);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), even);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 32), odd);
  }
  // sum + the products of pairs of int16, among those of several rows.
  static Ints add_pairs(Ints sum, Ints a, Ints b) {
    return keep_order<2>(_mm256_add_epi32(sum, _mm256_madd_epi16(a, b)));
  }

 private:
  // sums[i] += those products, where two that are added meet `factors`.
  template <uint32_t kLargest, uint32_t kRegisters, uint32_t kLargestInput, class Registers,
            uint32_t N>
  static void dot_times(Registers (&sums)[N], const Registers* codes, const auto (&x)[N],
                        const Registers& factors) {
    static_assert(2 * kLargestInput * kLargest <= 32767);
    constexpr uint32_t kFit = 32767 / (2 * kLargestInput * kLargest);
    constexpr uint32_t kTogether = kFit >= kRegisters ? kRegisters
                                   : kFit >= 4        ? 4
                                   : kFit >= 2        ? 2
                                                      : 1;
    constexpr uint32_t P = sizeof(Registers) / sizeof(Ints);
#pragma GCC unroll 8
    for (uint32_t j = 0; j < kRegisters; j += kTogether) {
      Ints pairs[N][P];
#pragma GCC unroll 8
      for (uint32_t l = j; l < j + kTogether; ++l)
#pragma GCC unroll 8
        for (uint32_t i = 0; i < N; ++i) {
          const Ints four = broadcast_four(x[i] + 4 * l);
#pragma GCC unroll 8
          for (uint32_t p = 0; p < P; ++p) {
            const Ints products = _mm256_maddubs_epi16(at(codes[l], p), four);
            pairs[i][p] =
                l == j ? products : keep_order<N>(_mm256_add_epi16(pairs[i][p], products));
          }
        }
#pragma GCC unroll 8
      for (uint32_t i = 0; i < N; ++i)
#pragma GCC unroll 8
        for (uint32_t p = 0; p < P; ++p)
          at(sums[i], p) = keep_order<N>(
              _mm256_add_epi32(at(sums[i], p), _mm256_madd_epi16(pairs[i][p], at(factors, p))));
    }
  }
  // An empty statement: see dot_interleaved.
  template <uint32_t N>
  static Ints keep_order(Ints sum) {
    if constexpr (N > 1) asm("" : "+x"(sum));
    return sum;
  }
};

}  // namespace akunu::cpu
