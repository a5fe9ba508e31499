// SHA-256 (FIPS 180-4): which text something is, without keeping the text.
#pragma once

#include <string>
#include <string_view>

namespace akunu {

// 64 digits, in lower case.
std::string sha256_hex(std::string_view bytes);

}  // namespace akunu
