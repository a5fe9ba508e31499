// What the lanes of a SIMD-group and of a threadgroup do together. MSL defines SIMD functions over
// the lanes that reach them; here all 32 have to.
#pragma once

#include "metal/emulator/msl/math.h"

#define AKUNU_SITE_PARAMETERS const char *file = __builtin_FILE(), uint32_t line = __builtin_LINE()

namespace AKUNU_METAL_BUILD {
namespace metal {

enum class mem_flags : uint32_t {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_device_and_threadgroup = 3,
};
AKUNU_MSL_INLINE constexpr mem_flags operator|(mem_flags a, mem_flags b) {
  return static_cast<mem_flags>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}

AKUNU_MSL_INLINE void threadgroup_barrier(mem_flags flags, AKUNU_SITE_PARAMETERS) {
  const uint32_t bits = static_cast<uint32_t>(flags);
  emulator::meet_threadgroup({"threadgroup_barrier", file, line}, (bits & 1) != 0, (bits & 2) != 0);
}
AKUNU_MSL_INLINE void simdgroup_barrier(mem_flags flags, AKUNU_SITE_PARAMETERS) {
  const uint32_t bits = static_cast<uint32_t>(flags);
  emulator::meet_simdgroup({"simdgroup_barrier", file, line}, (bits & 1) != 0, (bits & 2) != 0);
}

template <class T>
AKUNU_MSL_INLINE T& slot(std::byte* slots, uint32_t lane) {
  return *reinterpret_cast<T*>(slots + lane * emulator::kSlotBytes);
}
template <class T>
AKUNU_MSL_INLINE T slot(emulator::Exchange exchange, uint32_t lane) {
  return *reinterpret_cast<const T*>(exchange.slots + lane * emulator::kSlotBytes);
}
template <class T>
AKUNU_MSL_INLINE emulator::Exchange exchange(const char* what, T value, emulator::Combine combine,
                                             const char* file, uint32_t line) {
  static_assert(sizeof(T) <= emulator::kSlotBytes, "a SIMD function takes numbers and vectors");
  return emulator::exchange({what, file, line}, &value, sizeof(T), combine);
}

// Pairs, then pairs of pairs: the order in which a sum of 32 lanes is rounded.
template <class T, class F>
AKUNU_MSL_INLINE void reduce(std::byte* slots, F f) {
  for (uint32_t step = 1; step < emulator::kSimdWidth; step *= 2) {
    for (uint32_t lane = 0; lane < emulator::kSimdWidth; lane += 2 * step) {
      slot<T>(slots, lane) = f(slot<T>(slots, lane), slot<T>(slots, lane + step));
    }
  }
}

#define AKUNU_SIMD_REDUCTION(name, expression)                      \
  template <class T>                                                \
  AKUNU_MSL_INLINE T name(T value, AKUNU_SITE_PARAMETERS) {         \
    const emulator::Combine combine = [](std::byte* slots) {        \
      reduce<T>(slots, [](T x, T y) { return T(expression); });     \
    };                                                              \
    return slot<T>(exchange(#name, value, combine, file, line), 0); \
  }
AKUNU_SIMD_REDUCTION(simd_sum, x + y)
AKUNU_SIMD_REDUCTION(simd_product, x* y)
AKUNU_SIMD_REDUCTION(simd_max, max(x, y))
AKUNU_SIMD_REDUCTION(simd_min, min(x, y))
AKUNU_SIMD_REDUCTION(simd_and, x& y)
AKUNU_SIMD_REDUCTION(simd_or, x | y)
AKUNU_SIMD_REDUCTION(simd_xor, x ^ y)
#undef AKUNU_SIMD_REDUCTION

class simd_vote {
 public:
  using vote_t = uint64_t;
  AKUNU_MSL_INLINE constexpr explicit simd_vote(vote_t votes = 0) : votes_(votes) {}
  AKUNU_MSL_INLINE constexpr explicit operator vote_t() const { return votes_; }
  AKUNU_MSL_INLINE constexpr bool all() const { return votes_ == 0xffffffffu; }
  AKUNU_MSL_INLINE constexpr bool any() const { return votes_ != 0; }

 private:
  vote_t votes_;
};

AKUNU_MSL_INLINE uint64_t collect_votes(const char* what, bool vote, const char* file,
                                        uint32_t line) {
  const emulator::Combine combine = [](std::byte* slots) {
    uint64_t votes = 0;
    for (uint32_t lane = 0; lane < emulator::kSimdWidth; ++lane) {
      votes |= static_cast<uint64_t>(slot<bool>(slots, lane)) << lane;
    }
    slot<uint64_t>(slots, 0) = votes;
  };
  return slot<uint64_t>(exchange(what, vote, combine, file, line), 0);
}
AKUNU_MSL_INLINE simd_vote simd_ballot(bool vote, AKUNU_SITE_PARAMETERS) {
  return simd_vote(collect_votes("simd_ballot", vote, file, line));
}
AKUNU_MSL_INLINE bool simd_any(bool vote, AKUNU_SITE_PARAMETERS) {
  return simd_vote(collect_votes("simd_any", vote, file, line)).any();
}
AKUNU_MSL_INLINE bool simd_all(bool vote, AKUNU_SITE_PARAMETERS) {
  return simd_vote(collect_votes("simd_all", vote, file, line)).all();
}

template <class T>
AKUNU_MSL_INLINE T simd_shuffle(T value, ushort from, AKUNU_SITE_PARAMETERS) {
  const emulator::Exchange all = exchange("simd_shuffle", value, nullptr, file, line);
  if (from >= emulator::kSimdWidth) {
    emulator::fail_in_lane({"simd_shuffle", file, line}, "reads a lane that does not exist");
  }
  return slot<T>(all, from);
}
template <class T>
AKUNU_MSL_INLINE T simd_broadcast(T value, ushort from, AKUNU_SITE_PARAMETERS) {
  const emulator::Exchange all = exchange("simd_broadcast", value, nullptr, file, line);
  if (from >= emulator::kSimdWidth) {
    emulator::fail_in_lane({"simd_broadcast", file, line}, "reads a lane that does not exist");
  }
  return slot<T>(all, from);
}
template <class T>
AKUNU_MSL_INLINE T simd_broadcast_first(T value, AKUNU_SITE_PARAMETERS) {
  return slot<T>(exchange("simd_broadcast_first", value, nullptr, file, line), 0);
}
template <class T>
AKUNU_MSL_INLINE T simd_shuffle_xor(T value, ushort mask, AKUNU_SITE_PARAMETERS) {
  const emulator::Exchange all = exchange("simd_shuffle_xor", value, nullptr, file, line);
  if ((all.lane ^ mask) >= emulator::kSimdWidth) {
    emulator::fail_in_lane({"simd_shuffle_xor", file, line}, "reads a lane that does not exist");
  }
  return slot<T>(all, all.lane ^ mask);
}
// Lanes that would read below lane 0, or above lane 31, keep their value.
template <class T>
AKUNU_MSL_INLINE T simd_shuffle_up(T value, ushort delta, AKUNU_SITE_PARAMETERS) {
  const emulator::Exchange all = exchange("simd_shuffle_up", value, nullptr, file, line);
  return all.lane < delta ? value : slot<T>(all, all.lane - delta);
}
template <class T>
AKUNU_MSL_INLINE T simd_shuffle_down(T value, ushort delta, AKUNU_SITE_PARAMETERS) {
  const emulator::Exchange all = exchange("simd_shuffle_down", value, nullptr, file, line);
  return all.lane + delta >= emulator::kSimdWidth ? value : slot<T>(all, all.lane + delta);
}

template <class T>
AKUNU_MSL_INLINE T simd_prefix_inclusive_sum(T value, AKUNU_SITE_PARAMETERS) {
  const emulator::Combine combine = [](std::byte* slots) {
    for (uint32_t lane = 1; lane < emulator::kSimdWidth; ++lane) {
      slot<T>(slots, lane) = T(slot<T>(slots, lane - 1) + slot<T>(slots, lane));
    }
  };
  const emulator::Exchange all = exchange("simd_prefix_inclusive_sum", value, combine, file, line);
  return slot<T>(all, all.lane);
}
template <class T>
AKUNU_MSL_INLINE T simd_prefix_exclusive_sum(T value, AKUNU_SITE_PARAMETERS) {
  const emulator::Combine combine = [](std::byte* slots) {
    T sum = T(0);
    for (uint32_t lane = 0; lane < emulator::kSimdWidth; ++lane) {
      const T own = slot<T>(slots, lane);
      slot<T>(slots, lane) = sum;
      sum = T(sum + own);
    }
  };
  const emulator::Exchange all = exchange("simd_prefix_exclusive_sum", value, combine, file, line);
  return slot<T>(all, all.lane);
}

}  // namespace metal
}  // namespace AKUNU_METAL_BUILD
