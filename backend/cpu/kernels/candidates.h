// Tokens by rank: higher z first, lower token on ties. A binary heap over plain memory does for
// top-k (the worst of the best k at its root) and for top-p (the best of what is left). Kernel
// files use no standard containers: their symbols would not carry a level's name (isa/avx2.h).
#pragma once

#include <stdint.h>

namespace akunu::cpu {

struct Candidate {
  float z;
  uint32_t token;
};

template <class Isa>
struct BestFirst {
  static bool above(Candidate a, Candidate b) {
    return a.z > b.z || (a.z == b.z && a.token < b.token);
  }
};
template <class Isa>
struct WorstFirst {
  static bool above(Candidate a, Candidate b) { return BestFirst<Isa>::above(b, a); }
};

template <class Isa, class Order>
static inline void sift_down(Candidate* heap, uint32_t n, uint32_t i) {
  const Candidate moving = heap[i];
  for (;;) {
    uint32_t child = 2 * i + 1;
    if (child >= n) break;
    if (child + 1 < n && Order::above(heap[child + 1], heap[child])) ++child;
    if (!Order::above(heap[child], moving)) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = moving;
}

template <class Isa, class Order>
static inline void make_heap(Candidate* heap, uint32_t n) {
  for (uint32_t i = n / 2; i-- > 0;) sift_down<Isa, Order>(heap, n, i);
}

}  // namespace akunu::cpu
