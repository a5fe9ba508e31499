#include "text/token_matcher.h"

#include <algorithm>

#include "files/printable.h"
#include "text/unicode.h"

namespace akunu {
namespace {

std::string_view character_before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while ((static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return text.substr(begin, end - begin);
}

std::string_view character_from(std::string_view text, size_t begin) {
  return text.substr(begin, utf8_length(text.substr(begin)));
}

bool is_space(std::string_view character) { return is_white_space(to_characters(character)[0]); }

bool is_word_of_its_own(std::string_view text, size_t begin, size_t end) {
  const auto is_word = [](std::string_view character) {
    return is_word_character(to_characters(character)[0]);
  };
  return !(begin > 0 && is_word(character_before(text, begin))) &&
         !(end < text.size() && is_word(character_from(text, end)));
}

}  // namespace

void TokenMatcher::add(std::string_view text, const AddedToken& token) {
  tokens_.emplace(text, token);
  std::vector<size_t>& lengths = lengths_[static_cast<unsigned char>(text[0])];
  const auto place = std::ranges::lower_bound(lengths, text.size(), std::greater<>());
  if (place == lengths.end() || *place != text.size()) lengths.insert(place, text.size());
}

void TokenMatcher::split(std::string_view text,
                         const std::function<void(std::string_view)>& on_text,
                         const std::function<void(uint32_t)>& on_token) const {
  size_t done = 0;  // before `at` where a token lies in the white space behind another
  for (size_t at = 0; at < text.size();) {
    auto found = tokens_.end();
    for (const size_t length : lengths_[static_cast<unsigned char>(text[at])]) {
      if (length > text.size() - at) continue;
      found = tokens_.find(text.substr(at, length));
      if (found != tokens_.end()) break;
    }
    if (found == tokens_.end()) {
      ++at;
      continue;
    }
    const AddedToken& token = found->second;
    size_t begin = at, end = at += found->first.size();
    if (token.single_word && !is_word_of_its_own(text, begin, end)) continue;
    if (token.lstrip) begin = std::max(spaces_begin(text, begin, done), done);
    if (token.rstrip) end = spaces_end(text, end);
    if (begin >= end) continue;  // the token before has all of it
    if (begin > done) on_text(text.substr(done, begin - done));
    on_token(token.id);
    done = end;
  }
  if (done < text.size()) on_text(text.substr(done));
}

size_t spaces_begin(std::string_view text, size_t end, size_t least) {
  while (end > least) {
    const std::string_view character = character_before(text, end);
    if (!is_space(character)) break;
    end -= character.size();
  }
  return end;
}

size_t spaces_end(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const std::string_view character = character_from(text, begin);
    if (!is_space(character)) break;
    begin += character.size();
  }
  return begin;
}

}  // namespace akunu
