// Bytes from a file as text that may go into an error message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace akunu {

inline constexpr size_t kNameLimit = 80;    // longer keys and tensor names are hostile, not long
inline constexpr size_t kPathLimit = 4096;  // PATH_MAX

// The text with control characters and bytes that are not UTF-8 written as \xNN, and cut after
// `limit` bytes with the number of those that are missing: a name of a gigabyte, with a zero byte
// and half a character in it, gives a message that one can still read, log and decode.
std::string printable(std::string_view text, size_t limit = kNameLimit);

// Bytes of the well-formed UTF-8 character at the start of `text`, which is not empty (Unicode 15, table
// 3-7); 0 if there is none.
size_t utf8_length(std::string_view text);

}  // namespace akunu
