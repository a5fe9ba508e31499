// Q2_K, Q3_K, Q4_K, Q5_K and Q6_K: how the parts of super-blocks lie in bytes.
#include <cstring>

#include "quantize/half.h"
#include "quantize/rows.h"
#include "quantize/super_blocks.h"
#include "quantize/weighing.h"

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {
namespace {

uint32_t whole(float code) { return static_cast<uint32_t>(code); }

// Two bits of each code, 32 weights apart in one byte: 64 bytes, 32 for each half of the block.
void put_two_bits(const SuperNumbers& codes, uint8_t* out) {
  for (size_t half = 0; half < 2; ++half)
    for (size_t i = 0; i < 32; ++i) {
      uint32_t byte = 0;
      for (size_t j = 0; j < 4; ++j)
        byte |= (whole(codes[128 * half + 32 * j + i]) & 3u) << (2 * j);
      out[32 * half + i] = static_cast<uint8_t>(byte);
    }
}

uint32_t two_bits(const uint8_t* bytes, size_t i) {
  return bytes[32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3u;
}

// Packs bit `bit` of the 256 codes into 32 bytes: bit j of byte i belongs to weight 32 j + i.
void put_bit(const SuperNumbers& codes, uint32_t bit, uint8_t* out) {
  for (size_t i = 0; i < 32; ++i) {
    uint32_t byte = 0;
    for (size_t j = 0; j < 8; ++j) byte |= (whole(codes[32 * j + i]) >> bit & 1u) << j;
    out[i] = static_cast<uint8_t>(byte);
  }
}

uint32_t one_bit(const uint8_t* bytes, size_t i) { return bytes[i % 32] >> (i / 32) & 1u; }

// Four bits of each code: weights i and i + 32 of 64 in one byte.
void put_four_bits(const SuperNumbers& codes, uint8_t* out) {
  for (size_t part = 0; part < 4; ++part)
    for (size_t i = 0; i < 32; ++i)
      out[32 * part + i] = static_cast<uint8_t>((whole(codes[64 * part + i]) & 15u) |
                                                (whole(codes[64 * part + 32 + i]) & 15u) << 4);
}

uint32_t four_bits(const uint8_t* bytes, size_t i) {
  return bytes[32 * (i / 64) + i % 32] >> (4 * (i % 64 / 32)) & 15u;
}

// Eight scales and eight minima of six bits in 12 bytes: the first four of each, with the upper two
// bits of the others above them, then the others' lower four bits.
void put_six_bits(const LineParts& parts, uint8_t* out) {
  for (size_t i = 0; i < 4; ++i) {
    const uint32_t scale = parts.scales[i + 4], minimum = parts.minima[i + 4];
    out[i] = static_cast<uint8_t>(parts.scales[i] | (scale >> 4) << 6);
    out[i + 4] = static_cast<uint8_t>(parts.minima[i] | (minimum >> 4) << 6);
    out[i + 8] = static_cast<uint8_t>((scale & 15u) | (minimum & 15u) << 4);
  }
}

struct ScaleAndMinimum {
  float scale;
  float minimum;
};

ScaleAndMinimum six_bits(const uint8_t* bytes, size_t i) {
  uint32_t scale, minimum;
  if (i < 4) {
    scale = bytes[i] & 63u, minimum = bytes[i + 4] & 63u;
  } else {
    scale = (bytes[i + 4] & 15u) | static_cast<uint32_t>(bytes[i - 4] >> 6) << 4;
    minimum = static_cast<uint32_t>(bytes[i + 4] >> 4) | static_cast<uint32_t>(bytes[i] >> 6) << 4;
  }
  return {static_cast<float>(scale), static_cast<float>(minimum)};
}

struct Q2K {
  uint8_t scales[16];
  uint8_t codes[64];
  uint16_t d;
  uint16_t m;

  using Parts = LineParts;
  static constexpr LineShape kShape{16, 3, 15, {5, 12, 0.1f}};

  void put(const Parts& parts) {
    for (size_t i = 0; i < 16; ++i)
      scales[i] = static_cast<uint8_t>(parts.scales[i] | parts.minima[i] << 4);
    put_two_bits(parts.codes, codes);
    d = parts.d, m = parts.m;
  }
  void get(std::span<float> x) const {
    for (size_t i = 0; i < kSuperBlock; ++i) {
      const uint32_t both = scales[i / 16];
      x[i] = float_from_half(d) * static_cast<float>(both & 15u) *
                 static_cast<float>(two_bits(codes, i)) -
             float_from_half(m) * static_cast<float>(both >> 4);
    }
  }
};
static_assert(sizeof(Q2K) == 84);

struct Q3K {
  uint8_t thirds[32];
  uint8_t codes[64];
  uint8_t scales[12];
  uint16_t d;

  using Parts = ScaleParts;
  static constexpr ScaleShape kShape{16, {-4, 3}, {-32, 31}, {9, 9, 0.1f}};

  void put(const Parts& parts) {
    SuperNumbers positive;
    for (size_t i = 0; i < kSuperBlock; ++i) positive[i] = parts.codes[i] + 4;
    put_bit(positive, 2, thirds);
    put_two_bits(positive, codes);
    const auto six = [&](size_t i) { return static_cast<uint32_t>(parts.scales[i] + 32); };
    for (size_t i = 0; i < 8; ++i)
      scales[i] = static_cast<uint8_t>((six(i) & 15u) | (six(i + 8) & 15u) << 4);
    for (size_t i = 0; i < 4; ++i)
      scales[8 + i] = static_cast<uint8_t>(six(i) >> 4 | (six(4 + i) >> 4) << 2 |
                                           (six(8 + i) >> 4) << 4 | (six(12 + i) >> 4) << 6);
    d = parts.d;
  }
  void get(std::span<float> x) const {
    for (size_t i = 0; i < kSuperBlock; ++i) {
      const size_t group = i / 16;
      const uint32_t low = scales[group % 8] >> (4 * (group / 8)) & 15u;
      const uint32_t high = scales[8 + group % 4] >> (2 * (group / 4)) & 3u;
      const float scale = float_from_half(d) * (static_cast<float>(low | high << 4) - 32);
      x[i] = scale * (static_cast<float>(two_bits(codes, i) | one_bit(thirds, i) << 2) - 4);
    }
  }
};
static_assert(sizeof(Q3K) == 110);

struct Q4K {
  uint16_t d;
  uint16_t m;
  uint8_t scales[12];
  uint8_t codes[128];

  using Parts = LineParts;
  static constexpr LineShape kShape{32, 15, 63, {10, 10, 0.1f}};

  void put(const Parts& parts) {
    d = parts.d, m = parts.m;
    put_six_bits(parts, scales);
    put_four_bits(parts.codes, codes);
  }
  void get(std::span<float> x) const {
    for (size_t i = 0; i < kSuperBlock; ++i) {
      const auto [scale, minimum] = six_bits(scales, i / 32);
      x[i] = float_from_half(d) * scale * static_cast<float>(four_bits(codes, i)) -
             float_from_half(m) * minimum;
    }
  }
};
static_assert(sizeof(Q4K) == 144);

struct Q5K {
  uint16_t d;
  uint16_t m;
  uint8_t scales[12];
  uint8_t fifths[32];
  uint8_t codes[128];

  using Parts = LineParts;
  static constexpr LineShape kShape{32, 31, 63, {10, 10, 0.1f}};

  void put(const Parts& parts) {
    d = parts.d, m = parts.m;
    put_six_bits(parts, scales);
    put_bit(parts.codes, 4, fifths);
    put_four_bits(parts.codes, codes);
  }
  void get(std::span<float> x) const {
    for (size_t i = 0; i < kSuperBlock; ++i) {
      const auto [scale, minimum] = six_bits(scales, i / 32);
      const float code = static_cast<float>(four_bits(codes, i) | one_bit(fifths, i) << 4);
      x[i] = float_from_half(d) * scale * code - float_from_half(m) * minimum;
    }
  }
};
static_assert(sizeof(Q5K) == 176);

struct Q6K {
  uint8_t low[128];
  uint8_t high[64];
  int8_t scales[16];
  uint16_t d;

  using Parts = ScaleParts;
  static constexpr ScaleShape kShape{16, {-32, 31}, {-128, 127}, {9, 9, 0.1f}};

  void put(const Parts& parts) {
    SuperNumbers upper;
    for (size_t i = 0; i < kSuperBlock; ++i)
      upper[i] = static_cast<float>(whole(parts.codes[i] + 32) >> 4);
    put_two_bits(upper, high);
    for (size_t half = 0; half < 2; ++half)
      for (size_t i = 0; i < 64; ++i)
        low[64 * half + i] =
            static_cast<uint8_t>((whole(parts.codes[128 * half + i] + 32) & 15u) |
                                 (whole(parts.codes[128 * half + 64 + i] + 32) & 15u) << 4);
    std::memcpy(scales, parts.scales.data(), sizeof scales);
    d = parts.d;
  }
  void get(std::span<float> x) const {
    for (size_t i = 0; i < kSuperBlock; ++i) {
      const uint32_t four = low[64 * (i / 128) + i % 64] >> (4 * (i % 128 / 64)) & 15u;
      const float code = static_cast<float>(four | two_bits(high, i) << 4) - 32;
      x[i] = float_from_half(d) * static_cast<float>(scales[i / 16]) * code;
    }
  }
};
static_assert(sizeof(Q6K) == 210);

template <class Block>
bool encode_row(std::span<const float> x, std::span<const float> importance, std::byte* out) {
  alignas(16) SuperNumbers w;
  for (size_t i = 0; i < x.size(); i += kSuperBlock, out += sizeof(Block)) {
    const auto part = x.subspan(i, kSuperBlock);
    weigh(part, importance.empty() ? importance : importance.subspan(i, kSuperBlock), w);
    typename Block::Parts parts;
    if (!fit(part, w, Block::kShape, parts)) return false;
    Block block;
    block.put(parts);
    std::memcpy(out, &block, sizeof block);
  }
  return true;
}

template <class Block>
void decode_row(const std::byte* in, std::span<float> x) {
  for (size_t i = 0; i < x.size(); i += kSuperBlock, in += sizeof(Block)) {
    Block block;
    std::memcpy(&block, in, sizeof block);
    block.get(x.subspan(i, kSuperBlock));
  }
}

constexpr RowCoder kSuperBlockCoders[] = {
    {10, encode_row<Q2K>, decode_row<Q2K>}, {11, encode_row<Q3K>, decode_row<Q3K>},
    {12, encode_row<Q4K>, decode_row<Q4K>}, {13, encode_row<Q5K>, decode_row<Q5K>},
    {14, encode_row<Q6K>, decode_row<Q6K>},
};

}  // namespace

std::span<const RowCoder> super_block_coders() { return kSuperBlockCoders; }

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
