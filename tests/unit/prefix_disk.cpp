// The tier below the cache against what it promises: the longest beginning is found, what comes back has
// the numbers that were written, a folder never has more than it may, and no file that is damaged, cut or
// somebody else's is believed.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "core/sha256.h"
#include "unit/prefix_disk_harness.h"

namespace akunu::test {
namespace {

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// The examples of FIPS 180-4, and lengths around a block's end (from Python's hashlib).
void test_sha256() {
  const auto digest = [](const std::string& text) {
    return hex(sha256(std::as_bytes(std::span(text))));
  };
  check(digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "empty");
  check(digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "abc");
  check(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        "two blocks");
  check(digest(std::string(55, 'a')) ==
            "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318",
        "55");
  check(digest(std::string(64, 'a')) ==
            "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb",
        "64");
}

// Texts of a small alphabet, so that many begin alike and part in the middle of runs.
std::vector<uint32_t> random_text(std::mt19937& random, uint32_t most) {
  std::vector<uint32_t> text(1 + random() % most);
  for (uint32_t& token : text) token = static_cast<uint32_t>(random() % 40 == 0 ? random() % 3 : 7);
  return text;
}

void test_the_tree_finds_the_longest_beginning(uint32_t seed) {
  std::mt19937 random(seed);
  PrefixTree tree;
  std::vector<std::vector<uint32_t>> stored;
  bool well = true;
  for (int i = 0; i < 60; ++i) {
    const std::vector<uint32_t> text = random_text(random, 1500);
    // As the disk is given it: page after page, and at last a part of one.
    RunName behind;
    for (uint32_t first = 0; first < text.size(); first += kPagePositions) {
      PrefixRun run{.behind = behind, .words = {}, .n_key = 0, .groups = 1};
      if (first == 0) run.words = kNoKey, run.n_key = 1;
      const uint32_t end = std::min(first + kPagePositions, size_of(text));
      run.words.insert(run.words.end(), text.begin() + first, text.begin() + end);
      behind = name_of(run);
      tree.add(run, 1, static_cast<uint64_t>(i), false);
      const PrefixTree::Node* const node = tree.look_up(behind);
      well = well && node != nullptr && node->entry == first / kPagePositions;
    }
    stored.push_back(text);
    const std::vector<uint32_t> asked = random_text(random, 1500);
    uint32_t longest = 0;
    for (const std::vector<uint32_t>& each : stored)
      longest = std::max(
          longest, static_cast<uint32_t>(std::ranges::mismatch(each, asked).in1 - each.begin()));
    const PrefixTree::Found found = tree.find(kNoKey, asked);
    well = well && found.n_positions == longest && found.runs.size() == pages_for(longest);
    well = well && tree.find(std::vector<uint32_t>{1, 5, 6}, asked).n_positions == 0;
  }
  check(well, "the longest beginning, seed " + std::to_string(seed));
  while (const std::optional<RunName> least = tree.least_recently_used())
    check(tree.remove(*least).size() == 1, "what goes first has nothing behind it");
  check(tree.size() == 0 && tree.n_bytes() == 0, "and in the end nothing is left");
}

constexpr uint32_t kWindow = 300;

void test_what_was_written_comes_back(const std::vector<uint32_t>& windows,
                                      const std::vector<uint32_t>& n_pages) {
  for (const uint32_t n : {20u, 255u, 256u, 257u, 700u, 1200u}) {
    const TemporaryFolder folder;
    // Few positions behind a page are not worth a file.
    const bool has_states = std::ranges::find(windows, kOfStates) != windows.end();
    const bool are_few = n % kPagePositions < kLeastOnDisk && !has_states;
    const uint32_t n_kept = are_few ? n - n % kPagePositions : n;
    const std::vector<uint32_t> tokens = tokens_of(n, n, 1);
    std::vector<uint32_t> longer = tokens_of(n, n + 50, 2);
    {
      Harness harness(windows, n_pages, kPages);
      Tier tier(folder.path(), harness);
      harness.cache().sequences.end(run_text(harness, 1, tokens), kNone);
      tier.store(harness.cache());
      check(tier.disk.counts().n_written == n_kept, "each position is written once");
      check(tier.disk.counts().n_bytes == folder.n_bytes(), "bytes are counted as they are");
      check(n_with_disk(harness, tier, longer) == n, "the cache has it, too");
    }
    Harness harness(windows, n_pages, kPages);
    Tier tier(folder.path(), harness);
    check(n_with_disk(harness, tier, longer) == n_kept, "after a restart the disk has it");
    check(n_with_disk(harness, tier, tokens) == std::min(n_kept, n - 1),
          "of the same text all but one token");
    longer[n / 2] += 1;
    // Of a window, what is before the text's end may have gone.
    const uint32_t half = n_with_disk(harness, tier, longer);
    check(half == n / 2 || (windows != std::vector<uint32_t>{0} && half < n / 2),
          "a text that parts in the middle has what is before");
    check(tier.disk.counts().n_damaged == 0, "all files are whole");
  }
}

// A part is in the cache, and the disk has more: the text needs no page twice.
void test_the_disk_goes_on_where_the_cache_ends(const std::vector<uint32_t>& windows,
                                                const std::vector<uint32_t>& n_pages) {
  const TemporaryFolder folder;
  const std::vector<uint32_t> tokens = tokens_of(1500, 1500, 1);
  {
    Harness harness(windows, n_pages, kPages);
    Tier tier(folder.path(), harness);
    harness.cache().sequences.end(run_text(harness, 1, tokens), kNone);
    tier.store(harness.cache());
  }
  for (const uint32_t n_there : {100u, 256u, 300u, 1000u}) {
    Harness harness(windows, n_pages, kPages);  // six pages, all of which this text needs
    Tier tier(folder.path(), harness);
    const std::vector<uint32_t> part = tokens_of(n_there, n_there, 1);
    harness.cache().sequences.end(run_text(harness, 1, part), kNone);
    check(n_with_disk(harness, tier, tokens) == 1499, "all but one token");
  }
  // What another text needs is not taken: the text waits for room, as without a disk.
  Harness harness(windows, n_pages, kPages);
  Tier tier(folder.path(), harness);
  const uint32_t busy = run_text(harness, 1, tokens_of(0, 400, 9));
  const auto from_disk = tier.fetched(tokens, 0);
  const Beginning begins = beginning(2, tokens, size_of(tokens), kNone);
  check(!harness.cache().sequences.begin(begins, &*from_disk), "four pages are too few");
  check(harness.holds_its_own(busy) && harness.counts_are_right(), "and nothing has changed");
  harness.cache().sequences.end(busy, kNone);
  const auto slot = harness.cache().sequences.begin(begins, &*from_disk);
  check(slot && harness.store()[*slot].n_done == 1499 && harness.holds_its_own(*slot),
        "then there is room");
}

void test_a_folder_has_no_more_than_it_may() {
  const TemporaryFolder folder;
  Harness harness(true, 40);
  Tier unlimited(folder.path(), harness);
  const uint64_t page = unlimited.disk.page_bytes(1, kPagePositions);
  check(contains(message_of<ArgumentError>([&] { Tier(folder.path(), harness, page / 2); }),
                 "one page of this model's cache takes"),
        "less than a page is refused");
  const uint64_t most = 5 * page + (1 << 13);  // and heads of files
  Tier tier(folder.path(), harness, most);
  std::vector<std::vector<uint32_t>> texts;
  for (uint32_t i = 0; i < 6; ++i) {
    texts.push_back(tokens_of(0, 512, i));
    harness.cache().sequences.end(run_text(harness, 1 + i, texts.back()), kNone);
    tier.store(harness.cache());
    check(folder.n_bytes() <= most && tier.disk.counts().n_bytes <= most, "it fits");
    check(tier.disk.find(kNoKey, texts[0], 511).n_positions == 511 || i > 3, "what is used stays");
    if (i <= 3) check(tier.fetched(texts[0], 0)->n_positions == 511, "and is used");
  }
  check(tier.disk.find(kNoKey, texts[1], 511).n_positions < 511, "what is not goes");
  check(tier.disk.find(kNoKey, texts[5], 511).n_positions == 511, "the last one is there");
  // A text that does not fit alone: its beginning does.
  harness.cache().sequences.end(run_text(harness, 99, tokens_of(0, 2000, 50)), kNone);
  tier.store(harness.cache());
  const uint32_t n = tier.disk.find(kNoKey, tokens_of(0, 2000, 50), 1999).n_positions;
  check(n >= 3 * kPagePositions && n <= 5 * kPagePositions && folder.n_bytes() <= most,
        "of a text that is too long its beginning, " + std::to_string(n));
}

// Texts that part and go on at random, of a cache that forgets most: what the disk gives is what its tokens stand for.
// Returns how many texts went on from the disk.
uint32_t test_texts_at_random(uint32_t seed, const std::vector<uint32_t>& windows,
                              const std::vector<uint32_t>& n_pages) {
  std::mt19937 random(seed);
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  const TemporaryFolder folder;
  uint32_t n_taken = 0;
  for (uint32_t process = 0; process < 4; ++process) {
    Harness harness(windows, n_pages, kPages);
    const Tier unlimited(folder.path(), harness);
    const uint64_t of_page = unlimited.disk.page_bytes(~uint64_t{0}, kPagePositions);
    Tier tier(folder.path(), harness, (3 + pick(8)) * of_page + (1 << 16));
    for (uint64_t id = 1; id < 25; ++id) {
      const std::vector<uint32_t> tokens = tokens_of(pick(8) * 150, 17 + pick(1400), pick(3));
      const Beginning begins = beginning(id, tokens, size_of(tokens), kNone);
      const auto from_disk =
          tier.fetched(tokens, harness.cache().prefixes.longest(begins).n_positions);
      const auto slot = harness.cache().sequences.begin(begins, from_disk ? &*from_disk : nullptr);
      check(slot.has_value(), "there is room");
      n_taken += harness.store()[*slot].n_from_disk > 0;
      check(harness.holds_its_own(*slot), "what it begins with is what its tokens stand for");
      const uint32_t n_first = std::max(harness.store()[*slot].n_done, 1 + pick(size_of(tokens)));
      check(harness.run(*slot, n_first), "it goes on");
      if (pick(2) == 0) static_cast<void>(harness.cache().sequences.checkpoint(*slot));
      check(harness.run(*slot, size_of(tokens)) && harness.holds_its_own(*slot), "to its end");
      check(harness.counts_are_right(), "pages are counted");
      if (pick(5) == 0)
        harness.cache().sequences.discard(*slot);
      else
        harness.cache().sequences.end(*slot, pick(4) == 0 ? pick(size_of(tokens)) : kNone);
      if (pick(3) > 0) tier.store(harness.cache());
      check(folder.n_bytes() <= tier.disk.counts().most_bytes, "no more than it may have");
    }
    check(tier.disk.counts().n_damaged == 0, "all files are whole: " + tier.disk.counts().problem);
  }
  return n_taken;
}

void test_texts_at_random() {
  uint32_t n_taken = 0, n_with_states = 0;
  for (uint32_t seed = 0; seed < (kShort ? 3 : 8); ++seed) {
    check(test_texts_at_random(seed, {0}, {kPages}) > 0, "of each seed some go on from the disk");
    check(test_texts_at_random(seed, {0, kOfStates}, {kPages, 4}) > 0, "behind states, too");
    // Where the first text had lost its first page's window before it was written, no other one sees that window: of
    // some seeds that is nearly all texts, which have their beginning in common.
    n_taken += test_texts_at_random(seed, {kWindow, 0}, {4, kPages});
    n_with_states += test_texts_at_random(seed, {kOfStates, 0, kWindow}, {5, kPages, 4});
  }
  check(n_taken > 0 && n_with_states > 0, "and with a window of most seeds");
}

// Every file cut at some places and with some bits changed: it is a miss, and never another number.
void test_damaged_files_are_misses(const std::vector<uint32_t>& windows,
                                   const std::vector<uint32_t>& n_pages) {
  const bool has_states = std::ranges::find(windows, kOfStates) != windows.end();
  const uint32_t n_files = has_states ? 3 : 2;
  const std::vector<uint32_t> tokens = tokens_of(300, 300, 1);
  std::mt19937 random(5);
  uint32_t n_noticed = 0;
  for (int i = 0; i < (kShort ? 40 : 200); ++i) {
    const TemporaryFolder folder;
    {
      Harness harness(windows, n_pages, kPages);
      Tier tier(folder.path(), harness);
      harness.cache().sequences.end(run_text(harness, 1, tokens), kNone);
      tier.store(harness.cache());
    }
    const auto files = folder.files();
    check(files.size() == n_files, "a page and a part of one, and states");
    const std::filesystem::path& file = files[random() % n_files];
    const auto size = static_cast<uint32_t>(std::filesystem::file_size(file));
    const bool is_in_head = random() % 2 == 0;
    const uint32_t place = static_cast<uint32_t>(random() % (is_in_head ? 1200 : size)) % size;
    Harness harness(windows, n_pages, kPages);
    const bool is_late = i % 3 == 0;  // after the folder was looked through
    std::optional<Tier> tier;
    if (is_late) tier.emplace(folder.path(), harness);
    if (random() % 2 == 0) {
      std::filesystem::resize_file(file, place);
    } else {
      const int opened = open(file.c_str(), O_RDWR);
      uint8_t byte = 0;
      check(pread(opened, &byte, 1, place) == 1, "a byte is there");
      byte ^= static_cast<uint8_t>(1 << random() % 8);
      check(pwrite(opened, &byte, 1, place) == 1, "and is another one now");
      close(opened);
    }
    if (!is_late) tier.emplace(folder.path(), harness);
    const uint32_t n = n_with_disk(harness, *tier, tokens_of(300, 340, 3));
    check(n == 0 || (n == 256 && !has_states), "what is in front of it holds");
    n_noticed += tier->disk.counts().n_damaged > 0;
    const DiskCounts counts = tier->disk.counts();
    check(counts.n_damaged == 0 || contains(counts.problem, "damaged"), "and it says so");
    check(folder.files().size() < n_files, "the file is removed");
  }
  check(n_noticed == (kShort ? 40u : 200u), "each is noticed");
}

void test_other_files_are_left_alone() {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name) {
    const int file = open((folder.path() / name).c_str(), O_CREAT | O_WRONLY, 0600);
    check(file >= 0 && ::write(file, "hello", 5) == 5, "it is written");
    close(file);
  };
  write("notes.txt");
  write("0123.run");
  write("0123456789abcdef0123456789abcdef.1.1.unfinished");
  Harness harness;
  Tier tier(folder.path(), harness);
  check(folder.files().size() == 3, "what another process may be writing stays for an hour");
  check(tier.disk.counts().n_runs == 0, "and none is taken for a run");
}

// Whoever deletes the folder loses what was there, and nothing that comes after.
void test_a_folder_that_is_deleted_is_made_again() {
  const TemporaryFolder folder;
  const std::filesystem::path inner = folder.path() / "a" / "b";
  Harness harness;
  Tier tier(inner, harness);
  harness.cache().sequences.end(run_text(harness, 1, tokens_of(0, 300, 1)), kNone);
  tier.store(harness.cache());
  std::filesystem::remove_all(folder.path() / "a");
  const std::vector<uint32_t> later = tokens_of(0, 300, 2);
  harness.cache().sequences.end(run_text(harness, 2, later), kNone);
  tier.store(harness.cache());
  check(tier.disk.counts().problem.empty(), "no problem: " + tier.disk.counts().problem);
  Harness another;
  Tier after(inner, another);
  check(n_with_disk(another, after, later) == 299, "and what came later is there");
}

// Pages of another form, in the same folder, are not taken over. (Models whose pages have the same form are told apart
// by the names of their folders.)
void test_runs_of_another_cache_are_refused(const std::vector<uint32_t>& windows,
                                            const std::vector<uint32_t>& others) {
  const auto of = [](const std::vector<uint32_t>& each) {
    const std::set<uint32_t> kinds(each.begin(), each.end());
    return Harness(each, std::vector<uint32_t>(kinds.size(), kPages), kPages);
  };
  const TemporaryFolder folder;
  const std::vector<uint32_t> tokens = tokens_of(300, 300, 1);
  {
    Harness harness = of(windows);
    Tier tier(folder.path(), harness);
    harness.cache().sequences.end(run_text(harness, 1, tokens), kNone);
    tier.store(harness.cache());
  }
  Harness harness = of(others);
  Tier tier(folder.path(), harness);
  check(tier.disk.counts().n_damaged > 0, "they have other pages");
  check(n_with_disk(harness, tier, tokens) == 0, "and are not used");
  check(folder.files().empty(), "but removed");
}

void test_two_share_a_folder(const std::vector<uint32_t>& windows,
                             const std::vector<uint32_t>& n_pages) {
  const TemporaryFolder folder;
  Harness one(windows, n_pages, 40), two(windows, n_pages, 40);
  Tier first(folder.path(), one), second(folder.path(), two);
  const std::vector<uint32_t> tokens = tokens_of(700, 700, 1);
  one.cache().sequences.end(run_text(one, 1, tokens), kNone);
  first.store(one.cache());
  // The other one looks again when it misses something, once a second.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (second.disk.find(kNoKey, tokens, 699).n_positions < 699 &&
         std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  check(n_with_disk(two, second, tokens) == 699, "what one wrote the other one finds");
  for (const auto& file : folder.files()) std::filesystem::remove(file);
  check(n_with_disk(two, second, tokens) == 0, "what somebody removed is a miss");
  check(second.disk.counts().n_damaged == 0, "and no damage");
  // Both write the same, at a time.
  const std::vector<uint32_t> other = tokens_of(600, 600, 4);
  one.cache().sequences.end(run_text(one, 2, other), kNone);
  two.cache().sequences.end(run_text(two, 2, other), kNone);
  std::thread beside([&] { first.store(one.cache()); });
  second.store(two.cache());
  beside.join();
  check(folder.files().size() == (first.disk.keeps_states() ? 4 : 3),
        "a run has one file, whoever writes it");
  check(n_with_disk(two, second, tokens_of(600, 640, 5)) == 600, "and holds");
}

// A process that is killed while it writes: whole files are left, and what they say holds.
void test_a_kill_leaves_whole_files(const std::vector<uint32_t>& windows,
                                    const std::vector<uint32_t>& n_pages) {
  const TemporaryFolder folder;
  std::mt19937 random(3);
  for (uint32_t i = 0; i < (kShort ? 5 : 30); ++i) {
    const pid_t child = fork();
    if (child == 0) {
      Harness harness(windows, n_pages, 40);
      Tier tier(folder.path(), harness);
      for (uint32_t text = 0; text < 100; ++text) {
        harness.cache().sequences.end(
            run_text(harness, text + 1, tokens_of(0, 600, 100 * i + text)), kNone);
        tier.store(harness.cache());
      }
      _exit(0);
    }
    // It has written something; then it is killed at any moment.
    const size_t n_before = folder.files().size();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (folder.files().size() < n_before + 2 && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 10'000));
    kill(child, SIGKILL);
    int status = 0;
    check(waitpid(child, &status, 0) == child, "it is over");
  }
  Harness harness(windows, n_pages, 40);
  Tier tier(folder.path(), harness);
  check(tier.disk.counts().n_damaged == 0, "no file is damaged: " + tier.disk.counts().problem);
  uint32_t n_there = 0;
  for (uint32_t i = 0; i < 30; ++i)
    n_there += n_with_disk(harness, tier, tokens_of(0, 600, 100 * i));
  check(n_there > 0, "and there are some");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_sha256();
  for (uint32_t seed = 0; seed < 20; ++seed) test_the_tree_finds_the_longest_beginning(seed);
  test_what_was_written_comes_back({0}, {kPages});
  test_what_was_written_comes_back({0, kWindow}, {kPages, 4});
  test_what_was_written_comes_back({1, 0, 700}, {3, kPages, 5});
  test_what_was_written_comes_back({kOfStates}, {4});
  test_what_was_written_comes_back({0, kOfStates}, {kPages, 4});
  test_what_was_written_comes_back({kOfStates, kWindow, 0}, {4, 4, kPages});
  test_the_disk_goes_on_where_the_cache_ends({0}, {kPages});
  test_the_disk_goes_on_where_the_cache_ends({kOfStates, 0}, {6, kPages});
  test_a_folder_has_no_more_than_it_may();
  test_texts_at_random();
  test_damaged_files_are_misses({0}, {kPages});
  test_damaged_files_are_misses({0, kOfStates}, {kPages, 4});
  test_other_files_are_left_alone();
  test_a_folder_that_is_deleted_is_made_again();
  test_runs_of_another_cache_are_refused({0, kWindow}, {0});
  test_runs_of_another_cache_are_refused({kOfStates, 0}, {0});
  test_runs_of_another_cache_are_refused({0}, {kOfStates, 0});
  test_two_share_a_folder({0}, {40});
  test_two_share_a_folder({0, kOfStates}, {40, 6});
  test_a_kill_leaves_whole_files({0}, {40});
  test_a_kill_leaves_whole_files({0, kOfStates}, {40, 6});
  return summary();
}
