#include "speech/mel_filters.h"

#include <algorithm>
#include <cmath>

#include "speech/mel_frames.h"

namespace akunu::speech {
namespace {

// Slaney's scale: 3 mels are 200 Hz up to 1 kHz, from there 27 mels are a factor of 6.4.
constexpr double kLinear = 200.0 / 3;
constexpr double kKnee = 1000.0 / kLinear;
constexpr double kHighest = 8000;
const double kLogarithmic = std::log(6.4) / 27.0;

double mel(double hertz) {
  return hertz < 1000 ? hertz / kLinear : kKnee + std::log(hertz / 1000) / kLogarithmic;
}

double hertz(double mel) {
  return mel < kKnee ? mel * kLinear : 1000.0 * std::exp(kLogarithmic * (mel - kKnee));
}

}  // namespace

std::vector<float> mel_filters(size_t n_mels) {
  std::vector<double> edges(n_mels + 2);
  const double step = mel(kHighest) / static_cast<double>(n_mels + 1);
  for (size_t i = 0; i < edges.size(); ++i) edges[i] = hertz(static_cast<double>(i) * step);
  edges.back() = hertz(mel(kHighest));
  std::vector<float> filters(n_mels * kBins);
  for (size_t band = 0; band < n_mels; ++band)
    for (size_t bin = 0; bin < kBins; ++bin) {
      const double at = static_cast<double>(bin) * (kHighest / (kBins - 1));
      const double rising = (at - edges[band]) / (edges[band + 1] - edges[band]);
      const double falling = (edges[band + 2] - at) / (edges[band + 2] - edges[band + 1]);
      filters[band * kBins + bin] = static_cast<float>(std::max(0.0, std::min(rising, falling)) *
                                                       (2.0 / (edges[band + 2] - edges[band])));
    }
  return filters;
}

}  // namespace akunu::speech
