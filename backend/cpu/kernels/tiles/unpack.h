// Weights as a matrix unit takes them: tiles of 16 lines, where line p holds, for each of 16 weight
// rows, the weights 2p and 2p + 1 of 32 in bf16. A panel is 16 rows of a weight, or 16 positions of a
// cache; its tiles lie one after another in order of k, zeros behind the last weight.
//
// 1. What bounds it. Vector instructions: 128 ns for a pair of panels and a step, beside 300 of
//    products for 512 rows.
// 2. What is done about it. It runs while the unit multiplies the panels before (OverlappedWork),
//    once for up to 512 rows.
// 3. What was tried and did not pay. Rounding to bf16 in whole numbers instead of the conversion
//    instruction (2 %). docs/decisions/prompts-on-the-cpu.md.
#pragma once

#include "cpu/kernels/formats_32.h"
#include "cpu/kernels/formats_bf16.h"
#include "cpu/kernels/formats_k.h"
#include "cpu/kernels/panel_groups.h"

namespace akunu::cpu {

constexpr uint32_t kStep = 32;  // of k, in a tile

// Codes of 32 weights of each row of a panel; scale, and what is added to products with it, of either half.
template <class Isa>
struct QuantizedGroup {
  using Columns = typename Isa::Columns;
  using Ints = typename Columns::Ints;
  using Floats = typename Columns::Floats;

  Ints codes[8];
  Floats scale[2], added[2];

  // Lines 2 j and 2 j + 1 of a tile: (code * scale + what is added) in float32, then to bf16.
  void store_half(uint32_t j, uint32_t half, std::byte* tile) const {
    const Ints both = half == 0 ? codes[j] : Columns::template shift_right<16>(codes[j]);
    const Ints byte = Columns::integers(0xff);
    const auto weight = [&](Ints code) {
      return Columns::multiply_add(Columns::to_float(code), scale[j / 4], added[j / 4]);
    };
    const Ints second = Columns::template shift_right<8>(both);
    Columns::store_integers(
        tile + (2 * j + half) * Isa::Tiles::kLineBytes,
        Isa::bfloat_pairs(weight(Columns::bit_and(both, byte)),
                          weight(half == 0 ? Columns::bit_and(second, byte) : second)));
  }
  void store(std::byte* tile) const {
#pragma GCC unroll 8
    for (uint32_t j = 0; j < 8; ++j)
      for (uint32_t half = 0; half < 2; ++half) store_half(j, half, tile);
  }
};

// Products that are interleaved with unpacking. Without a context: none.
template <class Isa>
struct OverlappedWork {
  void* context = nullptr;
  // Stores a group, with products between its lines, and prefetches eight cache lines.
  void (*store_group)(void* context, const QuantizedGroup<Isa>& group, std::byte* tile,
                      const std::byte* prefetched) = nullptr;
  // Half a step of products.
  void (*half_step)(void* context) = nullptr;
  Panel prefetched = {};  // a row of it is prefetched with each group
};

// How many bf16 numbers an operand is the sum of. Quantised weights and their input are rounded to
// one. F16 weights and their input are sums of two, and all products count but that of both second
// ones. Tiles of a panel's first and second numbers alternate.
template <class Isa, class Input_, uint32_t kInputs_, uint32_t kWeights_>
struct TileTerms {
  using Terms = TileTerms;
  using Input = Input_;
  static constexpr uint32_t kInputs = kInputs_, kWeights = kWeights_;
};

// Quantised weights: in float32, (code - offset) * scale and what minima add with one rounding each,
// then to bf16.
template <class Isa, class Format>
struct TileWeights : TileTerms<Isa, Bf16Input<Isa>, 1, 1> {
  using Columns = typename Isa::Columns;
  using Floats = typename Columns::Floats;
  using Ints = typename Columns::Ints;
  using Groups = PanelGroups<Isa, Format>;

#ifndef __SANITIZE_ADDRESS__
  [[gnu::flatten]]
#endif
  static void unpack(const Panel& panel, uint32_t k, std::byte* tiles,
                     const OverlappedWork<Isa>& overlapped = {}) {
    Groups::for_each_group(
        panel, k,
        [&](const typename Groups::Group& unpacked, uint32_t g, const auto& of_group) {
          QuantizedGroup<Isa> group;
#pragma GCC unroll 8
          for (uint32_t j = 0; j < 8; ++j) group.codes[j] = unpacked.codes[j];
#pragma GCC unroll 2
          for (uint32_t half = 0; half < 2; ++half) {
            const uint32_t i = Format::kDots == 2 ? half : 0;
            Floats& scale = group.scale[half];
            Floats& added = group.added[half];
            scale = unpacked.scale[i];
            if constexpr (Format::kSuperBlock) scale = Columns::multiply(scale, of_group.factor);
            added = Columns::multiply(Columns::broadcast(-kOffset), scale);
            if constexpr (Format::kSuperBlock && Format::kHasMinimum)
              added = Columns::add(of_group.minima[i], added);
            else if constexpr (Format::kHasMinimum)
              added = Columns::add(unpacked.minimum, added);
          }
          std::byte* const tile = tiles + g * Isa::Tiles::kTileBytes;
          if (overlapped.context == nullptr)
            group.store(tile);
          else
            overlapped.store_group(
                overlapped.context, group, tile,
                overlapped.prefetched.first + g % Columns::kCount * overlapped.prefetched.stride);
        },
        [](const auto&, uint32_t) {});
  }

