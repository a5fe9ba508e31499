// The tokenizer in a GGUF file's metadata. The rules are those of the Python package, which has the reasons for them
// (akunu/tokenizers/vocabulary.py).
#pragma once

#include <memory>

#include "files/gguf/gguf.h"
#include "text/vocabulary.h"

namespace akunu {

// Throws what make_vocabulary does, UnsupportedModelError for a tokenizer model or pre-tokenizer that akunu does
// not have, and ModelFormatError for a value of another type or length than it must be. What a model can do
// without is ignored.
std::unique_ptr<const Vocabulary> read_vocabulary(const GgufFile& file);

}  // namespace akunu
