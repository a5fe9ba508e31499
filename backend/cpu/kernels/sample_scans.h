// Loops over the logits of a row that find maxima and sums.
//
// 1. What it computes. The largest, the first of a value, NaN, sums of terms, and those above a
//    bound.
// 2. What bounds it. Reading: a row of 150,000 logits is 600 KB, in L2; where terms are
//    exponentials, those.
// 3. What is done about it. Whole vectors, and bit masks of comparisons, so that a branch is taken
//    for a hit only. Sums are floats within 32 vectors and doubles beyond: as exact as the bounds
//    of docs/kernels.md ask, and cut by the number of values alone.
#pragma once

#include <stdint.h>

#include "core/rows.h"

namespace akunu::cpu {

constexpr float kInfinity = __builtin_inff();

// Goes over `values` vector by vector: visit(first index, vector, number of values in it). Only the
// last vector can be partly filled; its other lanes are 0.
template <class Isa, class Visit>
static inline void for_vectors(const float* values, uint32_t count, const Visit& visit) {
  uint32_t i = 0;
  for (; i + Isa::kLanes <= count; i += Isa::kLanes) visit(i, Isa::load(values + i), Isa::kLanes);
  if (i < count) visit(i, Isa::load(values + i, count - i), count - i);
}

// Calls visit(i) for every i, in order, where values[i] < bound() does not hold.
template <class Isa, class Bound, class Visit>
static inline void for_those_at_least(const float* values, uint32_t count, const Bound& bound,
                                      const Visit& visit) {
  for_vectors<Isa>(values, count, [&](uint32_t i, typename Isa::Vector v, uint32_t n) {
    uint32_t hits = Isa::not_less(v, Isa::broadcast(bound())) & ((1u << n) - 1);
    for (; hits != 0; hits &= hits - 1) visit(i + static_cast<uint32_t>(__builtin_ctz(hits)));
  });
}

template <class Isa>
static float largest_of(const float* values, uint32_t count) {
  auto largest = Isa::broadcast(-kInfinity);
  float rest = -kInfinity;
  for_vectors<Isa>(values, count, [&](uint32_t i, typename Isa::Vector v, uint32_t n) {
    if (n == Isa::kLanes) {
      largest = Isa::maximum(v, largest);
    } else {
      for (uint32_t j = i; j < i + n; ++j) rest = values[j] > rest ? values[j] : rest;
    }
  });
  const float vectors = Isa::max_lanes(largest);
  return vectors > rest ? vectors : rest;
}

// The first i where values[i] < value does not hold.
template <class Isa>
static uint32_t first_with(const float* values, uint32_t count, float value) {
  for (uint32_t i = 0; i < count; i += Isa::kLanes) {
    const uint32_t n = count - i < Isa::kLanes ? count - i : Isa::kLanes;
    const uint32_t hits =
        Isa::not_less(Isa::load(values + i, n), Isa::broadcast(value)) & ((1u << n) - 1);
    if (hits != 0) return i + static_cast<uint32_t>(__builtin_ctz(hits));
  }
  return kNone;
}

template <class Isa>
static bool holds_nan(const float* logits, uint32_t count) {
  uint32_t nan = 0;
  for_vectors<Isa>(logits, count,
                   [&](uint32_t, typename Isa::Vector v, uint32_t) { nan |= Isa::is_nan(v); });
  return nan != 0;
}

// Sums over all of `values`, of `n_sums` numbers that `terms(vector, out)` makes of each: floats within
// 8 * 32 of them, then doubles, so that the order of summation depends on their number alone. Lanes
// past the last value are given as `neutral`.
template <class Isa, uint32_t kSums, class Terms>
static void sum_terms(const float* values, uint32_t count, float neutral, double (&sums)[kSums],
                      const Terms& terms) {
  using Vector = typename Isa::Vector;
  Vector parts[kSums];
  for (uint32_t s = 0; s < kSums; ++s) {
    parts[s] = Isa::zero();
    sums[s] = 0;
  }
  uint32_t step = 0;
  const auto flush = [&] {
    for (uint32_t s = 0; s < kSums; ++s) {
      sums[s] += static_cast<double>(Isa::sum_lanes(parts[s]));
      parts[s] = Isa::zero();
    }
  };
  for_vectors<Isa>(values, count, [&](uint32_t i, Vector v, uint32_t n) {
    if (n < Isa::kLanes) {
      float rest[Isa::kLanes];
      for (uint32_t j = 0; j < Isa::kLanes; ++j) rest[j] = j < n ? values[i + j] : neutral;
      v = Isa::load(rest);
    }
    Vector out[kSums];
    terms(v, out);
    for (uint32_t s = 0; s < kSums; ++s) parts[s] = Isa::add(parts[s], out[s]);
    if (++step % 32 == 0) flush();
  });
  flush();
}

}  // namespace akunu::cpu
