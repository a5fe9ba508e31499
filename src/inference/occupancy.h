// What an engine is busy with, for whoever watches it. The scheduler's thread writes it when it changes;
// any thread reads it, and neither waits for the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "cache/sequence_cache.h"

namespace akunu {

class Occupancy {
 public:
  explicit Occupancy(size_t n_groups) : pages_(n_groups) {}

  // Texts, and logits, that are under way.
  uint32_t n_running() const { return n_running_.load(std::memory_order_relaxed); }
  // Tokens drafted so far, in all texts, and of them those that were chosen.
  uint64_t n_drafted() const { return n_drafted_.load(std::memory_order_relaxed); }
  uint64_t n_held() const { return n_held_.load(std::memory_order_relaxed); }
  PageCounts pages(size_t group) const {
    const uint64_t both = pages_[group].load(std::memory_order_relaxed);
    return {static_cast<uint32_t>(both >> 32), static_cast<uint32_t>(both)};
  }

  // The scheduler's thread.
  void set_drafted(uint64_t n, uint64_t n_held) {
    n_drafted_.store(n, std::memory_order_relaxed);
    n_held_.store(n_held, std::memory_order_relaxed);
  }
  void set_running(uint32_t n) { n_running_.store(n, std::memory_order_relaxed); }
  void set_pages(size_t group, PageCounts counts) {
    pages_[group].store(uint64_t{counts.needed} << 32 | counts.spare, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint32_t> n_running_{0};
  std::atomic<uint64_t> n_drafted_{0}, n_held_{0};
  std::vector<std::atomic<uint64_t>> pages_;  // both counts in one word: they are of one moment
};

}  // namespace akunu
