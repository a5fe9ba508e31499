// The modules of sentence-transformers that hold weights of their own: dense layers behind the pool.
#pragma once

#include <string>
#include <vector>

#include "core/model_config.h"
#include "files/safetensors/safetensors.h"

namespace akunu {

struct DenseModule {
  std::string directory;  // "2_Dense"
  SafetensorsFile file;   // linear.weight, and perhaps linear.bias
  Activation activation = Activation::none;
};

// What modules.json in a model's directory says; nothing where there is no such file.
struct SentenceModules {
  bool are_there = false;
  std::vector<DenseModule> dense;  // in order
};

// Throws ModelFormatError for files that are missing or make no sense, UnsupportedModelError for an
// activation or for more dense layers than akunu has. Other modules are the caller's business.
SentenceModules read_sentence_modules(const std::string& directory);

}  // namespace akunu
