// SentencePiece's normalization table (`precompiled_charsmap`): a double array of bytes,
// as darts-clone writes it, and the texts that it leads to, each with a zero behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace akunu {

class CharacterMap {
 public:
  // Throws ModelFormatError for a table that is cut off.
  explicit CharacterMap(std::string_view bytes);

  // Replaces what the table knows, as the `tokenizers` library does: a cluster of up to five bytes as one, or
  // else character by character. (SentencePiece looks for the longest text instead; the models' users have
  // the library.)
  std::string apply(std::string_view text) const;

 private:
  // What the shortest beginning of `piece` that is in the table becomes.
  std::optional<std::string_view> find(std::string_view piece) const;

  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace akunu
