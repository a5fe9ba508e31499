// The cache of keys, values and states, for a model's texts: parts that each do one thing, and a caller uses the part that
// it means. docs/architecture.md lists the verbs of each.
#pragma once

#include "cache/encoded_windows.h"
#include "cache/pages.h"
#include "cache/position_copies.h"
#include "cache/prefixes.h"
#include "cache/sequences.h"
#include "cache/stored_runs.h"

namespace akunu {

// For one thread, and only while no submission is in flight.
class SequenceCache {
  // More would cost more to search than a long prefix saves.
  static constexpr uint32_t kMostKept = 64;

  CachedTexts texts_;  // of which all parts know

 public:
  // Both must outlive this. `n_rows`: rows of one sequence that are in flight at a time, at most.
  // `keep`: sequences that ended are kept. `looks_ahead`: what is kept of a position depends on the next token, too.
  SequenceCache(KvCache& cache, SequenceStore& store, uint32_t n_rows, bool keep,
                bool looks_ahead = false)
      : texts_{.running = store, .most_kept = keep ? kMostKept : 0},
        pages(cache, texts_),
        windows(cache),
        prefixes(texts_, pages, looks_ahead),
        runs(cache, texts_, pages),
        copies(cache, texts_, pages, prefixes),
        sequences(cache, texts_, pages, windows, prefixes, runs, copies, n_rows) {}
  SequenceCache(const SequenceCache&) = delete;  // the parts refer to one another
  SequenceCache& operator=(const SequenceCache&) = delete;

  Pages pages;             // take, share, give back, evict
  EncodedWindows windows;  // of speech: take, lend, leave, forget
  Prefixes prefixes;       // of texts that ended: find, lend, keep, shorten, forget
  StoredRuns runs;         // what the disk lacks, and gives: next, copy, fill
  PositionCopies copies;   // bytes of positions: read, write, restore
  Sequences sequences;     // running: begin, extend, done, end
};

}  // namespace akunu
