// States of recurrent layers on the disk: they belong to a number of tokens, and are evicted, damaged and missed as
// other files are.
#include <fcntl.h>
#include <unistd.h>

#include <set>

#include "unit/prefix_disk_harness.h"

namespace akunu::test {
namespace {

// A text that goes on several times has states at each of its ends, and the least recently used files are evicted.
void test_states_are_of_places() {
  const TemporaryFolder folder;
  const std::vector<uint32_t> windows = {0, kOfStates}, n_pages = {40, 12};
  const std::vector<uint32_t> tokens = tokens_of(2000, 2000, 1);
  {
    Harness harness(windows, n_pages, 40);
    Tier tier(folder.path(), harness);
    uint64_t id = 0;
    for (const uint32_t n : {40u, 256u, 300u, 301u, 512u, 900u}) {
      const std::vector<uint32_t> begun(tokens.begin(), tokens.begin() + n);
      const uint32_t slot = run_text(harness, ++id, begun);
      check(harness.cache().sequences.checkpoint(slot), "there is a page for a checkpoint");
      harness.cache().sequences.end(slot, kNone);
      tier.store(harness.cache());
    }
    check(folder.files().size() == 4 + 6, "positions of four pages and six states");
    check(tier.disk.counts().n_bytes == folder.n_bytes(), "states are counted");
  }
  Harness harness(windows, n_pages, 40);
  {
    Tier tier(folder.path(), harness);
    const auto n_of = [&](uint32_t n_common) {
      return n_with_disk(harness, tier, tokens_of(n_common, n_common + 200, 7));
    };
    for (const uint32_t n : {40u, 256u, 300u, 301u, 512u, 900u}) {
      const uint32_t found = n_of(n);
      check(found == n, "behind its states a text goes on, " + std::to_string(n) + ", not " +
                            std::to_string(found));
    }
    const std::vector<uint32_t> again(tokens.begin(), tokens.begin() + 512);
    check(n_with_disk(harness, tier, again) == 511, "or, of the same text, a row before them");
    check(n_of(299) == 256 && n_of(255) == 40 && n_of(39) == 0 && n_of(1999) == 900 &&
              n_of(700) == 512,
          "and else behind the last ones before");
  }
  // Where another text only passed, a text that ends there leaves its states.
  Tier tier(folder.path(), harness);
  harness.cache().sequences.end(run_text(harness, 50, tokens_of(600, 600, 1)), kNone);
  tier.store(harness.cache());
  check(folder.files().size() == 4 + 7, "whose positions were there");
  check(n_with_disk(harness, tier, tokens_of(600, 800, 8)) == 600, "so it goes on there");
  // With less room than they take, the least recently used files are evicted, of states and of positions.
  const uint64_t most = 4 * tier.disk.page_bytes(~uint64_t{0}, kPagePositions) + (1 << 16);
  Tier limited(folder.path(), harness, most);
  for (uint32_t i = 0; i < 12; ++i) {
    const std::vector<uint32_t> text = tokens_of(0, 300, 20 + i);
    harness.cache().sequences.end(run_text(harness, 60 + i, text), kNone);
    limited.store(harness.cache());
    check(folder.n_bytes() <= most && limited.disk.counts().n_bytes == folder.n_bytes(), "it fits");
    check(limited.disk.find(kNoKey, text, 299).n_positions == 299, "the last one is there");
  }
  check(limited.disk.find(kNoKey, tokens_of(0, 300, 20), 299).n_positions == 0, "others went");
  check(limited.disk.counts().n_damaged == 0, "and what is left is whole");
  Harness other({kOfStates}, {12}, 40);
  check(contains(message_of<ArgumentError>([&] { Tier(folder.path(), other, 1 << 10); }),
                 "one page of this model's cache takes"),
        "less than states need is refused");
}

std::vector<std::filesystem::path> files_of_states(const TemporaryFolder& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& file : folder.files()) {
    const int opened = open(file.c_str(), O_RDONLY);
    uint32_t is_state = 0;
    check(pread(opened, &is_state, sizeof(is_state), 20) == sizeof(is_state), "it has a head");
    if (is_state != 0) files.push_back(file);
    close(opened);
  }
  return files;
}

// A text is written if it fits with its states, to the byte. If not, nothing is evicted for it.
void test_a_text_fits_with_its_states_or_not_at_all() {
  const std::vector<uint32_t> windows = {0, kOfStates}, n_pages = {40, 12};
  const std::vector<uint32_t> small = tokens_of(0, 40, 1), large = tokens_of(0, 3000, 2);
  uint64_t n_small = 0, n_large = 0;
  for (const std::vector<uint32_t>& text : {small, large}) {
    const TemporaryFolder folder;
    Harness harness(windows, n_pages, 40);
    Tier tier(folder.path(), harness);
    harness.cache().sequences.end(run_text(harness, 1, text), kNone);
    tier.store(harness.cache());
    (text == small ? n_small : n_large) = folder.n_bytes();
  }
  check(n_small < n_large, "their sizes are known");
  const auto n_there = [&](uint64_t most, const std::vector<uint32_t>& of) {
    const TemporaryFolder folder;
    Harness harness(windows, n_pages, 40);
    Tier tier(folder.path(), harness, most);
    for (const std::vector<uint32_t>& text : {small, large}) {
      harness.cache().sequences.end(run_text(harness, size_of(text), text), kNone);
      for (const bool is_slow : {true, false}) {
        tier.is_slow = is_slow;
        tier.store(harness.cache());
      }
      check(folder.n_bytes() <= most, "no more than it may have");
    }
    return tier.disk.find(kNoKey, of, size_of(of) - 1).n_positions;
  };
  check(n_there(n_large - 1, small) == 39, "what will not fit removes nothing");
  check(n_there(n_large - 1, large) == 0, "and nothing of it is there");
  check(n_there(2 * n_large, large) == 2999 && n_there(2 * n_large, small) == 39, "else both are");
}

// A longer run replaces a shorter one only once its file is written: if that fails, the shorter one is still there, and
// so the states behind it can be used.
void test_a_run_that_cannot_be_written_removes_nothing() {
  const std::vector<uint32_t> windows = {0, kOfStates}, n_pages = {40, 12};
  const TemporaryFolder folder;
  const std::vector<uint32_t> tokens = tokens_of(300, 300, 1), longer = tokens_of(300, 400, 2);
  Harness harness(windows, n_pages, 40);
  Tier tier(folder.path(), harness);
  harness.cache().sequences.end(run_text(harness, 1, tokens), kNone);
  tier.store(harness.cache());
  check(tier.disk.find(kNoKey, longer, 399).n_positions == 300, "a text goes on behind it");
  const auto missing = tier.disk.missing(kNoKey, longer, true);
  check(missing && missing->end() == 400, "and has a longer run");
  // A folder in its place, to which no file can be renamed.
  const auto place = folder.path() / (to_text(name_of(missing->run)) + ".run");
  std::filesystem::create_directories(place / "inner");
  const auto slot = harness.cache().sequences.begin(beginning(2, longer, 400, kNone));
  check(slot && harness.run(*slot, 400), "there is room");
  harness.cache().sequences.end(*slot, kNone);
  RunPages pages = harness.cache().runs.copy(*harness.cache().runs.next(), *missing);
  tier.disk.write(*missing, std::move(pages));
  tier.wait();
  check(contains(tier.disk.counts().problem, "cannot be written"), "that failed");
  check(!tier.disk.takes_more() && !tier.disk.is_busy(),
        "so it takes nothing, and has nothing to do");
  std::filesystem::remove_all(place);
  Harness another(windows, n_pages, 40);
  check(n_with_disk(another, tier, longer) == 300, "what was there is there");
}

// Where the states at a text's end cannot be read, earlier ones are used.
void test_states_that_are_damaged_leave_earlier_ones() {
  const std::vector<uint32_t> windows = {0, kOfStates}, n_pages = {40, 12};
  for (const bool is_removed : {false, true}) {
    const TemporaryFolder folder;
    const std::vector<uint32_t> tokens = tokens_of(600, 600, 1);
    Harness harness(windows, n_pages, 40);
    std::set<std::filesystem::path> earlier;
    for (const uint32_t n : {300u, 600u}) {
      Tier tier(folder.path(), harness);
      const std::vector<uint32_t> begun(tokens.begin(), tokens.begin() + n);
      harness.cache().sequences.end(run_text(harness, n, begun), kNone);
      tier.store(harness.cache());
      if (n == 300)
        for (const auto& file : files_of_states(folder)) earlier.insert(file);
    }
    Harness another(windows, n_pages, 40);
    Tier tier(folder.path(), another);
    uint32_t n_changed = 0;
    for (const auto& file : files_of_states(folder)) {
      if (earlier.contains(file)) continue;
      ++n_changed;
      if (is_removed)
        std::filesystem::remove(file);
      else
        std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
    }
    check(earlier.size() == 1 && n_changed == 1, "states of two places");
    check(n_with_disk(another, tier, tokens_of(600, 640, 2)) == 300, "it goes on behind the first");
    check(tier.disk.counts().n_damaged == (is_removed ? 0 : 1), "and the damage is counted");
  }
}

// States and the positions before them are of use together only: the positions are not evicted first.
void test_positions_go_after_their_states() {
  const std::vector<uint32_t> windows = {0, kOfStates}, n_pages = {40, 12};
  const TemporaryFolder folder;
  Harness harness(windows, n_pages, 40);
  const std::vector<uint32_t> tokens = tokens_of(0, 1788, 1), other = tokens_of(0, 20, 2);
  uint64_t most = 0;
  {
    Tier tier(folder.path(), harness);
    harness.cache().sequences.end(run_text(harness, 1, tokens), kNone);
    tier.store(harness.cache());
    harness.cache().sequences.end(run_text(harness, 2, other), kNone);
    tier.store(harness.cache());
    most = folder.n_bytes() - 1;
  }
  const TemporaryFolder limited;
  Harness fresh(windows, n_pages, 40);
  Tier tier(limited.path(), fresh, most);
  fresh.cache().sequences.end(run_text(fresh, 1, tokens), kNone);
  tier.store(fresh.cache());
  fresh.cache().sequences.end(run_text(fresh, 2, other), kNone);
  tier.store(fresh.cache());
  check(files_of_states(limited).size() == 1 && limited.files().size() == 9,
        "one file went, of the states that were used least recently");
  check(tier.disk.find(kNoKey, other, 19).n_positions == 19, "and the last text is there");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_states_are_of_places();
  test_a_text_fits_with_its_states_or_not_at_all();
  test_a_run_that_cannot_be_written_removes_nothing();
  test_states_that_are_damaged_leave_earlier_ones();
  test_positions_go_after_their_states();
  return summary();
}
