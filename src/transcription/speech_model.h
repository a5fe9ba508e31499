// What transcribing needs of a model beside its weights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inference/engine.h"
#include "transcription/whisper_vocabulary.h"

namespace akunu {

struct SpeechModel {
  WhisperVocabulary words;
  std::vector<float> filters;  // [n_mels, 201]
  uint32_t n_mels;
  uint32_t n_frames;  // of a window: what the encoder sees at once
  uint32_t context;   // tokens
};

// `path`: of the loaded model. Throws UnsupportedModelError for a model of text, and ModelFormatError.
SpeechModel read_speech_model(const std::string& path, const Model& model,
                              std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace akunu
