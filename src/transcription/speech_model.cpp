#include "transcription/speech_model.h"

#include "core/error.h"
#include "files/printable.h"
#include "speech/mel_filters.h"

namespace akunu {

SpeechModel read_speech_model(const std::string& path, const Model& model,
                              std::shared_ptr<const Tokenizer> tokenizer) {
  const std::optional<AudioEncoder>& audio = model.context.arch().audio;
  if (!audio)
    throw UnsupportedModelError(printable(path, kPathLimit) + " is a model of text (" +
                                model.context.weights->config.architecture + "): it hears nothing");
  WhisperSettings settings = read_whisper_settings(path, audio->n_mels);
  std::vector<float> filters = settings.mel_filters.empty() ? speech::mel_filters(audio->n_mels)
                                                            : std::move(settings.mel_filters);
  return {.words = WhisperVocabulary(std::move(tokenizer), settings,
                                     model.context.weights->config.vocab_size, path),
          .filters = std::move(filters),
          .n_mels = audio->n_mels,
          .n_frames = audio->n_frames(),
          .context = model.context.n_positions()};
}

}  // namespace akunu
