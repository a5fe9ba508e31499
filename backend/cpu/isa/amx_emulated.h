// The level `amx-emulated`: `amx` on a processor that has AVX512_BF16 and no matrix unit. Tiles are
// memory of a thread, their instructions vectors; slow, and for tests only (AKUNU_CPU_LEVELS=all).
#pragma once

#include "cpu/isa/avx512_bf16.h"

namespace akunu::cpu {

// AmxTiles in plain code, with the same members. Operations on a tile that was configured with no rows
// do nothing.
template <class Level>
struct EmulatedTiles : TileShape<EmulatedTiles<Level>> {
  using Shape = TileShape<EmulatedTiles>;
  using Shape::kLineBytes, Shape::kLines, Shape::kTileBytes, Shape::kTiles;

  static void configure(uint32_t first, uint32_t second) {
    for (uint32_t tile = 0; tile < kTiles; ++tile) {
      tiles()[tile].n = Shape::lines_of(tile, first, second);
      __builtin_memset(tiles()[tile].lines, 0, kTileBytes);
    }
  }
  static void release() {
    for (uint32_t tile = 0; tile < kTiles; ++tile) tiles()[tile].n = 0;
  }

  template <uint32_t kTile>
  static void zero() {
    __builtin_memset(tiles()[kTile].lines, 0, kTileBytes);
  }
  template <uint32_t kTile>
  static void load(const std::byte* p, uint64_t stride) {
    Tile& tile = tiles()[kTile];
    zero<kTile>();
    for (uint32_t i = 0; i < tile.n; ++i)
      __builtin_memcpy(tile.lines[i], p + i * stride, kLineBytes);
  }
  template <uint32_t kTile>
  static void load_once(const std::byte* p, uint64_t stride) {
    load<kTile>(p, stride);
  }
  template <uint32_t kTile>
  static void store(std::byte* p, uint64_t stride) {
    const Tile& tile = tiles()[kTile];
    for (uint32_t i = 0; i < tile.n; ++i)
      __builtin_memcpy(p + i * stride, tile.lines[i], kLineBytes);
  }
  // TDPBF16PS as Intel's manual has it: products with numbers of even and of odd place are summed apart
  // and then together; numbers below the normal ones are zeros, before and after.
  template <uint32_t kSums, uint32_t kInput, uint32_t kWeights>
  static void multiply() {
    const Tile& input = tiles()[kInput];
    const Tile& weights = tiles()[kWeights];
    Tile& sums = tiles()[kSums];
    for (uint32_t m = 0; m < sums.n; ++m) {
      __m512 even = _mm512_setzero_ps(), odd = even;
      for (uint32_t p = 0; p < weights.n; ++p) {
        uint32_t pair;
        __builtin_memcpy(&pair, input.lines[m] + 4 * p, sizeof(pair));
        const __m512i both = _mm512_set1_epi32(static_cast<int32_t>(pair));
        const __m512i columns = _mm512_load_si512(weights.lines[p]);
        even = normal(_mm512_fmadd_ps(lower(both), lower(columns), even));
        odd = normal(_mm512_fmadd_ps(upper(both), upper(columns), odd));
      }
      const __m512 sum = normal(_mm512_add_ps(even, odd));
      const __m512 before = normal(_mm512_load_ps(sums.lines[m]));
      _mm512_store_ps(sums.lines[m], normal(_mm512_add_ps(before, sum)));
    }
  }

 private:
  struct Tile {
    alignas(64) std::byte lines[kLines][kLineBytes];
    uint32_t n;
  };
  static Tile* tiles() {
    static thread_local Tile all[kTiles];
    return all;
  }
  static __m512 lower(__m512i pairs) {
    return normal(_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)));
  }
  static __m512 upper(__m512i pairs) {
    return normal(_mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(-0x10000))));
  }
  static __m512 normal(__m512 v) {
    const __mmask16 is_normal =
        _mm512_test_epi32_mask(_mm512_castps_si512(v), _mm512_set1_epi32(0x7f800000));
    return _mm512_maskz_mov_ps(is_normal, v);
  }
};

struct AmxEmulated : Bf16Primitives<AmxEmulated> {
  using Tiles = EmulatedTiles<AmxEmulated>;
};

}  // namespace akunu::cpu
