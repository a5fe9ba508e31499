// Names of Whisper's tensors, by kind of file.
#pragma once

#include "weight/names.h"

namespace akunu {

const NameRules& whisper_gguf_names();  // akunu's layout, docs/gguf.md
const NameRules& whisper_hf_names();
const NameRules& whisper_cpp_names();

}  // namespace akunu
