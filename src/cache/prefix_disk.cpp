// Runs of positions on the disk. prefix_disk.h says what it promises.
//
// 1. What it does. The tree (prefix_tree.h) says what is there; the folder (prefix_folder.h) has it. One
//    thread reads and writes files, reads first: a text waits for them.
// 2. What bounds it. The disk. A text that ends under load is copied a page between two steps; where the
//    disk is behind by kMostWaiting, it waits in the cache until the disk is not.
// 3. Other processes. A run has the same name and the same bytes for all of them, so it does not matter who
//    writes it. Who removes a file that another one knows makes it a miss there. `refresh` learns what came
//    and went, when a file has gone, and when something is missed, at most once a second.
#include "cache/prefix_disk.h"

#include <algorithm>
#include <cassert>
#include <set>
#include <system_error>
#include <utility>

#include "cache/saved_positions.h"
#include "core/error.h"
#include "core/memory_left.h"

namespace akunu {
namespace {

constexpr uint64_t kMostWaiting = 64
                                  << 20;  // bytes to be written; a page that is larger goes alone
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kPauseAfterFailure = 60 * kSecond;

constexpr bool has(uint64_t groups, size_t group) { return groups >> group & 1; }

// A run of these tokens behind so many whole pages of a text, whose runs are given.
MissingRun missing_run(std::span<const RunName> runs, uint32_t n_whole,
                       std::span<const uint32_t> key, std::span<const uint32_t> tokens) {
  MissingRun missing;
  missing.entry = n_whole;
  if (n_whole > 0)
    missing.run.behind = runs[n_whole - 1];
  else
    missing.run.words.assign(key.begin(), key.end());
  missing.run.n_key = static_cast<uint32_t>(missing.run.words.size());
  missing.run.words.insert(missing.run.words.end(), tokens.begin(), tokens.end());
  return missing;
}

}  // namespace

PrefixDisk::PrefixDisk(std::filesystem::path folder, uint64_t most_bytes,
                       std::vector<GroupShape> groups, std::function<void()> on_change)
    : most_bytes_(most_bytes),
      groups_(std::move(groups)),
      on_change_(std::move(on_change)),
      folder_(std::move(folder)) {
  assert(groups_.size() <= 64);
  counts_.most_bytes = most_bytes;
  for (size_t group = 0; group < groups_.size(); ++group)
    if (groups_[group].has_states()) state_groups_ |= uint64_t{1} << group;
  const uint64_t least = page_bytes(~uint64_t{0}, kPagePositions) + (1 << 16);
  if (most_bytes < least)
    throw ArgumentError("the cache on the disk may have " + mebibytes(most_bytes) +
                        "; one page of this model's cache takes " + mebibytes(least));
  folder_.remove_leftovers();
  refresh();
  make_room(0);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw DeviceError(std::string("the system refused a thread to write the cache in: ") +
                      error.what());
  }
}

