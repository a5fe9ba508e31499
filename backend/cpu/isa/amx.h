// The primitives of the level `amx` (AMX with bf16, above avx512 and AVX512_BF16): eight registers of
// 16 lines of 64 bytes, and sums of products of bf16 in float32. Only the kernels in kernels/tiles
// are compiled for it; all others are avx512's.
//
// 1. What bounds it. The unit, and that nothing behind a tile instruction issues while it waits
//    for a register. kernels/tiles/pair_product.h places vector work between tile instructions.
// 2. What is done about it here. `load_once` keeps what streams past out of L1; `release` gives
//    the registers back. docs/decisions/prompts-on-the-cpu.md.
#pragma once

#include "cpu/isa/avx512_bf16.h"

namespace akunu::cpu {

// In assembly, since a template can name a register there and intrinsics of compilers can't.
struct AmxTiles : TileShape<AmxTiles> {
  // As lines_of says. All become zero.
  static void configure(uint32_t first, uint32_t second) {
    alignas(64) Config config = {};
    config.palette = 1;
    for (uint32_t tile = 0; tile < kTiles; ++tile) {
      config.line_bytes[tile] = kLineBytes;
      config.lines[tile] = static_cast<uint8_t>(lines_of(tile, first, second));
    }
    asm volatile("ldtilecfg %0" : : "m"(config));
  }
  // Gives the registers back: a thread that holds none is cheaper to switch.
  static void release() { asm volatile("tilerelease"); }

  template <uint32_t kTile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <uint32_t kTile>
  static void load(const std::byte* p, uint64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
  }
  // The same, of what will not be wanted again soon: what else is in L1 stays there.
  template <uint32_t kTile>
  static void load_once(const std::byte* p, uint64_t stride) {
    asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
  }
  template <uint32_t kTile>
  static void store(std::byte* p, uint64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
  }
  // sums[m][n] += input[m][2p] * weights[p][2n] + input[m][2p + 1] * weights[p][2n + 1], p in order.
  template <uint32_t kSums, uint32_t kInput, uint32_t kWeights>
  static void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0"
                 :
                 : "i"(kSums), "i"(kInput), "i"(kWeights));
  }

 private:
  struct Config {
    uint8_t palette, start_line, reserved[14];
    uint16_t line_bytes[16];
    uint8_t lines[16];
  };
  static_assert(sizeof(Config) == 64);
};

struct Amx : Bf16Primitives<Amx> {
  using Tiles = AmxTiles;
};

}  // namespace akunu::cpu
