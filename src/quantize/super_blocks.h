// 256 weights in groups of 16 or 32, whose scales are whole numbers times one scale of them all:
// the fit that Q2_K to Q6_K and IQ4_XS share.
//
// Each group's own best scale comes first (search.h). What they are times the common scale is
// rounded, so the common scale is fitted again to the codes and whole numbers that came of it, and
// these to it: each of the two steps leaves less.
#pragma once
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "quantize/level.h"
#include "quantize/search.h"

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {

constexpr size_t kSuperBlock = 256;
constexpr size_t kMostGroups = 16;
using SuperNumbers = std::array<float, kSuperBlock>;

// x is about d * scale * code - m * minimum.
struct LineParts {
  uint16_t d;  // halves
  uint16_t m;
  std::array<uint8_t, kMostGroups> scales;
  std::array<uint8_t, kMostGroups> minima;
  SuperNumbers codes;
};

struct LineShape {
  size_t group;  // weights that share a scale and a minimum
  float levels;  // codes are 0 to this
  float most;    // scales and minima are 0 to this
  Trials trials;
};

// False where a scale is too large for a half.
bool fit(std::span<const float> x, std::span<const float> w, const LineShape& shape,
         LineParts& parts);

// x is about d * scale * code.
struct ScaleParts {
  uint16_t d;
  std::array<int8_t, kMostGroups> scales;
  SuperNumbers codes;
};

struct ScaleShape {
  size_t group;
  Codes codes;
  Codes scales;
  Trials trials;
};

bool fit(std::span<const float> x, std::span<const float> w, const ScaleShape& shape,
         ScaleParts& parts);

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
