// A file of whisper.cpp as a ModelSource.
#pragma once

#include "files/model_source.h"
#include "files/whisper_cpp/file.h"

namespace akunu {

// The file's numbers, and its tensors, copied: they lie unaligned. Throws UnsupportedModelError for
// a tensor whose name is unknown or whose format akunu does not have, ModelFormatError for numbers
// that make no sense or a file that was damaged meanwhile, and OutOfMemoryError.
ModelSource whisper_cpp_source(const WhisperCppFile& file);

}  // namespace akunu
