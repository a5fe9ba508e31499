#include "speech/mel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/error.h"
#include "speech/mel_frames.h"

namespace akunu::speech {
namespace {

constexpr size_t kReflected = kFrame / 2;  // samples before the first and after the last
constexpr size_t kGroupsAtOnce = 32;       // of eight frames; of a thread, before it asks for more

#if AKUNU_SPEECH_AVX2
const bool has_avx2 = __builtin_cpu_supports("avx2");
MelFrames* const mel_frames = has_avx2 ? avx2::mel_frames : portable::mel_frames;
MelScale* const mel_scale = has_avx2 ? avx2::mel_scale : portable::mel_scale;
#else
MelFrames* const mel_frames = portable::mel_frames;
MelScale* const mel_scale = portable::mel_scale;
#endif

struct Waves {
  std::array<double, kFrame> window, cosine, negative_sine;

  Waves() {
    for (size_t i = 0; i < kFrame; ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / kFrame;
      cosine[i] = std::cos(angle);
      negative_sine[i] = -std::sin(angle);
      window[i] = 0.5 - 0.5 * std::cos(angle);
    }
  }
};

// The filters without the zeros around them.
class Filters {
 public:
  explicit Filters(const MelFilters& filters) {
    weights_.assign(filters.weights.begin(), filters.weights.end());
    for (size_t mel = 0; mel < filters.n_mels; ++mel) {
      const double* const row = &weights_[mel * kBins];
      size_t first = 0, end = kBins;
      while (first < end && row[first] == 0.0) ++first;
      while (end > first && row[end - 1] == 0.0) --end;
      filters_.push_back({first, end - first, row + first});
    }
  }

  const std::vector<MelFilter>& get() const { return filters_; }

 private:
  std::vector<double> weights_;
  std::vector<MelFilter> filters_;
};

class Spectrogram {
 public:
  Spectrogram(std::span<const float> samples, size_t padding, const MelFilters& filters,
              std::span<float> out)
      : samples_(samples),
        n_all_(samples.size() + padding),
        n_frames_(n_mel_frames(n_all_)),
        filters_(filters),
        tables_{waves_.window.data(), waves_.cosine.data(), waves_.negative_sine.data(),
                filters_.get().data(), filters.n_mels},
        out_(out) {}

  size_t n_groups() const { return (n_frames_ + kFramesAtOnce - 1) / kFramesAtOnce; }

  // The log10 of some groups; returns the largest.
  float take(size_t first_group, size_t end_group) {
    std::vector<float> values(tables_.n_mels * kFramesAtOnce);
    float largest = kFloor;
    for (size_t group = first_group; group < end_group; ++group) {
      const size_t first = group * kFramesAtOnce;
      const size_t n = std::min(kFramesAtOnce, n_frames_ - first);
      if (is_padding(first)) {
        std::fill(values.begin(), values.end(), kFloor);
      } else {
        std::array<float, kSamplesAtOnce> edge;
        mel_frames(tables_, samples_of(first, edge), values.data());
      }
      for (size_t mel = 0; mel < tables_.n_mels; ++mel) {
        const float* const from = &values[mel * kFramesAtOnce];
        std::copy_n(from, n, &out_[mel * n_frames_ + first]);
        largest = std::max(largest, *std::max_element(from, from + n));
      }
    }
    return largest;
  }

 private:
  static constexpr float kFloor = -10.0f;

  // Whether a group of frames sees zeros of the padding only.
  bool is_padding(size_t first_frame) const {
    const size_t begin = first_frame * kHop;
    return begin >= samples_.size() + kReflected &&
           begin - kReflected + kSamplesAtOnce <= n_all_ + kReflected &&
           n_all_ - samples_.size() > kFrame;  // what the end reflects is padding, too
  }

  // The samples of a group, where they lie or, at an edge, copied to `edge`.
  const float* samples_of(size_t first_frame, std::array<float, kSamplesAtOnce>& edge) const {
    const size_t begin = first_frame * kHop;  // plus kReflected: it may lie before the samples
    if (begin >= kReflected && begin - kReflected + kSamplesAtOnce <= samples_.size())
      return &samples_[begin - kReflected];
    for (size_t i = 0; i < kSamplesAtOnce; ++i) edge[i] = sample(begin + i);
    return edge.data();
  }

  float sample(size_t index) const {  // counted from the first reflected one
    size_t at = index >= kReflected ? index - kReflected : kReflected - index;
    if (at >= n_all_) {
      const size_t beyond = at - (n_all_ - 1);
      if (beyond > kReflected) return 0.0f;  // of a frame that does not exist
      at = n_all_ - 1 - beyond;
    }
    return at < samples_.size() ? samples_[at] : 0.0f;
  }

  std::span<const float> samples_;
  size_t n_all_;
  size_t n_frames_;
  Filters filters_;
  Waves waves_;
  MelTables tables_;
  std::span<float> out_;
};

// Runs `work` on this thread and, as far as the system lets us have them, on others.
template <class Work>
void on_threads(size_t n, const Work& work) {
  std::vector<std::thread> threads;
  threads.reserve(n);
  try {
    while (threads.size() + 1 < n) threads.emplace_back(work);
  } catch (const std::system_error&) {
    // A limit of the process: those that are there do it all.
  }
  work();
  for (std::thread& thread : threads) thread.join();
}

void check(std::span<const float> samples, size_t padding, const MelFilters& filters,
           std::span<float> out) {
  if (filters.n_mels == 0 || filters.weights.size() != filters.n_mels * kBins)
    throw ArgumentError("mel filters must have 201 weights each");
  if (samples.size() + padding <= kReflected)
    throw ArgumentError("a spectrogram needs at least 201 samples with its padding, not " +
                        std::to_string(samples.size() + padding));
  if (out.size() != filters.n_mels * n_mel_frames(samples.size() + padding))
    throw ArgumentError("the spectrogram has another size than its room");
}

}  // namespace

size_t n_mel_frames(size_t n_samples) { return n_samples / kHop; }

void log_mel(std::span<const float> samples, size_t padding, const MelFilters& filters,
             unsigned threads, std::span<float> out) {
  check(samples, padding, filters, out);
  Spectrogram spectrogram(samples, padding, filters, out);
  const size_t n_groups = spectrogram.n_groups();
  const size_t n_parts = (n_groups + kGroupsAtOnce - 1) / kGroupsAtOnce;
  std::vector<float> largest(n_parts);
  std::atomic<size_t> next{0};
  on_threads(std::min<size_t>(std::max(threads, 1u), n_parts), [&] {
    for (size_t part; (part = next.fetch_add(1)) < n_parts;) {
      const size_t first = part * kGroupsAtOnce;
      largest[part] = spectrogram.take(first, std::min(first + kGroupsAtOnce, n_groups));
    }
  });
  const float lowest = *std::max_element(largest.begin(), largest.end()) - 8.0f;
  mel_scale(out.data(), out.size(), lowest);
}

}  // namespace akunu::speech
