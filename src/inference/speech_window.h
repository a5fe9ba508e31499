// Windows of speech: they are checked when a text of one is asked for, and encoded for the first text of one that has
// a place.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cache/sequence_cache.h"
#include "inference/cut_pass.h"
#include "inference/model.h"
#include "inference/task.h"

namespace akunu {

// Throws where the model has an encoder of audio and there is no window for it, or the other way round.
void check_window(const Model& model, const SpeechWindow* window);

// Fills the pages of a window that the sequence has.
class WindowPass final : public CutPass {
 public:
  // All must outlive this.
  WindowPass(Model& model, CutPace& pace, SequenceCache& cache,
             std::shared_ptr<const SpeechWindow> window, uint32_t sequence);

 protected:
  void lay_out(const PassPart& part) override;
  std::span<const Update> updates(size_t) override {
    return cache_.sequences.take_unsent(sequence_);
  }
  void finish(Active&) override { cache_.windows.filled(window_->id); }

 private:
  SequenceCache& cache_;
  const std::shared_ptr<const SpeechWindow> window_;
  const uint32_t sequence_;
};

}  // namespace akunu