PrefixDisk::~PrefixDisk() {
  if (home_.is_another()) {
    thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

uint64_t PrefixDisk::page_bytes(uint64_t groups, uint32_t n_positions) const {
  uint64_t bytes = 0;
  for (size_t group = 0; group < groups_.size(); ++group)
    if (has(groups, group)) bytes += saved_page_bytes(groups_[group], n_positions);
  return bytes;
}

DiskCounts PrefixDisk::counts() const {
  const std::lock_guard lock(mutex_);
  DiskCounts counts = counts_;
  counts.n_runs = tree_.size();
  counts.n_bytes = tree_.n_bytes();
  return counts;
}

// --- what a text takes over ----------------------------------------------------------------------

RunsOnDisk PrefixDisk::find(std::span<const uint32_t> key, std::span<const uint32_t> tokens,
                            uint32_t most) const {
  const std::lock_guard lock(mutex_);
  PrefixTree::Found there = tree_.find(key, tokens);
  // What is still to be written cannot be read yet; nor can what is behind it.
  const auto is_pending = [&](const RunName& name) { return tree_.look_up(name)->is_pending; };
  const auto end = std::ranges::find_if(there.runs, is_pending);
  there.runs.erase(end, there.runs.end());
  const uint32_t n_readable =
      std::min(there.n_positions, static_cast<uint32_t>(there.runs.size()) * kPagePositions);
  uint32_t n = std::min(most, n_readable);
  std::vector<uint32_t> places;
  std::vector<RunName> states;
  if (keeps_states() && there.n_positions > 0) {
    PrefixTree::Found readable = there;
    readable.n_positions = n_readable;  // a place beyond what can be read must not count
    for (const auto& [place, name] : tree_.states(key, tokens, readable)) {
      if (is_pending(name)) continue;
      places.push_back(place);
      states.push_back(name);
    }
  }
  // The longest prefix that every group has, as a text in the cache would have it; stored states count as its
  // checkpoints.
  std::vector<uint32_t> pages;
  for (uint32_t before = n + 1; n > 0 && n < before;) {
    before = n;
    for (size_t group = 0; group < groups_.size(); ++group) {
      pages.clear();
      if (has(state_groups_, group)) {
        pages.assign(1 + places.size(), 0);
        pages[0] = kNoPage;
      } else {
        for (const RunName& name : there.runs)
          pages.push_back(has(tree_.look_up(name)->run.groups, group) ? 0 : kNoPage);
      }
      n = groups_[group].ask([&](const auto& kind) {
        return kind.reusable(Held{pages, there.n_positions, places}, n);
      });
    }
  }
  std::optional<StateOnDisk> state;
  if (const auto at = std::ranges::lower_bound(places, n); n > 0 && at != places.end())
    state = StateOnDisk{
        .name = states[static_cast<size_t>(at - places.begin())], .place = *at, .pages = {}};
  there.runs.resize(std::min<size_t>(there.runs.size(), pages_for(n)));
  if (n < most && nanoseconds_now() - refreshed_ > kSecond) {  // others may have written more
    wants_refresh_ = true;
    wake_.notify_one();
  }
  return {.n_positions = n,
          .goes_on = there.goes_on || n < there.n_positions,
          .runs = std::move(there.runs),
          .first_entry = 0,
          .pages = {},
          .state = std::move(state)};
}

bool PrefixDisk::fetch(RunsOnDisk found, uint32_t first_entry) {
  {
    const std::lock_guard lock(mutex_);
    if (is_fetching_ || fetched_ || closed_) return false;
    is_fetching_ = true;
    found.first_entry = first_entry;
    to_fetch_ = std::move(found);
  }
  wake_.notify_one();
  return true;
}

bool PrefixDisk::is_fetching() const {
  const std::lock_guard lock(mutex_);
  return is_fetching_;
}

std::optional<RunsOnDisk> PrefixDisk::take_fetched() {
  const std::lock_guard lock(mutex_);
  return std::exchange(fetched_, std::nullopt);
}

void PrefixDisk::count_restored(uint32_t n_positions) {
  const std::lock_guard lock(mutex_);
  counts_.n_restored += n_positions;
}

// --- what is written -----------------------------------------------------------------------------

std::optional<MissingRun> PrefixDisk::missing(std::span<const uint32_t> key,
                                              std::span<const uint32_t> tokens,
                                              bool is_whole) const {
  const std::lock_guard lock(mutex_);
  PrefixTree::Found there = tree_.find(key, tokens);
  if (there.n_positions == tokens.size()) return std::nullopt;
  // Behind whole runs that hold: of the last one found perhaps only a part does.
  const uint32_t n_whole = there.n_positions / kPagePositions;
  const std::span rest = tokens.subspan(size_t{n_whole} * kPagePositions);
  const size_t n = std::min<size_t>(rest.size(), kPagePositions);
  // Of a text larger than the limit, the last pages would evict the first. With states all of it must fit:
  // its beginning alone is of no use.
  if (!fits(keeps_states() ? pages_for(static_cast<uint32_t>(tokens.size())) : n_whole + 1,
            key.size()))
    return std::nullopt;
  // A few positions more are not worth a file, unless states are stored behind them.
  const size_t n_least = keeps_states() ? kLeastOnDisk : there.n_positions + size_t{kLeastOnDisk};
  if (n < kPagePositions && (!is_whole || tokens.size() < n_least)) return std::nullopt;
  return missing_run(there.runs, n_whole, key, rest.first(n));
}

std::optional<MissingRun> PrefixDisk::missing_state(std::span<const uint32_t> key,
                                                    std::span<const uint32_t> tokens,
                                                    std::span<const uint32_t> places) const {
  const std::lock_guard lock(mutex_);
  for (const uint32_t place : places) {
    if (place < kLeastOnDisk) continue;
    const std::span before = tokens.first(place);
    const PrefixTree::Found there = tree_.find(key, before);
    if (there.n_positions < place || !fits(pages_for(place), key.size())) continue;
    const uint32_t n_whole = place / kPagePositions;
    MissingRun missing =
        missing_run(there.runs, n_whole, key, before.subspan(size_t{n_whole} * kPagePositions));
    missing.run.is_state = true;
    if (tree_.look_up(name_of(missing.run)) == nullptr) return missing;
  }
  return std::nullopt;
}

// Whether the limit holds the files of a text of so many pages, and one of states behind them. None of these can be
// evicted for the next one: only a run without others behind it is.
bool PrefixDisk::fits(uint64_t n_pages, uint64_t n_key) const {
  PrefixRun page{.behind = {}, .words = std::vector<uint32_t>(kPagePositions)};
  uint64_t n_bytes = n_pages * file_bytes(page, page_bytes(~state_groups_, kPagePositions)) +
                     n_key * sizeof(uint32_t);
  if (keeps_states()) n_bytes += file_bytes(page, page_bytes(state_groups_, 0));
  return n_bytes <= most_bytes_;
}

bool PrefixDisk::takes_more() const {
  const std::lock_guard lock(mutex_);
  return !closed_ && n_waiting_bytes_ < kMostWaiting && nanoseconds_now() >= paused_until_;
}

bool PrefixDisk::is_busy() const {
  const std::lock_guard lock(mutex_);
  return is_writing_ || !to_write_.empty();
}

void PrefixDisk::write(MissingRun missing, RunPages pages) {
  missing.run.groups = pages.groups;
  const RunName name = name_of(missing.run);
  const uint64_t n_bytes = file_bytes(missing.run, pages.bytes.size());
  {
    const std::lock_guard lock(mutex_);
    const uint64_t now = nanoseconds_now();
    const std::optional<RunName> positions = tree_.positions_of(missing.run);
    if (!tree_.add(std::move(missing.run), n_bytes, now, true)) return;
    // States are of no use without the positions before them: those count as used later, so they are evicted later.
    if (positions) tree_.touch(*positions, now + 1);
    n_waiting_bytes_ += pages.bytes.size();
    to_write_.push_back({name, std::move(pages)});
  }
  wake_.notify_one();
}

// --- the thread ----------------------------------------------------------------------------------

void PrefixDisk::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return closed_ || to_fetch_ || !to_write_.empty() || wants_refresh_; });
    if (to_fetch_) {
      RunsOnDisk fetching = *std::exchange(to_fetch_, std::nullopt);
      lock.unlock();
      read_next(std::move(fetching));
    } else if (!to_write_.empty()) {
      Writing writing = std::move(to_write_.front());
      to_write_.pop_front();
      is_writing_ = true;
      lock.unlock();
      write_next(std::move(writing));
    } else if (closed_) {
      return;
    } else {
      wants_refresh_ = false;
      lock.unlock();
      refresh();
    }
    on_change_();
    lock.lock();
  }
}

