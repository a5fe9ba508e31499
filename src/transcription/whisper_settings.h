// What a Whisper model's files say of how its texts are written: generation_config.json of a directory, keys
// of its own in a GGUF file. The rules are those of the Python package (akunu/speech/speech_settings.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace akunu {

struct WhisperSettings {
  std::optional<bool> is_multilingual = {};         // nothing: the size of the vocabulary says it
  std::vector<int64_t> suppress_tokens = {};        // that no text has; some may be no tokens
  std::vector<int64_t> begin_suppress_tokens = {};  // with which no text begins; likewise
  std::vector<float> mel_filters = {};  // [n_mels, 201], the file's own; empty: the usual ones
};

// Reads them. `path`: a model directory, a safetensors file in one, or a GGUF file. `n_mels`: the model's mel
// bands. Throws ModelFormatError for a file that is damaged, or whose mel filters have another size.
WhisperSettings read_whisper_settings(const std::string& path, size_t n_mels);

}  // namespace akunu
