// Unicode as far as tokenizers need it: UTF-8, general categories, lower case, canonical forms, and
// what BERT's tokenizer takes for control characters, punctuation and accents.
//
// The tables are of Unicode 16.0, as the expressions of Hugging Face's tokenizers are; see
// tools/make_unicode_tables.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace akunu {

// The general categories, in the order of the tables.
enum class Category : uint8_t {
  unassigned,
  upper,
  lower,
  title,
  modifier_letter,
  other_letter,
  nonspacing_mark,
  spacing_mark,
  enclosing_mark,
  digit,
  letter_number,
  other_number,
  connector,
  dash,
  opening,
  closing,
  initial_quote,
  final_quote,
  other_punctuation,
  math_symbol,
  currency,
  modifier_symbol,
  other_symbol,
  space,
  line_separator,
  paragraph_separator,
  control,
  format,
  surrogate,
  private_use,
};

Category category_of(char32_t character);

// What decides where grapheme clusters end (Unicode, annex 29), in the order of the tables.
enum class GraphemeBreak : uint8_t {
  other,
  control,
  carriage_return,
  line_feed,
  extend,
  joiner,
  spacing_mark,
  prepend,
  pictograph,
};

GraphemeBreak grapheme_break_of(char32_t character);

// White_Space of Unicode; U+001C to U+001F are none.
bool is_white_space(char32_t character);

// Whether an expression's `\w` matches: letters, marks, digits, what joins them ("_"), and letter-like symbols.
bool is_word_character(char32_t character);

bool bert_removes(char32_t character);
bool bert_punctuates(char32_t character);
bool bert_strips(char32_t character);

// Where the first byte lies that is no UTF-8; npos where all is well.
size_t find_invalid_utf8(std::string_view bytes);

// The bytes must be valid UTF-8.
std::u32string to_characters(std::string_view utf8);

void append_utf8(char32_t character, std::string& utf8);
std::string to_utf8(std::u32string_view characters);

std::u32string to_lower(std::u32string_view characters);

// Normalization forms D and C.
std::u32string decomposed(std::u32string_view characters);
std::u32string composed(std::u32string_view characters);

}  // namespace akunu
