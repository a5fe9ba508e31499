// What a CPU kernel is: a count of slices and a function that runs some of them. Slices are handed
// to the workers dynamically, so a slice's result may depend on nothing but its number: that is
// half of row invariance. The other half is that a slice treats each row on its own.
//
// Kernel files are compiled once per ISA level. They include nothing that defines a non-static
// inline function, and no standard container: such a function could be emitted with AVX2 and then
// linked for everybody.
#pragma once

#include <stdint.h>

#include <cstddef>

#include "core/kernel_params.h"
#include "core/rows.h"

namespace akunu::cpu {

struct Kernel;

// A command as its kernel sees it during one step.
struct Call {
  const Kernel* kernel;             // the one that runs
  std::byte* operands[24];          // by slot; null where an optional operand is absent
  const void* params;               // the operation's struct of core/kernel_params.h
  Row* rows;                        // slot 26, from row 0 on; few kernels write: see record_status
  const Span* spans;                // slot 30
  const uint32_t* pages;            // slot 27
  const SequenceRecord* sequences;  // slot 28
  Status* statuses;                 // slot 29, by row; written by record_status alone
  uint32_t first_row;  // the rows to work on: first_row .. first_row + n_rows; head rows where the
  uint32_t n_rows;     // command's extent is head_rows
  uint32_t first_span;
  uint32_t n_spans;
};

struct Kernel {
  // How many slices the call has. Depends on params, first_row, n_rows and spans only.
  uint64_t (*slices)(const Call& call);
  // Runs slices [begin, end). `scratch` is this worker's own, 64-byte aligned.
  void (*run)(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch);
  // Bytes of scratch that a worker needs; depends on params only. Null: none.
  uint64_t (*scratch_bytes)(const Call& call);
  // Slices that follow each other and cost less together than one by one, and how many: a worker is
  // given as many at a time where it has them, fewer where the call has too few for all workers.
  // Null: none do.
  uint64_t (*at_once)(const Call& call) = nullptr;
  // Of a matmul: how each weight is multiplied (a MatmulKernel), null where there is none.
  const void* members[kMaxGroup] = {};
  // Panels of weights up to this many bytes are prefetched into L1, larger ones into L2.
  uint64_t l1_panel_bytes = 0;

  bool operator==(const Kernel&) const = default;
};

// Records the error of an active row and makes the row inactive. Only one worker works on a row at a
// time, so there is no race.
static inline void record_status(const Call& call, uint64_t row, uint32_t code, uint32_t detail) {
  if (!(call.rows[row].flags & kRowActive)) return;
  call.statuses[row] = {code, call.rows[row].position, detail, 0};
  call.rows[row].flags &= ~kRowActive;
}

// Element of a cache's pool where kv head `head` of a position lies. `params` of any operation with caches.
template <class Params>
static inline uint64_t cache_element(const Call& call, const Params& params, uint32_t sequence,
                                     uint32_t head, uint32_t position) {
  const uint32_t page =
      page_of(call.pages, params.page_table_base, params.page_table_stride, sequence, position);
  return kv_offset(page, params.n_kv_heads, head, position % kPagePositions, params.head_dim);
}
// Byte of a cache, whose rows are such, at which the page of a position has those of kv head `head`.
template <class Rows, class Params>
static inline uint64_t cache_page(const Call& call, const Params& params, uint32_t sequence,
                                  uint32_t head, uint32_t position) {
  return Rows::byte_at(
      cache_element(call, params, sequence, head, position / kPagePositions * kPagePositions));
}

}  // namespace akunu::cpu
