// whisper.cpp's model files, "ggml-tiny.en.bin": numbers, mel filters, words and tensors, one behind
// the other, with nothing aligned and no keys. The numbers of tensor types are GGUF's.
//
//   const WhisperCppFile file = WhisperCppFile::open("ggml-tiny.en.bin");
//   file.numbers().n_text_layer;
//   for (const GgufTensor& tensor : file.tensors()) file.tensor_bytes(tensor);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/gguf/gguf.h"
#include "files/mapped_file.h"

namespace akunu {

// In the order of the file; all but file_type are above 0.
struct WhisperCppNumbers {
  uint32_t n_vocab = 0;
  uint32_t n_audio_ctx = 0;
  uint32_t n_audio_state = 0;
  uint32_t n_audio_head = 0;
  uint32_t n_audio_layer = 0;
  uint32_t n_text_ctx = 0;
  uint32_t n_text_state = 0;
  uint32_t n_text_head = 0;
  uint32_t n_text_layer = 0;
  uint32_t n_mels = 0;
  uint32_t file_type = 0;  // ggml's number of most matrices, without the version of quantisation
};

// Immutable after opening: any thread may read it. Names, words and bytes point into the file.
class WhisperCppFile {
 public:
  // Throws ModelFormatError for a file that contradicts itself or the format (which byte, what it
  // needs, what is there), UnsupportedModelError for a type of tensor or a version of quantisation
  // that akunu does not read, and what MappedFile::open throws.
  static WhisperCppFile open(const std::string& path);

  // From bytes that the caller keeps alive; `path` is for messages.
  static WhisperCppFile parse(std::span<const std::byte> bytes, std::string path);

  // Whether a file that begins with these bytes is one.
  static bool begins(std::string_view bytes);

  const std::string& path() const { return path_; }
  const WhisperCppNumbers& numbers() const { return numbers_; }
  // [numbers().n_mels, kBins]
  const std::vector<float>& mel_filters() const { return mel_filters_; }
  static constexpr uint32_t kBins = 201;  // of a transform over 400 samples
  // Bytes of each word by its token; those of special tokens are not in the file.
  const std::vector<std::string_view>& words() const { return words_; }
  std::span<const GgufTensor> tensors() const { return tensors_; }  // in the order of the file
  std::span<const std::byte> tensor_bytes(const GgufTensor& tensor) const {
    return bytes_.subspan(tensor.offset, tensor.size);
  }
  std::optional<std::string> damage() const;  // see MappedFile::damage

 private:
  friend class WhisperCppParser;
  WhisperCppFile() = default;

  std::string path_;
  std::shared_ptr<const MappedFile> mapping_;  // null after parse
  std::span<const std::byte> bytes_;
  WhisperCppNumbers numbers_;
  std::vector<float> mel_filters_;
  std::vector<std::string_view> words_;
  std::vector<GgufTensor> tensors_;
};

}  // namespace akunu
