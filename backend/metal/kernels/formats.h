// A format as kernels see it. A unit is 32 weights of a row that one lane takes at once, as two
// runs of 16; a run has one scale and one minimum: weight i of it is q[i] * scale + minimum. Where
// a unit lies in the row follows the format's bytes (the two runs of a unit share them), so that no
// byte is loaded twice.
//
// A trait F has
//   kBlock           weights per block: k is a multiple of it
//   kScaled          false: q is the weight itself (and scale 1)
//   kMinimum         false: there is no minimum
//   Row, row(weight, j, k)               row j of a weight [n, k]
//   units(k)                             a row's units; unit u belongs to lane u % 32
//   is_whole(unit, run, k)               all of a run, of every lane, lies inside the row, at
//                                        multiples of 16 bytes: it is loaded without asking
//   position(unit, run, piece)           where in the row the piece lies: four consecutive weights
//   Raw, load(row, unit, k)              the bytes of a unit
//   unpack(row, raw, unit, run, k, q, scale, minimum)
//   unpack_16(row, index, k, q, scale, minimum)   weights [16 index, 16 index + 16) of a row
//   unit_of(index), run_of(index)        where those lie; of formats with a scale
// Every product of a scale and a code is exact in float32, and a minimum is added with one
// rounding: the values are those of the file format, bit for bit.
//
// Whole numbers become floats without a conversion, which is slower than two plain operations: the
// low bits of 2^23 + code are the code.
#pragma once

#include "metal/kernels/common.h"

inline float4 codes_less(uint4 codes, float offset) {
  return as_type<float4>(codes | 0x4b000000u) - (8388608.0f + offset);
}
inline float code_less(uint code, float offset) {
  return as_type<float>(code | 0x4b000000u) - (8388608.0f + offset);
}

// The four bytes of a word, lowest first.
inline uint4 bytes_of(uint word) {
  return uint4(word & 255u, word >> 8 & 255u, word >> 16 & 255u, word >> 24);
}
// The bits of `mask` from bit `shift` on, of each of a word's bytes: as four numbers, and as bytes.
inline uint4 fields_of(uint word, uint shift, uint mask) {
  return uint4(word >> shift, word >> (8 + shift), word >> (16 + shift), word >> (24 + shift)) &
         mask;
}
inline uint byte_fields(uint word, uint shift, uint mask) {
  return word >> shift & mask * 0x01010101u;
}
// Codes that are the bytes of a word.
inline float4 bytes_less(uint word, float offset) { return codes_less(bytes_of(word), offset); }

// One of two, as a choice: an index that the compiler does not know would cost a trip to memory.
template <class T>
inline T either(thread const T (&two)[2], uint which) {
  return which == 0 ? two[0] : two[1];
}

// Words at an address that is a multiple of two.
inline uint load_word(device const uchar* p) {
  device const ushort* halves = reinterpret_cast<device const ushort*>(p);
  return uint(halves[0]) | uint(halves[1]) << 16;
}
inline uint4 load_words(device const uchar* p) {
  return uint4(load_word(p), load_word(p + 4), load_word(p + 8), load_word(p + 12));
}
// Words at an address that is a multiple of four, and of sixteen.
inline uint4 load_words_4(device const uchar* p) {
  device const uint* words = reinterpret_cast<device const uint*>(p);
  return uint4(words[0], words[1], words[2], words[3]);
}
inline uint4 load_words_16(device const uchar* p) {
  return *reinterpret_cast<device const uint4*>(p);
}
inline float load_half(device const uchar* p) {
  return float(*reinterpret_cast<device const half*>(p));
}

// A weight's planes: most formats have one. Those behind the first are bound at reserved slots
// (plane_slot of core/operation.h) where the format has them, and are as good as any where not.
struct Planes {
  device const uchar* first;
  device const uchar* second;
  device const uchar* third;
};

inline Planes one_plane(device const uchar* first) { return Planes{first, first, first}; }

// Formats whose weights are numbers. Lanes read neighbouring numbers: a unit is eight pieces that
// lie 128 weights apart. Any k will do; what lies past the end of a row is 0.
template <class Number>
struct Floats {
  static constant constexpr uint kBlock = 1;
  static constant constexpr bool kScaled = false;
  static constant constexpr bool kMinimum = false;
  using Row = device const Number*;
  struct Raw {
    uint nothing;
  };

