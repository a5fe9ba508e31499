// atomic_uint and atomic_int, in device and threadgroup memory, in relaxed order only (MSL has no
// other before 3.2).
#pragma once

#include "metal/emulator/msl/build.h"

namespace AKUNU_METAL_BUILD {
namespace metal {

enum memory_order { memory_order_relaxed };

template <class T>
struct atomic {
  static_assert(std::is_same_v<T, uint32_t> || std::is_same_v<T, int32_t>,
                "atomic_uint and atomic_int are all there is");
  T value;
};
using atomic_uint = atomic<uint32_t>;
using atomic_int = atomic<int32_t>;

template <class T>
AKUNU_MSL_INLINE T apply_atomic(emulator::AtomicOperation operation, const volatile atomic<T>* at,
                                T operand) {
  return static_cast<T>(emulator::apply_atomic(operation, at, static_cast<uint32_t>(operand)));
}

template <class T>
AKUNU_MSL_INLINE T atomic_load_explicit(const volatile atomic<T>* at, memory_order) {
  return apply_atomic(emulator::AtomicOperation::load, at, T(0));
}
template <class T>
AKUNU_MSL_INLINE void atomic_store_explicit(volatile atomic<T>* at, std::type_identity_t<T> value,
                                            memory_order) {
  apply_atomic<T>(emulator::AtomicOperation::store, at, value);
}

#define AKUNU_ATOMIC(name, operation)                                                              \
  template <class T>                                                                               \
  AKUNU_MSL_INLINE T name(volatile atomic<T>* at, std::type_identity_t<T> operand, memory_order) { \
    constexpr bool kSigned = std::is_same_v<T, int32_t>;                                           \
    (void)kSigned;                                                                                 \
    return apply_atomic<T>(operation, at, operand);                                                \
  }
AKUNU_ATOMIC(atomic_exchange_explicit, emulator::AtomicOperation::exchange)
AKUNU_ATOMIC(atomic_fetch_add_explicit, emulator::AtomicOperation::add)
AKUNU_ATOMIC(atomic_fetch_sub_explicit, emulator::AtomicOperation::subtract)
AKUNU_ATOMIC(atomic_fetch_or_explicit, emulator::AtomicOperation::bit_or)
AKUNU_ATOMIC(atomic_fetch_and_explicit, emulator::AtomicOperation::bit_and)
AKUNU_ATOMIC(atomic_fetch_xor_explicit, emulator::AtomicOperation::bit_xor)
AKUNU_ATOMIC(atomic_fetch_max_explicit, kSigned ? emulator::AtomicOperation::max_signed
                                                : emulator::AtomicOperation::max_unsigned)
AKUNU_ATOMIC(atomic_fetch_min_explicit, kSigned ? emulator::AtomicOperation::min_signed
                                                : emulator::AtomicOperation::min_unsigned)
#undef AKUNU_ATOMIC

template <class T>
AKUNU_MSL_INLINE bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* at, T* expected,
                                                            std::type_identity_t<T> desired,
                                                            memory_order, memory_order) {
  uint32_t word = static_cast<uint32_t>(*expected);
  const bool is_done = emulator::compare_exchange(at, word, static_cast<uint32_t>(desired));
  *expected = static_cast<T>(word);
  return is_done;
}

}  // namespace metal
using metal::atomic_int;
using metal::atomic_uint;
}  // namespace AKUNU_METAL_BUILD
