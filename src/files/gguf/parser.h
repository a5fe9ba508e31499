// The walk through a GGUF file that fills a GgufFile; gguf.h is what others include.
#pragma once

#include "files/gguf/gguf.h"

namespace akunu {

// Nothing from the file is believed before it is checked against the bytes that are left, and
// nothing is allocated for a count: vectors grow with what has been read.
class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, std::string path);

  GgufFile run();

 private:
  void read_header();
  void read_values();
  void read_alignment();
  void read_tensors();
  void place_tensors();

  GgufValue read_value();
  GgufValueType read_value_type(std::string_view key);
  void take_strings(GgufValue& value);
  void check_booleans(const GgufValue& value) const;
  GgufTensor read_tensor();
  void check_tensor_shape(GgufTensor& tensor, uint64_t start) const;
  void refuse_overlaps() const;

  std::span<const std::byte> take(uint64_t bytes, std::string_view what);
  std::string_view take_string(std::string_view what);
  template <class Number>
  Number take_number(std::string_view what);
  uint64_t remaining() const { return bytes_.size() - at_; }
  std::string at(uint64_t offset) const;  // "model.gguf, byte 24: "

  std::span<const std::byte> bytes_;
  uint64_t at_ = 0;
  std::string shown_path_;
  std::string subject_;  // "key llama.block_count: ", what is being read, for messages
  uint64_t n_values_ = 0;
  uint64_t n_tensors_ = 0;
  std::vector<uint64_t> tensor_starts_;  // where each tensor's description begins, for messages
  GgufFile file_;
};

}  // namespace akunu
