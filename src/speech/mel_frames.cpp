// Eight frames at a time, in double precision: a frame with a loud tone has mel bands that lie 80 dB
// below it and still count, where single precision would be off in the third digit.
//
// The frames are the lanes of vectors: four are real parts and four imaginary parts of the numbers of one
// complex transform, whose result falls apart into the spectra of both. 400 = 16 * 25 points: first
// 25 transforms of 16 = 4 * 4 points, a rotation, then 16 transforms of 25 = 5 * 5.
#include "speech/mel_frames.h"

#include <cstdint>
#include <cstring>

#ifndef AKUNU_SPEECH_LEVEL
#define AKUNU_SPEECH_LEVEL portable
#endif

namespace akunu::speech::AKUNU_SPEECH_LEVEL {
namespace {

constexpr size_t kLanes = 4;

// One register, or two of two doubles.
#ifdef __AVX2__
using Register = double __attribute__((vector_size(32)));
using Bits = int64_t __attribute__((vector_size(32)));
#else
using Register = double __attribute__((vector_size(16)));
using Bits = int64_t __attribute__((vector_size(16)));
#endif
constexpr size_t kRegisters = kLanes * sizeof(double) / sizeof(Register);

struct Lanes {
  Register part[kRegisters];
};

template <class Operation>
[[gnu::always_inline]] inline Lanes by_part(Operation operation) {
  Lanes result;
  for (size_t i = 0; i < kRegisters; ++i) result.part[i] = operation(i);
  return result;
}

[[gnu::always_inline]] inline Lanes operator+(const Lanes& a, const Lanes& b) {
  return by_part([&](size_t i) { return a.part[i] + b.part[i]; });
}
[[gnu::always_inline]] inline Lanes operator-(const Lanes& a, const Lanes& b) {
  return by_part([&](size_t i) { return a.part[i] - b.part[i]; });
}
[[gnu::always_inline]] inline Lanes operator*(const Lanes& a, const Lanes& b) {
  return by_part([&](size_t i) { return a.part[i] * b.part[i]; });
}
[[gnu::always_inline]] inline Lanes operator*(const Lanes& a, double b) {
  return by_part([&](size_t i) { return a.part[i] * b; });
}

struct Complex {
  Lanes re, im;
};

[[gnu::always_inline]] inline Complex operator+(const Complex& a, const Complex& b) {
  return {a.re + b.re, a.im + b.im};
}
[[gnu::always_inline]] inline Complex operator-(const Complex& a, const Complex& b) {
  return {a.re - b.re, a.im - b.im};
}
[[gnu::always_inline]] inline Complex operator*(const Complex& a, double b) {
  return {a.re * b, a.im * b};
}
[[gnu::always_inline]] inline Complex minus_i_times(const Complex& a) {
  return {a.im, Lanes{} - a.re};
}

// a * exp(-2 pi i turns / 400)
[[gnu::always_inline]] inline Complex rotated(const MelTables& tables, const Complex& a,
                                              size_t turns) {
  const double c = tables.cosine[turns], s = tables.negative_sine[turns];
  return {a.re * c - a.im * s, a.re * s + a.im * c};
}

[[gnu::always_inline]] inline void transform(Complex (&x)[4]) {
  const Complex a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3];
  const Complex d = minus_i_times(x[1] - x[3]);
  x[0] = a + c;
  x[1] = b + d;
  x[2] = a - c;
  x[3] = b - d;
}

[[gnu::always_inline]] inline void transform(Complex (&x)[5]) {
  constexpr double kCos1 = 0.30901699437494742410;  // of 2 pi / 5 and 4 pi / 5
  constexpr double kCos2 = -0.80901699437494742410;
  constexpr double kSin1 = 0.95105651629515357212;
  constexpr double kSin2 = 0.58778525229247312917;
  const Complex sum1 = x[1] + x[4], sum2 = x[2] + x[3];
  const Complex difference1 = x[1] - x[4], difference2 = x[2] - x[3];
  const Complex even1 = x[0] + sum1 * kCos1 + sum2 * kCos2;
  const Complex even2 = x[0] + sum1 * kCos2 + sum2 * kCos1;
  const Complex odd1 = minus_i_times(difference1 * kSin1 + difference2 * kSin2);
  const Complex odd2 = minus_i_times(difference1 * kSin2 - difference2 * kSin1);
  x[0] = x[0] + sum1 + sum2;
  x[1] = even1 + odd1;
  x[2] = even2 + odd2;
  x[3] = even2 - odd2;
  x[4] = even1 - odd1;
}

// The transform of kRadix * kRadix points, in place. Bin c + kRadix * d of it lies at kRadix * c + d.
template <size_t kRadix>
[[gnu::always_inline]] inline void transform_square(const MelTables& tables,
                                                    Complex (&x)[kRadix * kRadix]) {
  constexpr size_t kTurns = kFrame / (kRadix * kRadix);
  for (size_t b = 0; b < kRadix; ++b) {
    Complex column[kRadix];
    for (size_t a = 0; a < kRadix; ++a) column[a] = x[kRadix * a + b];
    transform(column);
    for (size_t c = 0; c < kRadix; ++c)
      x[kRadix * c + b] = rotated(tables, column[c], kTurns * b * c);
  }
  for (size_t c = 0; c < kRadix; ++c) {
    Complex row[kRadix];
    for (size_t b = 0; b < kRadix; ++b) row[b] = x[kRadix * c + b];
    transform(row);
    for (size_t d = 0; d < kRadix; ++d) x[kRadix * c + d] = row[d];
  }
}

// Sample n lies at data[n]; bin k comes to lie at data[25 * (k % 16) + k / 16].
void transform_frame(const MelTables& tables, Complex* data) {
  for (size_t n = 0; n < 25; ++n) {
    Complex x[16];
    for (size_t i = 0; i < 16; ++i) x[i] = data[25 * i + n];
    transform_square<4>(tables, x);
    for (size_t c = 0; c < 4; ++c)
      for (size_t d = 0; d < 4; ++d) {
        const size_t k = c + 4 * d;
        data[25 * k + n] = rotated(tables, x[4 * c + d], n * k);
      }
  }
  for (size_t k = 0; k < 16; ++k) {
    Complex x[25];
    for (size_t n = 0; n < 25; ++n) x[n] = data[25 * k + n];
    transform_square<5>(tables, x);
    for (size_t c = 0; c < 5; ++c)
      for (size_t d = 0; d < 5; ++d) data[25 * k + c + 5 * d] = x[5 * c + d];
  }
}

void load(const double* window, const float* samples, Complex* data) {
  for (size_t n = 0; n < kFrame; ++n) {
    double values[2 * kLanes];
    for (size_t frame = 0; frame < 2 * kLanes; ++frame)
      values[frame] = static_cast<double>(samples[frame * kHop + n]);
    std::memcpy(&data[n], values, sizeof values);
    data[n] = data[n] * window[n];
  }
}

// |bin|^2 of each frame: those of the real parts in `re`, of the imaginary parts in `im`.
void powers(const Complex* data, Complex* power) {
  for (size_t k = 0; k < kBins; ++k) {
    const size_t mirror = (kFrame - k) % kFrame;
    const Complex a = data[25 * (k % 16) + k / 16];
    const Complex b = data[25 * (mirror % 16) + mirror / 16];
    const Lanes even = a.re + b.re, odd = a.im - b.im;
    const Lanes other_even = a.im + b.im, other_odd = a.re - b.re;
    power[k].re = (even * even + odd * odd) * 0.25;
    power[k].im = (other_even * other_even + other_odd * other_odd) * 0.25;
  }
}

// log10 of numbers that are normal and positive: exponent and mantissa m, in [sqrt(1/2), sqrt(2)), of
// which log(m) = 2 atanh((m - 1) / (m + 1)), up to the eleventh power: 1e-11.
[[gnu::always_inline]] inline void take_log10(Lanes& x) {
  constexpr double kLog10Of2 = 0.30102999566398119521;
  constexpr double kTwoOverLn10 = 0.86858896380650365530;
  constexpr int64_t kHalfStep = 0x00095f619980c433;  // the bits of 2 minus those of sqrt(2)
  constexpr int64_t kExponentOf2To52 = 0x4330000000000000;
  for (size_t i = 0; i < kRegisters; ++i) {
    Bits bits;
    std::memcpy(&bits, &x.part[i], sizeof bits);
    const Bits moved = bits + kHalfStep;  // from sqrt(2) on a number has the next exponent
    const Bits exponent = (moved >> 52) | kExponentOf2To52;  // as a double: 2^52 + its value
    const Bits mantissa = bits - (((moved >> 52) - 1023) << 52);
    Register scale, m;
    std::memcpy(&scale, &exponent, sizeof scale);
    std::memcpy(&m, &mantissa, sizeof m);
    const Register s = (m - 1.0) / (m + 1.0), square = s * s;
    const Register series =
        1.0 + square * (1.0 / 3 +
                        square * (1.0 / 5 +
                                  square * (1.0 / 7 + square * (1.0 / 9 + square * (1.0 / 11)))));
    x.part[i] = (scale - (4503599627370496.0 + 1023.0)) * kLog10Of2 + s * series * kTwoOverLn10;
  }
}

[[gnu::always_inline]] inline Lanes at_least(const Lanes& x, double lowest) {
  return by_part(
      [&](size_t i) { return x.part[i] > Register{} + lowest ? x.part[i] : Register{} + lowest; });
}

}  // namespace

void mel_frames(const MelTables& tables, const float* samples, float* out) {
  constexpr double kFloor = 1e-10;
  Complex data[kFrame], power[kBins];
  load(tables.window, samples, data);
  transform_frame(tables, data);
  powers(data, power);
  for (size_t mel = 0; mel < tables.n_mels; ++mel) {
    const MelFilter& filter = tables.filters[mel];
    Complex energy{};
    for (size_t i = 0; i < filter.n; ++i)
      energy = energy + power[filter.first + i] * filter.weights[i];
    energy = {at_least(energy.re, kFloor), at_least(energy.im, kFloor)};
    take_log10(energy.re);
    take_log10(energy.im);
    double values[2 * kLanes];
    std::memcpy(values, &energy, sizeof values);
    for (size_t frame = 0; frame < kFramesAtOnce; ++frame)
      out[mel * kFramesAtOnce + frame] = static_cast<float>(values[frame]);
  }
}

void mel_scale(float* values, size_t n, float lowest) {
  for (size_t i = 0; i < n; ++i)
    values[i] = ((values[i] > lowest ? values[i] : lowest) + 4.0f) / 4.0f;
}

}  // namespace akunu::speech::AKUNU_SPEECH_LEVEL
