// What a file says of its tokenizer, the same whichever file it is. GGUF's reader (gguf_vocabulary.h) and a
// directory's (directory_vocabulary.h) fill it, and make_vocabulary (vocabulary.h) checks it and completes it.
// Error messages name a value by its GGUF key, for directories too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/common/pre_tokenizers.h"
#include "text/added_tokens.h"
#include "text/unigram.h"

namespace akunu {

enum class TokenType : uint8_t {
  undefined = 0,
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

enum class TokenizerModel : uint8_t { byte_level, sentencepiece, wordpiece, gemma4, unigram };

inline constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";

// A token's id as the file has it, in range or not.
struct SourceTokenId {
  std::optional<int64_t> id = {};
  std::string fault = {};  // why the value is not a number: an error where the id is needed
};

struct VocabularySource {
  TokenizerModel model = TokenizerModel::byte_level;
  const PreTokenizer* pre = nullptr;     // of byte-level vocabularies; null where `splits` cut text
  std::vector<std::string> splits = {};  // of a file that has expressions in place of a name
  bool ignore_merges = false;            // goes with `splits`

  std::vector<std::string> tokens = {};
  std::vector<TokenType> types = {};     // one per token, or none: the file has no types
  std::vector<double> scores = {};       // one per token, of SentencePiece and Unigram
  std::vector<std::string> merges = {};  // "left right", best first; of the others
  std::vector<AddedToken> added = {};

  SourceTokenId bos = {}, eos = {}, eot = {}, eom = {}, pad = {}, unknown = {}, separator = {},
                cls = {};
  std::vector<uint32_t> stops = {};  // more of them, in range: they are control tokens

  // Nothing: the file does not say.
  std::optional<bool> add_bos = {}, add_eos = {}, add_space_prefix = {};
  std::optional<bool> lowercase = {}, strip_accents = {}, nfc = {};
  bool spells_spaces_late = false;
  UnigramSteps unigram = {};  // of Unigram
  std::string chat_template = {};
};

}  // namespace akunu
