// A GGUF file as a ModelSource.
#pragma once

#include "weight/gguf.h"
#include "weight/model_source.h"

namespace akunu {

// Everything that the file says of its model. Throws what read_config and gguf_tensor throw;
// UnsupportedModelError for a tensor that akunu does not know what to do with, since a model that
// would be computed wrongly is not loaded; ModelFormatError for two names of one tensor. Where the
// file was damaged meanwhile, it says that.
ModelSource gguf_source(const GgufFile& file);

// The tensor as it lies in the file, without a canonical name. Throws UnsupportedModelError for a
// number format or a number of dimensions that akunu does not have.
SourceTensor gguf_tensor(const GgufFile& file, const GgufTensor& tensor);

}  // namespace akunu
