// Values under GGUF's keys, as the bytes of a GGUF file that has nothing else.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/gguf/gguf.h"

namespace akunu {

class GgufMetadata {
 public:
  void put(std::string_view key, std::string_view text) {
    begin(key, GgufValueType::string);
    string(text);
  }
  void put(std::string_view key, bool flag) {
    begin(key, GgufValueType::boolean);
    bytes_ += flag ? '\1' : '\0';
  }
  void put(std::string_view key, uint32_t number) {
    begin(key, GgufValueType::uint32);
    integer(number);
  }
  void put(std::string_view key, std::span<const std::string> texts) {
    begin_array(key, GgufValueType::string, texts.size());
    for (const std::string& text : texts) string(text);
  }
  void put(std::string_view key, std::span<const uint32_t> numbers) {
    begin_array(key, GgufValueType::uint32, numbers.size());
    for (const uint32_t number : numbers) integer(number);
  }
  void put(std::string_view key, std::span<const double> numbers) {
    begin_array(key, GgufValueType::float64, numbers.size());
    for (const double number : numbers) integer(std::bit_cast<uint64_t>(number));
  }

  // The file: version 3, no tensors.
  std::string file() const {
    GgufMetadata head;
    head.bytes_ = "GGUF";
    head.integer(uint32_t{3});
    head.integer(uint64_t{0});
    head.integer(n_values_);
    return head.bytes_ + bytes_;
  }

 private:
  template <class Integer>
  void integer(Integer number) {
    for (size_t i = 0; i < sizeof number; ++i)
      bytes_ += static_cast<char>(static_cast<unsigned char>(uint64_t{number} >> 8 * i & 0xFF));
  }
  void string(std::string_view text) {
    integer(uint64_t{text.size()});
    bytes_ += text;
  }
  void begin(std::string_view key, GgufValueType type) {
    ++n_values_;
    string(key);
    integer(static_cast<uint32_t>(type));
  }
  void begin_array(std::string_view key, GgufValueType type, size_t n) {
    begin(key, GgufValueType::array);
    integer(static_cast<uint32_t>(type));
    integer(uint64_t{n});
  }

  std::string bytes_;
  uint64_t n_values_ = 0;
};

}  // namespace akunu
