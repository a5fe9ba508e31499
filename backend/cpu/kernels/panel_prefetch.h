// Prefetching the panels of a weight.
//
// 1. What it does. While a panel is read, the next one is prefetched, a line or two with each group
//    of weights.
// 2. What bounds it. A generated row reads every weight once: memory. A panel touches 4 to 16 rows
//    alternately, an order that no hardware prefetcher predicts; without prefetches a kernel gets
//    0.6 of the bandwidth of a loop that only reads.
// 3. How. The lines of the next panel are adjacent in memory, so they are prefetched in memory
//    order, whatever order rows are read in; evenly, because a burst fills the line fill buffers
//    (16 to 24 a core) that loads need too; not before a given register was computed, or the
//    compiler would gather the prefetches. Into L1 where a panel is small enough
//    (Kernel::l1_panel_bytes, a property of the processor), else into L2, 4 KiB sooner.
// 4. What was tried and did not pay. Requests in the order in which rows are read, past L2
//    (prefetchnta), one between any two products, every second line, copying a panel to L1 first,
//    the next matmul's first lines while a worker waits. Numbers: docs/decisions/prefetching-on-the-cpu.md.
#pragma once

#include "cpu/isa/prefetch.h"
#include "cpu/kernels/panel.h"

namespace akunu::cpu {

// A panel whose reader prefetches the panel behind it in memory, as many bytes as it reads. With
// kInOrder the compiler moves no load past a prefetch: for so few rows that memory counts more than
// instructions.
template <int kInto, bool kInOrder, class OfWeight = Panel>
struct PrefetchingPanel : OfWeight {};

// How much more than one panel ahead. The last row of the next panel would otherwise be prefetched
// when 15/16 of this one have been read, and used right after its first row. Not into L1, which two
// panels fill: there it costs a Zen 4 up to a tenth.
template <int kInto>
constexpr uint64_t kPrefetchLead = kInto == kIntoL1 ? 0 : 4096;
template <int kInto>
static inline uint64_t prefetch_distance(uint32_t n_rows, uint64_t row_bytes) {
  return n_rows * row_bytes + kPrefetchLead<kInto>;
}
// The address to prefetch while byte `byte` of every row is read.
template <class Columns, int kInto>
static inline const std::byte* prefetch_address(const Panel& panel, uint64_t byte) {
  return panel.first + prefetch_distance<kInto>(Columns::kCount, panel.stride) +
         Columns::kCount * byte;
}

// The lines of the panels to come, prefetched while packed ones are multiplied: packing is too
// short for all that memory has to deliver. The same number of lines with each group, so that the
// branch is predicted.
struct PrefetchStream {
  const std::byte *next = nullptr, *end = nullptr;
  uint64_t bytes = 0;  // with each group, whole lines
};
static inline void prefetch_next(PrefetchStream& stream) {
  if (stream.next >= stream.end) return;
  prefetch_lines<kIntoL2>(stream.next, stream.bytes);
  stream.next += stream.bytes;
}

}  // namespace akunu::cpu
