// Text to token ids and back, from a file's own vocabulary, without Python.
//
//   const Tokenizer tokenizer(read_vocabulary(GgufFile::open("model.gguf")));
//   const std::vector<uint32_t> ids = tokenizer.encode("Hello");
//
// Text that contains the name of a control token, such as `<|im_end|>`, is text unless `parse_special`
// asks otherwise. Immutable: threads may share a tokenizer.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/chat_format.h"
#include "text/text_model.h"
#include "text/token_matcher.h"
#include "text/vocabulary.h"

namespace akunu {

class Tokenizer {
 public:
  // Throws what `make_text_model` does.
  explicit Tokenizer(std::unique_ptr<const Vocabulary> vocabulary);

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  uint32_t size() const { return static_cast<uint32_t>(vocabulary_->tokens.size()); }

  // `add_special` adds what the model expects around a prompt (BOS, rarely EOS; [CLS] and [SEP] of
  // BERT's kind), but no second BOS or EOS. `parse_special` makes control tokens out of their names in
  // the text: leave it off for text that you did not write. Throws ArgumentError for text that is not
  // UTF-8 and for characters that the vocabulary cannot spell.
  std::vector<uint32_t> encode(std::string_view text, bool add_special = true,
                               bool parse_special = false) const;

  // The tokens of a conversation: control tokens that the template writes become tokens, and the same
  // characters in a message stay text. BOS stands in front if the model wants it there.
  std::vector<uint32_t> encode_chat(std::span<const ChatPart> parts) const;

  // The bytes that one token adds to a text; of a control token its name. Throws ArgumentError for an
  // id out of range.
  std::string_view token_bytes(uint32_t token) const;

  bool is_control(uint32_t token) const;  // or unknown: no text becomes one

 private:
  friend class TextStream;
  bool is_wordpiece() const { return vocabulary_->model == TokenizerModel::wordpiece; }
  bool is_special(uint32_t token) const;
  std::string spell(uint32_t token) const;

  std::unique_ptr<const Vocabulary> vocabulary_;
  std::unique_ptr<const TextModel> model_;
  // Finds tokens in text as it is, and in normalised text.
  struct Matchers {
    TokenMatcher raw, normalized;
  };
  void add(const AddedToken& token, const std::string& pattern);
  void encode_text(std::string_view text, bool opens, const TokenMatcher& normalized,
                   std::vector<uint32_t>& ids) const;
  std::string_view without_taken_spaces(std::string_view text, std::optional<uint32_t> before,
                                        std::optional<uint32_t> behind) const;

  std::deque<std::string> patterns_;  // of `Matchers::normalized`
  Matchers added_, added_and_control_;
  TokenMatcher control_;            // by their names, wherever a template writes them
  std::vector<std::string> bytes_;  // of every token
};

// Turns ids into text as they arrive; never gives out half a character. The tokenizer must outlive it.
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer, bool skip_special = false)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}

  // Goes on after these ids: whether a leading space belongs to the text depends on the last one.
  void follow(uint32_t last) {
    opens_ = tokenizer_.vocabulary().opens_anew && tokenizer_.is_special(last);
  }

  // The text that is complete now that the token has arrived, often "". Bytes that are no UTF-8
  // become U+FFFD.
  std::string push(uint32_t token);

  // What is left: U+FFFD for an unfinished character, else "".
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  const bool skip_special_;
  bool opens_ = true;
  std::string pending_;  // the first bytes of a character
};

}  // namespace akunu
