#include "transcription/spectrogram.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "core/error.h"
#include "speech/mel.h"
#include "speech/mel_frames.h"

namespace akunu {
namespace {

// One thread for each window, at most as many as there are processors.
unsigned threads_for(size_t n_samples, size_t window) {
  const size_t n_windows = (n_samples + window - 1) / window;
  const size_t most = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::clamp<size_t>(n_windows, 1, most));
}

}  // namespace

Spectrogram::Spectrogram(const SpeechModel& model, std::span<const float> samples)
    : n_mels_(model.n_mels), window_(model.n_frames) {
  const size_t padding = size_t{window_} * speech::kHop;
  const size_t n = speech::n_mel_frames(samples.size() + padding);
  if (n > UINT32_MAX)
    throw ArgumentError("there are " + std::to_string(samples.size()) +
                        " samples, more than one transcription takes");
  n_frames_ = static_cast<uint32_t>(n) - window_;
  mel_.resize(n_mels_ * n);
  speech::log_mel(samples, padding, {model.filters, n_mels_}, threads_for(samples.size(), padding),
                  mel_);
}

std::shared_ptr<const SpeechWindow> Spectrogram::at(uint32_t frame) const {
  static std::atomic<uint64_t> last{0};  // every window has a number of its own
  auto window = std::make_shared<SpeechWindow>();
  window->id = ++last;
  window->frames.resize(size_t{n_mels_} * window_);
  const size_t stride = size_t{n_frames_} + window_;
  for (size_t band = 0; band < n_mels_; ++band)
    for (size_t i = 0; i < window_; ++i)
      window->frames[i * n_mels_ + band] = mel_[band * stride + frame + i];
  return window;
}

}  // namespace akunu
