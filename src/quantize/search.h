// The search for the scale of a group of weights: what is left of them when they are codes times
// that scale shall be as little as can be, in squares, each weighted.
//
// For given codes the best scale is a least-squares fit, in one formula. Which codes are best is
// found by trying: a scale gives codes, these their best scale, and the best of several is taken.
// The more are tried the less is left, since the errors of rounding are different for each.
#pragma once

#include <cstdint>
#include <span>

#include "quantize/level.h"

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {

// Weights and how much each counts; 16 or 32 of both.
struct Group {
  std::span<const float> x;
  std::span<const float> w;
};

// Codes from `low` to `high` times a scale.
struct Codes {
  float low;
  float high;
};

// How many scales are tried on each side of the one that just spans the group, and how far apart:
// a step is the change of the largest code.
struct Trials {
  int below;
  int above;
  float step;
};

// x is about `scale` times a code.
float best_scale(const Group& group, Codes codes, Trials trials);

// x is about `scale` times a code plus `minimum`, codes from 0 to `levels`.
struct Line {
  float scale;
  float minimum;
};

// The minimum is not above 0 where `is_negative`: such formats store its magnitude.
Line best_line(const Group& group, float levels, Trials trials, bool is_negative);

// The error that is left with a scale, with codes nearest to x.
float error_of(const Group& group, float scale, Codes codes);
float error_of(const Group& group, Line line, float levels);

// The codes nearest to x, as whole numbers in floats.
void encode(std::span<const float> x, float scale, Codes codes, std::span<float> result);
void encode(std::span<const float> x, Line line, float levels, std::span<float> result);

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
