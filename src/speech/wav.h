// WAV files without any library: PCM of 8, 16, 24 and 32 bits, and floating point. The rules are those of
// the Python package (akunu/speech/input/wav.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace akunu::speech {

constexpr uint32_t kSampleRate = 16'000;  // of everything that Whisper reads

// The samples of a file at 16 kHz, its channels mixed. `name` is for messages. Throws ModelFormatError for a
// file that is cut off or has no samples, ArgumentError for samples that are not finite or beyond all
// sense, and UnsupportedModelError for other formats and other rates.
std::vector<float> read_wav(std::span<const std::byte> bytes, const std::string& name);

// Throws ArgumentError for samples that are not finite, or surely were not divided by 32768.
void check_samples(std::span<const float> samples, const std::string& name);

}  // namespace akunu::speech
