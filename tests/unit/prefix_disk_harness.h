// What the tests of prefixes on the disk have in common: a folder, and a cache with a disk below it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cache/prefix_disk.h"
#include "unit/sequence_cache_harness.h"

namespace akunu::test {

inline const std::vector<uint32_t> kNoKey = {0};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string text = std::filesystem::temp_directory_path() / "akunu-runs-XXXXXX";
    check(mkdtemp(text.data()) != nullptr, "there is a temporary folder");
    path_ = text;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
  }
  uint64_t n_bytes() const {
    uint64_t bytes = 0;
    for (const auto& file : files()) bytes += std::filesystem::file_size(file);
    return bytes;
  }

 private:
  std::filesystem::path path_;
};

struct Tier {
  Tier(const std::filesystem::path& folder, Harness& harness, uint64_t most = 1 << 30)
      : disk(folder, most, shapes(harness), [] {}) {}
  static std::vector<GroupShape> shapes(Harness& harness) {
    std::vector<GroupShape> groups;
    for (uint32_t group = 0; group < harness.n_groups(); ++group)
      groups.push_back(harness.shape(group));
    return groups;
  }
  void wait() const {
    while (disk.is_busy() || disk.is_fetching())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // As the scheduler does it: all that the cache has and the disk lacks.
  void store(SequenceCache& cache) {
    uint32_t n_written = 0;
    while (const Sequence* const sequence = cache.runs.next()) {
      const uint32_t n = std::min(sequence->n_done, sequence->n_prompt);
      const std::span tokens = std::span(sequence->tokens).first(n);
      const bool is_whole = sequence->unread.empty() || disk.keeps_states();
      auto missing = disk.missing(kNoKey, tokens, is_whole);
      if (!missing)
        missing = disk.missing_state(kNoKey, tokens, cache.runs.places_of_states(*sequence, n));
      if (!missing) {
        cache.runs.set_stored(sequence->id);
        continue;
      }
      RunPages pages = cache.runs.copy(*sequence, *missing);
      disk.write(std::move(*missing), std::move(pages));
      // A run that is evicted as soon as it is written would be written for ever.
      if (++n_written > 200) return check(false, "writing ends");
      if (is_slow) wait();
    }
    wait();
  }
  std::optional<RunsOnDisk> fetched(const std::vector<uint32_t>& tokens, uint32_t n_there) {
    while (true) {
      RunsOnDisk found = disk.find(kNoKey, tokens, size_of(tokens) - 1);
      if (found.n_positions <= n_there) return std::nullopt;
      check(disk.fetch(std::move(found), n_there / kPagePositions), "nothing else is read");
      wait();
      std::optional<RunsOnDisk> fetched = disk.take_fetched();
      if (fetched->n_positions > 0) return fetched;
    }
  }

  PrefixDisk disk;
  bool is_slow = false;  // the cache: it gives the next run when the one before is there
};

// How many positions a text begins with that the disk helps; it ends again.
inline uint32_t n_with_disk(Harness& harness, Tier& tier, const std::vector<uint32_t>& tokens) {
  const Beginning begins = beginning(77, tokens, size_of(tokens), kNone);
  const auto from_disk = tier.fetched(tokens, harness.cache().prefixes.longest(begins).n_positions);
  const auto slot = harness.cache().sequences.begin(begins, from_disk ? &*from_disk : nullptr);
  check(slot.has_value(), "there is room");
  const uint32_t n = harness.store()[*slot].n_done;
  check(harness.holds_its_own(*slot), "what comes back is what the tokens stand for");
  check(harness.run(*slot, size_of(tokens)) && harness.holds_its_own(*slot), "and goes on");
  check(harness.counts_are_right(), "pages are counted");
  harness.cache().sequences.discard(*slot);
  return n;
}

}  // namespace akunu::test
