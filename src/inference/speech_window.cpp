#include "inference/speech_window.h"

#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "inference/step.h"

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

void encode_window(Model& model, SequenceCache& cache, const SpeechWindow& window,
                   uint32_t sequence) {
  const AudioEncoder& audio = *model.context.arch().audio;
  Device& device = *model.context.device;
  device.write(model.context.frames.binding(), std::as_bytes(std::span(window.frames)));
  std::vector<Row> rows(audio.n_frames());
  for (uint32_t i = 0; i < rows.size(); ++i) {
    rows[i].sequence = sequence;
    rows[i].position = i;
    rows[i].kv_length = i + 1;
    rows[i].flags = kRowActive | kRowPrompt;
    rows[i].head_row = rows[i].adapter = rows[i].last_position = rows[i].second_segment = kNone;
  }
  const auto submit = [&](Program program, uint32_t n_rows, std::span<const Update> updates) {
    const Span span{sequence, 0, n_rows, 0};
    const Pass pass{.program = program, .n_rows = n_rows, .n_spans = 1};
    return device.submit({.rows = std::span(rows).first(n_rows),
                          .spans = std::span(&span, 1),
                          .updates = updates,
                          .passes = std::span(&pass, 1)});
  };
  const Ticket convolved =
      submit(model.programs.first_convolution, audio.n_frames(), cache.take_unsent(sequence));
  const Ticket encoded = submit(model.programs.encode, audio.n_positions, {});
  await_all_well(model.context, convolved);
  await_all_well(model.context, encoded);
  cache.filled(window.id);
}

}  // namespace akunu
