// Formats whose codes are rows of a grid: IQ2_XXS, IQ2_XS, IQ2_S (8 weights a row), IQ3_XXS and
// IQ3_S (4 weights). 256 weights in a block, eight units of 32, one after the other.
//
//   iq2_xxs   66 bytes: half d, for each unit four bytes of rows, 28 bits of signs, four of a scale
//   iq2_xs    74 bytes: half d, 32 x (9 bits of a row, 7 of signs), 16 x 4 bits of scales
//   iq2_s     82 bytes: half d, 32 bytes of rows, 32 of signs, 8 of the rows' upper two bits,
//                       16 x 4 bits of scales
//   iq3_xxs   98 bytes: half d, 64 bytes of rows, for each unit 28 bits of signs, four of a scale
//   iq3_s    110 bytes: half d, 64 bytes of rows, 8 of their ninth bits, 32 of signs,
//                       8 x 4 bits of scales
// Blocks lie at multiples of two. d, an odd scale (2 s + 1), a power of two and a magnitude
// multiply exactly.
#pragma once

#include "core/tables/iq2_s_grid.h"
#include "core/tables/iq2_xs_grid.h"
#include "core/tables/iq2_xxs_grid.h"
#include "core/tables/iq3_s_grid.h"
#include "core/tables/iq3_xxs_grid.h"
#include "metal/kernels/formats_table.h"

// Eight signs from seven: their number is even.
inline uint eight_signs(uint seven) { return seven | (popcount(seven) & 1u) << 7; }
inline uint odd_scale(uint bits) { return 2u * (bits & 15u) + 1u; }

// Four weights of a row: places of kBits bits among magnitudes; `signs` from bit 0 on.
template <class M>
inline float4 grid_weights(uint places, uint signs) {
  const uint4 place =
      uint4(places, places >> M::kBits, places >> 2 * M::kBits, places >> 3 * M::kBits) &
      ((1u << M::kBits) - 1u);
  const uint4 sign = uint4(signs, signs >> 1, signs >> 2, signs >> 3) & 1u;
  const float4 magnitude = codes_less(M::magnitudes(place), 0.0f);
  return as_type<float4>(as_type<uint4>(magnitude) | sign << 31);
}
struct Iq2Magnitudes {  // 8, 25, 43
  static constant constexpr uint kBits = 2;
  static uint4 magnitudes(uint4 place) { return place * 17u + 8u + (place >> 1); }
};
struct Iq3XxsMagnitudes {  // 4, 12, 20, 28, 36, 44, 52, 62
  static constant constexpr uint kBits = 3;
  static uint4 magnitudes(uint4 place) { return place * 8u + 4u + ((place + 1u) >> 3) * 2u; }
};
struct Iq3SMagnitudes {  // 1, 3 .. 15
  static constant constexpr uint kBits = 3;
  static uint4 magnitudes(uint4 place) { return place * 2u + 1u; }
};

// A unit whose rows have been looked up: eight times the places of four weights, 32 signs, and a
// scale per run.
struct GridUnit {
  uint places[8];
  uint signs;
  float scales[2];
};
template <class C>
struct GridCodec {
  static constant constexpr uint kBytes = C::kBytes;
  static constant constexpr bool kMinimum = false;
  using Raw = GridUnit;
  static Raw load(device const uchar* b, uint g) { return C::load(b, g); }
  static void unpack(Raw raw, uint, uint run, thread float4 (&q)[4], thread float& scale,
                     thread float&) {
    for (uint i = 0; i < 4; ++i) {
      const uint places = run == 0 ? raw.places[i] : raw.places[4 + i];
      q[i] = grid_weights<typename C::Magnitudes>(places, raw.signs >> (16 * run + 4 * i));
    }
    scale = either(raw.scales, run);
  }
};
// A row of eight weights is two of four.
inline void put_row(thread GridUnit& unit, uint r, uint row) {
  unit.places[2 * r] = row;
  unit.places[2 * r + 1] = row >> 8;
}
inline uint signs_of_28(uint word) {
  return eight_signs(word & 127u) | eight_signs(word >> 7 & 127u) << 8 |
         eight_signs(word >> 14 & 127u) << 16 | eight_signs(word >> 21 & 127u) << 24;
}
inline void put_scales(thread GridUnit& unit, float d, uint first, uint second) {
  unit.scales[0] = d * float(odd_scale(first));
  unit.scales[1] = d * float(odd_scale(second));
}

