#include "text/character_map.h"

#include <cstring>

#include "core/error.h"
#include "files/printable.h"
#include "text/graphemes.h"

namespace akunu {
namespace {

constexpr size_t kLongestCluster = 5;  // bytes

// A unit of the double array: https://github.com/s-yata/darts-clone
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) == 1; }
uint32_t value(uint32_t unit) { return unit & ((1u << 31) - 1); }
uint32_t label(uint32_t unit) { return unit & (1u << 31 | 0xFF); }
uint32_t offset(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }

}  // namespace

CharacterMap::CharacterMap(std::string_view bytes) {
  uint32_t n_bytes = 0;
  if (bytes.size() >= sizeof n_bytes) std::memcpy(&n_bytes, bytes.data(), sizeof n_bytes);
  if (n_bytes == 0 || n_bytes % sizeof(uint32_t) != 0 || n_bytes > bytes.size() - sizeof n_bytes)
    throw ModelFormatError("the tokenizer's precompiled_charsmap has " +
                           std::to_string(bytes.size()) + " bytes, and a table of " +
                           std::to_string(n_bytes));
  units_.resize(n_bytes / sizeof(uint32_t));
  std::memcpy(units_.data(), bytes.data() + sizeof n_bytes, n_bytes);
  texts_ = bytes.substr(sizeof n_bytes + n_bytes);
}

std::optional<std::string_view> CharacterMap::find(std::string_view piece) const {
  uint32_t at = offset(units_[0]);
  for (const char c : piece) {
    const uint32_t byte = static_cast<unsigned char>(c);
    at ^= byte;
    if (byte == 0 || at >= units_.size() || label(units_[at]) != byte) return std::nullopt;
    const bool is_end = has_leaf(units_[at]);
    at ^= offset(units_[at]);
    if (!is_end) continue;
    if (at >= units_.size() || value(units_[at]) >= texts_.size()) return std::nullopt;
    return std::string_view(texts_.c_str() + value(units_[at]));  // up to the next zero
  }
  return std::nullopt;
}

std::string CharacterMap::apply(std::string_view text) const {
  std::string out;
  while (!text.empty()) {
    std::string_view cluster = text.substr(0, grapheme_length(text));
    text.remove_prefix(cluster.size());
    if (cluster.size() <= kLongestCluster)
      if (const auto whole = find(cluster)) {
        out += *whole;
        continue;
      }
    while (!cluster.empty()) {
      const std::string_view character = cluster.substr(0, utf8_length(cluster));
      cluster.remove_prefix(character.size());
      out += find(character).value_or(character);
    }
  }
  return out;
}

}  // namespace akunu
