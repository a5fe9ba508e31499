#include "weight/model_source.h"

#include "core/error.h"
#include "weight/gguf_source.h"

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

ModelSource open_model(const std::string& path) {
  ModelSource source = gguf_source(GgufFile::open(path));
  source.path = path;  // of a split model, any part
  return source;
}

}  // namespace akunu
