// SequenceCache against what it promises: no page is lost or written by two, what a sequence takes
// over is what its own tokens would have written, and room is found as long as there is any.
#include <algorithm>
#include <array>
#include <random>

#include "unit/sequence_cache_harness.h"

namespace akunu::test {
namespace {

void test_lengths_of_prefixes() {
  for (const uint32_t n_shared : {1u, 255u, 256u, 257u, 511u, 512u, 513u}) {
    Harness harness;
    const std::vector<uint32_t> first = tokens_of(n_shared, n_shared + 20, 1);
    harness.cache().sequences.end(run_text(harness, 1, first), kNone);
    const std::vector<uint32_t> second = tokens_of(n_shared, n_shared + 40, 2);
    check(n_reused(harness, second) == n_shared, "the longest common prefix is taken over");
    check(n_reused(harness, first) == n_shared + 19, "of a whole prompt all but one token");
    const auto slot =
        harness.cache().sequences.begin(beginning(3, second, size_of(second), n_shared / 2));
    check(harness.store()[*slot].n_done == n_shared / 2, "no more than asked for");
    harness.cache().sequences.discard(*slot);
    harness.cache().prefixes.shorten(1, n_shared / 2);
    check(n_reused(harness, second) == n_shared / 2, "what was cut off is not found");
    harness.cache().prefixes.shorten(1, 0);
    check(n_reused(harness, second) == 0 && harness.pool().n_free() == kPages,
          "a text cut to nothing leaves nothing");
  }
}

void test_why_a_prefix_ends() {
  Harness harness;
  const auto why = [&](const Beginning& of) {
    const auto slot = harness.cache().sequences.begin(of);
    const PrefixEnd end = harness.store()[*slot].prefix_end;
    harness.cache().sequences.discard(*slot);
    return end;
  };
  const std::vector<uint32_t> first = tokens_of(300, 320, 1);
  check(why(beginning(2, first, size_of(first), kNone)) == PrefixEnd::unknown, "an empty cache");
  harness.cache().sequences.end(run_text(harness, 1, first), kNone);
  check(why(beginning(2, first, size_of(first), kNone)) == PrefixEnd::whole, "the same prompt");
  check(why(beginning(2, first, size_of(first), 7)) == PrefixEnd::outputs, "rows that are wanted");
  const std::vector<uint32_t> second = tokens_of(300, 340, 2);
  check(why(beginning(2, second, size_of(second), kNone)) == PrefixEnd::differs,
        "another token at 300");
  Beginning adapted = beginning(2, first, size_of(first), kNone);
  adapted.key.adapters = {{1, 0.5f}};
  check(why(adapted) == PrefixEnd::other_key, "the same prompt with an adapter");
  // Replies count once they are read as a prompt.
  std::vector<uint32_t> with_reply = tokens_of(40, 60, 3);
  const auto slot =
      harness.cache().sequences.begin(beginning(4, with_reply, size_of(with_reply), kNone));
  harness.store()[*slot].tokens.insert(harness.store()[*slot].tokens.end(), {901, 902, 903});
  harness.run(*slot, 63);
  harness.cache().sequences.end(*slot, kNone);
  with_reply.insert(with_reply.end(), {901, 902, 903, 904});
  check(why(beginning(5, with_reply, size_of(with_reply), kNone)) == PrefixEnd::not_computed,
        "tokens that were generated, and not read as a prompt");
  // Last: it takes the kept text's place, and is discarded itself.
  std::vector<uint32_t> longer = first;
  longer.insert(longer.end(), {5, 6, 7});
  check(why(beginning(2, longer, size_of(longer), kNone)) == PrefixEnd::ends,
        "a text that goes on");
}

// Of a text whose first pages have gone, behind what its window sees, no beginning is left.
void test_a_prefix_that_was_evicted_is_told() {
  constexpr uint32_t kSeen = 300;  // positions
  Harness harness({0, kSeen}, {kPages, 3}, kPages);
  const std::vector<uint32_t> first = tokens_of(1000, 1100, 1);
  harness.cache().sequences.end(run_text(harness, 1, first), kNone);
  const std::vector<uint32_t> alike = tokens_of(200, 320, 2);
  const auto slot = harness.cache().sequences.begin(beginning(2, alike, size_of(alike), kNone));
  check(harness.store()[*slot].n_done == 0, "the window's page of position 199 has gone");
  check(harness.store()[*slot].prefix_end == PrefixEnd::evicted, "and the text says so");
  harness.cache().sequences.discard(*slot);
}

void test_sharing_with_what_is_under_way() {
  Harness harness;
  const std::vector<uint32_t> tokens = tokens_of(600, 600, 0);
  const uint32_t one = run_text(harness, 1, tokens);
  const std::vector<uint32_t> longer = tokens_of(600, 700, 1);
  const uint32_t two = run_text(harness, 2, longer);
  check(harness.store()[two].pages[0][1] == harness.store()[one].pages[0][1] &&
            harness.store()[two].pages[0][2] != harness.store()[one].pages[0][2],
        "whole pages are shared, a partly filled one is copied");
  check(harness.n_needed() == 4, "two texts of three pages have four");
  check(harness.holds_its_own(one) && harness.holds_its_own(two), "neither writes to the other");
}

void test_pages_are_counted_by_who_has_them() {
  Harness harness;
  const auto has = [&](uint32_t needed, uint32_t spare) {
    const PageCounts counts = harness.cache().pages.count(0);
    return counts.needed == needed && counts.spare == spare;
  };
  check(has(0, 0), "of an empty cache all pages are free");
  const uint32_t one = run_text(harness, 1, tokens_of(600, 600, 0));
  check(has(3, 0), "600 positions are three pages");
  const uint32_t two = run_text(harness, 2, tokens_of(600, 700, 1));
  check(has(4, 0), "two whole pages are shared, and count once");
  harness.cache().sequences.end(one, kNone);
  check(has(3, 1), "the page that only the text that ended had is spare");
  harness.cache().sequences.end(two, kNone);
  check(has(0, 3), "of a text and its beginning the longer one is kept, and nobody needs it");
}

void test_pages_behind_a_window_are_spare() {
  Harness harness({256}, {6}, 6);
  const uint32_t slot = run_text(harness, 1, tokens_of(0, 1024, 1));
  const PageCounts counts = harness.cache().pages.count(0);
  check(counts.needed <= 2 && counts.needed + counts.spare == 4,
        "of four pages a row sees the last 256 positions");
  harness.cache().sequences.end(slot, kNone);
}

void test_a_text_that_goes_on_copies_nothing() {
  Harness harness(true, 3);
  harness.cache().sequences.end(run_text(harness, 1, tokens_of(700, 700, 0)), kNone);
  const uint32_t slot = run_text(harness, 2, tokens_of(700, 760, 0));
  check(harness.holds_its_own(slot) && harness.n_needed() == 3,
        "a pool that is full with a text has room for its continuation");
  harness.cache().sequences.end(slot, kNone);
  check(harness.cache().prefixes.size() == 1, "a text that was gone on from is not kept beside it");
  harness.cache().sequences.end(run_text(harness, 3, tokens_of(300, 768, 1)), kNone);
  check(n_reused(harness, tokens_of(700, 700, 0)) == 300, "the oldest gives way, from its end");
}

void test_least_recently_used_goes_first() {
  Harness harness(true, 3);
  for (uint32_t i = 0; i < 3; ++i)
    harness.cache().sequences.end(run_text(harness, i, tokens_of(0, 200, i)), kNone);
  check(n_reused(harness, tokens_of(0, 200, 0)) == 199, "all three are there");
  harness.cache().sequences.end(run_text(harness, 9, tokens_of(0, 200, 9)), kNone);
  check(n_reused(harness, tokens_of(0, 150, 0)) == 149, "what was used lately stays");
  check(n_reused(harness, tokens_of(0, 150, 1)) == 0, "what was not is gone");
}

void test_a_refusal_changes_nothing() {
  Harness harness(true, 3);
  harness.cache().sequences.end(run_text(harness, 1, tokens_of(300, 300, 0)), kNone);
  run_text(harness, 2, tokens_of(0, 10, 1));
  // One of its three pages could be shared, and one more be had.
  const std::vector<uint32_t> tokens = tokens_of(300, 600, 2);
  check(!harness.cache().sequences.begin(beginning(3, tokens, 600, kNone)),
        "without room a sequence does not begin");
  check(n_reused(harness, tokens_of(300, 301, 3)) == 300, "and takes nothing from anybody");
}

void test_nothing_is_kept_on_request() {
  Harness harness(false);
  harness.cache().sequences.end(run_text(harness, 1, tokens_of(300, 300, 0)), kNone);
  check(harness.pool().n_free() == kPages && n_reused(harness, tokens_of(300, 300, 0)) == 0,
        "without prefixes every page is free at the end");
}

void test_what_the_device_lacks_is_sent_once() {
  Harness harness;
  SequenceCache& cache = harness.cache();
  const uint32_t slot = *cache.sequences.begin(beginning(1, tokens_of(300, 300, 0), 300, kNone));
  check(cache.sequences.covered(slot) == 512, "two pages cover 512 positions");
  check(cache.sequences.has_unsent(slot),
        "a text that begins has pages that the device does not know");
  const std::span<const Update> first = cache.sequences.take_unsent(slot);
  check(first.size() == 1 && first[0].bytes.size() == 2 * sizeof(uint32_t) &&
            first[0].destination.offset == harness.store().page_table(0, slot).offset,
        "both are sent to the beginning of its page table");
  check(!cache.sequences.has_unsent(slot) && cache.sequences.take_unsent(slot).empty(),
        "but only once");
  check(cache.sequences.extend(slot, 512) && !cache.sequences.has_unsent(slot),
        "pages that are there are no news");
  check(cache.sequences.extend(slot, 513) && cache.sequences.covered(slot) == 768,
        "one position more is a page more");
  const std::span<const Update> second = cache.sequences.take_unsent(slot);
  check(second.size() == 1 && second[0].bytes.size() == sizeof(uint32_t) &&
            second[0].destination.offset == harness.store().page_table(0, slot, 2).offset,
        "which alone is sent");
  cache.sequences.end(slot, kNone);
  const uint32_t next = *cache.sequences.begin(beginning(2, tokens_of(0, 10, 1), 10, kNone));
  check(next == slot && cache.sequences.take_unsent(next).size() == 1,
        "a slot's next text is sent anew");
}

constexpr uint32_t kWindow = 300;  // with 64 rows in flight, two pages and one

void test_a_window_needs_as_much_however_long_the_text() {
  for (const bool keep : {true, false}) {
    Harness harness({0, kWindow}, {40, 3}, 40, keep);
    const std::vector<uint32_t> tokens = tokens_of(10'000, 10'000, 0);
    const auto slot = harness.cache().sequences.begin(beginning(1, tokens, size_of(tokens), kNone));
    check(slot && harness.store()[*slot].pages[0].size() == 40, "the other layers have it whole");
    check(harness.store()[*slot].pages[1].size() == 3, "the window has what it needs at first");
    check(harness.run(*slot, 10'000) && harness.holds_its_own(*slot), "the text runs to its end");
    check(harness.pool(1).n_free() < 2, "in three pages");
    const Sequence& sequence = harness.store()[*slot];
    const Entries last{9701 / kPagePositions, 40};  // the row at 10,000 sees 9,701 to 10,000
    for (uint32_t entry = 0; entry < 40; ++entry)
      check((sequence.pages[1][entry] != kNoPage) == last.contains(entry) ||
                (keep && entry == last.first - 1),
            "and holds what its window holds");
    harness.cache().sequences.end(*slot, kNone);
    check(n_reused(harness, tokens_of(10'000, 10'040, 1)) == (keep ? 10'000u : 0u),
          "where it ended, it can go on");
  }
}

void test_only_what_a_row_can_read_is_sent() {
  Harness harness({0, kWindow}, {40, 12}, 40);
  const uint32_t slot = run_text(harness, 1, tokens_of(5000, 5000, 0));
  harness.cache().sequences.end(slot, kNone);
  const auto next =
      harness.cache().sequences.begin(beginning(2, tokens_of(5000, 5010, 0), 5010, kNone));
  const std::span<const Update> updates = harness.cache().sequences.take_unsent(*next);
  check(updates.size() == 2 && updates[0].bytes.size() == 20 * sizeof(uint32_t),
        "of a text taken over, the pages of every position");
  check(updates[1].destination.offset == harness.store().page_table(1, *next, 18).offset &&
            updates[1].bytes.size() == 2 * sizeof(uint32_t),
        "of its window, those of positions 4,701 to 5,010");
}

// A text of 40 pages of which others share the beginning, in a pool of windows with some room to spare.
void test_what_was_shared_once_stays() {
  Harness harness({0, kWindow}, {130, 8}, 40);
  const auto text = [](uint32_t i) { return tokens_of(700, 5000, i); };
  const auto run = [&](uint64_t id, const std::vector<uint32_t>& tokens) {
    const auto slot =
        harness.cache().sequences.begin(beginning(id, tokens, size_of(tokens), kNone));
    const uint32_t n_reused = harness.store()[*slot].n_done;
    check(harness.holds_its_own(*slot) && harness.run(*slot, size_of(tokens)) &&
              harness.holds_its_own(*slot),
          "texts beside what is left of others are their own");
    harness.cache().sequences.end(*slot, kNone);
    return n_reused;
  };
  check(run(1, text(1)) == 0, "the first text computes everything");
  check(run(2, text(2)) == 0, "nobody knew that the place where they part would matter");
  check(run(3, text(3)) == 700, "now somebody does");
  check(run(4, text(4)) == 700, "and the place outlives texts of several windows");
}

void test_a_text_rewinds_as_far_as_its_window_is_there() {
  Harness harness({0, kWindow}, {40, 6}, 40);
  const auto began = tokens_of(3000, 3000, 0);
  auto whole = tokens_of(3000, 3700, 1);
  const auto slot = harness.cache().sequences.begin(beginning(1, began, 3000, kNone));
  check(harness.run(*slot, 3000), "there is room");
  harness.store()[*slot].tokens = whole;  // which it generated
  check(harness.run(*slot, 3700), "there is room");
  harness.cache().sequences.end(*slot, 3690);
  check(read_one(harness) == 3000, "what it generated is read from its prompt's end on");
  const auto other_from = [&](uint32_t place) {
    std::vector<uint32_t> tokens = whole;
    std::fill(tokens.begin() + place, tokens.end(), 7u);
    return tokens;
  };
  check(n_reused(harness, other_from(3600)) == 3600, "a text goes on some tokens before its end");
  check(n_reused(harness, other_from(3000)) == 3000, "where its prompt ended");
  check(n_reused(harness, other_from(2000)) == 0, "but not in the middle");
  check(n_reused(harness, whole) == 3690, "and where it was cut");
}

// A text of `n_prompt` tokens of a prompt that has generated the rest; it is under way.
uint32_t run_reply(Harness& harness, uint64_t id, const std::vector<uint32_t>& tokens,
                   uint32_t n_prompt) {
  const std::vector<uint32_t> prompt(tokens.begin(), tokens.begin() + n_prompt);
  const uint32_t slot = run_text(harness, id, prompt);
  harness.store()[slot].tokens = tokens;
  check(harness.run(slot, size_of(tokens)), "there is room");
  return slot;
}

void test_what_was_generated_counts_once_it_was_read() {
  for (const uint32_t n_prompt : {200u, 256u, 300u}) {
    Harness harness;
    const std::vector<uint32_t> text = tokens_of(700, 700, 0);
    const std::vector<uint32_t> next = tokens_of(650, 740, 1);  // a template wrote its end anew
    const uint32_t slot = run_reply(harness, 1, text, n_prompt);
    check(n_reused(harness, next) == n_prompt, "of a text under way its prompt can be had");
    harness.cache().sequences.end(slot, kNone);
    check(n_reused(harness, next) == n_prompt && harness.cache().prefixes.has_unread(),
          "likewise ended");
    check(harness.pool().n_free() == kPages - pages_for(n_prompt), "and only that takes pages");
    check(read_one(harness) == n_prompt, "the rest is read");
    check(n_reused(harness, next) == 650 && !harness.cache().prefixes.has_unread(),
          "now it counts");
    check(harness.cache().prefixes.size() == 1, "as one text");
    harness.cache().prefixes.shorten(1, 500);
    check(n_reused(harness, next) == 500, "which can be shortened by the name of the text");
  }
}

void test_what_is_unread_is_forgotten_in_time() {
  Harness harness(true, 4);
  const std::vector<uint32_t> text = tokens_of(500, 500, 0);
  harness.cache().sequences.end(run_reply(harness, 1, text, 300), 400);
  harness.cache().prefixes.shorten(1, 350);
  check(harness.cache().prefixes.take_unread()->tokens == tokens_of(350, 350, 0),
        "up to where it was cut");
  check(!harness.cache().prefixes.has_unread(), "once");
  harness.cache().sequences.end(run_reply(harness, 2, text, 300), kNone);
  harness.cache().sequences.end(run_text(harness, 3, tokens_of(500, 600, 1)), kNone);
  check(!harness.cache().prefixes.has_unread(), "when another one reads it as part of its prompt");
  harness.cache().sequences.end(run_reply(harness, 4, tokens_of(0, 500, 2), 300), kNone);
  check(harness.cache().prefixes.has_unread(), "it waits for a time without work");
  harness.cache().sequences.end(run_text(harness, 5, tokens_of(0, 1000, 3)), kNone);
  check(!harness.cache().prefixes.has_unread(), "when its pages go");
  harness.cache().sequences.end(run_reply(harness, 6, text, 300), 300);
  check(!harness.cache().prefixes.has_unread(), "when it was cut at its prompt");
}

// Several replies to one prompt, of which the last ones are more likely to be gone on from.
void test_each_reply_to_a_prompt_is_read() {
  Harness harness(true, 12);
  std::vector<std::vector<uint32_t>> texts;
  for (uint32_t i = 0; i < 3; ++i) {
    texts.push_back(tokens_of(300, 500, i));
    harness.cache().sequences.end(run_reply(harness, i, texts.back(), 300), kNone);
  }
  for (uint32_t i = 3; i-- > 0;) {
    check(read_one(harness) == 300, "from the prompt on");
    check(n_reused(harness, texts[i]) == 499, "the last one first");
  }
  check(!harness.cache().prefixes.has_unread(), "each once");
}

// However a text with images ends, it is not stored: each process numbers images anew.
void test_the_disk_gets_no_text_with_images() {
  for (const bool is_aside : {false, true}) {
    Harness harness;
    std::vector<uint32_t> text = tokens_of(0, 40, 1);
    harness.cache().sequences.end(run_text(harness, 1, text), kNone);
    check(harness.cache().runs.next() != nullptr, "a text is for the disk");
    harness.cache().runs.set_stored(1);
    std::fill(text.begin() + 20, text.begin() + 30, kFirstNoToken + 1);
    const uint32_t slot = run_text(harness, 2, text);
    if (is_aside)
      harness.cache().sequences.set_aside(slot);
    else
      harness.cache().sequences.end(slot, kNone);
    check(harness.cache().prefixes.size() == 2 && harness.cache().runs.next() == nullptr,
          "with an image it is not");
  }
}

void test_a_text_set_aside_goes_on_with_its_own() {
  Harness harness;
  const std::vector<uint32_t> text = tokens_of(700, 700, 0);
  harness.cache().sequences.set_aside(run_reply(harness, 1, text, 300));
  check(!harness.cache().prefixes.has_unread(), "a text that is not over is not read");
  check(n_reused(harness, tokens_of(700, 740, 1)) == 300, "others take over its prompt");
  const auto longer = tokens_of(701, 701, 0);  // with the token that was chosen last
  const auto slot = harness.cache().sequences.begin(beginning(1, longer, 701, kNone, 300));
  check(harness.store()[*slot].n_done == 700 && harness.holds_its_own(*slot),
        "it has what it generated");
  harness.cache().sequences.end(*slot, kNone);
  check(read_one(harness) == 300, "until it is over");
  // What another has read as a prompt is not what it would have generated.
  const auto other = harness.cache().sequences.begin(beginning(2, text, 701, kNone, 400));
  check(harness.store()[*other].n_done == 400 && harness.holds_its_own(*other),
        "a text takes over no more than its prompt from a longer one");
}

void test_only_the_same_key_is_taken_over() {
  Harness harness;
  const std::vector<uint32_t> tokens = tokens_of(300, 300, 0);
  harness.cache().sequences.end(run_text(harness, 1, tokens), kNone);
  Beginning other = beginning(2, tokens, 300, kNone);
  for (const PrefixKey& key : {PrefixKey{.format = Format::f32, .adapters = {}},
                               PrefixKey{.format = Format::f16, .adapters = {{0, 1}}}}) {
    other.key = key;
    const auto slot = harness.cache().sequences.begin(other);
    check(harness.store()[*slot].n_done == 0, "another format or adapter is another text");
    check(harness.run(*slot, 300), "there is room");
    harness.cache().sequences.end(*slot, kNone);
  }
  check(harness.cache().prefixes.size() == 3 && n_reused(harness, tokens) == 299,
        "and kept beside it");
}

// Of kept texts whose last window had to go nothing is left that cannot be used.
void test_what_cannot_be_continued_goes_whole() {
  Harness harness({0, kWindow}, {40, 3}, 20);
  harness.cache().sequences.end(run_text(harness, 1, tokens_of(0, 2000, 1)), kNone);
  check(harness.pool(0).n_free() == 32 && harness.cache().prefixes.size() == 1, "a text is kept");
  harness.cache().sequences.end(run_text(harness, 2, tokens_of(0, 2000, 2)), kNone);
  check(harness.cache().prefixes.size() == 1 && harness.pool(0).n_free() == 32,
        "another takes its window, and with it what it was worth");
}

uint32_t n_resumed_in_all = 0, n_read_in_all = 0, n_restored_in_all = 0;

void test_what_was_saved_comes_back(const std::vector<uint32_t>& windows,
                                    const std::vector<uint32_t>& n_pages, bool keep) {
  for (const uint32_t n : {1u, 63u, 255u, 256u, 257u, 300u, 512u, 777u, 1200u}) {
    const std::vector<uint32_t> tokens = tokens_of(n, n, 0), longer = tokens_of(n, n + 50, 1);
    Harness from(windows, n_pages, kPages, keep), to(windows, n_pages, kPages);
    const SavedPositions saved = saved_of(from, run_text(from, 1, tokens));
    const uint32_t n_restored = to.cache().copies.restore(1, {}, tokens, saved);
    check(n_restored == n, "all of it comes back");
    check(to.counts_are_right() && to.n_needed() == 0, "nobody needs it");
    check(n_reused(to, tokens) == n - 1, "who wants the last row again has all others");
    check(to.cache().copies.restore(2, {}, tokens, saved) == n && to.cache().prefixes.size() == 1,
          "the same once more is not kept twice");
    check(n_reused(to, longer) == n, "who goes on from there takes it over");
  }
}

void test_what_comes_back_takes_spare_pages_only() {
  Harness from, to;
  const std::vector<uint32_t> tokens = tokens_of(0, 600, 1);
  const SavedPositions saved = saved_of(from, run_text(from, 1, tokens));
  const uint32_t busy = run_text(to, 1, tokens_of(0, 1000, 2));
  check(to.cache().copies.restore(2, {}, tokens, saved) == 512,
        "two spare pages hold as many of it");
  check(to.counts_are_right() && to.pool().n_free() == 0 && to.holds_its_own(busy),
        "nobody else has lost one");
  to.cache().sequences.end(busy, kNone);
  check(n_reused(to, tokens) == 512, "its beginning is there");
  check(to.cache().copies.restore(2, {}, tokens, saved) == 600 && n_reused(to, tokens) == 599,
        "what ended gives way");
  to.cache().sequences.end(run_text(to, 3, tokens_of(0, 1536, 4)), kNone);
  check(to.cache().copies.restore(2, {}, tokens, saved) == 600 && n_reused(to, tokens) == 599,
        "prefixes that fill the cache, too");
  Harness full;
  run_text(full, 4, tokens_of(0, 1536, 6));
  check(full.cache().copies.restore(2, {}, tokens, saved) == 0, "without a page there is nothing");
  Harness keeps_nothing(false);
  check(keeps_nothing.cache().copies.restore(1, {}, tokens, saved) == 0,
        "without a cache of prefixes");
}

// Who has to make room for nothing keeps what there is.
void test_a_beginning_without_its_window_evicts_nobody() {
  Harness from({0, 300}, {kPages, kPages}, kPages), to({0, 300}, {kPages, 3}, kPages);
  const std::vector<uint32_t> tokens = tokens_of(0, 1200, 1);
  const SavedPositions saved = saved_of(from, run_text(from, 1, tokens));
  check(saved.first_entries == std::vector<uint32_t>{0, 2}, "of the window three pages");
  const std::vector<uint32_t> spare = tokens_of(0, 200, 2);
  to.cache().sequences.end(run_text(to, 2, spare), kNone);
  const uint32_t busy = run_text(to, 3, tokens_of(0, 300, 3));
  check(to.cache().copies.restore(4, {}, tokens, saved) == 0, "there is one page for the window");
  check(n_reused(to, spare) == 199, "so nothing has gone");
  to.cache().sequences.end(busy, kNone);
  check(to.cache().copies.restore(4, {}, tokens, saved) == 1200 && n_reused(to, tokens) == 1199,
        "all of it where three are spare");
}

void test_what_comes_back_shares_what_is_there() {
  Harness from, to;
  const std::vector<uint32_t> tokens = tokens_of(550, 600, 1), longer = tokens_of(550, 1000, 2);
  const SavedPositions saved = saved_of(from, run_text(from, 1, tokens));
  from.cache().sequences.end(0, 0);
  const SavedPositions saved_longer = saved_of(from, run_text(from, 2, longer));
  const uint32_t busy = run_text(to, 1, longer);
  check(to.cache().copies.restore(2, {}, tokens, saved) == 600,
        "there are two pages, and two are shared");
  check(to.pool().n_free() == 1 && to.counts_are_right(), "so one is taken");
  check(n_reused(to, tokens) == 599 && to.holds_its_own(busy), "both have their own");
  to.cache().sequences.end(busy, kNone);
  // A full cache: what it shares must not go while it looks for the rest.
  Harness full;
  full.cache().sequences.end(run_text(full, 1, tokens), kNone);
  full.cache().sequences.end(run_text(full, 2, tokens_of(0, 768, 3)), kNone);
  check(full.pool().n_free() == 0, "two texts of three pages each");
  check(full.cache().copies.restore(3, {}, longer, saved_longer) == 1000 && full.counts_are_right(),
        "two pages are shared, two taken");
  check(n_reused(full, longer) == 999, "and hold what they must");
}

// Texts from a family with prefixes around the ends of pages come, grow, end, and are given up.
void test_at_random(uint32_t seed, const std::vector<uint32_t>& windows,
                    const std::vector<uint32_t>& n_pages) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  Harness harness(windows, n_pages, kPages, seed % 4 != 0);
  Harness saving(windows, std::vector<uint32_t>(n_pages.size(), kPages), kPages);
  const std::array<uint32_t, 8> edges{1, 100, 255, 256, 257, 300, 512, 600};
  bool well = true;
  uint32_t n_began = 0, n_refused = 0, n_over = 0, n_resumed = 0, n_read = 0;
  struct SetAside {
    uint64_t id;
    std::vector<uint32_t> tokens;
    uint32_t n_prompt;
  };
  std::optional<SetAside> aside;  // the last one
  const auto set_aside = [&](uint32_t slot) {
    const Sequence& sequence = harness.store()[slot];
    aside = {sequence.id, sequence.tokens, sequence.n_prompt};
    harness.cache().sequences.set_aside(slot);
  };
  for (uint64_t id = 1; id < 400; ++id) {
    const uint32_t slot = below(kSlots);
    if (!harness.store().is_used(slot) && aside && below(2)) {
      const auto found = harness.cache().sequences.begin(
          beginning(aside->id, aside->tokens, size_of(aside->tokens), kNone, aside->n_prompt));
      if (found) {
        n_resumed += harness.store()[*found].n_done > aside->n_prompt;
        well = well && harness.holds_its_own(*found);
        aside.reset();
      }
      continue;
    }
    if (!harness.store().is_used(slot) && below(3) == 0) {
      n_read += read_one(harness) != kNone;
      continue;
    }
    if (!harness.store().is_used(slot) && below(5) == 0) {
      const uint32_t shared = edges[below(8)];
      const auto tokens = tokens_of(shared, shared + 1 + below(300), below(3));
      const uint32_t from = run_text(saving, id, tokens);
      const SavedPositions saved = saved_of(saving, from);
      saving.cache().sequences.discard(from);
      const uint32_t n = harness.cache().copies.restore(id, {}, tokens, saved);
      n_restored_in_all += n > 0;
      well = well && n <= tokens.size() && harness.counts_are_right();
      continue;
    }
    if (!harness.store().is_used(slot)) {
      const uint32_t shared = edges[below(8)];
      const auto tokens = tokens_of(shared, shared + 1 + below(300), below(3));
      const uint32_t n_positions = std::min(size_of(tokens) + below(2), kPages * kPagePositions);
      bool may_be_refused = false;
      for (uint32_t group = 0; group < harness.n_groups(); ++group)
        may_be_refused |=
            harness.n_needed(group) + harness.shape(group).most_pages(n_positions, kRows) >
            harness.pool(group).n_pages();
      const auto found = harness.cache().sequences.begin(beginning(id, tokens, n_positions, kNone));
      if (!found) {
        ++n_refused;
        well = well && may_be_refused;
        continue;
      }
      ++n_began;
      n_over += harness.store()[*found].n_done;
      well =
          well && harness.store()[*found].n_done < tokens.size() && harness.holds_its_own(*found);
      if (!harness.run(*found, below(4) ? size_of(tokens) : size_of(tokens) / 2)) {
        well = well && harness.is_full();
        set_aside(*found);
      }
      continue;
    }
    Sequence& sequence = harness.store()[slot];
    const uint32_t what = below(8);
    if (what < 5) {  // it goes on
      const uint32_t n = sequence.n_done + 1 + below(90);
      if (n > kPages * kPagePositions) continue;
      while (sequence.tokens.size() < n) sequence.tokens.push_back(5000 + below(3));
      if (!harness.run(slot, n)) {
        well = well && harness.is_full();
        set_aside(slot);
        continue;
      }
    } else if (what == 5) {
      harness.cache().sequences.discard(slot);
    } else {
      harness.cache().sequences.end(slot, below(2) ? kNone : below(700));
      if (what == 7) harness.cache().prefixes.shorten(id - 1 - below(20), below(500));
    }
    for (uint32_t each = 0; each < kSlots; ++each)
      if (harness.store().is_used(each) && below(4) == 0)
        well = well && harness.holds_its_own(each);
    well = well && harness.counts_are_right();
  }
  for (uint32_t slot = 0; slot < kSlots; ++slot)
    if (harness.store().is_used(slot)) {
      well = well && harness.holds_its_own(slot);
      harness.cache().sequences.end(slot, kNone);
    }
  check(well, "at random, seed " + std::to_string(seed));
  const bool keeps = seed % 4 != 0;
  check(n_began > 20 && n_refused > 0 && (!keeps || n_over > 1000), "much happened");
  n_resumed_in_all += n_resumed;
  n_read_in_all += n_read;
  const std::vector<uint32_t> whole = tokens_of(0, kPages * kPagePositions, 7);
  const auto slot = harness.cache().sequences.begin(beginning(999, whole, size_of(whole), kNone));
  check(slot && harness.store()[*slot].n_done == 0 && harness.run(*slot, size_of(whole)),
        "in the end one text can have every page");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_lengths_of_prefixes();
  test_why_a_prefix_ends();
  test_a_prefix_that_was_evicted_is_told();
  test_sharing_with_what_is_under_way();
  test_pages_are_counted_by_who_has_them();
  test_pages_behind_a_window_are_spare();
  test_a_text_that_goes_on_copies_nothing();
  test_least_recently_used_goes_first();
  test_a_refusal_changes_nothing();
  test_nothing_is_kept_on_request();
  test_what_the_device_lacks_is_sent_once();
  test_a_window_needs_as_much_however_long_the_text();
  test_only_what_a_row_can_read_is_sent();
  test_what_was_saved_comes_back({0}, {kPages}, true);
  test_what_was_saved_comes_back({0, kWindow}, {kPages, 4}, true);
  test_what_was_saved_comes_back({1, 0, 700}, {3, kPages, 5}, true);
  test_what_was_saved_comes_back({0}, {kPages}, false);
  test_what_comes_back_takes_spare_pages_only();
  test_a_beginning_without_its_window_evicts_nobody();
  test_what_comes_back_shares_what_is_there();
  test_what_was_shared_once_stays();
  test_a_text_rewinds_as_far_as_its_window_is_there();
  test_what_was_generated_counts_once_it_was_read();
  test_what_is_unread_is_forgotten_in_time();
  test_each_reply_to_a_prompt_is_read();
  test_the_disk_gets_no_text_with_images();
  test_a_text_set_aside_goes_on_with_its_own();
  test_only_the_same_key_is_taken_over();
  test_what_cannot_be_continued_goes_whole();
  for (uint32_t seed = 0; seed < 40; ++seed) {
    test_at_random(seed, {0}, {kPages});
    test_at_random(seed, {0, kWindow}, {kPages, 4});
    test_at_random(seed, {kWindow}, {3});
    test_at_random(seed, {1, 0, 700}, {3, kPages, 5});
  }
  check(n_resumed_in_all > 100 && n_read_in_all > 100 && n_restored_in_all > 100,
        "texts went on, were read, and came back");
  return summary();
}
