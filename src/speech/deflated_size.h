// How many bytes zlib makes of a text: Whisper's measure of a text that repeats itself.
#pragma once

#include <cstddef>
#include <string_view>

namespace akunu::speech {

// The size of what zlib's `compress` makes of the text at its usual level (6), computed without making it:
// the same matches, the same codes. Exact for texts of one block, 16,383 bytes at most; a window's text is
// shorter.
size_t deflated_size(std::string_view text);

}  // namespace akunu::speech
