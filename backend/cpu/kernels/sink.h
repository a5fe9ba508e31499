// The sink of a head: a score that a softmax counts besides those of the positions, and that has no
// value. What it adds to the denominator, relative to the largest score of the positions.
#pragma once

#include "cpu/kernel.h"
#include "cpu/kernels/math.h"

namespace akunu::cpu {

constexpr uint32_t kSinkSlot = 4;  // of sink_attention, absent in attention

// e^(sink - largest); 0 where the call has no sinks.
template <class Isa>
static inline float sink_share(const Call& call, uint32_t head, float largest) {
  if (call.operands[kSinkSlot] == nullptr) return 0;
  const float sink = reinterpret_cast<const float*>(call.operands[kSinkSlot])[head];
  float lanes[Isa::kLanes];
  Isa::store(lanes, exp<Isa>(Isa::broadcast(sink - largest)));
  return lanes[0];
}

// The same where `largest` is a logarithm to base 2.
template <class Isa>
static inline float sink_share_of_2(const Call& call, uint32_t head, float largest) {
  constexpr float kLn2 = 0x1.62e430p-1f;
  return sink_share<Isa>(call, head, largest * kLn2);
}

}  // namespace akunu::cpu
