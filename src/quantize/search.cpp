#include "quantize/search.h"

#include <algorithm>
#include <cmath>

#include "quantize/lanes.h"

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {
namespace {

// Loops over groups have a length that the compiler knows.
bool is_short(const Group& group) { return group.x.size() == 16; }

float inverse_of(float scale) { return scale == 0.0f ? 0.0f : 1.0f / scale; }

struct Range {
  float low;
  float high;
};

Range range_of(std::span<const float> x) {
  Lanes low = load(x.data()), high = low;
  for (size_t i = kLanes; i < x.size(); i += kLanes) {
    const Lanes here = load(&x[i]);
    low = smaller(low, here);
    high = larger(high, here);
  }
  return {least(low), most(high)};
}

// Sums over a group and its codes for a scale: the best scale for these codes is xq / qq, and it
// takes xq * xq / qq from the error.
struct ScaleSums {
  float xq;
  float qq;
};

template <size_t size>
ScaleSums sums_of(const Group& group, float inverse, Codes codes) {
  Lanes xq = all(0.0f), qq = xq;
  for (size_t i = 0; i < size; i += kLanes) {
    const Lanes x = load(&group.x[i]);
    const Lanes q = clamp(nearest(x * inverse), codes.low, codes.high);
    const Lanes wq = load(&group.w[i]) * q;
    xq += wq * x;
    qq += wq * q;
  }
  return {sum(xq), sum(qq)};
}

// The same for a line; sums of w, wx and wxx do not depend on the codes.
struct LineSums {
  float q;
  float qq;
  float xq;
};

template <size_t size>
LineSums sums_of(const Group& group, float inverse, float minimum, float levels) {
  Lanes sum_q = all(0.0f), qq = sum_q, xq = sum_q;
  for (size_t i = 0; i < size; i += kLanes) {
    const Lanes x = load(&group.x[i]);
    const Lanes q = clamp(nearest((x - minimum) * inverse), 0.0f, levels);
    const Lanes wq = load(&group.w[i]) * q;
    sum_q += wq;
    qq += wq * q;
    xq += wq * x;
  }
  return {sum(sum_q), sum(qq), sum(xq)};
}

template <size_t size>
float best_scale_of(const Group& group, Codes codes, Trials trials) {
  const Range range = range_of(group.x);
  const float most = -range.low > range.high ? range.low : range.high;
  if (most == 0.0f) return 0.0f;
  float best = most / codes.low, best_gain = -1.0f;
  const auto try_one = [&](float inverse) {
    const ScaleSums sums = sums_of<size>(group, inverse, codes);
    if (!(sums.qq > 0.0f)) return;
    const float scale = sums.xq / sums.qq, gain = scale * sums.xq;
    if (gain > best_gain) best_gain = gain, best = scale;
  };
  for (int i = -trials.below; i <= trials.above; ++i)
    try_one((codes.low - trials.step * static_cast<float>(i)) / most);
  try_one(inverse_of(best));
  return best;
}

template <size_t size>
Line best_line_of(const Group& group, float levels, Trials trials, bool is_negative) {
  Range range = range_of(group.x);
  if (is_negative) range.low = std::min(range.low, 0.0f);
  if (range.low == range.high) return {0.0f, range.low};
  if (is_negative && range.high <= range.low) return {0.0f, range.low};
  Lanes w_lanes = all(0.0f), wx_lanes = w_lanes;
  for (size_t i = 0; i < size; i += kLanes) {
    w_lanes += load(&group.w[i]);
    wx_lanes += load(&group.w[i]) * load(&group.x[i]);
  }
  const float w = sum(w_lanes), wx = sum(wx_lanes);
  Line best{(range.high - range.low) / levels, range.low};
  float best_gain = -INFINITY;
  const auto try_one = [&](float inverse, float minimum) {
    const LineSums sums = sums_of<size>(group, inverse, minimum, levels);
    const float determinant = w * sums.qq - sums.q * sums.q;
    if (!(determinant > 0.0f)) return;
    Line line{(w * sums.xq - wx * sums.q) / determinant,
              (sums.qq * wx - sums.q * sums.xq) / determinant};
    if (is_negative && line.minimum > 0.0f) line = {sums.xq / sums.qq, 0.0f};
    if (!(line.scale > 0.0f)) return;
    const float gain = line.scale * sums.xq + line.minimum * wx;
    if (gain > best_gain) best_gain = gain, best = line;
  };
  for (int i = -trials.below; i <= trials.above; ++i)
    try_one((levels + trials.step * static_cast<float>(i)) / (range.high - range.low), range.low);
  try_one(1.0f / best.scale, best.minimum);
  return best;
}

template <size_t size>
float error_in(const Group& group, float scale, Codes codes) {
  const float inverse = inverse_of(scale);
  Lanes error = all(0.0f);
  for (size_t i = 0; i < size; i += kLanes) {
    const Lanes x = load(&group.x[i]);
    const Lanes left = x - clamp(nearest(x * inverse), codes.low, codes.high) * scale;
    error += load(&group.w[i]) * left * left;
  }
  return sum(error);
}

template <size_t size>
float error_in(const Group& group, Line line, float levels) {
  const float inverse = inverse_of(line.scale);
  Lanes error = all(0.0f);
  for (size_t i = 0; i < size; i += kLanes) {
    const Lanes x = load(&group.x[i]) - line.minimum;
    const Lanes left = x - clamp(nearest(x * inverse), 0.0f, levels) * line.scale;
    error += load(&group.w[i]) * left * left;
  }
  return sum(error);
}

}  // namespace

float best_scale(const Group& group, Codes codes, Trials trials) {
  return is_short(group) ? best_scale_of<16>(group, codes, trials)
                         : best_scale_of<32>(group, codes, trials);
}

Line best_line(const Group& group, float levels, Trials trials, bool is_negative) {
  return is_short(group) ? best_line_of<16>(group, levels, trials, is_negative)
                         : best_line_of<32>(group, levels, trials, is_negative);
}

float error_of(const Group& group, float scale, Codes codes) {
  return is_short(group) ? error_in<16>(group, scale, codes) : error_in<32>(group, scale, codes);
}

float error_of(const Group& group, Line line, float levels) {
  return is_short(group) ? error_in<16>(group, line, levels) : error_in<32>(group, line, levels);
}

void encode(std::span<const float> x, float scale, Codes codes, std::span<float> result) {
  const float inverse = inverse_of(scale);
  for (size_t i = 0; i < x.size(); i += kLanes)
    store(&result[i], clamp(nearest(load(&x[i]) * inverse), codes.low, codes.high));
}

void encode(std::span<const float> x, Line line, float levels, std::span<float> result) {
  const float inverse = inverse_of(line.scale);
  for (size_t i = 0; i < x.size(); i += kLanes)
    store(&result[i], clamp(nearest((load(&x[i]) - line.minimum) * inverse), 0.0f, levels));
}

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
