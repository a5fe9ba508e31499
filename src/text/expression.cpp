#include "text/expression.h"

#include <algorithm>
#include <limits>
#include <string>

#include "core/error.h"

namespace akunu {
namespace {

constexpr uint32_t kUnlimited = std::numeric_limits<uint32_t>::max();

struct CategoryName {
  std::string_view name;
  Category category;
};

constexpr CategoryName kCategoryNames[] = {
    {"Cn", Category::unassigned},
    {"Lu", Category::upper},
    {"Ll", Category::lower},
    {"Lt", Category::title},
    {"Lm", Category::modifier_letter},
    {"Lo", Category::other_letter},
    {"Mn", Category::nonspacing_mark},
    {"Mc", Category::spacing_mark},
    {"Me", Category::enclosing_mark},
    {"Nd", Category::digit},
    {"Nl", Category::letter_number},
    {"No", Category::other_number},
    {"Pc", Category::connector},
    {"Pd", Category::dash},
    {"Ps", Category::opening},
    {"Pe", Category::closing},
    {"Pi", Category::initial_quote},
    {"Pf", Category::final_quote},
    {"Po", Category::other_punctuation},
    {"Sm", Category::math_symbol},
    {"Sc", Category::currency},
    {"Sk", Category::modifier_symbol},
    {"So", Category::other_symbol},
    {"Zs", Category::space},
    {"Zl", Category::line_separator},
    {"Zp", Category::paragraph_separator},
    {"Cc", Category::control},
    {"Cf", Category::format},
    {"Cs", Category::surrogate},
    {"Co", Category::private_use},
};

}  // namespace

void CharacterSet::add(char32_t first, char32_t last) { ranges_.emplace_back(first, last); }

void CharacterSet::add_category(Category category) {
  categories_ |= 1u << static_cast<unsigned>(category);
}

void CharacterSet::add_white_space() { white_space_ = true; }

void CharacterSet::add(const CharacterSet& other) { parts_.push_back(other); }

void CharacterSet::ignore_case() {
  for (char32_t lower = 'a'; lower <= 'z'; ++lower) {
    const char32_t upper = lower - ('a' - 'A');
    if (!find(lower) && !find(upper)) continue;
    add(lower, lower);
    add(upper, upper);
    // The two letters outside of ASCII whose other case is within.
    if (lower == 's') add(0x17F, 0x17F);
    if (lower == 'k') add(0x212A, 0x212A);
  }
}

void CharacterSet::finish() {
  std::ranges::sort(ranges_);
  for (char32_t character = 0; character < ascii_.size(); ++character)
    ascii_[character] = find(character);
}

bool CharacterSet::find(char32_t character) const {
  const auto is_in = [&](const auto& range) {
    return character >= range.first && character <= range.second;
  };
  const bool is_found =
      std::ranges::any_of(ranges_, is_in) ||
      (categories_ != 0 && (categories_ >> static_cast<unsigned>(category_of(character)) & 1)) ||
      (white_space_ && is_white_space(character)) ||
      std::ranges::any_of(parts_, [&](const CharacterSet& part) { return part.find(character); });
  return is_found != negated_;
}

// Recursive descent over the pattern.
class ExpressionParser {
 public:
  using Node = Expression::Node;
  using Sequence = Expression::Sequence;

  explicit ExpressionParser(std::string_view pattern)
      : pattern_(pattern), characters_(to_characters(pattern)) {}

  std::vector<Sequence> parse() {
    std::vector<Sequence> alternatives = parse_alternatives();
    if (at_ < characters_.size()) refuse("a ')' that closes nothing");
    return alternatives;
  }

