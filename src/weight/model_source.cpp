#include "weight/model_source.h"

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "weight/gguf_source.h"
#include "weight/hf_source.h"
#include "weight/safetensors.h"

namespace akunu {

std::optional<std::string> ModelSource::damage() const {
  for (const std::shared_ptr<const MappedFile>& file : files)
    if (std::optional<std::string> damage = file->damage()) return damage;
  return std::nullopt;
}

void refuse_quantised_vector(const SourceTensor& tensor) {
  if (tensor.n_dims == 1 && format_info(tensor.format).block_size > 1)
    throw UnsupportedModelError(
        tensor.label() + " is one-dimensional and quantised; akunu has F32, F16 and BF16 there");
}

bool is_hf_model(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return ModelDirectory::is_one(path);
  // Whatever else is wrong with a file is said by the reader of GGUF.
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::array<char, 16> begin{};
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), begin.size());
  return looks_like_safetensors({begin.data(), static_cast<size_t>(file.gcount())});
}

ModelSource open_model(const std::string& path) {
  ModelSource source =
      is_hf_model(path) ? hf_source(ModelDirectory::open(path)) : gguf_source(GgufFile::open(path));
  source.path = path;  // of a split model, any part
  return source;
}

}  // namespace akunu
