// What the formats share whose rows are blocks of a fixed size: where a block lies, and how a single
// weight is found.
#pragma once

#include "cpu/kernels/formats.h"

namespace akunu::cpu {

// `Trait::weight(block, i)` is weight i of a block as float32. `Layout` is the block as it lies in
// the file: a file aligns it to two bytes at least, and so does the device.
template <class Trait, class Layout, uint32_t kWeights>
struct Blocks {
  static constexpr uint32_t kBlockWeights = kWeights;

  static uint64_t row_bytes(uint32_t k) { return uint64_t{k / kWeights} * sizeof(Layout); }
  static const Layout& block(const std::byte* row, uint64_t b) {
    static_assert(alignof(Layout) <= 2);
    return reinterpret_cast<const Layout*>(row)[b];
  }
  static float element(const std::byte* row, uint64_t i) {
    return Trait::weight(block(row, i / kWeights), static_cast<uint32_t>(i % kWeights));
  }
};

}  // namespace akunu::cpu
