// Elementary functions in float32, made of `fma`s, products and sums alone: the same bits on every
// chip and in the emulator, within the bounds of docs/kernels.md. (Metal's own precise::exp is
// within 4 units in the last place, precise::tanh within 5, and its sine and cosine within 4: the
// contract asks for 2, 3 and 1.) The polynomials are minimax fits.
#pragma once

#include <metal_stdlib>

using namespace metal;

inline float infinity() { return as_type<float>(0x7f800000u); }
inline bool is_finite(float x) { return (as_type<uint>(x) & 0x7f800000u) != 0x7f800000u; }

// To the nearest whole number, half to even, for |x| < 2^22.
inline float round_to_whole(float x) { return (x + 12582912.0f) - 12582912.0f; }

// 2^n for a whole n in [-126, 127].
inline float power_of_two(float n) { return as_type<float>(uint(int(n) + 127) << 23); }

// e^x to 2 units in the last place. 2^n goes in two factors, so that results underflow gradually
// where the chip has such numbers.
inline float exp_of(float x) {
  if (isnan(x)) return x;
  x = min(89.0f, max(-104.0f, x));
  const float n = round_to_whole(x * 0x1.715476p+0f);
  float r = fma(n, -0x1.62e4p-1f, x);  // 16 bits of ln 2: the product is exact
  r = fma(n, -0x1.7f7d1cp-20f, r);
  float p = fma(r, 0x1.6a1a6ep-10f, 0x1.123fc8p-7f);
  p = fma(p, r, 0x1.555916p-5f);
  p = fma(p, r, 0x1.55548ap-3f);
  p = fma(p, r, 0x1.fffffcp-2f);
  const float result = fma(r * r, p, r) + 1.0f;
  const float half_n = round_to_whole(n * 0.5f);
  return (result * power_of_two(half_n)) * power_of_two(n - half_n);
}

// tanh x to 3 units in the last place.
inline float tanh_of(float x) {
  const float size = abs(x);
  if (size < 0.625f) {
    const float square = x * x;
    float p = fma(square, -0x1.75e196p-8f, 0x1.52268ep-6f);
    p = fma(p, square, -0x1.b83c58p-5f);
    p = fma(p, square, 0x1.110726p-3f);
    p = fma(p, square, -0x1.555532p-2f);
    return fma(x * square, p, x);
  }
  const float e = exp_of(-2.0f * size);
  const float far = (1.0f - e) / (1.0f + e);
  return x < 0.0f ? -far : far;
}

// ln(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)].
inline float log_near_one(float f) {
  const float square = f * f;
  float p = fma(f, 0x1.145750p-4f, -0x1.de3c18p-4f);
  p = fma(p, f, 0x1.e6f096p-4f);
  p = fma(p, f, -0x1.fc220ap-4f);
  p = fma(p, f, 0x1.233766p-3f);
  p = fma(p, f, -0x1.555c4ep-3f);
  p = fma(p, f, 0x1.99a4b6p-3f);
  p = fma(p, f, -0x1.000006p-2f);
  p = fma(p, f, 0x1.555548p-2f);
  return f + fma(square, -0.5f, (f * square) * p);
}

// ln x for normal x > 0.
inline float log_of(float x) {
  const uint bits = as_type<uint>(x);
  float m = as_type<float>((bits & 0x007fffffu) | 0x3f800000u);
  float n = float(int(bits >> 23) - 127);
  if (m >= 0x1.6a09e6p+0f) {
    m *= 0.5f;
    n += 1.0f;
  }
  const float low = fma(n, 0x1.7f7d1cp-20f, log_near_one(m - 1.0f));
  return fma(n, 0x1.62e4p-1f, low);
}

// cos and sin of an angle up to about 2^20: pi / 2 in four parts. The first two leave nothing to
// round, the third next to nothing, so that what remains of the angle is exact to its last place.
inline float2 cos_sin_of(float angle) {
  const float n = round_to_whole(angle * 0x1.45f306p-1f);
  float r = fma(n, -0x1.92p+0f, angle);
  r = fma(n, -0x1.f8p-12f, r);
  r = fma(n, -0x1.aap-19f, r);
  r = fma(n, -0x1.10b462p-30f, r);
  const float square = r * r;
  float s = fma(square, 0x1.6dbe4ap-19f, -0x1.a01358p-13f);
  s = fma(s, square, 0x1.11110ep-7f);
  s = fma(s, square, -0x1.555556p-3f);
  const float sine = fma(r * square, s, r);
  float c = fma(square, 0x1.98e616p-16f, -0x1.6c06dcp-10f);
  c = fma(c, square, 0x1.55553cp-5f);
  c = fma(c, square, -0x1.000000p-1f);
  const float cosine = fma(c, square, 1.0f);
  const uint quarter = uint(int(n)) & 3u;
  const float2 turned = (quarter & 1u) != 0 ? float2(-sine, cosine) : float2(cosine, sine);
  return (quarter & 2u) != 0 ? -turned : turned;
}

// log(1 + e^x): 1 + e would lose the digits of a small e.
inline float softplus(float x) {
  const float e = exp_of(-abs(x));
  const float rest = e < 0.375f ? log_near_one(e) : log_of(1.0f + e);
  return x < 0.0f ? rest : x + rest;
}

// 1 / (1 + e^-x)
inline float sigmoid(float x) { return 1.0f / (1.0f + exp_of(-x)); }

// x / (1 + e^-x)
inline float silu(float x) { return x / (1.0f + exp_of(-x)); }

// x/2 (1 + tanh u) = x / (1 + e^-2u): 1 + tanh would lose all its digits for large negative x.
inline float gelu_tanh(float x) {
  const float cubic = fma(x * x, 0.044715f, 1.0f);
  return x / (1.0f + exp_of((x * cubic) * -0x1.988454p+0f));
}

// x/2 erfc(-x / sqrt 2), the rational fit of erfc with a relative error of 1.2e-7.
inline float gelu(float x) {
  const float z = abs(x) * 0x1.6a09e6p-1f;
  const float t = 1.0f / fma(z, 0.5f, 1.0f);
  float p = fma(t, 0.17087277f, -0.82215223f);
  p = fma(p, t, 1.48851587f);
  p = fma(p, t, -1.13520398f);
  p = fma(p, t, 0.27886807f);
  p = fma(p, t, -0.18628806f);
  p = fma(p, t, 0.09678418f);
  p = fma(p, t, 0.37409196f);
  p = fma(p, t, 1.00002368f);
  p = fma(p, t, -1.26551223f);
  const float tail = (t * exp_of(p - (x * x) * 0.5f)) * 0.5f;
  return x * (x < 0.0f ? tail : 1.0f - tail);
}