void PrefixDisk::read_next(RunsOnDisk fetching) {
  std::vector<RunName> used = fetching.runs;
  bool has_state = true;
  if (fetching.state && fetching.n_positions > 0) {
    std::optional<RunPages> pages = read_pages(fetching.state->name);
    has_state = pages.has_value();
    if (pages) fetching.state->pages = std::move(*pages);
    used.push_back(fetching.state->name);
  }
  uint32_t n_there = fetching.first_entry * kPagePositions;
  for (size_t entry = fetching.first_entry; entry < fetching.runs.size() && has_state; ++entry) {
    std::optional<RunPages> pages = read_pages(fetching.runs[entry]);
    if (!pages) break;
    n_there += pages->n_positions;
    fetching.pages.push_back(std::move(*pages));
  }
  // States are of no use unless all positions before them were read.
  if (fetching.pages.empty() || (fetching.state && n_there < fetching.n_positions)) n_there = 0;
  fetching.n_positions = std::min(fetching.n_positions, n_there);
  for (const RunName& name : used) folder_.touch(name);
  const std::lock_guard lock(mutex_);
  const uint64_t now = nanoseconds_now();
  for (const RunName& name : used) tree_.touch(name, now);
  fetched_ = std::move(fetching);
  is_fetching_ = false;
}

// The pages of a run; nothing where its file is missing or damaged, and then the run is forgotten.
std::optional<RunPages> PrefixDisk::read_pages(const RunName& name) {
  std::optional<PrefixRun> run;
  {
    const std::lock_guard lock(mutex_);
    if (const PrefixTree::Node* const node = tree_.look_up(name)) run = node->run;
  }
  if (!run) return std::nullopt;
  std::string problem;
  std::optional<std::vector<std::byte>> bytes =
      folder_.read(name, *run, page_bytes(run->groups, run->n_positions()), problem);
  if (!bytes) {
    forget(name, problem);
    return std::nullopt;
  }
  return RunPages{run->n_positions(), run->groups, std::move(*bytes)};
}