struct IQ2_XXSCodec {
  static constant constexpr uint kBytes = 66;
  using Magnitudes = Iq2Magnitudes;
  static GridUnit load(device const uchar* b, uint g) {
    const uint rows = load_word(b + 2 + 8 * g), more = load_word(b + 6 + 8 * g);
    GridUnit unit;
    for (uint r = 0; r < 4; ++r) put_row(unit, r, kIq2XxsGrid[rows >> (8 * r) & 255u]);
    unit.signs = signs_of_28(more);
    put_scales(unit, load_half(b) * 0.125f, more >> 28, more >> 28);
    return unit;
  }
};
using IQ2_XXS = Blocks<GridCodec<IQ2_XXSCodec>, StraightUnits<256>>;

struct IQ2_XSCodec {
  static constant constexpr uint kBytes = 74;
  using Magnitudes = Iq2Magnitudes;
  static GridUnit load(device const uchar* b, uint g) {
    GridUnit unit;
    unit.signs = 0;
    for (uint r = 0; r < 4; ++r) {
      const uint both = *reinterpret_cast<device const ushort*>(b + 2 + 8 * g + 2 * r);
      put_row(unit, r, kIq2XsGrid[both & 511u]);
      unit.signs |= eight_signs(both >> 9) << (8 * r);
    }
    const uint scales = b[66 + g];
    put_scales(unit, load_half(b) * 0.125f, scales, scales >> 4);
    return unit;
  }
};
using IQ2_XS = Blocks<GridCodec<IQ2_XSCodec>, StraightUnits<256>>;

struct IQ2_SCodec {
  static constant constexpr uint kBytes = 82;
  using Magnitudes = Iq2Magnitudes;
  static GridUnit load(device const uchar* b, uint g) {
    const uint rows = load_word(b + 2 + 4 * g), high = b[66 + g], scales = b[74 + g];
    GridUnit unit;
    for (uint r = 0; r < 4; ++r)
      put_row(unit, r, kIq2SGrid[(rows >> (8 * r) & 255u) | (high >> (2 * r) & 3u) << 8]);
    unit.signs = load_word(b + 34 + 4 * g);
    put_scales(unit, load_half(b) * 0.125f, scales, scales >> 4);
    return unit;
  }
};
using IQ2_S = Blocks<GridCodec<IQ2_SCodec>, StraightUnits<256>>;

struct IQ3_XXSCodec {
  static constant constexpr uint kBytes = 98;
  using Magnitudes = Iq3XxsMagnitudes;
  static GridUnit load(device const uchar* b, uint g) {
    const uint more = load_word(b + 66 + 4 * g);
    GridUnit unit;
    for (uint r = 0; r < 8; ++r) unit.places[r] = kIq3XxsGrid[b[2 + 8 * g + r]];
    unit.signs = signs_of_28(more);
    put_scales(unit, load_half(b) * 0.25f, more >> 28, more >> 28);
    return unit;
  }
};
using IQ3_XXS = Blocks<GridCodec<IQ3_XXSCodec>, StraightUnits<256>>;

struct IQ3_SCodec {
  static constant constexpr uint kBytes = 110;
  using Magnitudes = Iq3SMagnitudes;
  static GridUnit load(device const uchar* b, uint g) {
    const uint high = b[66 + g], scale = uint(b[106 + g / 2]) >> (4 * (g % 2));
    GridUnit unit;
    for (uint r = 0; r < 8; ++r)
      unit.places[r] = kIq3SGrid[uint(b[2 + 8 * g + r]) | (high >> r & 1u) << 8];
    unit.signs = load_word(b + 74 + 4 * g);
    put_scales(unit, load_half(b), scale, scale);
    return unit;
  }
};
using IQ3_S = Blocks<GridCodec<IQ3_SCodec>, StraightUnits<256>>;
