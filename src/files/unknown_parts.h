// What a file of a family that akunu does not have holds besides: the tensors and keys that no family
// here has. It tells how far the family is from those that there are.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "files/gguf/gguf.h"
#include "files/huggingface/model_directory.h"

namespace akunu {

// "", or the end of a message: "; of its tensors akunu does not know blk.N.ssm_a, ...; of its keys ...".
// Numbers in names are written as N.
std::string unknown_parts(const GgufFile& file, std::string_view architecture);
std::string unknown_parts(const ModelDirectory& directory);

}  // namespace akunu