 private:
  bool is_done() const { return at_ == characters_.size(); }
  char32_t peek() const { return is_done() ? U'\0' : characters_[at_]; }
  bool take(char32_t character) {
    if (is_done() || characters_[at_] != character) return false;
    ++at_;
    return true;
  }
  bool take(std::u32string_view text) {
    if (std::u32string_view(characters_).substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }
  char32_t next(const char* wanted) {
    if (is_done()) refuse(std::string("an end where ") + wanted + " is missing");
    return characters_[at_++];
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw UnsupportedModelError("the expression " + std::string(pattern_) + " has " + what +
                                " at character " + std::to_string(at_) +
                                ", which akunu does not understand");
  }

  std::vector<Sequence> parse_alternatives() {
    std::vector<Sequence> alternatives(1);
    while (!is_done() && peek() != U')') {
      if (take(U'|'))
        alternatives.emplace_back();
      else
        alternatives.back().push_back(parse_repeated());
    }
    return alternatives;
  }

  Node parse_repeated() {
    Node node = parse_one();
    if (take(U'?')) {
      node.least = 0;
    } else if (take(U'*')) {
      node.least = 0;
      node.most = kUnlimited;
    } else if (take(U'+')) {
      node.most = kUnlimited;
    } else if (take(U'{')) {
      node.least = node.most = parse_count();
      if (take(U',')) node.most = peek() == U'}' ? kUnlimited : parse_count();
      if (!take(U'}') || node.most < node.least) refuse("a count");
      return checked(std::move(node));
    } else {
      return node;
    }
    node.possessive = take(U'+');
    if (peek() == U'?') refuse("a lazy repetition");
    return checked(std::move(node));
  }

  // Matching a group again and again would recurse with the length of the text.
  Node checked(Node node) const {
    if (node.kind != Node::Kind::set && (node.kind != Node::Kind::group || node.most > 1))
      refuse("a repeated group");
    return node;
  }

  uint32_t parse_count() {
    uint32_t count = 0;
    const size_t begin = at_;
    while (peek() >= U'0' && peek() <= U'9' && count < 1000)
      count = count * 10 + static_cast<uint32_t>(characters_[at_++] - U'0');
    if (at_ == begin || count >= 1000) refuse("a count");
    return count;
  }

  Node parse_one() {
    Node node{.kind = Node::Kind::set};
    const char32_t character = next("an expression");
    switch (character) {
      case U'(':
        return parse_group();
      case U'[':
        node.set = parse_class();
        break;
      case U'\\':
        add_escape(node.set);
        break;
      case U'.':
        node.set.add('\n', '\n');
        node.set.negate();
        break;
      case U'$':
        node.kind = Node::Kind::line_end;
        break;
      case U'^':
      case U'*':
      case U'+':
      case U'?':
      case U'{':
        --at_;
        refuse("a '" + to_utf8({&characters_[at_], 1}) + "'");
      default:
        node.set.add(character, character);
    }
    if (ignores_case_) node.set.ignore_case();
    node.set.finish();
    return node;
  }

  Node parse_group() {
    Node node{.kind = Node::Kind::group};
    const bool ignored = ignores_case_;
    if (take(U"?i:"))
      ignores_case_ = true;
    else if (take(U"?!"))
      node.kind = Node::Kind::not_ahead;
    else if (take(U"?="))
      node.kind = Node::Kind::ahead;
    else if (!take(U"?:") && peek() == U'?')
      refuse("a kind of group");
    node.alternatives = parse_alternatives();
    if (!take(U')')) refuse("a group without an end");
    ignores_case_ = ignored;
    return node;
  }

  CharacterSet parse_class() {
    CharacterSet set;
    if (take(U'^')) set.negate();
    bool is_first = true;
    while (is_first || peek() != U']') {
      is_first = false;
      const char32_t character = next("']'");
      if (character == U'[' || (character == U'&' && peek() == U'&')) refuse("a class in a class");
      if (character == U'\\' && add_escape_of_set(set)) continue;
      const char32_t first = character == U'\\' ? escaped() : character;
      char32_t last = first;
      if (peek() == U'-' && at_ + 1 < characters_.size() && characters_[at_ + 1] != U']') {
        ++at_;
        last = next("the end of a range");
        if (last == U'\\') last = escaped();
        if (last < first) refuse("a range");
      }
      set.add(first, last);
    }
    ++at_;
    return set;
  }

  void add_escape(CharacterSet& set) {
    if (add_escape_of_set(set)) return;
    const char32_t character = escaped();
    set.add(character, character);
  }

  // Adds what `\p{..}`, `\s`, `\d` and their opposites stand for; false where it is a character.
  bool add_escape_of_set(CharacterSet& set) {
    CharacterSet found;
    switch (peek()) {
      case U's':
      case U'S':
        found.add_white_space();
        break;
      case U'd':
      case U'D':
        found.add_category(Category::digit);
        break;
      case U'p':
      case U'P':
        break;
      default:
        return false;
    }
    const char32_t letter = characters_[at_++];
    if (letter == U'p' || letter == U'P') add_property(found);
    if (letter == U'S' || letter == U'D' || letter == U'P') found.negate();
    set.add(found);
    return true;
  }

  void add_property(CharacterSet& set) {
    if (!take(U'{')) refuse("a property");
    if (take(U'^')) set.negate();
    std::string name;
    while (!is_done() && peek() != U'}') append_utf8(characters_[at_++], name);
    if (!take(U'}')) refuse("a property");
    bool is_known = false;
    for (const CategoryName& entry : kCategoryNames) {
      if (entry.name != name && entry.name.substr(0, 1) != name) continue;
      set.add_category(entry.category);
      is_known = true;
    }
    if (!is_known) refuse("the property " + name);
  }

  char32_t escaped() {
    const char32_t character = next("a character");
    if (character == U'n') return U'\n';
    if (character == U'r') return U'\r';
    if (character == U't') return U'\t';
    const bool is_letter = (character >= U'a' && character <= U'z') ||
                           (character >= U'A' && character <= U'Z') ||
                           (character >= U'0' && character <= U'9');
    if (is_letter) refuse("an escape");
    return character;
  }

  std::string_view pattern_;
  std::u32string characters_;
  size_t at_ = 0;
  bool ignores_case_ = false;
};

// What is still to match: the nodes from `node` to `end`, then what follows the group around them.
struct Expression::Rest {
  const Node* node;
  const Node* end;
  const Rest* outer;
};

Expression::Expression(std::string_view pattern)
    : alternatives_(ExpressionParser(pattern).parse()) {}

size_t Expression::match(std::u32string_view text, size_t begin) const {
  for (const Sequence& sequence : alternatives_) {
    const Rest rest{sequence.data(), sequence.data() + sequence.size(), nullptr};
    if (const size_t end = match_rest(text, begin, rest); end != kNoMatch) return end;
  }
  return kNoMatch;
}

size_t Expression::match_rest(std::u32string_view text, size_t at, const Rest& rest) {
  if (rest.node != rest.end)
    return match_node(text, at, *rest.node, {rest.node + 1, rest.end, rest.outer});
  return rest.outer == nullptr ? at : match_rest(text, at, *rest.outer);
}

size_t Expression::match_node(std::u32string_view text, size_t at, const Node& node,
                              const Rest& after) {
  const auto matches = [&](const Rest* outer) {
    for (const Sequence& sequence : node.alternatives) {
      const Rest rest{sequence.data(), sequence.data() + sequence.size(), outer};
      if (const size_t end = match_rest(text, at, rest); end != kNoMatch) return end;
    }
    return kNoMatch;
  };
  switch (node.kind) {
    case Node::Kind::set:
      return match_set(text, at, node, after);
    case Node::Kind::group: {
      if (node.possessive) {  // what the group took is never given back
        const size_t end = matches(nullptr);
        if (end != kNoMatch) return match_rest(text, end, after);
      } else if (const size_t end = matches(&after); end != kNoMatch) {
        return end;
      }
      return node.least == 0 ? match_rest(text, at, after) : kNoMatch;
    }
    case Node::Kind::ahead:
    case Node::Kind::not_ahead: {
      const bool is_there = matches(nullptr) != kNoMatch;
      return is_there == (node.kind == Node::Kind::ahead) ? match_rest(text, at, after) : kNoMatch;
    }
    case Node::Kind::line_end:
      return at == text.size() || text[at] == U'\n' ? match_rest(text, at, after) : kNoMatch;
  }
  return kNoMatch;
}

size_t Expression::match_set(std::u32string_view text, size_t at, const Node& node,
                             const Rest& after) {
  const size_t limit = node.most < text.size() - at ? at + node.most : text.size();
  size_t end = at;
  while (end < limit && node.set.holds(text[end])) ++end;
  if (end - at < node.least) return kNoMatch;
  if (node.possessive) return match_rest(text, end, after);
  for (;; --end) {  // as many as there are, then fewer
    if (const size_t found = match_rest(text, end, after); found != kNoMatch) return found;
    if (end - at == node.least) return kNoMatch;
  }
}

void append_word_ends(const Expression& expression, std::u32string_view text, size_t begin,
                      size_t end, std::vector<size_t>& ends) {
  // A piece is a text of its own: expressions do not look beyond its end.
  const std::u32string_view piece = text.substr(begin, end - begin);
  size_t done = 0;
  for (size_t at = 0; at < piece.size();) {
    const size_t match_end = expression.match(piece, at);
    if (match_end == Expression::kNoMatch || match_end == at) {
      ++at;
      continue;
    }
    if (at > done) ends.push_back(begin + at);
    ends.push_back(begin + match_end);
    done = at = match_end;
  }
  if (done < piece.size()) ends.push_back(end);
}

}  // namespace akunu
