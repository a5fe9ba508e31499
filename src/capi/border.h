// What every function of the C API does: nothing is thrown across, the reason of a failure is kept for the
// thread, buffers and sized structs are checked.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "akunu/akunu.h"
#include "core/error.h"

namespace akunu::capi {

// The status of the exception in flight, whose text becomes the thread's last error.
akunu_status caught() noexcept;
akunu_status fail(akunu_status status, const std::string& why) noexcept;

template <class Body>
akunu_status guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (...) {
    return caught();
  }
}

// Throws ArgumentError: which argument is null.
template <class Pointer>
void need(const Pointer* pointer, const char* name) {
  if (pointer == nullptr) throw ArgumentError(std::string(name) + " is null");
}

// Says how long a caller's buffer has to be. What the call is to return at once: the length alone was
// asked for, or the buffer is too small; nothing where there is room for all of it.
std::optional<akunu_status> answered_by_length(size_t n, const void* buffer, size_t capacity,
                                               size_t* length);

// Copies an array into a caller's buffer, or says how long it has to be.
template <class Number>
akunu_status give(std::span<const Number> numbers, Number* buffer, size_t capacity,
                  size_t* length) {
  if (const auto answer = answered_by_length(numbers.size(), buffer, capacity, length))
    return *answer;
  std::ranges::copy(numbers, buffer);
  return AKUNU_OK;
}

// Likewise a text, with the zero byte that ends it, which `length` does not count.
akunu_status give_text(std::string_view text, char* buffer, size_t capacity, size_t* length);

// The caller's struct as this library knows it: what is missing at its end is zero. Throws ArgumentError
// where it has no sensible size, or asks for something that this library does not know.
template <class Struct>
Struct taken(const Struct* given, const char* name) {
  Struct known{};
  known.size = sizeof known;
  if (given == nullptr) return known;
  if (given->size < sizeof(size_t) || given->size > 1 << 16)
    throw ArgumentError(std::string(name) + ".size is " + std::to_string(given->size) +
                        "; set it to sizeof the struct");
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof known; i < given->size; ++i)
    if (bytes[i] != 0)
      throw ArgumentError(std::string(name) + " has options that this version of akunu (" +
                          akunu_version() + ") does not know");
  std::memcpy(&known, given, std::min(given->size, sizeof known));
  return known;
}

// Fills a caller's struct as far as both know it.
template <class Struct>
void fill(Struct* wanted, const Struct& known, const char* name) {
  need(wanted, name);
  const size_t size = wanted->size;
  if (size < sizeof(size_t) || size > 1 << 16)
    throw ArgumentError(std::string(name) + "->size is " + std::to_string(size) +
                        "; set it to sizeof the struct");
  std::memset(wanted, 0, size);
  std::memcpy(wanted, &known, std::min(size, sizeof known));
  wanted->size = size;
}

}  // namespace akunu::capi
