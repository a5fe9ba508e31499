// The arithmetic of the mel spectrogram, for eight frames at a time. It is compiled once for every CPU
// and, on x86-64, once more for those with AVX2 (src/CMakeLists.txt): mel.cpp chooses.
#pragma once

#include <cstddef>

namespace akunu::speech {

constexpr size_t kFrame = 400;  // samples of a frame, and points of its Fourier transform
constexpr size_t kHop = 160;    // samples from one frame to the next
constexpr size_t kBins = kFrame / 2 + 1;
constexpr size_t kFramesAtOnce = 8;
constexpr size_t kSamplesAtOnce = kFrame + (kFramesAtOnce - 1) * kHop;

// A mel filter without the zeros around it: the bins [first, first + n) and their weights.
struct MelFilter {
  size_t first;
  size_t n;
  const double* weights;
};

struct MelTables {
  const double* window;         // [kFrame]
  const double* cosine;         // [kFrame], of 2 pi i / kFrame
  const double* negative_sine;  // [kFrame]
  const MelFilter* filters;
  size_t n_mels;
};

// log10 of each filter's energy, at least -10, of the frames that begin at samples[0], samples[160], …
// `samples` has kSamplesAtOnce numbers, `out` has room for [n_mels, kFramesAtOnce].
using MelFrames = void(const MelTables& tables, const float* samples, float* out);

// values = (max(values, lowest) + 4) / 4
using MelScale = void(float* values, size_t n, float lowest);

namespace portable {
MelFrames mel_frames;
MelScale mel_scale;
}  // namespace portable

namespace avx2 {
MelFrames mel_frames;
MelScale mel_scale;
}  // namespace avx2

}  // namespace akunu::speech
