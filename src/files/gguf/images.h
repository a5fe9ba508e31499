// An encoder of images in a GGUF file of its own, beside that of its model: llama.cpp's mmproj.
#pragma once

#include <string>

#include "files/model_source.h"

namespace akunu {

// Adds the encoder in the file `path` to a model. Throws UnsupportedModelError for an encoder that akunu does not
// compute or that is none of this model's kind, ModelFormatError for one that contradicts itself, and what
// GgufFile::open and gguf_tensor throw.
void add_gguf_images(ModelSource& source, const std::string& path);

}  // namespace akunu
