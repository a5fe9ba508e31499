// The tokenizer of a Hugging Face or MLX directory, as tokenizer.json and the files beside it describe it.
// Its tokens obey the same checks as a GGUF file's. The rules are those of the Python package
// (akunu/tokenizers/directory_vocabulary.py); the reasons for them are given there.
#pragma once

#include <memory>
#include <string>

#include "text/vocabulary.h"

namespace akunu {

// `path`: of the directory, or of a safetensors file in it. Throws ModelFormatError for files that are
// missing or contradict themselves, and UnsupportedModelError for what is no byte-level BPE and for parts
// that akunu does not have, each by name.
std::unique_ptr<const Vocabulary> read_directory_vocabulary(const std::string& path);

}  // namespace akunu
