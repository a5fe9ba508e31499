#include "text/graphemes.h"

#include "files/printable.h"
#include "text/unicode.h"

namespace akunu {
namespace {

// Whether the rules of annex 29 keep these two neighbours together. `has_emoji`: a pictograph, and marks
// behind it, stand before `left`.
bool stay_together(GraphemeBreak left, GraphemeBreak right, bool has_emoji) {
  using enum GraphemeBreak;
  const auto breaks = [](GraphemeBreak kind) {
    return kind == control || kind == carriage_return || kind == line_feed;
  };
  if (left == carriage_return && right == line_feed) return true;                // GB3
  if (breaks(left) || breaks(right)) return false;                               // GB4, GB5
  if (right == extend || right == joiner || right == spacing_mark) return true;  // GB9, GB9a
  if (left == prepend) return true;                                              // GB9b
  return left == joiner && right == pictograph && has_emoji;                     // GB11
}

}  // namespace

size_t grapheme_length(std::string_view text) {
  using enum GraphemeBreak;
  if (text.empty()) return 0;
  size_t at = utf8_length(text);
  GraphemeBreak left = grapheme_break_of(to_characters(text.substr(0, at))[0]);
  bool has_emoji = left == pictograph;
  while (at < text.size()) {
    const size_t length = utf8_length(text.substr(at));
    const GraphemeBreak right = grapheme_break_of(to_characters(text.substr(at, length))[0]);
    if (!stay_together(left, right, has_emoji)) break;
    has_emoji = right == pictograph || (has_emoji && (right == extend || right == joiner));
    left = right;
    at += length;
  }
  return at;
}

}  // namespace akunu
