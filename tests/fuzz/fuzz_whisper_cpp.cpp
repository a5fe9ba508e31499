// Any bytes either are a model file of whisper.cpp whose every part can be used, or are refused with
// one of our errors. What is accepted is touched in full.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "core/arch.h"
#include "core/error.h"
#include "files/whisper_cpp/source.h"
#include "models/common/describe.h"

namespace akunu {
namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "a file was accepted although this does not hold: %s\n", what);
  std::abort();
}

// Reads every byte, so that a sanitizer sees each that is not ours.
uint64_t sum(std::span<const std::byte> bytes) {
  uint64_t result = 0;
  for (const std::byte byte : bytes) result += static_cast<uint64_t>(byte);
  return result;
}

uint64_t use(const WhisperCppFile& file) {
  const WhisperCppNumbers& is = file.numbers();
  require(is.n_vocab > 0 && is.n_mels > 0, "numbers are above 0");
  require(file.mel_filters().size() == uint64_t{is.n_mels} * WhisperCppFile::kBins,
          "there is a filter for every band");
  for (const float weight : file.mel_filters())
    require(std::isfinite(weight), "filters are finite");
  require(file.words().size() <= is.n_vocab, "words are tokens");
  uint64_t total = 0;
  for (const std::string_view word : file.words()) total += sum(std::as_bytes(std::span(word)));
  require(!file.tensors().empty(), "there are tensors");
  for (const GgufTensor& tensor : file.tensors()) {
    require(!tensor.name.empty(), "a tensor has a name");
    total += sum(std::as_bytes(std::span(tensor.name))) + sum(file.tensor_bytes(tensor));
  }
  return total;
}

uint64_t use(const ModelSource& source) {
  uint64_t total = 0;
  for (const SourceTensor& tensor : source.tensors) {
    require(tensor.parts[0].bytes.size() == tensor.rows() * row_bytes(tensor.format, tensor.k()),
            "a weight has the bytes of its rows");
    total += sum(tensor.parts[0].bytes);
  }
  return total;
}

}  // namespace
}  // namespace akunu

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static volatile uint64_t kept = 0;  // or the compiler reads nothing
  try {
    const akunu::WhisperCppFile file =
        akunu::WhisperCppFile::parse(std::as_bytes(std::span(data, size)), "fuzz");
    kept = kept + akunu::use(file);
    const akunu::ModelSource source = akunu::whisper_cpp_source(file);
    kept = kept + akunu::use(source);
    akunu::describe(source.config);
  } catch (const akunu::Error& error) {
    const std::string_view message = error.what();
    akunu::require(!message.empty() && message.size() < 4096, "a message is short");
    for (const char letter : message)
      akunu::require(static_cast<unsigned char>(letter) >= 0x20, "a message is one printable line");
  }
  return 0;
}
