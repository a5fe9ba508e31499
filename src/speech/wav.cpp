#include "speech/wav.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/error.h"

namespace akunu::speech {
namespace {

constexpr float kLoudest = 16;  // samples lie within -1 and 1; beyond this they are 16-bit numbers

struct Form {
  uint32_t encoding, channels, rate, bytes_per_sample;
};
constexpr uint32_t kPcm = 1, kFloat = 3, kExtensible = 0xFFFE;

uint64_t number(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= std::to_integer<uint64_t>(bytes[i]) << 8 * i;
  return value;
}

uint32_t number32(std::span<const std::byte> bytes) { return static_cast<uint32_t>(number(bytes)); }

std::string_view letters(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Form form_of(std::span<const std::byte> chunk, const std::string& name) {
  if (chunk.size() < 16)
    throw ModelFormatError(name + " says too little about its samples: it is cut off");
  Form form{number32(chunk.first(2)), number32(chunk.subspan(2, 2)), number32(chunk.subspan(4, 4)),
            (number32(chunk.subspan(14, 2)) + 7) / 8};
  if (form.encoding == kExtensible && chunk.size() >= 26)
    form.encoding = number32(chunk.subspan(24, 2));
  if (form.channels == 0 || form.rate == 0)
    throw ModelFormatError(name + " says that it has " + std::to_string(form.channels) +
                           " channels at " + std::to_string(form.rate) + " Hz");
  return form;
}

float sample(std::span<const std::byte> bytes, const Form& form) {
  const uint64_t bits = number(bytes);
  if (form.encoding == kFloat)
    return bytes.size() == 4 ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                             : static_cast<float>(std::bit_cast<double>(bits));
  if (bytes.size() == 1) return (static_cast<float>(bits) - 128) / 128;  // the one without a sign
  // As the upper bytes of 32 bits: the sign is where it belongs.
  const auto wide = static_cast<int32_t>(static_cast<uint32_t>(bits << (32 - 8 * bytes.size())));
  return static_cast<float>(wide) / 2147483648.0f;
}

bool is_known(const Form& form) {
  const uint32_t n = form.bytes_per_sample;
  return form.encoding == kPcm ? n >= 1 && n <= 4 : form.encoding == kFloat && (n == 4 || n == 8);
}

struct Chunks {
  Form form;
  std::span<const std::byte> samples;
};

Chunks chunks_of(std::span<const std::byte> bytes, const std::string& name) {
  std::optional<Form> form;
  size_t at = 12;  // RIFF, size, WAVE
  while (bytes.size() >= at && bytes.size() - at >= 8) {
    const std::string_view kind = letters(bytes.subspan(at, 4));
    const uint64_t size = number(bytes.subspan(at + 4, 4));
    const std::span<const std::byte> rest = bytes.subspan(at + 8);
    if (kind == "data") {
      if (!form) throw ModelFormatError(name + " has samples before it says how they lie");
      // A program that writes to a pipe does not know the size: it writes 0, or about 2 GiB or more.
      constexpr uint64_t kUnknown = 0x7fff0000;
      if (size == 0 || (size >= kUnknown && size > rest.size())) return {*form, rest};
      // A part of the last sample may be missing: it is left out.
      const uint64_t frame = uint64_t{form->channels} * form->bytes_per_sample;
      if (size > rest.size() && size - rest.size() < frame) return {*form, rest};
      if (size > rest.size())
        throw ModelFormatError(name + " is cut off: it has " + std::to_string(rest.size()) +
                               " of the " + std::to_string(size) + " bytes of its samples");
      return {*form, rest.first(size)};
    }
    if (size + size % 2 > rest.size()) break;
    if (kind == "fmt ") form = form_of(rest.first(size), name);
    at += 8 + size + size % 2;
  }
  throw ModelFormatError(name + " ends before its samples: it is cut off, or no WAV file");
}

}  // namespace

void check_samples(std::span<const float> samples, const std::string& name) {
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!std::isfinite(samples[i]))
      throw ArgumentError(name + ": sample " + std::to_string(i) + " is " +
                          std::to_string(samples[i]) + ": samples must be finite numbers");
    if (std::fabs(samples[i]) > kLoudest)
      throw ArgumentError(name + " has the sample " + std::to_string(samples[i]) +
                          ", and they should lie within -1 and 1: divide 16-bit numbers by 32768");
  }
}

std::vector<float> read_wav(std::span<const std::byte> bytes, const std::string& name) {
  const bool is_wav = bytes.size() >= 12 && letters(bytes.first(4)) == "RIFF" &&
                      letters(bytes.subspan(8, 4)) == "WAVE";
  if (!is_wav)
    throw UnsupportedModelError(name +
                                " is no WAV file, and the C library reads no other sound: convert "
                                "it (ffmpeg -i FILE -ar 16000 -ac 1 FILE.wav)");
  const auto [form, data] = chunks_of(bytes, name);
  if (!is_known(form))
    throw UnsupportedModelError(
        name + " has samples of encoding " + std::to_string(form.encoding) + " in " +
        std::to_string(form.bytes_per_sample) +
        " bytes; WAV is read as PCM or floating point: convert it (ffmpeg -i FILE -ar 16000 -ac 1 "
        "-c:a pcm_s16le FILE.wav)");
  if (form.rate != kSampleRate)
    throw UnsupportedModelError(
        name + " is at " + std::to_string(form.rate) + " Hz, and at " +
        std::to_string(kSampleRate) +
        " Hz speech is read: convert it (ffmpeg -i FILE -ar 16000 FILE.wav)");
  const size_t frame = size_t{form.channels} * form.bytes_per_sample;
  std::vector<float> samples(data.size() / frame);
  if (samples.empty()) throw ModelFormatError(name + " holds no samples");
  for (size_t i = 0; i < samples.size(); ++i) {
    float sum = 0;
    for (size_t channel = 0; channel < form.channels; ++channel) {
      const size_t place = i * frame + channel * form.bytes_per_sample;
      sum += sample(data.subspan(place, form.bytes_per_sample), form);
    }
    samples[i] = sum / static_cast<float>(form.channels);
  }
  check_samples(samples, name);
  return samples;
}

}  // namespace akunu::speech
