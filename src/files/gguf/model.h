// The numbers of a GGUF file as a ModelConfig.
#pragma once

#include <vector>

#include "core/model_config.h"
#include "files/gguf/gguf.h"

namespace akunu {

// Throws ModelFormatError where a number is missing or makes no sense and UnsupportedModelError for
// what the file asks for and akunu does not have: it names the key and its value.
ModelConfig read_config(const GgufFile& file);

// What the rotary frequencies are divided by where the file says so by YaRN's keys; else empty.
std::vector<float> read_rope_divisors(const GgufFile& file);

}  // namespace akunu
