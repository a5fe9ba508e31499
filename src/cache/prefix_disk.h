// The tier below the cache: what was computed of prompts, in a folder, for this process when it has
// forgotten it, for the next one, and for others beside it.
//
// A text that ended is written page by page (prefix_folder.h) by a thread of its own; a prompt whose
// beginning is there for longer than the cache has it waits until that is read. What does not fit goes,
// least recently used first. Whatever is wrong with a file, it is as if it were not there.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cache/groups.h"
#include "cache/prefix_folder.h"
#include "cache/prefix_tree.h"
#include "core/home_process.h"

namespace akunu {

// Positions that are worth a file, or reading one: fewer are computed about as fast.
constexpr uint32_t kLeastOnDisk = 16;

struct DiskCounts {
  uint64_t n_runs = 0;  // files
  uint64_t n_bytes = 0;
  uint64_t most_bytes = 0;
  uint64_t n_written = 0;   // positions, since the model was loaded
  uint64_t n_restored = 0;  // likewise: what texts took over from here
  uint64_t n_damaged = 0;   // files
  std::string problem;      // the last one; "" where there was none
};

// The pages of a run, as they were read or are to be written.
struct RunPages {
  uint32_t n_positions = 0;
  uint64_t groups = 0;  // bit g: of group g there is a page
  std::vector<std::byte> bytes;
};

// The states of a text after its first `place` tokens.
struct StateOnDisk {
  RunName name;
  uint32_t place = 0;  // positions before it
  RunPages pages;      // once they were read
};

// What a text takes over that begins with `n_positions` of these.
struct RunsOnDisk {
  uint32_t n_positions = 0;
  bool goes_on = false;              // what is there goes on otherwise
  std::vector<RunName> runs;         // of entries 0, 1, ...
  uint32_t first_entry = 0;          // of `pages`
  std::vector<RunPages> pages;       // once they were read
  std::optional<StateOnDisk> state;  // of a cache that has any: a text goes on behind them only
};

// What the disk lacks of a text: positions of one page, or states behind some positions of it.
struct MissingRun {
  PrefixRun run;
  uint32_t entry = 0;

  uint32_t end() const { return entry * kPagePositions + run.n_positions(); }
};

class PrefixDisk {
 public:
  // `groups`: of the cache, at most 64, none of an encoder. `on_change` is called by the
  // thread when something was read or written. ArgumentError for a folder that cannot be used, and for a
  // limit that does not hold one page and the states behind it.
  PrefixDisk(std::filesystem::path folder, uint64_t most_bytes, std::vector<GroupShape> groups,
             std::function<void()> on_change);
  ~PrefixDisk();  // what was given to write is written
  PrefixDisk(const PrefixDisk&) = delete;
  PrefixDisk& operator=(const PrefixDisk&) = delete;

  DiskCounts counts() const;  // any thread

  // The scheduler's thread.

  // The longest beginning that is there, of at most `most` positions, where every group can go on.
  RunsOnDisk find(std::span<const uint32_t> key, std::span<const uint32_t> tokens,
                  uint32_t most) const;
  // Begins to read the pages of what was found from an entry on, unless something is being read.
  bool fetch(RunsOnDisk found, uint32_t first_entry);
  bool is_fetching() const;
  // What was read: fewer positions than were asked for where something was wrong, which `find` does not find again.
  std::optional<RunsOnDisk> take_fetched();
  void count_restored(uint32_t n_positions);

  // The first page that is not there of a text with these tokens; the last one, which is not full, only
  // where `is_whole`: the text is not going to be longer soon, or has states at its end.
  std::optional<MissingRun> missing(std::span<const uint32_t> key, std::span<const uint32_t> tokens,
                                    bool is_whole) const;
  // States of the text that are not stored yet: those after the first of these numbers of positions of which all
  // positions are stored, but not the states.
  std::optional<MissingRun> missing_state(std::span<const uint32_t> key,
                                          std::span<const uint32_t> tokens,
                                          std::span<const uint32_t> places) const;
  bool keeps_states() const { return state_groups_ != 0; }
  // Whether it takes something to write now: else the disk is behind.
  bool takes_more() const;
  bool is_busy() const;
  void write(MissingRun missing, RunPages pages);

  // Of pages of these groups with so many positions; pages of states are always whole.
  uint64_t page_bytes(uint64_t groups, uint32_t n_positions) const;

 private:
  struct Writing {
    RunName name;
    RunPages pages;
  };

  bool fits(uint64_t n_pages, uint64_t n_key) const;
  void run();
  void refresh();
  bool make_room(uint64_t n_bytes);
  void write_next(Writing writing);
  void read_next(RunsOnDisk fetching);
  std::optional<RunPages> read_pages(const RunName& name);
  void forget(const RunName& name, const std::string& problem);
  void remove_files(const std::vector<RunName>& names);

  const uint64_t most_bytes_;
  const std::vector<GroupShape> groups_;
  uint64_t state_groups_ = 0;  // bit g: group g is of states
  const std::function<void()> on_change_;
  const HomeProcess home_;

  mutable std::mutex mutex_;  // of all below it but the folder, which is the thread's
  mutable std::condition_variable wake_;
  PrefixTree tree_;
  DiskCounts counts_;
  std::deque<Writing> to_write_;
  uint64_t n_waiting_bytes_ = 0;  // of to_write_, and of what is being written
  bool is_writing_ = false;
  uint64_t paused_until_ = 0;  // after a failure; nanoseconds
  mutable bool wants_refresh_ = false;
  uint64_t refreshed_ = 0;
  std::optional<RunsOnDisk> to_fetch_;
  std::optional<RunsOnDisk> fetched_;
  bool is_fetching_ = false;
  bool closed_ = false;

  PrefixFolder folder_;
  std::thread thread_;
};

}  // namespace akunu
