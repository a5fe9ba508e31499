// A GGUF file as a ModelSource.
#pragma once

#include "files/gguf/gguf.h"
#include "files/model_source.h"

namespace akunu {

// Everything that the file says of its model. Throws what read_config and gguf_tensor throw,
// UnsupportedModelError for a tensor whose name is unknown (the model would be computed without it), and
// ModelFormatError for a tensor that the file has under two names. If the file was damaged while it was
// read, the error says so instead.
// `with_head`: see open_model.
ModelSource gguf_source(const GgufFile& file, bool with_head = false);

// The tensor as it lies in the file, without a canonical name. Throws UnsupportedModelError for a
// number format or a number of dimensions that akunu does not have.
SourceTensor gguf_tensor(const GgufFile& file, const GgufTensor& tensor);

}  // namespace akunu