 private:
  static constexpr float kOffset =
      static_cast<float>(Format::kSigned ? Columns::Policy::kSignedOffset : Format::kOffset);
};

// Numbers of 16 bits: pairs of them are transposed, and become what `Trait::store(pair, line)` makes
// of them; kTiles tiles for each 32.
template <class Isa, class Trait, uint32_t kTiles>
struct TransposedPairs {
  using Columns = typename Isa::Columns;
  using Ints = typename Columns::Ints;
  static constexpr uint64_t kBytes = 2;  // of a number

  static void unpack(const Panel& panel, uint32_t k, std::byte* tiles,
                     const OverlappedWork<Isa>& overlapped = {}) {
    uint32_t done = 0;
    for (; done + kStep <= k; done += kStep, tiles += kTiles * Isa::Tiles::kTileBytes)
      unpack_step(panel.first + kBytes * done, panel.stride, tiles, overlapped);
    if (done == k) return;
    std::byte rest[Isa::Tiles::kTileBytes] = {};
    for (uint32_t row = 0; row < Columns::kCount; ++row)
      __builtin_memcpy(rest + row * Isa::Tiles::kLineBytes,
                       panel.first + row * panel.stride + kBytes * done, kBytes * (k - done));
    unpack_step(rest, Isa::Tiles::kLineBytes, tiles, overlapped);
  }

 private:
  static void unpack_step(const std::byte* first, uint64_t stride, std::byte* tiles,
                          const OverlappedWork<Isa>& overlapped) {
    for (uint32_t i = 0; i < 16; i += 4) {
      Ints pairs[4];
      Columns::transpose(first + 4 * i, stride, pairs, [](uint32_t, const auto&) {});
      for (uint32_t j = 0; j < 4; ++j) {
        Trait::store(pairs[j], tiles + (i + j) * Isa::Tiles::kLineBytes);
        if (overlapped.context != nullptr) overlapped.half_step(overlapped.context);
      }
    }
  }
};

// Both in a line of kNumbers tiles: rounded to bf16, and what is left.
template <class Isa, uint32_t kNumbers, class Floats>
static inline void store_pairs(std::byte* line, Floats first, Floats second) {
  const auto pairs = Isa::bfloat_pairs(first, second);
  Isa::Columns::store_integers(line, pairs);
  if constexpr (kNumbers == 2)
    Isa::Columns::store_integers(line + Isa::Tiles::kTileBytes,
                                 Isa::bfloat_rests(pairs, first, second));
}

// Halves, rounded, or in two numbers without any rounding.
template <class Isa, uint32_t kNumbers>
struct TileHalves : TransposedPairs<Isa, TileHalves<Isa, kNumbers>, kNumbers> {
  using Columns = typename Isa::Columns;

  static void store(typename Columns::Ints halves, std::byte* line) {
    store_pairs<Isa, kNumbers>(line, Columns::low_halves(halves),
                               Columns::low_halves(Columns::template shift_right<16>(halves)));
  }
};

template <class Isa>
struct TileWeights<Isa, F16<Isa>> : TileTerms<Isa, Bf16PairInput<Isa>, 2, 2>, TileHalves<Isa, 2> {};

template <class Isa>
struct TileWeights<Isa, BF16<Isa>> : TileTerms<Isa, Bf16PairInput<Isa>, 2, 1>,
                                     TransposedPairs<Isa, TileWeights<Isa, BF16<Isa>>, 1> {
  static void store(typename Isa::Columns::Ints pairs, std::byte* line) {
    Isa::Columns::store_integers(line, pairs);
  }
};

}  // namespace akunu::cpu
