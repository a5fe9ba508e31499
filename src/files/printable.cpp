#include "files/printable.h"

#include <cstdint>

namespace akunu {
namespace {

uint8_t byte_at(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

}  // namespace

size_t utf8_length(std::string_view text) {
  const uint8_t first = byte_at(text, 0);
  size_t length = 0;
  uint8_t lowest = 0x80, highest = 0xbf;  // of the second byte
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) length = 2;
  if (first >= 0xe0 && first <= 0xef) length = 3;
  if (first >= 0xf0 && first <= 0xf4) length = 4;
  if (first == 0xe0) lowest = 0xa0;   // shorter forms exist
  if (first == 0xed) highest = 0x9f;  // surrogates
  if (first == 0xf0) lowest = 0x90;
  if (first == 0xf4) highest = 0x8f;  // beyond U+10FFFF
  if (length == 0 || length > text.size()) return 0;
  if (byte_at(text, 1) < lowest || byte_at(text, 1) > highest) return 0;
  for (size_t i = 2; i < length; ++i)
    if ((byte_at(text, i) & 0xc0) != 0x80) return 0;
  return length;
}

std::string printable(std::string_view text, size_t limit) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  size_t at = 0;
  while (at < text.size() && at < limit) {
    const uint8_t byte = byte_at(text, at);
    const size_t length = utf8_length(text.substr(at));
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      result += "\\x";
      result += kDigits[byte >> 4];
      result += kDigits[byte & 0xf];
      ++at;
    } else {
      result += text.substr(at, length);
      at += length;
    }
  }
  if (const size_t left = text.size() - at; left > 0)
    result += "... (" + std::to_string(left) + (left == 1 ? " byte more)" : " bytes more)");
  return result;
}

}  // namespace akunu
