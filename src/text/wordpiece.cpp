// BERT's WordPiece: cleaned, lower-cased words; the longest pieces from the left.
#include <string>

#include "text/text_model.h"
#include "text/unicode.h"

namespace akunu {
namespace {

constexpr size_t kLongestWord = 100;  // characters; a longer word is unknown

// The blocks of CJK ideographs that BERT sets apart, each a word.
bool is_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

class WordPiece final : public TextModel {
 public:
  explicit WordPiece(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    for (uint32_t id = 0; id < vocabulary.tokens.size(); ++id) {
      if (!is_ordinary(vocabulary, id)) continue;
      const std::string_view token = vocabulary.tokens[id];
      if (token.starts_with(kSpelledSpace))
        heads_.emplace(token.substr(kSpelledSpace.size()), id);
      else if (vocabulary.find_added(id) != nullptr)  // spelled as it is
        heads_.emplace(token, id);
      else
        tails_.emplace(token, id);
    }
  }

  void encode(std::string_view text, bool, std::vector<uint32_t>& ids) const override {
    encode_characters(normal_characters(text), ids);
  }

  std::string normalized(std::string_view text, bool&) const override {
    return to_utf8(normal_characters(text));
  }

  void encode_normalized(std::string_view text, bool, std::vector<uint32_t>& ids) const override {
    encode_characters(to_characters(text), ids);
  }

 private:
  void encode_characters(std::u32string_view characters, std::vector<uint32_t>& ids) const {
    std::u32string word;
    const auto end_word = [&] {
      encode_word(word, ids);
      word.clear();
    };
    for (const char32_t character : characters) {
      if (is_white_space(character)) {
        end_word();
      } else if (bert_punctuates(character)) {
        end_word();
        word = character;
        end_word();
      } else {
        word += character;
      }
    }
    end_word();
  }

  std::u32string normal_characters(std::string_view text) const {
    std::u32string cleaned;
    for (const char32_t character : to_characters(text)) {
      if (bert_removes(character)) continue;
      if (is_ideograph(character))
        cleaned.append({U' ', character, U' '});
      else
        cleaned += is_white_space(character) ? U' ' : character;
    }
    if (vocabulary_.strip_accents) {
      cleaned = decomposed(cleaned);
      std::erase_if(cleaned, bert_strips);
    }
    return vocabulary_.lowercase ? to_lower(cleaned) : cleaned;
  }

  void encode_word(std::u32string_view characters, std::vector<uint32_t>& ids) const {
    if (characters.empty()) return;
    const std::string word = to_utf8(characters);
    const size_t first = ids.size();
    for (size_t begin = 0; begin < word.size();) {
      const auto& pieces = begin == 0 ? heads_ : tails_;
      size_t end = word.size();
      auto found = pieces.end();
      if (characters.size() <= kLongestWord)
        for (; end > begin; --end) {
          found = pieces.find(std::string_view(word).substr(begin, end - begin));
          if (found != pieces.end()) break;
        }
      if (found == pieces.end()) {  // then all of the word is unknown
        ids.resize(first);
        ids.push_back(*vocabulary_.unknown);
        return;
      }
      ids.push_back(found->second);
      begin = end;
    }
  }

  const Vocabulary& vocabulary_;
  std::unordered_map<std::string_view, uint32_t> heads_, tails_;
};

}  // namespace

std::unique_ptr<const TextModel> make_wordpiece(const Vocabulary& vocabulary) {
  return std::make_unique<WordPiece>(vocabulary);
}

}  // namespace akunu
