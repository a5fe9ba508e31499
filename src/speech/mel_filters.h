// Whisper's mel filters, as its models with 80 or 128 bands hold them.
#pragma once

#include <cstddef>
#include <vector>

namespace akunu::speech {

// [n_mels, 201]: triangles between frequencies that are equally far apart on Slaney's mel scale, from 0 to
// 8 kHz, each divided by half its width.
std::vector<float> mel_filters(size_t n_mels);

}  // namespace akunu::speech
