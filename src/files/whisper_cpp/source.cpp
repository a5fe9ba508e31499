#include "files/whisper_cpp/source.h"

#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/error.h"
#include "files/names.h"
#include "files/printable.h"
#include "models/registry.h"

namespace akunu {
namespace {

std::string shown_path(const WhisperCppFile& file) { return printable(file.path(), kPathLimit); }

LayerConfig layer_of(const WhisperCppFile& file, uint32_t dim, uint32_t n_heads) {
  if (dim % n_heads != 0)
    throw ModelFormatError(shown_path(file) + ": " + std::to_string(n_heads) +
                           " heads do not divide " + std::to_string(dim) + " numbers");
  constexpr uint32_t kTimes = 4;  // of every Whisper model; the file does not say
  return {.n_heads = n_heads,
          .n_kv_heads = n_heads,
          .head_dim = dim / n_heads,
          .ffn_dim = kTimes * dim,
          .windowed = {},
          .rotates = {}};
}

ModelConfig config_of(const WhisperCppFile& file) {
  const WhisperCppNumbers& is = file.numbers();
  const std::string path = shown_path(file);
  if (is.n_text_state != is.n_audio_state)
    throw UnsupportedModelError(path + ": n_text_state is " + std::to_string(is.n_text_state) +
                                " and n_audio_state " + std::to_string(is.n_audio_state) +
                                "; akunu needs them equal");
  for (const uint32_t n_layers : {is.n_text_layer, is.n_audio_layer})
    if (n_layers > file.tensors().size())
      throw ModelFormatError(path + ": there are " + std::to_string(n_layers) +
                             " layers, and the file has " + std::to_string(file.tensors().size()) +
                             " tensors");
  constexpr uint32_t kWidest = 1u << 24;  // far beyond any; a multiple of it has 32 bits
  if (is.n_text_state > kWidest)
    throw ModelFormatError(path + ": n_text_state is " + std::to_string(is.n_text_state) +
                           ", which is out of any sensible range");
  ModelConfig config;
  config.architecture = "whisper";
  config.dim = is.n_text_state;
  config.vocab_size = is.n_vocab;
  config.context_length = is.n_text_ctx;
  config.norm_epsilon = 1e-5f;
  config.rope.theta = 10000;  // nothing turns
  config.n_mels = is.n_mels;
  config.audio_positions = is.n_audio_ctx;
  config.layers.assign(is.n_text_layer, layer_of(file, is.n_text_state, is.n_text_head));
  config.audio_layers.assign(is.n_audio_layer, layer_of(file, is.n_audio_state, is.n_audio_head));
  return config;
}

SourceTensor described(const WhisperCppFile& file, const GgufTensor& tensor) {
  SourceTensor result;
  result.name_in_file = printable(tensor.name);
  result.path = shown_path(file);
  const std::optional<Format> format = format_from_gguf(tensor.type);
  if (!format)
    throw UnsupportedModelError(result.label() + " has the number format " +
                                std::string(gguf_type_name(tensor.type)) + "; akunu has " +
                                gguf_types_with_a_format());
  result.format = *format;
  result.n_dims = tensor.n_dims;
  result.shape = {tensor.dims[2], tensor.dims[1], tensor.dims[0]};
  // Biases of convolutions are columns.
  if (tensor.name.ends_with(".bias") && tensor.n_dims == 2 && tensor.dims[0] == 1) {
    result.n_dims = 1;
    result.shape = {1, 1, tensor.dims[1]};
  }
  return result;
}

void copy_bytes(const WhisperCppFile& file, const GgufTensor& tensor, SourceTensor& to) {
  const std::span<const std::byte> from = file.tensor_bytes(tensor);
  try {
    const auto copy = std::make_shared<std::vector<std::byte>>(from.begin(), from.end());
    to.parts[0] = {.bytes = std::span<const std::byte>(*copy), .owner = copy};
  } catch (const std::bad_alloc&) {
    throw OutOfMemoryError(to.label() + " needs " + std::to_string(from.size()) + " bytes");
  }
}

}  // namespace

ModelSource whisper_cpp_source(const WhisperCppFile& file) {
  ModelSource source;
  source.path = file.path();
  source.config = config_of(file);
  for (const GgufTensor& tensor : file.tensors()) {
    SourceTensor whole = described(file, tensor);
    // Position embeddings have no suffix.
    std::string name(tensor.name);
    if (name.ends_with("positional_embedding")) name += ".weight";
    copy_bytes(file, tensor, whole);
    std::vector<SourceTensor> named =
        give_names(*find_family("whisper")->whisper_cpp_names, name, whole, source.config);
    if (named.empty())
      throw UnsupportedModelError(whole.label() + " is not one that akunu knows what to do with");
    for (SourceTensor& each : named) source.tensors.push_back(std::move(each));
  }
  if (const std::optional<std::string> damage = file.damage()) throw ModelFormatError(*damage);
  return source;
}

}  // namespace akunu
