// The frames of audio, and the windows of them that an encoder sees.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "inference/task.h"
#include "transcription/speech_model.h"

namespace akunu {

class Spectrogram {
 public:
  // Of finite samples at 16 kHz, and of a window's silence behind them.
  Spectrogram(const SpeechModel& model, std::span<const float> samples);

  uint32_t n_frames() const { return n_frames_; }  // of the audio
  // The window that begins with a frame of the audio.
  std::shared_ptr<const SpeechWindow> at(uint32_t frame) const;

 private:
  uint32_t n_mels_, window_;
  uint32_t n_frames_;
  std::vector<float> mel_;  // [n_mels, n_frames + window]
};

}  // namespace akunu
