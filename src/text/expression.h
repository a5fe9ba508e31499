// Regular expressions as tokenizers use them to cut text into words.
//
//   const Expression words(R"( ?\p{L}+|\s+(?!\S)|\s+)");
//   words.match(characters, begin);  // the end of the match that begins there
//
// What is understood: characters, classes, `\p{..}`, `\s`, `\S`, `\d`, `.`, groups `(?:..)` and `(?i:..)`,
// alternatives, lookahead `(?=..)` and `(?!..)`, `$`, and `? * + {m} {m,n}`, lazy ones excepted. Only
// a single character or class may be repeated more than once, so matching never recurses with the
// length of the text. Meaning is that of the expressions of Hugging Face's tokenizers (Oniguruma's Ruby
// syntax): the first alternative that matches wins.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "text/unicode.h"

namespace akunu {

// A set of characters.
class CharacterSet {
 public:
  void add(char32_t first, char32_t last);
  void add_category(Category category);
  void add_white_space();
  void add(const CharacterSet& other);
  void negate() { negated_ = !negated_; }
  // Adds the other case of every letter of ASCII in it.
  void ignore_case();

  // The tests of ASCII are prepared when it is complete.
  void finish();
  bool holds(char32_t character) const {
    return character < ascii_.size() ? ascii_[character] : find(character);
  }

 private:
  bool find(char32_t character) const;

  std::vector<std::pair<char32_t, char32_t>> ranges_;
  std::vector<CharacterSet> parts_;  // negated sets inside of this one
  uint32_t categories_ = 0;          // a bit each
  bool white_space_ = false;
  bool negated_ = false;
  std::array<bool, 128> ascii_{};
};

class Expression {
 public:
  static constexpr size_t kNoMatch = std::u32string_view::npos;

  // Throws UnsupportedModelError for what it does not understand: which part.
  explicit Expression(std::string_view pattern);

  // The end of the match that begins at `begin`; kNoMatch. A match may be empty.
  size_t match(std::u32string_view text, size_t begin) const;

 private:
  friend class ExpressionParser;
  struct Node;
  // One after the other; `next` goes on where a group ends.
  using Sequence = std::vector<Node>;
  struct Node {
    enum class Kind : uint8_t { set, group, ahead, not_ahead, line_end } kind;
    uint32_t least = 1, most = 1;
    bool possessive = false;
    CharacterSet set{};
    std::vector<Sequence> alternatives{};
  };
  struct Rest;

  static size_t match_rest(std::u32string_view text, size_t at, const Rest& rest);
  static size_t match_node(std::u32string_view text, size_t at, const Node& node,
                           const Rest& after);
  static size_t match_set(std::u32string_view text, size_t at, const Node& node, const Rest& after);

  std::vector<Sequence> alternatives_;
};

// Cuts a text into words: what matches, and what lies between matches; the ends of all words, in order.
void append_word_ends(const Expression& expression, std::u32string_view text, size_t begin,
                      size_t end, std::vector<size_t>& ends);

}  // namespace akunu
