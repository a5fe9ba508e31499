// The numbers that a GGUF file has under the name of its architecture: "llama.block_count".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "files/gguf/gguf.h"

namespace akunu {

class GgufKeys {
 public:
  // Throws ModelFormatError where the file does not name its architecture.
  explicit GgufKeys(const GgufFile& file);

  std::string path() const;  // as messages have it
  std::string key(std::string_view name) const { return architecture_ + "." + std::string(name); }

  // Throw ModelFormatError for a number that no model has, and `required` where it is missing.
  std::optional<uint32_t> optional(std::string_view name) const;
  uint32_t required(std::string_view name) const;
  std::optional<float> number(std::string_view name) const;

 protected:
  // Throws UnsupportedModelError for what the file asks for.
  [[noreturn]] void refuse(const std::string& what) const;

  const GgufFile& file_;
  std::string architecture_;
};

}  // namespace akunu
