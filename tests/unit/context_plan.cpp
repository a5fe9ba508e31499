// How long a context is, and how many pages the cache has: decided from numbers alone, without taking any memory.
#include "inference/context_plan.h"

#include "core/error.h"
#include "unit/check.h"

namespace akunu::test {
namespace {

constexpr uint64_t kMiB = 1024 * 1024, kGiB = 1024 * kMiB;
constexpr uint32_t kPage = 256;  // positions
using Pages = std::vector<uint32_t>;

// Layers that keep everything, and layers of a window, whose pages of 2 * 256 positions take so much.
GroupShape group_of(CacheKind kind, uint64_t page_bytes) {
  return {kind, Format::f16, {{0, 1, page_bytes / 2 / kPage, page_bytes / 2 / kPage}}};
}

// A page of the cache takes 1 MiB. The 256 positions of a page also need token logs and page tables of 8
// texts, and updates of these that are queued: 16,704 bytes, 1.6 % of the page. What does not
// depend on the context: of each of 8 texts 27 KiB for records, option lists and logprobs, of each of 8 queued
// updates 16 KiB, since nobody sends logprobs: together 0.34 MiB.
ContextNeeds needs_of(uint32_t trained_context) {
  return {.trained_context = trained_context,
          .groups = {group_of(FullCache{}, kMiB)},
          .fixed = 10 * kMiB,
          .mapped = 90 * kMiB,
          .max_texts = 8};
}

MemoryLeft memory(uint64_t bytes) { return {.memory = bytes, .address_space = std::nullopt}; }

void test_what_fits_is_taken_whole() {
  const ContextPlan plan = plan_context({}, needs_of(1000), memory(kGiB));
  check(plan.context == 1000 && plan.n_pages == Pages{4} && plan.notes.empty(), "a whole context");
}

void test_what_does_not_fit_is_reduced_to_what_does() {
  // 3 GiB less 100.34 MiB: 2,971.66 MiB, by 1.01593 MiB a page.
  for (const uint32_t trained : {100'000'000u, 2'147'483'647u}) {
    const ContextPlan plan = plan_context({}, needs_of(trained), memory(3 * kGiB));
    check(plan.context == 2925 * kPage && plan.n_pages == Pages{2925},
          "as many pages as fit: " + std::to_string(plan.n_pages[0]));
    check(plan.notes.size() == 1 &&
              contains(plan.notes[0], "context reduced from " + std::to_string(trained) +
                                          " to 748800 positions: a context of"),
          plan.notes.empty() ? "no note" : plan.notes[0]);
    check(contains(plan.notes[0], "3072.0 MiB of memory are available"), plan.notes[0]);
  }
}

void test_unknown_memory_bounds_nothing() {
  const ContextPlan plan = plan_context({}, needs_of(1'000'000), {});
  check(plan.context == 1'000'000 && plan.notes.empty(), "the whole context");
  const std::string small = message_of<OutOfMemoryError>(
      [] { plan_context({.context = {}, .kv_memory = 1}, needs_of(1000), {}); });
  check(contains(small, "how much memory is available is not known, and kv_memory allows 0.0 MiB"),
        small);
}

void test_a_limit_of_the_process_counts_without_the_file() {
  // The file is mapped: its 90 MiB are gone from the address space already. An eighth is left to the rest of the process.
  const MemoryLeft left{.memory = 3 * kGiB, .address_space = 80 * kMiB};
  const ContextPlan plan = plan_context({}, needs_of(100'000), left);
  check(plan.n_pages == Pages{58},
        "70 MiB less 10.34, by 1.0159: " + std::to_string(plan.n_pages[0]));
  check(plan.notes.size() == 1 && contains(plan.notes[0],
                                           "the process may take 80.0 MiB more (ulimit -v or -d), "
                                           "an eighth of which is left to"),
        plan.notes.empty() ? "no note" : plan.notes[0]);
  const ContextPlan asked =
      plan_context({.context = 60 * kPage, .kv_memory = std::nullopt}, needs_of(100'000), left);
  check(asked.context == 60 * kPage, "what is asked for may take the last eighth");
}

void test_what_is_asked_for_is_refused_and_not_reduced() {
  const std::string long_context = message_of<OutOfMemoryError>([] {
    plan_context({.context = 300 * kPage, .kv_memory = std::nullopt}, needs_of(100'000),
                 memory(200 * kMiB));
  });
  check(contains(long_context,
                 "a context of 76800 positions needs 300.0 MiB of cache, besides 105.1 MiB for "
                 "weights and scratch; "
                 "200.0 MiB of memory are available; ask for a shorter context"),
        long_context);
  const std::string large_cache = message_of<OutOfMemoryError>(
      [] { plan_context({.context = kPage, .kv_memory = kGiB}, needs_of(100'000), memory(kGiB)); });
  check(contains(large_cache, "kv_memory is 1024.0 MiB; 923.6 MiB are available for the cache"),
        large_cache);
  const std::string nothing =
      message_of<OutOfMemoryError>([] { plan_context({}, needs_of(1000), memory(100 * kMiB)); });
  check(contains(nothing, "no memory for a cache: one page of 256 positions needs 1.0 MiB"),
        nothing);
}

void test_kv_memory_pays_for_several_texts() {
  const ContextPlan several =
      plan_context({.context = kPage, .kv_memory = 5 * kMiB}, needs_of(1000), memory(kGiB));
  check(several.context == kPage && several.n_pages == Pages{5}, "five pages, of one text each");
  const ContextPlan most =
      plan_context({.context = kPage, .kv_memory = 50 * kMiB}, needs_of(1000), memory(kGiB));
  check(most.n_pages == Pages{8}, "never more than all texts can use");
  const ContextPlan part =
      plan_context({.context = {}, .kv_memory = 3 * kMiB}, needs_of(1000), memory(kGiB));
  check(part.context == 3 * kPage && contains(part.notes.at(0), "kv_memory allows no more"),
        "or a part of a context");
}

// Of 18 layers three see everything and the others 512 positions, as in a small Gemma 3. With 512 rows
// in flight a window needs 4 pages and one; two texts beside it, of one row each, 2 and one.
ContextNeeds needs_of_windows(uint32_t trained_context) {
  ContextNeeds needs = needs_of(trained_context);
  needs.groups = {group_of(WindowCache{512}, 15 * kMiB), group_of(FullCache{}, 3 * kMiB)};
  needs.n_rows = 512;
  return needs;
}

void test_windows_need_as_much_however_long_the_text() {
  const ContextPlan plan = plan_context({}, needs_of_windows(32768), memory(8 * kGiB));
  check(plan.context == 32768 && plan.n_pages == Pages{11, 128}, "a window's pages do not grow");
  // 11 * 15 + 128 * 3 MiB are 549; layers that see everything would have 128 * 18 = 2,304.
  const ContextPlan longer = plan_context({}, needs_of_windows(4 * 32768), memory(8 * kGiB));
  check(longer.n_pages == Pages{11, 512}, "with the text");
  const ContextPlan small = plan_context({}, needs_of_windows(600), memory(8 * kGiB));
  check(small.n_pages == Pages{3, 3}, "and a short text has no more pages than positions");
}

void test_windows_shrink_to_one_text_before_the_context_does() {
  // 384 MiB of full layers and 5 * 15 of windows; with what is besides, some MiB more.
  const ContextPlan tight = plan_context({}, needs_of_windows(32768), memory(kMiB * (459 + 104)));
  check(tight.context == 32768 && tight.n_pages == Pages{5, 128}, "room for one text");
  const ContextPlan more = plan_context({}, needs_of_windows(32768), memory(kMiB * (459 + 134)));
  check(more.n_pages == Pages{7, 128}, "30 MiB more are two pages more");
  const ContextPlan less = plan_context({}, needs_of_windows(32768), memory(kMiB * (439 + 104)));
  check(less.n_pages[0] == 5 && less.n_pages[1] < 128 && less.notes.size() == 1 &&
            contains(less.notes[0], "needs 459.0 MiB of cache"),
        "then the context does, and the note sums the groups");
}

void test_kv_memory_is_shared_between_groups() {
  const auto plan = [](uint64_t bytes) {
    return plan_context({.context = 32768, .kv_memory = bytes}, needs_of_windows(32768),
                        memory(8 * kGiB));
  };
  check(plan(459 * kMiB).n_pages == Pages{5, 128}, "one text");
  check(plan((384 + 11 * 15) * kMiB).n_pages == Pages{11, 128}, "one, and two beside it");
  check(plan(2 * (384 + 11 * 15) * kMiB).n_pages == Pages{22, 256}, "twice as much of each");
  const std::string refusal = message_of<OutOfMemoryError>([&] { plan(458 * kMiB); });
  check(contains(refusal, "needs 459.0 MiB of cache"), refusal);
}

void test_what_does_not_grow_is_there_for_three_texts() {
  ContextNeeds needs = needs_of(448);
  needs.groups = {group_of(FullCache{}, kMiB), group_of(CrossCache{.n_positions = 1500}, kMiB),
                  group_of(StateCache{.n_checkpoints = 3}, kMiB)};
  check(plan_context({}, needs, memory(kGiB)).n_pages == Pages{2, 6, 12},
        "six pages of an encoder for one, and four states each");
  needs.usual_contexts = 3;
  check(plan_context({}, needs, memory(kGiB)).n_pages == Pages{6, 18, 36}, "or for more of them");
  needs.branches = 4;
  check(plan_context({}, needs, memory(kGiB)).n_pages == Pages{18, 18, 48},
        "branches have a page each, and one encoder's pages");
  needs.branches = 0;
  needs.usual_contexts = 1;
  // Besides the cache, 100 MiB and some KiB.
  check(plan_context({}, needs, memory(113 * kMiB)).n_pages == Pages{2, 6, 4}, "or for one");
}

// The shape of Qwen3.5-0.8B. 18 layers have the gated delta rule: 16 heads with a state of 128 x 128 numbers each, and
// a convolution of width 4 over 6,144 channels. 6 layers have attention: 2 key/value heads of 256 numbers.
void test_states_take_as_much_however_long_the_text() {
  ArchDescriptor arch;
  for (uint32_t i = 0; i < 24; ++i) {
    LayerDescriptor layer;
    if (i % 4 == 3)
      layer.mixer = Attention{.n_kv_heads = 2, .head_dim = 256};
    else
      layer.mixer = DeltaRule{
          .n_key_heads = 16, .n_value_heads = 16, .key_dim = 128, .value_dim = 128, .width = 4};
    arch.layers.push_back(layer);
  }
  ContextNeeds needs = needs_of(1u << 18);
  needs.groups = cache_groups(arch, Format::f16);
  needs.n_rows = 512;
  check(needs.groups.size() == 2 && needs.groups[0].has_states(), "a layer is of one group");
  // Two states of each head, and the inputs of four positions.
  const uint64_t of_layer = 2 * 16 * 128 * 128 * 4 + 4 * 6144 * 4;
  check(needs.groups[0].page_bytes() == 18 * of_layer && 18 * of_layer == 39'518'208,
        "37.7 MiB of a text");
  check(needs.groups[1].page_bytes() == 6 * 2 * 2 * 256 * kPage * 2, "and 12 KiB of a position");
  const ContextPlan plan =
      plan_context({.context = 32768, .kv_memory = std::nullopt}, needs, memory(8 * kGiB));
  check(plan.n_pages == Pages{9, 128}, "three texts with two places to go back to, 32 K positions");
  const ContextPlan tight = plan_context({.context = 32768, .kv_memory = std::nullopt}, needs,
                                         memory(kMiB * (384 + 240)));
  check(tight.n_pages == Pages{3, 128}, "or one");
}

void test_mebibytes_of_any_number() {
  check(mebibytes(0) == "0.0 MiB" && mebibytes(9437184) == "9.0 MiB", "whole ones");
  check(mebibytes(kMiB - 1) == "1.0 MiB" && mebibytes(kMiB / 20) == "0.0 MiB", "rounded tenths");
  check(mebibytes(UINT64_MAX) == "17592186044416.0 MiB", mebibytes(UINT64_MAX));
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_what_fits_is_taken_whole();
  test_what_does_not_fit_is_reduced_to_what_does();
  test_unknown_memory_bounds_nothing();
  test_a_limit_of_the_process_counts_without_the_file();
  test_what_is_asked_for_is_refused_and_not_reduced();
  test_kv_memory_pays_for_several_texts();
  test_windows_need_as_much_however_long_the_text();
  test_windows_shrink_to_one_text_before_the_context_does();
  test_kv_memory_is_shared_between_groups();
  test_what_does_not_grow_is_there_for_three_texts();
  test_states_take_as_much_however_long_the_text();
  test_mebibytes_of_any_number();
  return summary();
}
