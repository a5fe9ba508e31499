// IQ4_NL, IQ4_XS and MXFP4: a code of four bits names a number of a table, which a scale multiplies.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/tables/codes.h"
#include "quantize/half.h"
#include "quantize/lanes.h"
#include "quantize/rows.h"
#include "quantize/super_blocks.h"
#include "quantize/weighing.h"

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {
namespace {

constexpr size_t kTableBlock = 32;

// MXFP4's table as floats, doubled: kFp4Values (core/tables/codes.h) has no negative zero.
constexpr std::array<float, 16> kTinyFloats{0,     1,  2,  3,  4,  6,  8,  12,
                                            -0.0f, -1, -2, -3, -4, -6, -8, -12};

// The code of the number of the curve that is nearest to each whole number from -128 to 127. All
// midpoints are whole numbers or halves, so rounding first changes nothing.
constexpr std::array<uint8_t, 256> make_nearest_on_curve() {
  std::array<uint8_t, 256> codes{};
  for (int x = -128; x < 128; ++x) {
    uint8_t best = 0;
    for (uint8_t code = 1; code < 16; ++code) {
      const int there = x - kIq4Values[code], here = x - kIq4Values[best];
      if (there * there < here * here) best = code;
    }
    codes[static_cast<size_t>(x + 128)] = best;
  }
  return codes;
}
constexpr std::array<uint8_t, 256> kNearestOnCurve = make_nearest_on_curve();

uint8_t code_on_curve(float x) {
  const int at = static_cast<int>(nearest(std::min(std::max(x, -128.0f), 127.0f)));
  return kNearestOnCurve[static_cast<size_t>(at + 128)];
}

float curve(uint8_t code) { return static_cast<float>(kIq4Values[code]); }

struct CurveSums {
  float xq = 0.0f;
  float qq = 0.0f;
};

CurveSums curve_sums(const Group& group, float inverse) {
  CurveSums sums;
  for (size_t i = 0; i < group.x.size(); ++i) {
    const float q = curve(code_on_curve(group.x[i] * inverse)), wq = group.w[i] * q;
    sums.xq += wq * group.x[i];
    sums.qq += wq * q;
  }
  return sums;
}

float best_curve_scale(const Group& group) {
  float most = 0.0f;
  for (const float x : group.x)
    if (std::fabs(x) > std::fabs(most)) most = x;
  if (most == 0.0f) return 0.0f;
  float best = most / kIq4Values[0], best_gain = -1.0f;
  const auto try_one = [&](float inverse) {
    const CurveSums sums = curve_sums(group, inverse);
    if (!(sums.qq > 0.0f)) return;
    const float scale = sums.xq / sums.qq, gain = scale * sums.xq;
    if (gain > best_gain) best_gain = gain, best = scale;
  };
  for (int i = -6; i <= 6; ++i) try_one((kIq4Values[0] + 1.5f * static_cast<float>(i)) / most);
  for (int i = -3; i <= 3; ++i) try_one((kIq4Values[15] + 3.0f * static_cast<float>(i)) / most);
  if (best != 0.0f) try_one(1.0f / best);
  return best;
}

float curve_error(const Group& group, float scale) {
  const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
  float error = 0.0f;
  for (size_t i = 0; i < group.x.size(); ++i) {
    const float left = group.x[i] - scale * curve(code_on_curve(group.x[i] * inverse));
    error += group.w[i] * left * left;
  }
  return error;
}

// Packs the 4-bit codes of 32 weights into 16 bytes: byte i has weight i in its low nibble, and
// weight i + 16 in its high nibble.
void put_on_curve(std::span<const float> x, float scale, uint8_t* out) {
  const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
  for (size_t i = 0; i < 16; ++i)
    out[i] = static_cast<uint8_t>(code_on_curve(x[i] * inverse) | code_on_curve(x[i + 16] * inverse)
                                                                      << 4);
}

void get_on_curve(const uint8_t* codes, float scale, std::span<float> x) {
  for (size_t i = 0; i < 16; ++i) {
    x[i] = scale * curve(codes[i] & 15u);
    x[i + 16] = scale * curve(static_cast<uint8_t>(codes[i] >> 4));
  }
}

struct IQ4NL {
  uint16_t d;
  uint8_t codes[16];
};
static_assert(sizeof(IQ4NL) == 18);

struct IQ4XS {
  uint16_t d;
  uint16_t high;  // of the scales of eight groups, two bits each
  uint8_t low[4];
  uint8_t codes[128];
};
static_assert(sizeof(IQ4XS) == 136);

struct MXFP4 {
  uint8_t exponent;
  uint8_t codes[16];
};
static_assert(sizeof(MXFP4) == 17);

template <class Block, size_t size, class One>
bool encode_tables(std::span<const float> x, std::span<const float> importance, std::byte* out,
                   One one) {
  alignas(16) std::array<float, size> w;
  for (size_t i = 0; i < x.size(); i += size, out += sizeof(Block)) {
    const auto part = x.subspan(i, size);
    weigh(part, importance.empty() ? importance : importance.subspan(i, size), w);
    Block block;
    if (!one(Group{part, w}, block)) return false;
    std::memcpy(out, &block, sizeof block);
  }
  return true;
}

bool encode_iq4_nl(std::span<const float> x, std::span<const float> importance, std::byte* out) {
  return encode_tables<IQ4NL, kTableBlock>(
      x, importance, out, [](const Group& group, IQ4NL& block) {
        block.d = half_from_float(best_curve_scale(group));
        put_on_curve(group.x, float_from_half(block.d), block.codes);
        return is_finite_half(block.d);
      });
}

void decode_iq4_nl(const std::byte* in, std::span<float> x) {
  for (size_t i = 0; i < x.size(); i += kTableBlock, in += sizeof(IQ4NL)) {
    IQ4NL block;
    std::memcpy(&block, in, sizeof block);
    get_on_curve(block.codes, float_from_half(block.d), x.subspan(i, kTableBlock));
  }
}

bool encode_iq4_xs(std::span<const float> x, std::span<const float> importance, std::byte* out) {
  constexpr size_t kGroups = kSuperBlock / kTableBlock;
  return encode_tables<IQ4XS, kSuperBlock>(
      x, importance, out, [](const Group& all_of_it, IQ4XS& block) {
        std::array<float, kGroups> own, chosen, best{};
        float extreme = 0.0f;
        const auto group_at = [&](size_t i) {
          return Group{all_of_it.x.subspan(i * kTableBlock, kTableBlock),
                       all_of_it.w.subspan(i * kTableBlock, kTableBlock)};
        };
        for (size_t i = 0; i < kGroups; ++i) {
          own[i] = best_curve_scale(group_at(i));
          if (std::fabs(own[i]) > std::fabs(extreme)) extreme = own[i];
        }
        float d = extreme / -32.0f, least = INFINITY;
        for (int pass = 0; pass < 2; ++pass) {
          const uint16_t half = half_from_float(d);
          if (!is_finite_half(half)) return false;
          d = float_from_half(half);
          float error = 0.0f, xp = 0.0f, pp = 0.0f;
          for (size_t i = 0; i < kGroups; ++i) {
            const Group group = group_at(i);
            const float near = pass > 0    ? chosen[i]
                               : d != 0.0f ? nearest(std::min(std::max(own[i] / d, -32.0f), 31.0f))
                                           : 0.0f;
            float least_here = INFINITY;
            for (float scale = std::max(near - 1, -32.0f); scale <= std::min(near + 1, 31.0f);
                 ++scale) {
              const float left = curve_error(group, d * scale);
              if (left < least_here) least_here = left, chosen[i] = scale;
            }
            error += least_here;
            const float scale = d * chosen[i];
            const CurveSums sums = curve_sums(group, scale != 0.0f ? 1.0f / scale : 0.0f);
            xp += chosen[i] * sums.xq;
            pp += chosen[i] * chosen[i] * sums.qq;
          }
          if (error < least) least = error, best = chosen, block.d = half;
          if (pp > 0.0f) d = xp / pp;
        }
        d = float_from_half(block.d);
        block.high = 0;
        std::memset(block.low, 0, sizeof block.low);
        for (size_t i = 0; i < kGroups; ++i) {
          const uint32_t scale = static_cast<uint32_t>(best[i] + 32.0f);
          block.low[i / 2] =
              static_cast<uint8_t>(block.low[i / 2] | (scale & 15u) << (4 * (i % 2)));
          block.high = static_cast<uint16_t>(block.high | (scale >> 4) << (2 * i));
          put_on_curve(group_at(i).x, d * best[i], block.codes + 16 * i);
        }
        return true;
      });
}

void decode_iq4_xs(const std::byte* in, std::span<float> x) {
  for (size_t i = 0; i < x.size(); i += kSuperBlock, in += sizeof(IQ4XS)) {
    IQ4XS block;
    std::memcpy(&block, in, sizeof block);
    for (size_t j = 0; j < kSuperBlock / kTableBlock; ++j) {
      const uint32_t low = block.low[j / 2] >> (4 * (j % 2)) & 15u;
      const uint32_t high = block.high >> (2 * j) & 3u;
      const float scale = float_from_half(block.d) * (static_cast<float>(low | high << 4) - 32);
      get_on_curve(block.codes + 16 * j, scale, x.subspan(i + j * kTableBlock, kTableBlock));
    }
  }
}

// Half of 2 to the power of `exponent` - 127: the table has the numbers doubled.
float tiny_scale(uint8_t exponent) { return std::ldexp(1.0f, exponent - 128); }

uint8_t tiny_code(float x) {
  const float magnitude = std::fabs(x);
  uint32_t code = 0;
  for (const float midpoint : {0.5f, 1.5f, 2.5f, 3.5f, 5.0f, 7.0f, 10.0f})
    code += magnitude > midpoint ? 1u : 0u;
  return static_cast<uint8_t>(x < 0.0f && code > 0 ? code | 8u : code);
}

float tiny_error(const Group& group, float scale, float inverse) {
  Lanes error = all(0.0f);
  for (size_t i = 0; i < kTableBlock; i += kLanes) {
    const Lanes x = magnitude(load(&group.x[i])), at = x * inverse;
    // Each midpoint that x is above adds the step to the next number.
    const Lanes number = (above(at, 0.5f, 1.0f) + above(at, 1.5f, 1.0f)) +
                         (above(at, 2.5f, 1.0f) + above(at, 3.5f, 1.0f)) +
                         (above(at, 5.0f, 2.0f) + above(at, 7.0f, 2.0f)) + above(at, 10.0f, 4.0f);
    const Lanes left = x - number * scale;
    error += load(&group.w[i]) * left * left;
  }
  return sum(error);
}

bool encode_mxfp4(std::span<const float> x, std::span<const float> importance, std::byte* out) {
  return encode_tables<MXFP4, kTableBlock>(
      x, importance, out, [](const Group& group, MXFP4& block) {
        float most = 0.0f;
        for (const float each : group.x) most = std::max(most, std::fabs(each));
        int exponent = 0;
        if (most > 0.0f) std::frexp(most, &exponent);
        // Where the largest number just fits, a power of two below, and one above.
        const int spanning = exponent - 1 - 2 + 127;
        float least = INFINITY;
        for (int each = spanning - 1; each <= spanning + 1; ++each) {
          const uint8_t tried = static_cast<uint8_t>(std::clamp(each, 0, 254));
          const float scale = tiny_scale(tried), inverse = 1.0f / scale;
          const float error = tiny_error(group, scale, inverse);
          if (error < least) least = error, block.exponent = tried;
        }
        const float inverse = 1.0f / tiny_scale(block.exponent);
        for (size_t i = 0; i < 16; ++i)
          block.codes[i] = static_cast<uint8_t>(tiny_code(group.x[i] * inverse) |
                                                tiny_code(group.x[i + 16] * inverse) << 4);
        return least < INFINITY;
      });
}

void decode_mxfp4(const std::byte* in, std::span<float> x) {
  for (size_t i = 0; i < x.size(); i += kTableBlock, in += sizeof(MXFP4)) {
    MXFP4 block;
    std::memcpy(&block, in, sizeof block);
    const float scale = tiny_scale(block.exponent);
    for (size_t j = 0; j < 16; ++j) {
      x[i + j] = scale * kTinyFloats[block.codes[j] & 15u];
      x[i + j + 16] = scale * kTinyFloats[block.codes[j] >> 4];
    }
  }
}

constexpr RowCoder kTableCoders[] = {
    {20, encode_iq4_nl, decode_iq4_nl},
    {23, encode_iq4_xs, decode_iq4_xs},
    {39, encode_mxfp4, decode_mxfp4},
};

}  // namespace

std::span<const RowCoder> table_coders() { return kTableCoders; }

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
