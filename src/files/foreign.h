// What is given to us as a model and is none: recognised by what is in it, not by its name, so that
// the message can say what it is and what to do.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace akunu {

// Behind what a file says it has and what it has.
inline constexpr const char* kCutOff = "; the file is cut off or damaged";

// The first `n` bytes of a regular file, or fewer; nothing of anything else. Whatever is wrong with a file is said by
// its reader.
std::string beginning_of(const std::string& path, size_t n);

// For a file that does not begin as its reader's format does; `begin` says how that is. Throws
// UnsupportedModelError for another format of models, and ModelFormatError for everything else.
// `shown_path` is printable.
[[noreturn]] void refuse_foreign(const std::string& shown_path, std::span<const std::byte> bytes,
                                 std::string_view begin = "a GGUF file begins with \"GGUF\"");

// For a directory. Throws UnsupportedModelError where it holds a model in another format, and
// ArgumentError otherwise: it names a GGUF file in it, if there is one.
[[noreturn]] void refuse_directory(const std::string& shown_path, const std::string& path);

}  // namespace akunu
