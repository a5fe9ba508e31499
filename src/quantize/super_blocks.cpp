#include "quantize/super_blocks.h"

#include <algorithm>
#include <cmath>

#include "quantize/half.h"
#include "quantize/lanes.h"

namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL {
namespace {

constexpr int kPasses = 2;

float clamped(float x, float low, float high) { return std::min(std::max(x, low), high); }

float rounded(float x, float low, float high) { return nearest(clamped(x, low, high)); }

Group group_of(std::span<const float> x, std::span<const float> w, size_t index, size_t size) {
  return {x.subspan(index * size, size), w.subspan(index * size, size)};
}

// The whole numbers for one group, near to those given, that leave the least.
struct LineChoice {
  float scale;
  float minimum;
  float error;
};

LineChoice choose(const Group& group, const LineShape& shape, float d, float m, float near_scale,
                  float near_minimum) {
  LineChoice best{near_scale, near_minimum, INFINITY};
  for (float scale = std::max(near_scale - 1, 0.0f); scale <= std::min(near_scale + 1, shape.most);
       ++scale)
    for (float minimum = std::max(near_minimum - 1, 0.0f);
         minimum <= std::min(near_minimum + 1, shape.most); ++minimum) {
      const float error = error_of(group, Line{d * scale, -m * minimum}, shape.levels);
      if (error < best.error) best = {scale, minimum, error};
    }
  return best;
}

}  // namespace

bool fit(std::span<const float> x, std::span<const float> w, const LineShape& shape,
         LineParts& parts) {
  const size_t n_groups = kSuperBlock / shape.group;
  std::array<Line, kMostGroups> lines;
  float most_scale = 0.0f, most_minimum = 0.0f;
  for (size_t i = 0; i < n_groups; ++i) {
    lines[i] = best_line(group_of(x, w, i, shape.group), shape.levels, shape.trials, true);
    most_scale = std::max(most_scale, lines[i].scale);
    most_minimum = std::max(most_minimum, -lines[i].minimum);
  }
  float d = most_scale / shape.most, m = most_minimum / shape.most;
  std::array<LineChoice, kMostGroups> chosen, best;
  float least = INFINITY;
  for (int pass = 0; pass < kPasses; ++pass) {
    const uint16_t half_d = half_from_float(d), half_m = half_from_float(m);
    if (!is_finite_half(half_d) || !is_finite_half(half_m)) return false;
    d = float_from_half(half_d), m = float_from_half(half_m);
    const float to_scale = d > 0.0f ? 1.0f / d : 0.0f, to_minimum = m > 0.0f ? 1.0f / m : 0.0f;
    float error = 0.0f;
    // Least squares for d and m together.
    float pp = 0.0f, pr = 0.0f, rr = 0.0f, xp = 0.0f, xr = 0.0f;
    for (size_t i = 0; i < n_groups; ++i) {
      const Group group = group_of(x, w, i, shape.group);
      const float near_scale =
          pass == 0 ? rounded(lines[i].scale * to_scale, 0.0f, shape.most) : chosen[i].scale;
      const float near_minimum =
          pass == 0 ? rounded(-lines[i].minimum * to_minimum, 0.0f, shape.most) : chosen[i].minimum;
      chosen[i] = choose(group, shape, d, m, near_scale, near_minimum);
      error += chosen[i].error;
      const float scale = chosen[i].scale, minimum = chosen[i].minimum;
      const float inverse = d * scale > 0.0f ? 1.0f / (d * scale) : 0.0f;
      Lanes sum_w = all(0.0f), sum_wq = sum_w, sum_wqq = sum_w, sum_wx = sum_w, sum_wxq = sum_w;
      for (size_t j = 0; j < shape.group; j += kLanes) {
        const Lanes here = load(&group.x[j]), weight = load(&group.w[j]);
        const Lanes q = clamp(nearest((here + m * minimum) * inverse), 0.0f, shape.levels);
        sum_w += weight, sum_wq += weight * q, sum_wqq += weight * q * q;
        sum_wx += weight * here, sum_wxq += weight * here * q;
      }
      pp += scale * scale * sum(sum_wqq);
      pr -= scale * minimum * sum(sum_wq);
      rr += minimum * minimum * sum(sum_w);
      xp += scale * sum(sum_wxq);
      xr -= minimum * sum(sum_wx);
    }
    if (error < least) {
      least = error;
      best = chosen;
      parts.d = half_d, parts.m = half_m;
    }
    const float determinant = pp * rr - pr * pr;
    if (determinant > 1e-6f * pp * rr) {
      const float next_d = (rr * xp - pr * xr) / determinant;
      const float next_m = (pp * xr - pr * xp) / determinant;
      if (next_d > 0.0f && next_m >= 0.0f) d = next_d, m = next_m;
    } else if (pp > 0.0f && xp > 0.0f && m == 0.0f) {
      d = xp / pp;
    }
  }
  d = float_from_half(parts.d), m = float_from_half(parts.m);
  for (size_t i = 0; i < n_groups; ++i) {
    parts.scales[i] = static_cast<uint8_t>(best[i].scale);
    parts.minima[i] = static_cast<uint8_t>(best[i].minimum);
    encode(x.subspan(i * shape.group, shape.group), Line{d * best[i].scale, -m * best[i].minimum},
           shape.levels, std::span(parts.codes).subspan(i * shape.group, shape.group));
  }
  return true;
}

bool fit(std::span<const float> x, std::span<const float> w, const ScaleShape& shape,
         ScaleParts& parts) {
  const size_t n_groups = kSuperBlock / shape.group;
  std::array<float, kMostGroups> own, chosen, best;
  float extreme = 0.0f;
  for (size_t i = 0; i < n_groups; ++i) {
    own[i] = best_scale(group_of(x, w, i, shape.group), shape.codes, shape.trials);
    if (std::fabs(own[i]) > std::fabs(extreme)) extreme = own[i];
  }
  float d = extreme / shape.scales.low;
  float least = INFINITY;
  best.fill(0.0f);
  for (int pass = 0; pass < kPasses; ++pass) {
    const uint16_t half_d = half_from_float(d);
    if (!is_finite_half(half_d)) return false;
    d = float_from_half(half_d);
    const float to_scale = d != 0.0f ? 1.0f / d : 0.0f;
    float error = 0.0f, pp = 0.0f, xp = 0.0f;
    for (size_t i = 0; i < n_groups; ++i) {
      const Group group = group_of(x, w, i, shape.group);
      const float near =
          pass == 0 ? rounded(own[i] * to_scale, shape.scales.low, shape.scales.high) : chosen[i];
      float least_here = INFINITY;
      for (float scale = std::max(near - 1, shape.scales.low);
           scale <= std::min(near + 1, shape.scales.high); ++scale) {
        const float left = error_of(group, d * scale, shape.codes);
        if (left < least_here) least_here = left, chosen[i] = scale;
      }
      error += least_here;
      const float inverse = d * chosen[i] != 0.0f ? 1.0f / (d * chosen[i]) : 0.0f;
      Lanes sum_wqq = all(0.0f), sum_wxq = sum_wqq;
      for (size_t j = 0; j < shape.group; j += kLanes) {
        const Lanes here = load(&group.x[j]);
        const Lanes q = clamp(nearest(here * inverse), shape.codes.low, shape.codes.high);
        const Lanes wq = load(&group.w[j]) * q;
        sum_wqq += wq * q, sum_wxq += wq * here;
      }
      pp += chosen[i] * chosen[i] * sum(sum_wqq);
      xp += chosen[i] * sum(sum_wxq);
    }
    if (error < least) {
      least = error;
      best = chosen;
      parts.d = half_d;
    }
    if (pp > 0.0f) d = xp / pp;
  }
  d = float_from_half(parts.d);
  for (size_t i = 0; i < n_groups; ++i) {
    parts.scales[i] = static_cast<int8_t>(best[i]);
    encode(x.subspan(i * shape.group, shape.group), d * best[i], shape.codes,
           std::span(parts.codes).subspan(i * shape.group, shape.group));
  }
  return true;
}

}  // namespace akunu::quantize::AKUNU_QUANTIZE_LEVEL
