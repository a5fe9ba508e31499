// What is given to us as a model and is none: recognised by what is in it, not by its name, so that
// the message can say what it is and what to do.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace akunu {

// For a file that does not begin as GGUF does. Throws UnsupportedModelError for another format of
// models, and ModelFormatError for everything else. `shown_path` is printable.
[[noreturn]] void refuse_foreign(const std::string& shown_path, std::span<const std::byte> bytes);

// For a directory. Throws UnsupportedModelError where it holds a model in another format, and
// ArgumentError otherwise: it names a GGUF file in it, if there is one.
[[noreturn]] void refuse_directory(const std::string& shown_path, const std::string& path);

}  // namespace akunu
