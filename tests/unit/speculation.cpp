// Drafts: what is proposed, what it may cost where it never holds, and what it wins where it does.
#include "inference/speculation.h"

#include <algorithm>
#include <functional>
#include <random>

#include "unit/check.h"

namespace akunu::test {
namespace {

std::vector<uint32_t> drafted(const Speculator& speculator, size_t n) {
  std::vector<uint32_t> found(n);
  speculator.draft(found);
  return found;
}

void test_what_followed_is_drafted() {
  const std::vector<uint32_t> text{7, 1, 2, 3, 4, 5, 6, 9, 1, 2};
  Speculator speculator(text, 4, 100);
  check(!speculator.has_draft(), "two tokens that were said before are no match");
  speculator.add(std::vector<uint32_t>{3});
  check(speculator.has_draft() && drafted(speculator, 3) == std::vector<uint32_t>{4, 5, 6},
        "behind three of them is what followed");
  check(drafted(speculator, 10) == std::vector<uint32_t>{4, 5, 6, 9, 1, 2, 3, 4, 5, 6},
        "and where that ends, it begins again");
  speculator.add(std::vector<uint32_t>{4, 5});
  check(drafted(speculator, 2) == std::vector<uint32_t>{6, 9}, "it goes on where it was");
  speculator.add(std::vector<uint32_t>{8});
  check(!speculator.has_draft(), "what was never said is followed by nothing");
}

void test_a_match_that_goes_on_is_not_left_for_a_later_one() {
  // The run 1 2 3 was last in another place; the text follows the first.
  Speculator speculator(std::vector<uint32_t>{5, 6, 7, 1, 2, 3, 4, 9, 1, 2, 3, 8, 5, 6, 7}, 4, 100);
  speculator.add(std::vector<uint32_t>{1, 2, 3});
  check(drafted(speculator, 1) == std::vector<uint32_t>{4}, "the longer match counts");
}

void test_costs_are_known_between_what_was_measured() {
  RowCosts costs;
  check(costs.of(1) == 0, "nothing is known");
  costs.took(1, 1.0);
  check(costs.of(1) == 1.0 && costs.of(3) > 1.0, "more rows cost more");
  costs.took(5, 2.0);
  check(costs.of(3) == 1.5 && costs.of(5) == 2.0, "between two numbers in proportion");
  costs.took(5, 1000.0);
  check(costs.of(5) < 5.0, "one interruption is not believed");
}

struct Run {
  double most_seconds_of_256 = 0;  // of any so many tokens in a row
  double seconds = 0;
  uint32_t n_tokens = 0;
};

// A text of n tokens of which each is the drafted one with this chance, where there is one; a step of
// n rows takes seconds_of(n).
Run run(uint32_t n, double chance, uint32_t seed,
        const std::function<double(uint32_t)>& seconds_of) {
  std::mt19937 random(seed);
  const auto holds = [&] { return std::uniform_real_distribution<>()(random) < chance; };
  std::vector<uint32_t> prompt(64);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<uint32_t>(i % 8);
  Speculator speculator(prompt, kSpeculationAuto, n + prompt.size());
  RowCosts costs;
  costs.took(1, seconds_of(1));
  Run found;
  std::vector<double> times;  // at which each token came
  while (times.size() < n) {
    const auto choice = speculator.choose(costs, 1, 1.0, kMostDrafted);
    // What is likely: the drafted tokens, and one more.
    std::vector<uint32_t> likely(choice.n_drafted + 1);
    if (speculator.has_draft())
      speculator.draft(likely);
    else
      likely[0] = static_cast<uint32_t>(random() % 8);
    std::vector<uint32_t> text;
    while (text.size() < likely.size() && holds()) text.push_back(likely[text.size()]);
    if (choice.n_drafted > 0)
      speculator.checked(choice.n_drafted,
                         std::min(choice.n_drafted, static_cast<uint32_t>(text.size())));
    if (text.size() < likely.size())
      text.push_back(static_cast<uint32_t>((likely[text.size()] + 1 + random() % 6) % 8));
    speculator.add(text);
    found.seconds += seconds_of(1 + choice.n_drafted);
    costs.took(1 + choice.n_drafted, seconds_of(1 + choice.n_drafted));
    times.insert(times.end(), text.size(), found.seconds);
  }
  found.n_tokens = static_cast<uint32_t>(times.size());
  for (size_t i = 256; i < times.size(); ++i)
    found.most_seconds_of_256 = std::max(found.most_seconds_of_256, times[i] - times[i - 256]);
  return found;
}

// The same of a text that never says again what it said, with a draft model whose tokens hold with
// this chance and take so many seconds each.
Run run_beside_model(uint32_t n, double chance, uint32_t seed, double row, double proposed) {
  std::mt19937 random(seed);
  const auto seconds_of = [&](uint32_t n_rows) { return 1 + row * (n_rows - 1); };
  ModelOffer offer;
  for (uint32_t i = 1; i <= kMostDrafted; ++i) offer.seconds[i] = i * proposed;
  Speculator speculator(std::vector<uint32_t>{0}, kSpeculationAuto, n + 100);
  RowCosts costs;
  costs.took(1, seconds_of(1));
  Run found;
  std::vector<double> times;
  uint32_t next = 0;
  while (times.size() < n) {
    const auto choice = speculator.choose(costs, 1, 1.0, kMostDrafted, &offer);
    check(choice.is_of_model == (choice.n_drafted > 0), "nobody else has a draft");
    uint32_t n_held = 0;
    while (n_held < choice.n_drafted && std::uniform_real_distribution<>()(random) < chance)
      ++n_held;
    if (choice.n_drafted > 0) speculator.checked(choice.n_drafted, n_held);
    for (uint32_t i = 0; i <= n_held; ++i) speculator.add(std::vector<uint32_t>{++next});
    found.seconds += seconds_of(1 + choice.n_drafted) + offer.seconds[choice.n_drafted];
    costs.took(1 + choice.n_drafted, seconds_of(1 + choice.n_drafted));
    times.insert(times.end(), n_held + 1, found.seconds);
  }
  found.n_tokens = static_cast<uint32_t>(times.size());
  for (size_t i = 256; i < times.size(); ++i)
    found.most_seconds_of_256 = std::max(found.most_seconds_of_256, times[i] - times[i - 256]);
  return found;
}

void test_a_draft_model_that_is_wrong_costs_at_most_3_percent() {
  for (const double row : {0.02, 0.3})
    for (const double proposed : {0.02, 0.1, 0.5})
      for (const double chance : {0.0, 0.2, 0.5})
        for (uint32_t seed = 0; seed < 5; ++seed) {
          const Run found = run_beside_model(4000, chance, seed, row, proposed);
          check(found.most_seconds_of_256 <= 256 * 1.03, "over any 256 tokens");
          check(found.seconds <= found.n_tokens * 1.03, "over all of them");
        }
}

void test_a_draft_model_that_is_right_pays() {
  const Run found = run_beside_model(4000, 0.9, 1, 0.05, 0.1);
  check(found.n_tokens / found.seconds >= 2,
        "where about 5 of 8 drafts in a row hold, twice as fast");
}

void test_a_text_is_read_where_that_is_likely_to_pay() {
  const Speculator speculator(std::vector<uint32_t>{0}, kSpeculationAuto, 100);
  ModelOffer cheap, dear;
  for (uint32_t i = 1; i <= kMostDrafted; ++i) {
    cheap.seconds[i] = 0.1 * i;
    dear.seconds[i] = 2.0 * i;
  }
  RowCosts costs;
  check(speculator.is_worth_reading(costs, 1e9, 1, dear), "what nobody measured yet is read");
  costs.took(1, 1.0);
  costs.took(16, 1.5);
  check(speculator.is_worth_reading(costs, 1.0, 200, cheap), "a short text for many tokens");
  check(!speculator.is_worth_reading(costs, 1000.0, 200, cheap), "a long one is not");
  check(!speculator.is_worth_reading(costs, 1.0, 1, cheap), "nor one for a single token");
  check(!speculator.is_worth_reading(costs, 0.001, 200, dear), "nor by a model that does not pay");
}

void test_drafts_that_never_hold_cost_at_most_3_percent() {
  for (const double row : {0.02, 0.1, 0.3, 0.6, 1.0})
    for (const double chance : {0.0, 0.1, 0.3})
      for (uint32_t seed = 0; seed < 5; ++seed) {
        const auto seconds_of = [&](uint32_t n) { return 1 + row * (n - 1); };
        const Run found = run(4000, chance, seed, seconds_of);
        check(found.most_seconds_of_256 <= 256 * 1.03, "over any 256 tokens");
        check(found.seconds <= found.n_tokens * 1.03, "over all of them");
      }
}

void test_drafts_that_hold_pay() {
  // As where weights are read from memory, so that a row more costs little.
  const auto seconds_of = [](uint32_t n) { return 1 + 0.05 * (n - 1); };
  const auto gain = [&](double chance) {
    const Run found = run(4000, chance, 1, seconds_of);
    return found.n_tokens / found.seconds;
  };
  check(gain(0.9) >= 2, "where about 5 of 8 drafts in a row hold, twice as fast");
  check(gain(1.0) >= 4, "a copy four times");
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_what_followed_is_drafted();
  test_a_match_that_goes_on_is_not_left_for_a_later_one();
  test_costs_are_known_between_what_was_measured();
  test_drafts_that_never_hold_cost_at_most_3_percent();
  test_drafts_that_hold_pay();
  test_a_draft_model_that_is_wrong_costs_at_most_3_percent();
  test_a_draft_model_that_is_right_pays();
  test_a_text_is_read_where_that_is_likely_to_pay();
  return summary();
}
