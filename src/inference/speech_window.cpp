#include "inference/speech_window.h"

#include <string>
#include <utility>

#include "core/error.h"

namespace akunu {

void check_window(const Model& model, const SpeechWindow* window) {
  const std::optional<AudioEncoder>& audio = model.context.arch().audio;
  if (!audio && window != nullptr)
    throw UnsupportedModelError(model.context.weights->config.architecture + " takes no audio");
  if (!audio) return;
  if (window == nullptr || window->id == 0)
    throw ArgumentError("a text of a speech model needs a window of audio");
  if (window->frames.size() != uint64_t{audio->n_frames()} * audio->n_mels)
    throw ArgumentError("a window has " + std::to_string(window->frames.size()) +
                        " numbers; this model's have " + std::to_string(audio->n_frames()) +
                        " frames of " + std::to_string(audio->n_mels));
}

WindowPass::WindowPass(Model& model, CutPace& pace, SequenceCache& cache,
                       std::shared_ptr<const SpeechWindow> window, uint32_t sequence)
    : CutPass(model, pace, model.programs.encoder.parts),
      cache_(cache),
      window_(std::move(window)),
      sequence_(sequence) {
  model.context.device->write(model.programs.encoder.input,
                              std::as_bytes(std::span(window_->frames)));
}

void WindowPass::lay_out(const PassPart& part) {
  rows_.resize(part.n_rows);
  for (uint32_t i = 0; i < part.n_rows; ++i) {
    rows_[i] = row_at(i);
    rows_[i].sequence = sequence_;
  }
  seen_ = {{sequence_, 0, part.n_rows, 0}};
}

}  // namespace akunu
