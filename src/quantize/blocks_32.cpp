// Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0: 32 weights with one scale, and one minimum where they have it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "quantize/eight_blocks.h"
#include "quantize/half.h"
#include "quantize/rows.h"
#include "quantize/search.h"

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {
namespace {

constexpr size_t kBlock = 32;
using Numbers = std::array<float, kBlock>;

// Codes as they lie: the low four bits of weights i and i + 16 in one byte; of five bits, the fifths
// of all 32 in four bytes before them.
template <int bits>
struct Packed;

template <>
struct Packed<4> {
  uint8_t low[16];

  void put(const Numbers& codes) {
    for (size_t i = 0; i < 16; ++i)
      low[i] = static_cast<uint8_t>(static_cast<uint32_t>(codes[i]) |
                                    static_cast<uint32_t>(codes[i + 16]) << 4);
  }
  void get(std::span<float> codes) const {
    for (size_t i = 0; i < 16; ++i) {
      codes[i] = static_cast<float>(low[i] & 15u);
      codes[i + 16] = static_cast<float>(low[i] >> 4);
    }
  }
};

template <>
struct Packed<5> {
  uint8_t fifths[4];
  uint8_t low[16];

  void put(const Numbers& codes) {
    uint32_t high = 0;
    for (size_t i = 0; i < 16; ++i) {
      const uint32_t a = static_cast<uint32_t>(codes[i]), b = static_cast<uint32_t>(codes[i + 16]);
      low[i] = static_cast<uint8_t>((a & 15u) | (b & 15u) << 4);
      high |= (a >> 4) << i | (b >> 4) << (i + 16);
    }
    std::memcpy(fifths, &high, 4);
  }
  void get(std::span<float> codes) const {
    uint32_t high;
    std::memcpy(&high, fifths, 4);
    for (size_t i = 0; i < 16; ++i) {
      codes[i] = static_cast<float>((low[i] & 15u) | (high >> i & 1u) << 4);
      codes[i + 16] =
          static_cast<float>(static_cast<uint32_t>(low[i] >> 4) | (high >> (i + 16) & 1u) << 4);
    }
  }
};

template <int bits>
struct ScaledBlock {
  uint16_t d;
  Packed<bits> codes;
};
static_assert(sizeof(ScaledBlock<4>) == 18 && sizeof(ScaledBlock<5>) == 22);

template <int bits>
struct LineBlock {
  uint16_t d;
  uint16_t m;
  Packed<bits> codes;
};
static_assert(sizeof(LineBlock<4>) == 20 && sizeof(LineBlock<5>) == 24);

struct ByteBlock {
  uint16_t d;
  int8_t codes[kBlock];
};
static_assert(sizeof(ByteBlock) == 34);

template <int bits>
constexpr Codes kSigned{-(1 << (bits - 1)), (1 << (bits - 1)) - 1};
template <int bits>
constexpr float kLevels = (1 << bits) - 1;
constexpr Codes kBytes{-127, 127};

// Without importance these types are quick to write, and a few scales have most of the gain.
Trials trials_for(std::span<const float> importance) {
  return importance.empty() ? Trials{2, 3, 0.35f} : Trials{9, 9, 0.1f};
}

// Calls `eight(blocks, out, n)` for every eight blocks of a row, the last of them fewer; false as soon
// as that is. `out` has room for n blocks.
template <class Block, class Eight>
bool for_each_eight(std::span<const float> x, std::span<const float> importance, std::byte* out,
                    Eight eight) {
  for (size_t i = 0; i < x.size(); i += kLanes * kBlock) {
    const size_t n = std::min(x.size() - i, kLanes * kBlock);
    const EightBlocks blocks =
        read_blocks(x.subspan(i, n), importance.empty() ? importance : importance.subspan(i, n));
    std::array<Block, kLanes> made;
    if (!eight(blocks, made)) return false;
    std::memcpy(out, made.data(), n / kBlock * sizeof(Block));
    out += n / kBlock * sizeof(Block);
  }
  return true;
}

// The nearest halves, and what they stand for.
struct Halves {
  std::array<uint16_t, kLanes> bits;
  Lanes values;
  bool are_finite = true;

  explicit Halves(const Lanes& of) {
    float numbers[kLanes];
    store(numbers, of);
    for (size_t b = 0; b < kLanes; ++b) {
      bits[b] = half_from_float(numbers[b]);
      are_finite = are_finite && is_finite_half(bits[b]);
      numbers[b] = float_from_half(bits[b]);
    }
    values = load(numbers);
  }
};

// Packs the codes of eight blocks, which `code_of(i)` has: lane b for weight i of block b, from 0 on.
template <class Block, class CodeOf>
void pack(std::array<Block, kLanes>& blocks, CodeOf code_of) {
  float codes[kBlock][kLanes];
  for (size_t i = 0; i < kBlock; ++i) store(codes[i], code_of(i));
  Numbers turned;
  for (size_t b = 0; b < kLanes; ++b) {
    for (size_t i = 0; i < kBlock; ++i) turned[i] = codes[i][b];
    blocks[b].codes.put(turned);
  }
}

template <int bits>
bool encode_scaled(std::span<const float> x, std::span<const float> importance, std::byte* out) {
  const Trials trials = trials_for(importance);
  return for_each_eight<ScaledBlock<bits>>(
      x, importance, out, [=](const EightBlocks& blocks, auto& made) {
        const Halves scale(best_scales(blocks, kSigned<bits>, trials));
        for (size_t b = 0; b < kLanes; ++b) made[b].d = scale.bits[b];
        const Lanes inverse = inverse_of(scale.values);
        pack(made, [&](size_t i) {
          constexpr Codes codes = kSigned<bits>;
          return clamp(nearest(blocks.x[i] * inverse), codes.low, codes.high) - codes.low;
        });
        return scale.are_finite;
      });
}

template <int bits>
void decode_scaled(const std::byte* in, std::span<float> x) {
  for (size_t i = 0; i < x.size(); i += kBlock, in += sizeof(ScaledBlock<bits>)) {
    ScaledBlock<bits> block;
    std::memcpy(&block, in, sizeof block);
    const float d = float_from_half(block.d);
    block.codes.get(x.subspan(i, kBlock));
    for (float& each : x.subspan(i, kBlock)) each = d * (each - float{1 << (bits - 1)});
  }
}

template <int bits>
bool encode_line(std::span<const float> x, std::span<const float> importance, std::byte* out) {
  const Trials trials = trials_for(importance);
  return for_each_eight<LineBlock<bits>>(
      x, importance, out, [=](const EightBlocks& blocks, auto& made) {
        const Lines line = best_lines(blocks, kLevels<bits>, trials);
        const Halves scale(line.scale), minimum(line.minimum);
        for (size_t b = 0; b < kLanes; ++b) {
          made[b].d = scale.bits[b];
          made[b].m = minimum.bits[b];
        }
        const Lanes inverse = inverse_of(scale.values);
        pack(made, [&](size_t i) {
          return clamp(nearest((blocks.x[i] - minimum.values) * inverse), 0.0f, kLevels<bits>);
        });
        return scale.are_finite && minimum.are_finite;
      });
}

template <int bits>
void decode_line(const std::byte* in, std::span<float> x) {
  for (size_t i = 0; i < x.size(); i += kBlock, in += sizeof(LineBlock<bits>)) {
    LineBlock<bits> block;
    std::memcpy(&block, in, sizeof block);
    const float d = float_from_half(block.d), m = float_from_half(block.m);
    block.codes.get(x.subspan(i, kBlock));
    for (float& each : x.subspan(i, kBlock)) each = d * each + m;
  }
}

bool encode_bytes(std::span<const float> x, std::span<const float> importance, std::byte* out) {
  return for_each_eight<ByteBlock>(x, importance, out, [](const EightBlocks& blocks, auto& made) {
    // Below 127 nothing is cut off, so that no weight is further from its code than half a step.
    const Halves scale(best_scales(blocks, kBytes, {4, 0, 0.45f}));
    for (size_t b = 0; b < kLanes; ++b) made[b].d = scale.bits[b];
    const Lanes inverse = inverse_of(scale.values);
    for (size_t i = 0; i < kBlock; ++i) {
      float codes[kLanes];
      store(codes, clamp(nearest(blocks.x[i] * inverse), kBytes.low, kBytes.high));
      for (size_t b = 0; b < kLanes; ++b) made[b].codes[i] = static_cast<int8_t>(codes[b]);
    }
    return scale.are_finite;
  });
}

void decode_bytes(const std::byte* in, std::span<float> x) {
  for (size_t i = 0; i < x.size(); i += kBlock, in += sizeof(ByteBlock)) {
    ByteBlock block;
    std::memcpy(&block, in, sizeof block);
    const float d = float_from_half(block.d);
    for (size_t j = 0; j < kBlock; ++j) x[i + j] = d * static_cast<float>(block.codes[j]);
  }
}

constexpr RowCoder kBlocks32Coders[] = {
    {2, encode_scaled<4>, decode_scaled<4>}, {3, encode_line<4>, decode_line<4>},
    {6, encode_scaled<5>, decode_scaled<5>}, {7, encode_line<5>, decode_line<5>},
    {8, encode_bytes, decode_bytes},
};

}  // namespace

std::span<const RowCoder> blocks_32_coders() { return kBlocks32Coders; }

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
