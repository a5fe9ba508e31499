// The rms norm of one run of numbers, shared by rms_norm, head_norm and norm_rope_kv_write.
//
// 1. What it computes. input * 1 / sqrt(mean(input^2) + epsilon) * weight.
// 2. What bounds it. Latency: one row is 4 KiB, in L1 or L2.
// 3. What is done about it. Four accumulators of eight lanes hide the latency of an FMA; cut by
//    `dim` alone, so that the bits are the same at every level with one rounding for a
//    multiply-add.
#pragma once

#include <stdint.h>

namespace akunu::cpu {

// 1 / sqrt(mean(input^2) + epsilon). Four accumulators of eight lanes: cut by `dim` alone.
template <class Isa>
static inline float inverse_rms(const float* input, uint32_t dim, float epsilon) {
  constexpr uint32_t kStep = 4 * Isa::kLanes;
  typename Isa::Vector sums[4] = {Isa::zero(), Isa::zero(), Isa::zero(), Isa::zero()};
  uint32_t i = 0;
  for (; i + kStep <= dim; i += kStep)
    for (uint32_t j = 0; j < 4; ++j) {
      const auto x = Isa::load(input + i + Isa::kLanes * j);
      sums[j] = Isa::multiply_add(x, x, sums[j]);
    }
  for (; i < dim; i += Isa::kLanes) {
    const auto x = Isa::load(input + i, dim - i);
    sums[0] = Isa::multiply_add(x, x, sums[0]);
  }
  const float sum =
      Isa::sum_lanes(Isa::add(Isa::add(sums[0], sums[1]), Isa::add(sums[2], sums[3])));
  return 1.0f / __builtin_sqrtf(sum / static_cast<float>(dim) + epsilon);
}

// out = input * (1 / rms) * weight; `out` may be `input`.
template <class Isa>
static inline void rms_norm_floats(const float* input, const float* weight, uint32_t dim,
                                   float epsilon, float* out) {
  const auto factor = Isa::broadcast(inverse_rms<Isa>(input, dim, epsilon));
  const auto normed = [&](typename Isa::Vector x, typename Isa::Vector by) {
    return Isa::multiply(Isa::multiply(x, factor), by);
  };
  uint32_t i = 0;
  for (; i + Isa::kLanes <= dim; i += Isa::kLanes)
    Isa::store(out + i, normed(Isa::load(input + i), Isa::load(weight + i)));
  if (const uint32_t n = dim - i; n > 0)
    Isa::store(out + i, normed(Isa::load(input + i, n), Isa::load(weight + i, n)), n);
}

}  // namespace akunu::cpu
