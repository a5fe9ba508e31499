// The parameters of a command: the struct of its operation (core/kernel_params.h), as bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "core/kernel_params.h"

namespace akunu {

class CommandParams {
 public:
  template <class Struct>
  Struct get() const {
    check<Struct>();
    Struct value;
    std::memcpy(&value, bytes_.data(), sizeof(Struct));
    return value;
  }
  template <class Struct>
  void set(const Struct& value) {
    check<Struct>();
    std::memcpy(bytes_.data(), &value, sizeof(Struct));
  }

  std::byte* data() { return bytes_.data(); }
  const std::byte* data() const { return bytes_.data(); }

  bool operator==(const CommandParams&) const = default;

 private:
  template <class Struct>
  static void check() {
    static_assert(std::is_trivially_copyable_v<Struct> && sizeof(Struct) <= kMaxParamsBytes);
  }

  alignas(16) std::array<std::byte, kMaxParamsBytes> bytes_ = {};
};

}  // namespace akunu