void PrefixDisk::write_next(Writing writing) {
  std::optional<PrefixRun> run;
  {
    const std::lock_guard lock(mutex_);
    // What it lies behind may have gone meanwhile, and it with that.
    if (const PrefixTree::Node* const node = tree_.look_up(writing.name)) run = node->run;
  }
  std::string problem;
  if (run) {
    if (make_room(file_bytes(*run, writing.pages.bytes.size())))
      problem = folder_.write(writing.name, *run, writing.pages.bytes);
    else
      run.reset();
  }
  const std::lock_guard lock(mutex_);
  n_waiting_bytes_ -= writing.pages.bytes.size();
  is_writing_ = false;
  if (run && problem.empty()) {
    tree_.set_there(writing.name);
    if (const std::optional<RunName> beginning = tree_.beginning_of(*run))
      remove_files(tree_.remove(*beginning));
    if (!run->is_state) counts_.n_written += run->n_positions();
  } else {
    tree_.remove(writing.name);
  }
  if (!problem.empty()) {
    counts_.problem = problem;
    paused_until_ = nanoseconds_now() + kPauseAfterFailure;
  }
}

// Removes what was not used for longest until so many bytes more fit; false where they never do.
bool PrefixDisk::make_room(uint64_t n_bytes) {
  const std::lock_guard lock(mutex_);
  while (tree_.n_bytes() - tree_.n_pending_bytes() + n_bytes > most_bytes_) {
    const std::optional<RunName> least = tree_.least_recently_used();
    if (!least) return false;  // the others are beginnings of what waits to be written
    remove_files(tree_.remove(*least));
  }
  return true;
}

// With the lock held.
void PrefixDisk::remove_files(const std::vector<RunName>& names) {
  for (const RunName& name : names) folder_.remove(name);
}

// A file that cannot be read, or is gone: it and all behind it are no more.
void PrefixDisk::forget(const RunName& name, const std::string& problem) {
  if (problem.empty()) return refresh();  // somebody else removed it, and perhaps others
  const std::lock_guard lock(mutex_);
  remove_files(tree_.remove(name));
  ++counts_.n_damaged;
  counts_.problem = problem;
}

// Learns what others wrote and removed.
void PrefixDisk::refresh() {
  const std::vector<RunName> listed = folder_.names();
  const std::set<RunName> there(listed.begin(), listed.end());
  std::vector<StoredRun> unknown;
  for (const RunName& name : listed) {
    {
      const std::lock_guard lock(mutex_);
      if (tree_.look_up(name) != nullptr) continue;
    }
    std::string problem;
    std::optional<StoredRun> stored = folder_.look(name, problem);
    const auto is_of_this_cache = [&](const StoredRun& each) {
      if (each.run.is_state) return keeps_states() && each.run.groups == state_groups_;
      return (each.run.groups & state_groups_) == 0 &&
             (groups_.size() == 64 || each.run.groups >> groups_.size() == 0);
    };
    if (stored &&
        (!is_of_this_cache(*stored) ||
         stored->n_bytes !=
             file_bytes(stored->run, page_bytes(stored->run.groups, stored->run.n_positions())))) {
      stored.reset();
      problem = to_text(name) + " has other pages than this model's cache";
    }
    if (stored) {
      unknown.push_back(std::move(*stored));
    } else if (!problem.empty()) {
      folder_.remove(name);
      const std::lock_guard lock(mutex_);
      ++counts_.n_damaged;
      counts_.problem = problem;
    }
  }
  const std::lock_guard lock(mutex_);
  // What lies behind a run comes after it.
  for (bool found = true; found && !unknown.empty();) {
    found = false;
    std::erase_if(unknown, [&](StoredRun& each) {
      const bool is_known = each.run.behind.is_root() || tree_.look_up(each.run.behind) != nullptr;
      if (is_known) tree_.add(std::move(each.run), each.n_bytes, each.last_use, false);
      found |= is_known;
      return is_known;
    });
  }
  for (const StoredRun& each : unknown) folder_.remove(each.name);  // nobody finds these
  for (const RunName& name : tree_.names()) {
    const PrefixTree::Node* const node = tree_.look_up(name);
    if (node != nullptr && !node->is_pending && !there.contains(name)) tree_.remove(name);
  }
  refreshed_ = nanoseconds_now();
}

}  // namespace akunu
