// What levels with a matrix unit for bf16 add to the primitives of avx512: conversions
// (AVX512_BF16), and the shape of tiles. amx.h and amx_emulated.h add the instructions on them.
//
// 1. What bounds it. Unpacking: vector instructions beside those of the matrix unit.
// 2. What was tried and did not pay. Rounding to bf16 in whole numbers instead of the conversion
//    instruction (2 %). docs/decisions/prompts-on-the-cpu.md.
#pragma once

#include "cpu/isa/avx512.h"

namespace akunu::cpu {

// The eight tiles of a matrix unit, and what multiply_block (kernels/tiles/block.h) uses them for: sums
// in 0 to 3, input in 4 and 5, weights in 6 and 7.
template <class Tiles>
struct TileShape {
  static constexpr uint32_t kTiles = 8, kLines = 16;
  static constexpr uint64_t kLineBytes = 64;
  static constexpr uint64_t kTileBytes = kLines * kLineBytes;

 protected:
  // Tiles 0 and 1 and input 4 have `first` lines, 2 and 3 and input 5 `second`, where 0 is as good as 16
  // for tiles that nobody uses.
  static uint32_t lines_of(uint32_t tile, uint32_t first, uint32_t second) {
    const bool of_second = tile == 2 || tile == 3 || tile == 5;
    const uint32_t lines = tile >= 6 ? kLines : of_second ? second : first;
    return lines == 0 ? kLines : lines;
  }
};

template <class Level>
struct Bf16Primitives : Avx512Primitives<Level> {
  using typename Avx512Primitives<Level>::Columns;
  using typename Avx512Primitives<Level>::Wide;
  using Floats = typename Columns::Floats;
  using Ints = typename Columns::Ints;

  // Both rounded to bf16, to nearest even: the first in the lower halves of the lanes.
  static Ints bfloat_pairs(Floats first, Floats second) {
    const __m512i order =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512bh both = _mm512_cvtne2ps_pbh(second, first);
    return _mm512_permutexvar_epi16(order, (__m512i)both);
  }
  // What `first` and `second` are more than their `pairs`, rounded likewise: 0 where they are not finite.
  static Ints bfloat_rests(Ints pairs, Floats first, Floats second) {
    return bfloat_pairs(rest(first, _mm512_slli_epi32(pairs, 16)),
                        rest(second, _mm512_and_si512(pairs, _mm512_set1_epi32(-0x10000))));
  }
  // One vector, rounded so; zeros for what is below the normal numbers, as the tiles take it anyway.
  static void store_bfloats(uint16_t* p, Floats v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh(v));
  }
  // What one vector is more than that, likewise: 0 where it is not finite.
  static void store_bfloat_rests(uint16_t* p, Floats v) {
    const __m256i rounded = (__m256i)_mm512_cvtneps_pbh(v);
    store_bfloats(p, rest(v, _mm512_slli_epi32(_mm512_cvtepu16_epi32(rounded), 16)));
  }

 private:
  static Floats rest(Floats v, Ints rounded) {
    return Wide::finite_or_zero(Wide::subtract(v, _mm512_castsi512_ps(rounded)));
  }
};

}  // namespace akunu::cpu
