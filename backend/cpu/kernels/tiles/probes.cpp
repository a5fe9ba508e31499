// The vector level's loops, and one of the matrix unit: two tiles of rows times two of columns, out of
// L1, as multiply_block does.
#include "cpu/kernels/probes.h"

#include "cpu/isa/isa.h"

namespace akunu::cpu {

struct Avx512;

namespace {

template <class Isa>
uint64_t multiply_bfloats(uint64_t repeats, float* result) {
  using Tiles = typename Isa::Tiles;
  constexpr uint32_t kSteps = 4, kNumbers = 512;  // 16 KiB; a tile has 512 numbers
  // Mantissas of all kinds: zeros and ones take less power, and so the processor is faster with them.
  alignas(64) uint16_t tiles[4][kSteps][kNumbers];
  uint32_t seed = 1;
  for (auto& tile : tiles)
    for (auto& step : tile)
      for (uint16_t& number : step) {
        seed = seed * 1664525u + 1013904223u;
        number = static_cast<uint16_t>(0x3e80u | (seed >> 16 & 0x807fu));
      }
  const auto at = [&](uint32_t tile, uint32_t step) {
    return reinterpret_cast<const std::byte*>(tiles[tile][step]);
  };
  Tiles::configure(Tiles::kLines, Tiles::kLines);
  for (uint64_t i = 0; i < repeats; ++i)
    for (uint32_t step = 0; step < kSteps; ++step) {
      Tiles::template load<6>(at(0, step), Tiles::kLineBytes);
      Tiles::template load<4>(at(1, step), Tiles::kLineBytes);
      Tiles::template multiply<0, 4, 6>();
      Tiles::template load<7>(at(2, step), Tiles::kLineBytes);
      Tiles::template multiply<1, 4, 7>();
      Tiles::template load<5>(at(3, step), Tiles::kLineBytes);
      Tiles::template multiply<2, 5, 6>();
      Tiles::template multiply<3, 5, 7>();
    }
  alignas(64) float sums[256];
  Tiles::template store<0>(reinterpret_cast<std::byte*>(sums), Tiles::kLineBytes);
  Tiles::release();
  *result = sums[0];
  return repeats * kSteps * 4 * (2 * 16 * 16 * 32);
}

}  // namespace

template <>
Probes probes<ThisIsa>() {
  Probes all = probes<Avx512>();
  all.multiply_bfloats = multiply_bfloats<ThisIsa>;
  return all;
}

}  // namespace akunu::cpu
