// Blocks of input rows times two panels of a weight, along a part of k, while the next panels are unpacked.
//
// 1. What it does. The panels stay in L1, the rows stream past them; vector instructions that
//    unpack are placed between the tile instructions.
// 2. What bounds it. The processor issues nothing behind a tile instruction that waits for a
//    register, and tile registers are few.
// 3. What is done about it. Some ten vector instructions between the two tiles of rows of a step,
//    and ten behind it: those overlap with the products.
// 4. What was tried and did not pay. Vector work after whole steps: more than some sixteen
//    instructions in one place cost what they cost alone (29 to 34 ns a step instead of 25 to 27).
//    docs/decisions/prompts-on-the-cpu.md.
#pragma once

#include "cpu/kernels/tiles/block.h"

namespace akunu::cpu {

// What PairProduct goes over.
struct PairOfPanels {
  const std::byte* input;  // of the first row, where the part of k begins
  uint64_t stride;
  uint32_t n_blocks;  // of 32 rows
  const std::byte* panels;
  uint32_t n_steps;
  std::byte* sums;  // a block's after the other's, of the parts of k so far
  bool is_first;    // part of k: there are no sums yet
};

template <class Isa, class Terms, uint64_t kPanelBytes>
class PairProduct {
  using Tiles = typename Isa::Tiles;
  static constexpr uint32_t kInputs = Terms::kInputs, kWeights = Terms::kWeights;

 public:
  static constexpr uint64_t kBlockBytes = 4 * Tiles::kTileBytes;

  explicit PairProduct(const PairOfPanels& pair) : pair_(pair) {
    if (pair_.n_blocks > 0) begin_block();
  }

  // For unpacking, which also prefetches the panel `prefetched`.
  OverlappedWork<Isa> overlapped(const Panel& prefetched) {
    return {
        this,
        [](void* self, const QuantizedGroup<Isa>& group, std::byte* tile, const std::byte* row) {
          static_cast<PairProduct*>(self)->store_group(group, tile, row);
        },
        [](void* self) { static_cast<PairProduct*>(self)->half_step(); }, prefetched};
  }

  void finish() {
    while (!is_done()) half_step();
  }

 private:
  using Block = TileBlock<Tiles, 2, 2, kInputs, kWeights, Streamed::input>;
  static constexpr uint32_t kGroupSteps = 8;  // while a group is unpacked

  bool is_done() const { return block_ == pair_.n_blocks; }

  // Stores an unpacked group, with products between its lines.
  void store_group(const QuantizedGroup<Isa>& group, std::byte* tile, const std::byte* prefetched) {
    if (is_done() || is_second_ || steps_left_ < kGroupSteps) {
      prefetch_lines<kIntoL2>(prefetched, kGroupSteps * kCacheLine);
      group.store(tile);
      for (uint32_t i = 0; i < 2 * kGroupSteps && !is_done(); ++i) half_step();
      return;
    }
    store_beside(group, tile, prefetched);
    steps_left_ -= kGroupSteps;
    if (steps_left_ == 0) next_block();
  }

  // kGroupSteps steps, which all belong to the block at hand.
  void store_beside(const QuantizedGroup<Isa>& group, std::byte* tile,
                    const std::byte* prefetched) {
    const std::byte *input = input_, *panels = panels_;
    const uint64_t stride = pair_.stride;
#pragma GCC unroll 8
    for (uint32_t j = 0; j < kGroupSteps; ++j) {
      Block::first_rows(input, stride, panels, panels + kPanelBytes);
      group.store_half(j, 0, tile);
      Block::second_rows(input, stride, panels, panels + kPanelBytes);
      group.store_half(j, 1, tile);
      __builtin_prefetch(prefetched + j * kCacheLine, 0, 2);
      input += kInputs * Tiles::kLineBytes;
      panels += kWeights * Tiles::kTileBytes;
    }
    input_ = input;
    panels_ = panels;
  }

  void half_step() {
    if (is_done()) return;
    is_second_ = !is_second_;
    if (is_second_) {
      Block::first_rows(input_, pair_.stride, panels_, panels_ + kPanelBytes);
      return;
    }
    Block::second_rows(input_, pair_.stride, panels_, panels_ + kPanelBytes);
    input_ += kInputs * Tiles::kLineBytes;
    panels_ += kWeights * Tiles::kTileBytes;
    if (--steps_left_ == 0) next_block();
  }

  void next_block() {
    Block::store(block_sums<Tiles>(pair_.sums + block_ * kBlockBytes));
    ++block_;
    if (!is_done()) begin_block();
  }

  void begin_block() {
    input_ = pair_.input + uint64_t{block_} * kBlockRows * pair_.stride;
    panels_ = pair_.panels;
    steps_left_ = pair_.n_steps;
    if (pair_.is_first)
      Block::zero();
    else
      Block::load(block_sums<Tiles>(pair_.sums + block_ * kBlockBytes));
  }

  const PairOfPanels pair_;
  const std::byte *input_ = nullptr, *panels_ = nullptr;
  uint32_t block_ = 0, steps_left_ = 0;
  bool is_second_ = false;
};

}  // namespace akunu::cpu
