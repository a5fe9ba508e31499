// Whisper's front end: the log-mel spectrogram of speech at 16 kHz. Frames of 400 samples begin every
// 160, centred on their sample (the ends are reflected), under a periodic Hann window; the power of
// each frequency, summed by the model's own mel filters; log10, not below -10, nor below the
// spectrogram's maximum - 8; (x + 4) / 4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace akunu::speech {

// `weights`: [n_mels, 201], a row for each filter.
struct MelFilters {
  std::span<const float> weights;
  size_t n_mels;
};

// How many frames n samples have.
size_t n_mel_frames(size_t n_samples);

// The spectrogram of `samples` (which must be finite) and `padding` zeros after them, as [n_mels, frames].
// Runs on up to `threads` threads. Throws ArgumentError where all are fewer than 201 samples (nothing to
// reflect), or sizes do not match.
void log_mel(std::span<const float> samples, size_t padding, const MelFilters& filters,
             unsigned threads, std::span<float> out);

}  // namespace akunu::speech
