// Byte-level BPE: the family's expressions cut a text into words, whose bytes are merged by rank.
#include <array>

#include "core/error.h"
#include "text/expression.h"
#include "text/merge_ranks.h"
#include "text/text_model.h"
#include "text/unicode.h"

namespace akunu {
namespace {

class ByteLevel final : public TextModel {
 public:
  explicit ByteLevel(const Vocabulary& vocabulary)
      : vocabulary_(vocabulary), merges_(vocabulary), alphabet_(byte_alphabet()) {
    for (const std::string_view split : vocabulary.pre->splits) expressions_.emplace_back(split);
    for (size_t byte = 0; byte < bytes_.size(); ++byte) {
      const auto found = vocabulary.ids.find(alphabet_[byte]);
      if (found != vocabulary.ids.end() && is_ordinary(vocabulary, found->second))
        bytes_[byte] = found->second;
    }
  }

  std::string normalized(std::string_view text, bool&) const override {
    return vocabulary_.nfc ? to_utf8(composed(to_characters(text))) : std::string(text);
  }

  void encode_normalized(std::string_view text, bool, std::vector<uint32_t>& ids) const override {
    const std::u32string characters = to_characters(text);
    std::vector<size_t> ends{characters.size()};
    for (const Expression& expression : expressions_) {
      std::vector<size_t> finer;
      size_t begin = 0;
      for (const size_t end : ends) {
        append_word_ends(expression, characters, begin, end, finer);
        begin = end;
      }
      ends = std::move(finer);
    }
    size_t byte = 0, character = 0;
    std::vector<uint32_t> word;
    for (const size_t end : ends) {
      const size_t begin = byte;
      for (; character < end; ++character) byte += size_in_utf8(characters[character]);
      encode_word(text.substr(begin, byte - begin), word);
      ids.insert(ids.end(), word.begin(), word.end());
    }
  }

 private:
  static size_t size_in_utf8(char32_t character) {
    return character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
  }

  void encode_word(std::string_view word, std::vector<uint32_t>& ids) const {
    ids.clear();
    if (vocabulary_.pre->ignore_merges) {
      std::string spelled;
      for (const char c : word) spelled += alphabet_[static_cast<unsigned char>(c)];
      const auto found = vocabulary_.ids.find(spelled);
      if (found != vocabulary_.ids.end() && is_ordinary(vocabulary_, found->second)) {
        ids.push_back(found->second);
        return;
      }
    }
    for (const char c : word) {
      const uint32_t id = bytes_[static_cast<unsigned char>(c)];
      if (id == kMissing)
        throw ArgumentError("this vocabulary has no token for a byte of '" + std::string(word) +
                            "'");
      ids.push_back(id);
    }
    merge_neighbours(ids, [&](uint32_t left, uint32_t right) { return merges_.find(left, right); });
  }

  static constexpr uint32_t kMissing = ~0u;

  const Vocabulary& vocabulary_;
  const MergeRanks merges_;
  const std::vector<std::string> alphabet_;
  std::vector<Expression> expressions_;
  std::array<uint32_t, 256> bytes_ = [] {
    std::array<uint32_t, 256> none;
    none.fill(kMissing);
    return none;
  }();
};

}  // namespace

std::vector<std::string> byte_alphabet() {
  std::vector<std::string> alphabet(256);
  char32_t shifted = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool is_printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    append_utf8(is_printable ? byte : shifted++, alphabet[byte]);
  }
  return alphabet;
}

std::unique_ptr<const TextModel> make_byte_level(const Vocabulary& vocabulary) {
  return std::make_unique<ByteLevel>(vocabulary);
}

}  // namespace akunu
