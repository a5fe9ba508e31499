// A Hugging Face or MLX directory as a ModelSource.
#pragma once

#include "files/huggingface/model_directory.h"
#include "files/model_source.h"

namespace akunu {

// Everything that the directory says of its model. Throws what read_hf_config throws,
// UnsupportedModelError for a tensor whose name or number format is unknown (the model would be
// computed without it), and ModelFormatError where tensors and config.json contradict each other. If a
// file was damaged while it was read, the error says so instead.
// `with_head`: see open_model.
ModelSource hf_source(const ModelDirectory& directory, bool with_head = false);

}  // namespace akunu
