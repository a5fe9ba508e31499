#include "cpu/slice_shares.h"

#include <algorithm>

namespace akunu::cpu {
namespace {

constexpr uint64_t kStepBits = 24, kUnitBits = 20;
constexpr uint64_t kSteps = 1ull << kStepBits, kMostUnits = (1ull << kUnitBits) - 1;

// A worker takes half of what is left of its share at a time: if it is held up, the others have the rest.
// Smaller parts break off more often what it reads in one run.
constexpr uint64_t kParts = 2;

}  // namespace

void SliceShares::reserve(size_t n_commands, uint32_t n_workers) {
  n_workers_ = n_workers;
  if (n_commands * n_workers > shares_.size()) shares_ = std::vector<Share>(n_commands * n_workers);
}

void SliceShares::begin_step() {
  step_ = (step_ + 1) % kSteps;
  if (step_ != 0) return;
  // Words of the last step with this number would look like words of this one.
  for (Share& share : shares_) share.word.store(kMostUnits, std::memory_order_relaxed);
  step_ = 1;
}

// Units are slices, or runs of them where there are more than a word can count.
uint64_t SliceShares::units_of(uint64_t n_slices) { return std::min(n_slices, kMostUnits); }

SliceShares::Units SliceShares::first_share(uint32_t worker, uint64_t n_units) const {
  const auto begin = [&](uint64_t w) { return (n_units * w + n_workers_ - 1) / n_workers_; };
  return {begin(worker), begin(worker + 1)};
}

uint64_t SliceShares::word_of(const Units& units) const {
  return (step_ << kUnitBits | units.begin) << kUnitBits | units.end;
}

SliceShares::Units SliceShares::units_in(uint64_t word, uint32_t worker, uint64_t n_units) const {
  if (word >> (2 * kUnitBits) != step_) return first_share(worker, n_units);
  return {word >> kUnitBits & kMostUnits, word & kMostUnits};
}

// Of what is left of a share, what its worker takes next.
uint64_t SliceShares::first_part(uint64_t n_left, uint64_t at_once) const {
  if (n_workers_ == 1 || n_left <= at_once) return n_left;
  const uint64_t part = n_left / kParts;
  return std::max(at_once, part - part % at_once);
}

Portion SliceShares::take(size_t command, uint32_t worker, uint64_t n_slices, uint64_t at_once) {
  Share* const shares = &shares_[command * n_workers_];
  const uint64_t n_units = units_of(n_slices);
  Units units = take_own(shares[worker], worker, n_units, at_once);
  if (units.count() == 0) units = take_over(shares, worker, n_units, at_once);
  if (units.count() == 0) return {0, 0};
  return {units.begin * n_slices / n_units, units.end * n_slices / n_units};
}

// Relaxed, as all of this: what slices read was published when their stage began.
SliceShares::Units SliceShares::take_own(Share& own, uint32_t worker, uint64_t n_units,
                                         uint64_t at_once) const {
  uint64_t word = own.word.load(std::memory_order_relaxed);
  while (true) {
    const Units left = units_in(word, worker, n_units);
    if (left.count() == 0) return left;
    const uint64_t end = left.begin + first_part(left.count(), at_once);
    if (own.word.compare_exchange_weak(word, word_of({end, left.end}), std::memory_order_relaxed))
      return {left.begin, end};
  }
}

// Called by a worker whose share is empty, which nobody else fills: it may simply be written.
SliceShares::Units SliceShares::take_over(Share* shares, uint32_t worker, uint64_t n_units,
                                          uint64_t at_once) const {
  while (true) {
    uint32_t richest = worker;
    uint64_t word = 0;
    Units most{0, 0};
    for (uint32_t other = 0; other < n_workers_; ++other) {
      const uint64_t now = shares[other].word.load(std::memory_order_relaxed);
      const Units left = units_in(now, other, n_units);
      if (other == worker || left.count() <= most.count()) continue;
      richest = other;
      word = now;
      most = left;
      if (2 * most.count() >= n_units) break;  // nobody has more
    }
    if (most.count() == 0) return most;
    uint64_t taken = (most.count() + 1) / 2;
    if (taken > at_once) taken -= taken % at_once;
    const uint64_t middle = most.end - taken;
    if (!shares[richest].word.compare_exchange_strong(word, word_of({most.begin, middle}),
                                                      std::memory_order_relaxed))
      continue;
    const uint64_t end = middle + first_part(taken, at_once);
    shares[worker].word.store(word_of({end, most.end}), std::memory_order_relaxed);
    return {middle, end};
  }
}

}  // namespace akunu::cpu
