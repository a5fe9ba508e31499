// The running texts: each has a slot of the device, and pages that grow with it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/encoded_windows.h"
#include "cache/position_copies.h"
#include "cache/prefixes.h"
#include "cache/stored_runs.h"

namespace akunu {

// Verbs: begin, extend, done, end. For one thread, and only while no submission is in flight.
class Sequences {
 public:
  // All must outlive this. `n_rows`: rows of one sequence that are in flight at a time, at most.
  Sequences(KvCache& cache, CachedTexts& texts, Pages& pages, EncodedWindows& windows,
            Prefixes& prefixes, StoredRuns& runs, PositionCopies& copies, uint32_t n_rows);

  // A slot for a sequence. Its n_done says how many positions it took over: never all of the tokens,
  // since the last one's logits are wanted. Nothing, and nothing changed, where slots or pages are
  // short.
  // `from_disk`: where it has more than the cache, the text's pages are filled from there.
  std::optional<uint32_t> begin(const Beginning& beginning, const RunsOnDisk* from_disk = nullptr);
  // Gives the slot pages for positions up to `n_positions`; false where there are none left. Call it
  // before every step, for prompt rows too: some layers get pages only as a text grows.
  bool extend(uint32_t slot, uint32_t n_positions);
  // Positions for which the slot has pages: so far rows may run without another extend().
  uint32_t covered(uint32_t slot) const;
  // The first `n` positions are in the pages, or will be when what was submitted has run.
  void done(uint32_t slot, uint32_t n);

  // Rows ran up to there, though what they chose was not used (refused drafts, a mask that came late): the earliest
  // kept states have gone. They count until the next done().
  void ran(uint32_t slot, uint32_t n);

  // Keeps what states are now, so that the text can rewind to here and others can continue from here.
  // False where there is no page for it. Without states there is nothing to do.
  bool checkpoint(uint32_t slot);

  // How many rows may run of which none counts, so that they run again: states know the way back to few
  // places.
  uint32_t most_again() const;

  // Whether the device's page tables lack pages that the slot has.
  bool has_unsent(uint32_t slot) const;
  // Those pages, to be sent before the next step; from now on they count as sent. The bytes stay
  // where they are while the slot is taken, the list until the next call.
  std::span<const Update> take_unsent(uint32_t slot);

  // The text is over: frees the slot and keeps the sequence, of which at most `n_kept` tokens.
  void end(uint32_t slot, uint32_t n_kept);
  // The text will begin again: frees the slot and keeps all of the sequence, for itself too.
  void set_aside(uint32_t slot);
  // Frees the slot and forgets the sequence.
  void discard(uint32_t slot);

 private:
  Sequence release(uint32_t slot);

  KvCache& cache_;
  CachedTexts& texts_;
  SequenceStore& store_;
  Pages& pages_;
  EncodedWindows& windows_;
  Prefixes& prefixes_;
  StoredRuns& runs_;
  PositionCopies& copies_;
  const uint32_t n_rows_;
  std::vector<Update> updates_;  // what take_unsent returned last
};

}  // namespace akunu
