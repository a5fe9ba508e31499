// Turns what the host bound into the arguments of a kernel, and its parameter types into what the
// host has to know of them. Used by generated code only.
#pragma once

#include <tuple>

#include "metal/emulator/library.h"
#include "metal/emulator/msl/vector.h"

namespace AKUNU_METAL_BUILD {
namespace binding {

namespace emulator = ::akunu::metal::emulator;

template <class F>
struct Signature;
template <class... Parameters>
struct Signature<void(Parameters...)> {
  template <size_t I>
  using At = std::tuple_element_t<I, std::tuple<Parameters...>>;
};

template <class F, size_t I>
using Parameter = typename Signature<F>::template At<I>;
template <class F, size_t I>
using Pointee = std::remove_pointer_t<std::remove_reference_t<Parameter<F, I>>>;

template <class F, size_t I>
constexpr emulator::Argument describe(std::string_view name, emulator::Argument::Kind kind,
                                      uint32_t index, bool is_constant) {
  using T = Pointee<F, I>;
  static_assert(std::is_object_v<T>, "a bound argument points to a type of fixed size");
  emulator::Argument argument;
  argument.name = name;
  argument.kind = kind;
  argument.index = index;
  argument.is_read_only = std::is_const_v<T>;
  argument.element_bytes = sizeof(T);
  argument.alignment = alignof(T);
  if (is_constant && std::is_class_v<T> && alignof(T) < 16) argument.alignment = 16;
  return argument;
}

template <class F, size_t I>
AKUNU_MSL_INLINE Parameter<F, I> bind(void* memory) {
  using T = Pointee<F, I>;
  if constexpr (std::is_reference_v<Parameter<F, I>>) {
    return *static_cast<T*>(memory);
  } else {
    return static_cast<T*>(memory);
  }
}

template <class F, size_t I>
AKUNU_MSL_INLINE Parameter<F, I> built_in(const emulator::Position& position) {
  using T = std::remove_cv_t<Parameter<F, I>>;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(position.at[0]);
  } else if constexpr (sizeof(T) == 2 * sizeof(T::x)) {
    return metal::vec<decltype(T::x), 2>(static_cast<decltype(T::x)>(position.at[0]),
                                         static_cast<decltype(T::x)>(position.at[1]));
  } else {
    return metal::vec<decltype(T::x), 3>(static_cast<decltype(T::x)>(position.at[0]),
                                         static_cast<decltype(T::x)>(position.at[1]),
                                         static_cast<decltype(T::x)>(position.at[2]));
  }
}
template <class F, size_t I>
AKUNU_MSL_INLINE Parameter<F, I> built_in(uint32_t number) {
  static_assert(std::is_integral_v<Parameter<F, I>>, "this built-in argument is uint or ushort");
  return static_cast<Parameter<F, I>>(number);
}

AKUNU_MSL_INLINE emulator::Position thread_in_grid(const emulator::Lane& lane) {
  emulator::Position position;
  for (int i = 0; i < 3; ++i) {
    position.at[i] = lane.threadgroup.at[i] * lane.threads.at[i] + lane.thread.at[i];
  }
  return position;
}
AKUNU_MSL_INLINE emulator::Position threads_per_grid(const emulator::Lane& lane) {
  emulator::Position position;
  for (int i = 0; i < 3; ++i) position.at[i] = lane.threadgroups.at[i] * lane.threads.at[i];
  return position;
}

}  // namespace binding
}  // namespace AKUNU_METAL_BUILD
