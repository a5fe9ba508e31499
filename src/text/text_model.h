// Turns ordinary text, with no special tokens left in it, into ids: one class per tokenizer model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace akunu {

// Immutable: threads may share it.
class TextModel {
 public:
  virtual ~TextModel() = default;

  // Appends the ids of valid UTF-8. `opens`: whether the text opens a prompt or follows a special
  // token. Throws ArgumentError for a character that the vocabulary cannot spell.
  virtual void encode(std::string_view text, bool opens, std::vector<uint32_t>& ids) const {
    const std::string changed = normalized(text, opens);
    encode_normalized(changed, opens, ids);
  }

  // The two steps of that: between them, added tokens are looked for that are found in normalised text.
  // `opens` becomes false where nothing is left of what the text begins with.
  virtual std::string normalized(std::string_view text, bool& opens) const = 0;
  virtual void encode_normalized(std::string_view text, bool opens,
                                 std::vector<uint32_t>& ids) const = 0;
};

// Throws ModelFormatError for a vocabulary that contradicts itself. The vocabulary must outlive the model.
std::unique_ptr<const TextModel> make_text_model(const Vocabulary& vocabulary);

// Of these, `make_text_model` chooses.
std::unique_ptr<const TextModel> make_byte_level(const Vocabulary& vocabulary);
std::unique_ptr<const TextModel> make_sentencepiece(const Vocabulary& vocabulary);
std::unique_ptr<const TextModel> make_wordpiece(const Vocabulary& vocabulary);
std::unique_ptr<const TextModel> make_unigram(const Vocabulary& vocabulary);

// GPT-2's printable character for each byte, as UTF-8.
std::vector<std::string> byte_alphabet();

// Whether text may become the token by merging: it is not control, not unknown, not a byte's name, has text,
// and is not one that was added to the model's own vocabulary.
bool is_ordinary(const Vocabulary& vocabulary, uint32_t id);

}  // namespace akunu
