// Candidates in order of rank, sorted only as far as they are used.
//
// 1. What it computes. The next best candidates of a list (`hand_out`): z descending, token
//    ascending. They end up at the end of the list, the best last.
// 2. What bounds it. Putting all candidates into buckets: two passes over the list, whose writes
//    go anywhere in it. With nearly flat logits they are tens of thousands.
// 3. What is done about it. Buckets are equally wide in z, some eight candidates in each: finding
//    one's bucket is a multiplication. They are filled in place, without a second list. A bucket
//    becomes a heap only when it is reached: what is never handed out is never sorted.
// 4. Where to change it. The size of buckets: kPerBucket, kMostBuckets. The order: candidates.h.
//    What a draw costs: docs/reference/benchmarks.md, tools/sampling_cost.
#pragma once

#include <stdint.h>

#include "cpu/kernels/candidates.h"

namespace akunu::cpu {

template <class Isa>
class Ranks {
 public:
  // Sorts the list in place into buckets by z, equally wide between `low` and `high`; z outside
  // falls into the first or last one.
  Ranks(Candidate* list, uint32_t n, float low, float high) : list_(list), left_(n), low_(low) {
    while (n_buckets_ < kMostBuckets && n_buckets_ * kPerBucket < n) n_buckets_ *= 2;
    scale_ = static_cast<float>(n_buckets_) / (high - low);
    fill_buckets();
    bucket_ = n_buckets_ - 1;
    make_heap<Isa, BestFirst<Isa>>(list_ + begins_[bucket_], left_ - begins_[bucket_]);
  }

  // Those from list[left()] on have been handed out, the best last.
  uint32_t left() const { return left_; }

  // Hands out the next ones, so many if there are.
  void hand_out(uint32_t n) {
    for (; n > 0 && left_ > 0; --n) {
      while (left_ == begins_[bucket_]) {
        --bucket_;
        make_heap<Isa, BestFirst<Isa>>(list_ + begins_[bucket_], left_ - begins_[bucket_]);
      }
      Candidate* heap = list_ + begins_[bucket_];
      const Candidate best = heap[0];
      const uint32_t n_heap = --left_ - begins_[bucket_];
      heap[0] = list_[left_];
      list_[left_] = best;
      if (n_heap > 0) sift_down<Isa, BestFirst<Isa>>(heap, n_heap, 0);
    }
  }

 private:
  static constexpr uint32_t kPerBucket = 8, kMostBuckets = 8192;

  uint32_t bucket_of(float z) const {
    const float place = (z - low_) * scale_;
    if (!(place > 0)) return 0;
    return place < static_cast<float>(n_buckets_) ? static_cast<uint32_t>(place) : n_buckets_ - 1;
  }

  void fill_buckets() {
    begins_[0] = 0;
    if (n_buckets_ == 1) return;
    uint32_t next[kMostBuckets];
    for (uint32_t b = 0; b < n_buckets_; ++b) next[b] = 0;
    for (uint32_t i = 0; i < left_; ++i) ++next[bucket_of(list_[i].z)];
    uint32_t begin = 0;
    for (uint32_t b = 0; b < n_buckets_; ++b) {
      const uint32_t n = next[b];
      begins_[b] = next[b] = begin;
      begin += n;
    }
    // In place: a candidate that is not in its bucket goes there, then the one that it finds there, until one
    // belongs where the first came from.
    for (uint32_t b = 0; b < n_buckets_; ++b) {
      const uint32_t end = b + 1 < n_buckets_ ? begins_[b + 1] : left_;
      while (next[b] < end) {
        Candidate moving = list_[next[b]];
        for (uint32_t to = bucket_of(moving.z); to != b; to = bucket_of(moving.z)) {
          const Candidate found = list_[next[to]];
          list_[next[to]++] = moving;
          moving = found;
        }
        list_[next[b]++] = moving;
      }
    }
  }

  Candidate* const list_;
  uint32_t left_;
  const float low_;
  float scale_;
  uint32_t n_buckets_ = 1;
  uint32_t bucket_;  // its candidates are a heap, but for those that have been handed out
  uint32_t begins_[kMostBuckets];
};

}  // namespace akunu::cpu
