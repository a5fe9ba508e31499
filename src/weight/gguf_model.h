// A GGUF file as a model: its numbers as a ModelConfig, its tensors as sources of weights.
#pragma once

#include "core/arch.h"
#include "core/device.h"
#include "weight/gguf.h"

namespace akunu {

// Throws ModelFormatError where a number is missing or makes no sense and UnsupportedModelError for
// what the file asks for and akunu does not have: it names the key and its value.
ModelConfig read_config(const GgufFile& file);

// The tensor as it lies in the file. Throws UnsupportedModelError for a number format that akunu
// does not have.
WeightSource weight_source(const GgufFile& file, const GgufTensor& tensor);

}  // namespace akunu
