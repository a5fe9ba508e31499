#include "files/model_source.h"

#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

#include "core/error.h"
#include "files/floats.h"
#include "files/foreign.h"
#include "files/gguf/source.h"
#include "files/huggingface/source.h"
#include "files/safetensors/safetensors.h"
#include "files/whisper_cpp/source.h"

namespace akunu {

std::optional<std::string> ModelSource::damage() const {
  for (const std::shared_ptr<const MappedFile>& file : files)
    if (std::optional<std::string> damage = file->damage()) return damage;
  return std::nullopt;
}

SourceTensor rope_factors(const std::string& name, std::vector<float> divisors, std::string where) {
  const auto values = std::make_shared<const std::vector<float>>(std::move(divisors));
  SourceTensor tensor;
  tensor.name = name + ".weight";
  tensor.name_in_file = "of rope_scaling";
  tensor.path = std::move(where);
  tensor.n_dims = 1;
  tensor.shape[2] = values->size();
  tensor.parts[0] = {.bytes = std::as_bytes(std::span(*values)), .owner = values};
  return tensor;
}

void refuse_quantised_vector(const SourceTensor& tensor) {
  if (tensor.n_dims == 1 && format_info(tensor.format).block_size > 1)
    throw UnsupportedModelError(
        tensor.label() + " is one-dimensional and quantised; akunu has F32, F16 and BF16 there");
}

void refuse_no_numbers(const SourceTensor& tensor) {
  const std::span<const std::byte> bytes = tensor.parts[0].bytes;
  const uint64_t n = tensor.rows() * tensor.k();
  for (uint64_t i = 0; i < n; ++i) {
    const float number = float_at(tensor.format, bytes, i);
    if (std::isfinite(number)) continue;
    throw ModelFormatError(tensor.label() + " has " +
                           (std::isnan(number) ? "NaN" : "an infinite number") + " in row " +
                           std::to_string(i / tensor.k()) + ", column " +
                           std::to_string(i % tensor.k()) + ": the file is damaged");
  }
}

// Bytes that tell a kind of file.
constexpr size_t kBeginning = 16;

bool is_hf_model(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return ModelDirectory::is_one(path);
  return looks_like_safetensors(beginning_of(path, kBeginning));
}

bool is_whisper_cpp_model(const std::string& path) {
  return WhisperCppFile::begins(beginning_of(path, kBeginning));
}

ModelSource open_model(const std::string& path, bool with_head) {
  ModelSource source = is_hf_model(path) ? hf_source(ModelDirectory::open(path), with_head)
                       : is_whisper_cpp_model(path) ? whisper_cpp_source(WhisperCppFile::open(path))
                                                    : gguf_source(GgufFile::open(path), with_head);
  source.path = path;  // of a split model, any part
  return source;
}

void add_layer_ahead(ModelConfig& config) {
  LayerConfig layer = config.layers.back();
  layer.recurs = false;
  config.layers.push_back(layer);
  config.n_ahead = 1;
}

}  // namespace akunu
