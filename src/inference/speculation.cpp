// What is drafted, from where, and how much. speculation.h says why.
//
// 1. What it does. `add` records, for every run of kRun tokens, its latest position. `draft` looks up the
//    run that ends the text, and proposes the tokens that followed its earlier occurrence. As long as
//    drafts are accepted it goes on from there, so that a long copy has one source.
// 2. What bounds it. One lookup and one entry for each token; nothing is allocated after it is made.
// 3. How much is drafted. `choose` takes the number of rows with the most tokens a second: what each
//    row more costs (RowCosts, measured), and how often drafts behind matches of this length held.
//    Where a draft model offers tokens too, whoever promises more tokens a second is asked.
// 4. What it may cost. A draft of which nothing holds costs its rows. A text has kShare of its time for
//    that and what its drafts won; where both are used up it drafts nothing until there is some again.
#include "inference/speculation.h"

#include <algorithm>
#include <bit>

namespace akunu {
namespace {

constexpr size_t kRun = 3;            // tokens that must be the same before anything is drafted
constexpr size_t kUsualReply = 4096;  // tokens, for which there are places without collisions
constexpr size_t kLongMatch = 32;     // matches are not counted any longer than that
// Of a text's time, what drafts in vain may take: with 3 % allowed, some is left for measurements that
// are off.
constexpr double kShare = 0.015;
constexpr double kMostSaved = 256 * kShare;  // in tokens' times
constexpr double kLeastGain = 1.03;          // a draft that promises less is not worth its risk
constexpr double kNew = 0.25;                // weight of a new measurement of time
constexpr double kNewHeld = 0.1;             // weight of one more token that held, or did not
// What is known of a draft model in one text fades, so that it is tried again where the text changed.
constexpr double kFades = 0.004;
// What reading a text is to win, for each second of it, and of how many tokens at most.
constexpr double kLeastGainOfReading = 1.5;
constexpr uint32_t kUsualTokensLeft = 256;
// Until it is measured, a row more is taken to cost so much of the first.
constexpr double kRowMore = 0.25;

}  // namespace

void RowCosts::took(uint32_t n_rows, double seconds) {
  if (n_rows == 0 || n_rows >= seconds_.size() || seconds <= 0) return;
  double& known = seconds_[n_rows];
  // One that was interrupted says nothing about rows.
  known = known == 0 ? seconds : known + kNew * (std::min(seconds, 4 * known) - known);
}

double RowCosts::of(uint32_t n_rows) const {
  if (n_rows >= seconds_.size()) return 0;
  if (seconds_[n_rows] > 0) return seconds_[n_rows];
  uint32_t below = n_rows, above = n_rows;
  while (below > 0 && seconds_[below] == 0) --below;
  while (above < seconds_.size() && seconds_[above] == 0) ++above;
  if (below == 0) return 0;  // what fewer rows take is not known
  const double guessed = seconds_[below] * (1 + kRowMore * (n_rows - below));
  if (above == seconds_.size()) return guessed;
  const double part = static_cast<double>(n_rows - below) / (above - below);
  return std::max(seconds_[below] + part * (seconds_[above] - seconds_[below]), seconds_[below]);
}

// Of a text that goes on for very long, later runs take the places of earlier ones.
Speculator::Speculator(std::span<const uint32_t> tokens, uint32_t wish, size_t most_tokens)
    : wish_(wish), slots_(std::bit_ceil(2 * std::min(most_tokens, tokens.size() + kUsualReply))) {
  tokens_.reserve(most_tokens);
  add(tokens);
}

void Speculator::add(std::span<const uint32_t> tokens) {
  for (const uint32_t token : tokens) add(token);
}

size_t Speculator::slot_of(size_t end) const {
  uint64_t hash = 0;
  for (size_t i = end - kRun; i < end; ++i) hash = (hash ^ tokens_[i]) * 0x9E3779B97F4A7C15u;
  return static_cast<size_t>(hash >> 20) & (slots_.size() - 1);
}

bool Speculator::is_same_run(size_t a, size_t b) const {
  return std::equal(tokens_.begin() + static_cast<ptrdiff_t>(a - kRun),
                    tokens_.begin() + static_cast<ptrdiff_t>(a),
                    tokens_.begin() + static_cast<ptrdiff_t>(b - kRun));
}

void Speculator::add(uint32_t token) {
  const bool goes_on = source_ > 0 && tokens_[source_] == token;
  tokens_.push_back(token);
  const size_t end = tokens_.size();
  if (end < kRun) return;
  Slot& slot = slots_[slot_of(end)];  // of two runs with one slot, the later one has it
  if (goes_on) {
    ++source_;
    n_same_ = std::min(n_same_ + 1, kLongMatch);
  } else {
    source_ = slot.end > 0 && is_same_run(slot.end, end) ? slot.end : 0;
    n_same_ = 0;
    while (n_same_ < std::min(source_, kLongMatch) &&
           tokens_[source_ - 1 - n_same_] == tokens_[end - 1 - n_same_])
      ++n_same_;
  }
  slot.end = static_cast<uint32_t>(end);
}

bool Speculator::has_draft() const { return wish_ != kSpeculationOff && source_ > 0; }

size_t Speculator::length_class() const {
  return n_same_ < 5 ? 0 : n_same_ < 9 ? 1 : n_same_ < 17 ? 2 : 3;
}

// Of drafts of which each token holds with this chance and costs what `seconds` says beside its row, the
// one with the most tokens a second, if that is more than `least_rate`; none where `most_seconds` do
// not pay for it. `cost`: what it costs where nothing of it holds.
template <class Seconds>
Speculator::Choice best_draft(const RowCosts& costs, uint32_t n_rows, double n_expected,
                              uint32_t most, double held, double most_seconds, double& least_rate,
                              double& cost, const Seconds& seconds) {
  Speculator::Choice best;
  const double before = costs.of(n_rows);
  double chance = 1, more = 0;
  for (uint32_t n = 1; n <= std::min(most, kMostDrafted); ++n) {
    more += chance *= held;
    const double of_rows = costs.of(n_rows + n);
    const double all = of_rows + seconds(n);
    if (of_rows == 0 || all - before > most_seconds) break;
    if (const double rate = (n_expected + more) / all; rate > least_rate) {
      least_rate = rate;
      best = {n, more};
      cost = all - before;
    }
  }
  return best;
}

Speculator::Choice Speculator::choose(const RowCosts& costs, uint32_t n_rows, double n_expected,
                                      uint32_t most, const ModelOffer* offer) {
  if (wish_ == kSpeculationOff || (!has_draft() && offer == nullptr) || most == 0) return {};
  const double held = has_draft() ? held_[length_class()] : 0;
  Choice best;
  cost_ = 0;
  if (wish_ != kSpeculationAuto) {
    best.is_of_model = offer != nullptr && held_by_model_ >= held;
    best.n_drafted = std::min({most, wish_, best.is_of_model ? offer->most : kMostDrafted});
    double chance = 1;
    for (uint32_t i = 0; i < best.n_drafted; ++i)
      best.n_expected += chance *= best.is_of_model ? held_by_model_ : held;
    is_of_model_ = best.is_of_model;
    return best;
  }
  const double before = costs.of(n_rows);
  if (before == 0) return {};
  per_token_ = before / n_expected;
  // What was not used is worth so much at most.
  if (!has_begun_) budget_ = kMostSaved / 2 * per_token_;
  has_begun_ = true;
  budget_ = std::min(budget_ + kShare * per_token_, kMostSaved * per_token_);
  double rate = kLeastGain * n_expected / before;
  if (has_draft())
    best = best_draft(costs, n_rows, n_expected, most, held, budget_, rate, cost_,
                      [](uint32_t) { return 0.0; });
  if (offer != nullptr) {
    const Choice of_model =
        best_draft(costs, n_rows, n_expected, std::min(most, offer->most), held_by_model_, budget_,
                   rate, cost_, [&](uint32_t n) { return offer->seconds[n]; });
    if (of_model.n_drafted > 0) {
      best = of_model;
      best.is_of_model = true;
    } else {
      held_by_model_ += kFades * (kHeldByModel - held_by_model_);
    }
  }
  is_of_model_ = best.is_of_model;
  return best;
}

bool Speculator::is_worth_reading(const RowCosts& costs, double seconds, uint32_t n_left,
                                  const ModelOffer& offer) const {
  if (wish_ != kSpeculationAuto) return true;
  const double before = costs.of(1);
  if (before == 0) return true;  // it is to be measured
  double rate = kLeastGain / before, cost = 0;
  const Choice best = best_draft(costs, 1, 1, kMostDrafted, held_by_model_, kMostSaved * before,
                                 rate, cost, [&](uint32_t n) { return offer.seconds[n]; });
  if (best.n_drafted == 0) return false;
  return std::min(n_left, kUsualTokensLeft) * (before - 1 / rate) > kLeastGainOfReading * seconds;
}

void Speculator::draft(std::span<uint32_t> into) const {
  for (size_t i = 0; i < into.size(); ++i) {
    const size_t place = source_ + i;
    into[i] = place < tokens_.size() ? tokens_[place] : into[place - tokens_.size()];
  }
}

void Speculator::checked(uint32_t n_drafted, uint32_t n_held) {
  double& held = is_of_model_ ? held_by_model_ : held_[length_class()];
  for (uint32_t i = 0; i < n_held; ++i) held += kNewHeld * (1 - held);
  if (n_held < n_drafted) held -= kNewHeld * held;
  if (wish_ == kSpeculationAuto) budget_ += n_held * per_token_ - cost_;
  cost_ = 0;
}

}  // namespace akunu
