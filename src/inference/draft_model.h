// A second, smaller model that proposes how texts go on. It lies on the target's device and runs in
// its scheduler's thread, between two steps: a row for each text and token. It chooses with the
// request's own options and draws, so that it often chooses what the target will. What it proposes
// changes how many rows a step of the target has, and never a text: see speculation.h.
//
// Of a text it keeps what the target's sequence has as well, in a cache of its own: pages, token log
// and record. Tokens that were proposed and not chosen are written over.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/sequence_cache.h"
#include "inference/model.h"
#include "inference/speculation.h"
#include "inference/step.h"
#include "inference/task.h"

namespace akunu {

class DraftModel;

// Of a draft model for a target with these options: a cache for one text that is as long as the target's
// may be, or as the draft model knows.
LoadOptions draft_options(const ModelConfig& config, const LoadOptions& of_target);

// Loads one with them. Throws as Model::load.
std::unique_ptr<Model> load_draft_model(const std::string& path, std::shared_ptr<Device> device,
                                        const LoadOptions& of_target);

// What the draft model has of a text. Where it ends, later texts can begin with what was read.
class DraftText {
 public:
  DraftText(DraftModel& of, uint32_t slot, Choosing choosing)
      : of_(of), slot_(slot), choosing_(std::move(choosing)) {}
  ~DraftText();
  DraftText(const DraftText&) = delete;
  DraftText& operator=(const DraftText&) = delete;

  // Of the tokens proposed last, so many were chosen.
  void checked(uint32_t n_drafted, uint32_t n_held) const;

 private:
  friend class DraftModel;

  DraftModel& of_;
  const uint32_t slot_;
  const Choosing choosing_;
  bool is_known_ = false;  // to the device: record and log
  bool is_lost_ = false;   // it drafts no more: no room in the draft's context, or a bad row
  std::vector<uint32_t>
      ran_;  // tokens behind those that are done, which were proposed and have run
};

class DraftModel {
 public:
  // Both must outlive this. Throws UnsupportedModelError for a model that cannot draft for the target.
  DraftModel(Model& model, const Weights& target, bool prefix_cache);

  // Nothing where slots or pages are short, or the draft model cannot hold these tokens.
  std::unique_ptr<DraftText> begin(const Task& task, std::span<const uint32_t> tokens);

  // Of a text with these tokens, how many it has yet to read before it can propose one; kNone where
  // it cannot any more.
  uint32_t n_unread(const DraftText& text, std::span<const uint32_t> tokens) const;
  // Above this, tokens are to be read before anything is drafted.
  static constexpr uint32_t kMostUnread = kMaxFewRows;

  struct Wish {
    DraftText* text = nullptr;
    std::span<const uint32_t> tokens;       // the text so far
    uint32_t draw = 0;                      // of the first token proposed
    std::vector<uint32_t>* into = nullptr;  // as many as are wanted; fewer where fewer can be had
  };
  // Reads tokens of these texts, all but the last, in one step of at most `most_rows`.
  void read(std::span<const Wish> wishes, uint32_t most_rows, int32_t priority);
  // Proposes tokens for all of these texts together, for each as many as it wants.
  void propose(std::span<const Wish> wishes, int32_t priority);

  // Seconds of a step with so many rows; `of_target`: of the target with one, by which it is guessed
  // until it is measured.
  double seconds(uint32_t n_rows, double of_target) const;
  // Seconds that it takes to read so many tokens; likewise.
  double seconds_to_read(uint32_t n_tokens, double of_target) const;

  // How often its tokens held, as of all texts so far.
  double held() const { return held_; }
  void checked(uint32_t n_drafted, uint32_t n_held);

 private:
  friend class DraftText;

  Sequence& sequence_of(const DraftText& text) { return context_.sequences[text.slot_]; }
  bool follow(DraftText& text, std::span<const uint32_t> tokens);
  bool prepare(DraftText& text, uint32_t n_unread, uint32_t n_more);
  void lose(DraftText& text);
  // Seconds that it took; rows that went wrong are in statuses_.
  double run(uint32_t n_steps, int32_t priority);
  bool is_bad(uint32_t first_row, uint32_t n_rows) const;
  void end(const DraftText& text);

  struct Planned {
    const Wish* wish = nullptr;
    uint32_t n_unread = 0;
    uint32_t first_row = 0;
  };

  Context& context_;
  const uint32_t target_vocab_size_;
  const double size_ratio_;  // its weights' bytes to the target's
  SequenceCache cache_;
  Step step_;
  RowCosts costs_;
  double seconds_per_token_read_ = 0;  // 0: not known
  double held_;
  std::vector<Planned> planned_;
  std::vector<Status> statuses_;
};

}  // namespace akunu
