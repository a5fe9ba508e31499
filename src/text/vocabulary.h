// The vocabulary that a tokenizer is made from, checked: every id is in range, every array as long as it must be. The rules
// are those of the Python package (akunu/tokenizers/vocabulary.py); the reasons for them are given there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/common/pre_tokenizers.h"
#include "text/added_tokens.h"
#include "text/unigram.h"
#include "text/vocabulary_source.h"

namespace akunu {

// U+2581: how SentencePiece and WordPiece vocabularies spell a space.
inline constexpr std::string_view kSpelledSpace = "\xE2\x96\x81";

struct Vocabulary {
  TokenizerModel model;
  const PreTokenizer* pre;  // of byte-level vocabularies; never null
  std::vector<std::string> tokens;
  std::vector<bool> is_text;  // whether a token is UTF-8: no text becomes one that is not
  std::vector<TokenType> types;
  std::vector<double> scores;       // of SentencePiece (where it has no merges) and Unigram
  std::vector<std::string> merges;  // "left right", best first
  std::unordered_map<std::string_view, uint32_t> ids;  // of `tokens`; empty ones are left out
  std::optional<uint32_t> bos, eos, eot, pad, unknown, separator;
  bool add_bos = false, add_eos = false;
  bool add_space_prefix = false;
  // Of SentencePiece: whether added tokens are found before spaces are replaced by U+2581.
  bool spells_spaces_late = false;
  bool opens_anew = true;  // whether text behind a special token begins like a new one
  bool lowercase = true, strip_accents = true;
  bool nfc = false;
  UnigramSteps unigram;                           // of Unigram
  std::vector<uint32_t> stops;                    // ascending
  std::string chat_template;                      // empty: none that is usable
  std::vector<std::string> splits = {};           // what `pre` refers to, where no family has it
  std::vector<std::string_view> own_splits = {};  // likewise
  PreTokenizer own_pre = {};                      // likewise
  // Added tokens for which the type alone does not say how they are found in a text, in the order in which
  // they are tried. From a tokenizer.json: all added tokens.
  std::vector<AddedToken> added = {};
  std::unordered_map<uint32_t, size_t> added_at = {};  // of an id in `added`

  const AddedToken* find_added(uint32_t id) const {
    const auto found = added_at.find(id);
    return found == added_at.end() ? nullptr : &added[found->second];
  }
};

// Throws ModelFormatError if values contradict each other. A fault in a value that the model does not need is ignored.
std::unique_ptr<const Vocabulary> make_vocabulary(VocabularySource source);

// The byte that a token spelled `<0xAB>` stands for.
std::optional<uint8_t> byte_of(std::string_view token);

}  // namespace akunu
