// Weights as a matrix unit takes them: tiles of 16 lines, where line p holds, for each of 16 weight
// rows, the weights 2p and 2p + 1 of 32 in bf16. A panel is 16 rows of a weight, or 16 positions of a
// cache; its tiles lie one after another in order of k, zeros behind the last weight.
#pragma once

#include "cpu/kernels/formats_32.h"
#include "cpu/kernels/formats_k.h"

namespace akunu::cpu {

constexpr uint32_t kStep = 32;  // of k, in a tile

template <class Isa>
static constexpr uint64_t tiles_bytes(uint32_t k) {
  return (uint64_t{k} + kStep - 1) / kStep * Isa::Tiles::kTileBytes;
}

// Quantised weights: in float32, (code - offset) * scale and what minima add with one rounding each,
// then to bf16.
template <class Isa, class Format, class Input = typename Format::Input>
struct TileWeights {
  using Columns = typename Isa::Columns;
  using Floats = typename Columns::Floats;
  using Ints = typename Columns::Ints;
  using Product = PanelProduct<Isa, Format>;

#ifndef __SANITIZE_ADDRESS__
  [[gnu::flatten]]
#endif
  static void unpack(const Panel& panel, uint32_t k, std::byte* tiles) {
    Product::for_each_group(panel, k, [&](const typename Product::Group& group, uint32_t g) {
      float* tile = reinterpret_cast<float*>(tiles + g * Isa::Tiles::kTileBytes);
      for (uint32_t half = 0; half < 2; ++half) {
        const Floats scale = group.scale[Format::kDots == 2 ? half : 0];
        Floats added = Columns::multiply(Columns::broadcast(-kOffset), scale);
        if constexpr (Format::kHasMinimum)
          added =
              Columns::multiply_add(minimum(group.minimum.whole, half), group.minimum.scale, added);
        for (uint32_t j = 4 * half; j < 4 * half + 4; ++j) {
          const Ints codes = group.codes[j];
          const auto weight = [&](Ints code) {
            return Columns::multiply_add(Columns::to_float(code), scale, added);
          };
          const Ints byte = Columns::integers(0xff);
          const Floats w0 = weight(Columns::bit_and(codes, byte));
          const Floats w1 = weight(Columns::bit_and(Columns::template shift_right<8>(codes), byte));
          const Floats w2 =
              weight(Columns::bit_and(Columns::template shift_right<16>(codes), byte));
          const Floats w3 = weight(Columns::template shift_right<24>(codes));
          Columns::store_integers(tile + 32 * j, Isa::bfloat_pairs(w0, w1));
          Columns::store_integers(tile + 32 * j + 16, Isa::bfloat_pairs(w2, w3));
        }
      }
    });
  }

 private:
  static constexpr float kOffset =
      static_cast<float>(Format::kSigned ? Columns::kSignedOffset : Format::kOffset);

  // Of the first or the second 16 weights.
  static Floats minimum(Ints both, uint32_t half) {
    if (half == 0) both = Columns::template shift_left<16>(both);
    return Columns::to_float(Columns::template shift_right_signed<16>(both));
  }
};

// Halves, of a cache: pairs of them are transposed, and then rounded.
template <class Isa>
struct TileWeights<Isa, F16<Isa>, FloatInput<Isa>> {
  using Format = F16<Isa>;
  using Columns = typename Isa::Columns;
  using Ints = typename Columns::Ints;

  static void unpack(const Panel& panel, uint32_t k, std::byte* tiles) {
    uint32_t done = 0;
    for (; done + kStep <= k; done += kStep, tiles += Isa::Tiles::kTileBytes)
      unpack_tile(panel.first + Format::row_bytes(done), panel.stride, tiles);
    if (done == k) return;
    std::byte rest[Isa::Tiles::kTileBytes] = {};
    for (uint32_t row = 0; row < Columns::kCount; ++row)
      __builtin_memcpy(rest + row * Isa::Tiles::kLineBytes,
                       panel.first + row * panel.stride + Format::row_bytes(done),
                       Format::row_bytes(k - done));
    unpack_tile(rest, Isa::Tiles::kLineBytes, tiles);
  }

 private:
  static void unpack_tile(const std::byte* first, uint64_t stride, std::byte* tile) {
    float* out = reinterpret_cast<float*>(tile);
    for (uint32_t i = 0; i < 16; i += 4) {
      Ints pairs[4];
      Columns::transpose(first + 4 * i, stride, pairs, [](uint32_t, const auto&) {});
      for (uint32_t j = 0; j < 4; ++j)
        Columns::store_integers(out + 16 * (i + j), rounded(pairs[j]));
    }
  }
  static Ints rounded(Ints halves) {
    return Isa::bfloat_pairs(Columns::low_halves(halves),
                             Columns::low_halves(Columns::template shift_right<16>(halves)));
  }
};

}  // namespace akunu::cpu