  static Row row(Planes weight, uint j, uint k) {
    return reinterpret_cast<device const Number*>(weight.first) + ulong(j) * k;
  }
  static uint units(uint k) { return (k + 1023) / 1024 * 32; }
  static uint position(uint unit, uint run, uint piece) {
    return unit / 32 * 1024 + (4 * run + piece) * 128 + unit % 32 * 4;
  }
  static bool is_whole(uint unit, uint run, uint k) {
    return k % 4 == 0 && unit / 32 * 1024 + run * 512 + 512 <= k;
  }
  static Raw load(Row, uint, uint) { return Raw{0}; }
  static void unpack(Row row, Raw, uint unit, uint run, uint k, thread float4 (&q)[4],
                     thread float&, thread float&) {
    // The branch is the same for all lanes, so that four loads are under way at once.
    if (is_whole(unit, run, k)) {
#pragma unroll
      for (uint piece = 0; piece < 4; ++piece)
        q[piece] = load_numbers(row + position(unit, run, piece), 4, true);
    } else {
#pragma unroll
      for (uint piece = 0; piece < 4; ++piece)
        q[piece] = load_four(row, position(unit, run, piece), k, k % 4 == 0);
    }
  }
  static void unpack_16(Row row, uint index, uint k, thread float4 (&q)[4], thread float&,
                        thread float&) {
    for (uint piece = 0; piece < 4; ++piece)
      q[piece] = load_four(row, 16 * index + 4 * piece, k, k % 4 == 0);
  }
};

using F32 = Floats<float>;
using F16 = Floats<half>;
using BF16 = Floats<ushort>;

// A format of blocks: a layout says where the units of a block lie in the row, a codec what is in
// them. (One is not derived from the other: MSL has no derived classes.) A layout L has
//   kWeights, kUnits             of a block
//   position(unit, run, piece)   in the block
//   unit_of(sixteen), run_of(sixteen)   of sixteen `sixteen` of the block
// and a codec C
//   kBytes                       of a block
//   kMinimum
//   Raw, load(block, unit), unpack(raw, unit, run, q, scale, minimum)
template <class C, class L>
struct Blocks {
  static constant constexpr uint kBlock = L::kWeights;
  static constant constexpr bool kScaled = true;
  static constant constexpr bool kMinimum = C::kMinimum;
  using Row = device const uchar*;
  using Raw = typename C::Raw;

  static Row row(Planes weight, uint j, uint k) {
    return weight.first + ulong(j) * (k / L::kWeights) * C::kBytes;
  }
  static uint units(uint k) { return k / 32; }
  static bool is_whole(uint, uint, uint) { return true; }
  static uint position(uint unit, uint run, uint piece) {
    return unit / L::kUnits * L::kWeights + L::position(unit % L::kUnits, run, piece);
  }
  static Raw load(Row row, uint unit, uint) {
    return C::load(row + unit / L::kUnits * C::kBytes, unit % L::kUnits);
  }
  static void unpack(Row, Raw raw, uint unit, uint run, uint, thread float4 (&q)[4],
                     thread float& scale, thread float& minimum) {
    C::unpack(raw, unit % L::kUnits, run, q, scale, minimum);
  }
  static uint unit_of(uint index) {
    return index / (L::kWeights / 16) * L::kUnits + L::unit_of(index % (L::kWeights / 16));
  }
  static uint run_of(uint index) { return L::run_of(index % (L::kWeights / 16)); }
  static void unpack_16(Row row, uint index, uint k, thread float4 (&q)[4], thread float& scale,
                        thread float& minimum) {
    const uint unit = unit_of(index);
    unpack(row, load(row, unit, k), unit, run_of(index), k, q, scale, minimum);
  }
};

// A block of one unit, its runs one after the other.
struct Straight {
  static constant constexpr uint kWeights = 32, kUnits = 1;
  static uint position(uint, uint run, uint piece) { return 16 * run + 4 * piece; }
  static uint unit_of(uint) { return 0; }
  static uint run_of(uint sixteen) { return sixteen; }
};

// The weights themselves, rounded once where there is a minimum.
template <class F>
inline void finish_16(thread float4 (&q)[4], float scale, float minimum) {
  for (uint piece = 0; piece < 4; ++piece) {
    if (F::kMinimum) {
      q[piece] = fma(q[piece], float4(scale), float4(minimum));
    } else if (F::kScaled) {
      q[piece] = q[piece] * scale;
    }
  }
}
