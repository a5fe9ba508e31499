// A tensor in another number format: its rows are read as floats, whatever type they have, and
// written as blocks of the other type, by several threads. A thread needs room for one row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace akunu::quantize {

// Whether rows of a type can be written and read here, by GGUF's number.
bool has_coder(uint32_t type);

struct Tensor {
  std::string name;  // for messages
  uint32_t type;
  std::span<const std::byte> bytes;
  uint64_t n_rows;
  uint64_t k;  // numbers of a row
  // How much each column counts; empty for all alike. `k` numbers, or several times as many where
  // the rows belong to as many matrices, one after another.
  std::span<const float> importance;
};

// What the other format changes, in squares: of the differences and of the numbers themselves, each
// times its column's importance.
struct Difference {
  double squares;
  double of;
};

struct Work {
  unsigned threads;
  // Asked now and then by the calling thread; it may throw, which ends the work.
  std::function<void()> check;
};

// Writes the rows of `tensor` as blocks of `type` to `blocks`, which has exactly the room.
// ArgumentError for a row with NaN, infinity or a number too large for the type's scale (it names
// tensor, row and column), for sizes that do not fit each other and for types without a coder.
void write_as(const Tensor& tensor, uint32_t type, std::span<std::byte> blocks, const Work& work);

// The same without keeping the blocks.
Difference measure_as(const Tensor& tensor, uint32_t type, const Work& work);

// The numbers themselves.
void read_as_floats(const Tensor& tensor, std::span<float> numbers, const Work& work);

}  // namespace akunu::quantize
