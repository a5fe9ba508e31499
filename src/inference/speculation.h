// Speculation: a text often goes on as it, or its prompt, went on before, or as a smaller model
// (draft_model.h) says. What may follow is drafted, and each drafted token has a row in the step, which
// chooses for itself: the text is the one without drafts, whatever they are (composer.h, results.h). How many are drafted is chosen by what
// rows cost and by how often drafts held, as measured, and a text whose drafts do not pay stops
// drafting.
//
// All of this is the scheduler's thread's. What depends on time is how many rows a step has, never
// what a row computes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/kinds.h"

namespace akunu {

// What drafting a text wants: none, as measurements say, or so many tokens wherever there are some.
constexpr uint32_t kSpeculationOff = 0;
constexpr uint32_t kSpeculationAuto = 0xffffffff;
constexpr uint32_t kMostDrafted = kMaxFewRows - 1;

// Seconds that a step of so many generated rows takes, without rows of prompts.
class RowCosts {
 public:
  void took(uint32_t n_rows, double seconds);
  // 0 while nothing is known; between numbers of rows that were measured, in proportion.
  double of(uint32_t n_rows) const;

 private:
  std::array<double, 4 * kMaxFewRows + 1> seconds_ = {};  // by the number of rows; 0: not known
};

// How often a token that a draft model proposes holds, until it is known.
constexpr double kHeldByModel = 0.7;

// What tokens of a draft model cost one text in one step: seconds by how many are proposed, the first
// of them with what the model has yet to read.
struct ModelOffer {
  std::array<double, kMostDrafted + 1> seconds = {};
  uint32_t most = kMostDrafted;  // that it has
};

class Speculator {
 public:
  // `wish`: see above. `most_tokens`: that the text can come to have.
  Speculator(std::span<const uint32_t> tokens, uint32_t wish, size_t most_tokens);

  void add(std::span<const uint32_t> tokens);
  // A draft model proposes too, and its tokens held so often in earlier texts.
  void begin_model(double held) { held_by_model_ = held; }
  // Whether reading so many seconds' worth of text is likely to pay for a draft model, where at most
  // `n_left` tokens come.
  bool is_worth_reading(const RowCosts& costs, double seconds, uint32_t n_left,
                        const ModelOffer& offer) const;

  // Whether a draft could follow the last token: see speculation.cpp.
  bool has_draft() const;

  // Chooses how many to draft, at most `most`, in a step that has `n_rows` generated rows so far,
  // this text's among them, of which `n_expected` tokens come. `expected` is what they add.
  // `offer`: of the draft model, where there is one that can.
  struct Choice {
    uint32_t n_drafted = 0;
    double n_expected = 0;
    bool is_of_model = false;
  };
  Choice choose(const RowCosts& costs, uint32_t n_rows, double n_expected, uint32_t most,
                const ModelOffer* offer = nullptr);
  // Fills `into` with what followed before, again and again where the text ends there.
  void draft(std::span<uint32_t> into) const;
  // Of the tokens drafted last, so many were chosen.
  void checked(uint32_t n_drafted, uint32_t n_held);
  // Whether those were of the draft model.
  bool was_of_model() const { return is_of_model_; }

 private:
  struct Slot {
    uint32_t end = 0;  // the position behind a run of tokens, 0: empty
  };

  size_t slot_of(size_t end) const;  // of the run of kRun tokens that ends there
  bool is_same_run(size_t a, size_t b) const;
  void add(uint32_t token);
  size_t length_class() const;

  const uint32_t wish_;
  std::vector<uint32_t> tokens_;
  std::vector<Slot> slots_;  // of runs of tokens, where each was last; a power of two
  size_t source_ = 0;        // what is behind it is drafted; 0: nothing
  size_t n_same_ = 0;        // tokens before it that are the text's last ones
  std::array<double, 4> held_ = {0.5, 0.6, 0.75, 0.85};  // of drafted tokens, by length_class
  double held_by_model_ = kHeldByModel;                  // likewise, of those of the draft model
  bool is_of_model_ = false;                             // the draft under way
  double budget_ = 0;                                    // seconds that drafts may still cost
  double cost_ = 0;       // of the draft under way, where none of it holds
  double per_token_ = 0;  // seconds, without drafts
  bool has_begun_ = false;
};

}  // namespace akunu
