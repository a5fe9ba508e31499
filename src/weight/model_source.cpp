#include "weight/model_source.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "core/error.h"
#include "weight/gguf_source.h"
#include "weight/hf_source.h"
#include "weight/safetensors.h"
#include "weight/whisper_cpp_source.h"

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

namespace {

// The first bytes of a regular file; nothing of anything else. Whatever is wrong with a file is said
// by the reader of GGUF.
std::string beginning_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  std::string begin(16, '\0');
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) return "";
  begin.resize(std::fread(begin.data(), 1, begin.size(), file.get()));
  return begin;
}

}  // namespace

bool is_hf_model(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return ModelDirectory::is_one(path);
  return looks_like_safetensors(beginning_of(path));
}

bool is_whisper_cpp_model(const std::string& path) {
  return WhisperCppFile::begins(beginning_of(path));
}

ModelSource open_model(const std::string& path) {
  ModelSource source = is_hf_model(path)            ? hf_source(ModelDirectory::open(path))
                       : is_whisper_cpp_model(path) ? whisper_cpp_source(WhisperCppFile::open(path))
                                                    : gguf_source(GgufFile::open(path));
  source.path = path;  // of a split model, any part
  return source;
}

}  // namespace akunu
