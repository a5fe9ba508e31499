#include "text/unicode.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "files/printable.h"

namespace akunu {
namespace {

struct CategoryRun {
  uint32_t first;
  uint8_t category;
};

struct ClassRun {
  uint32_t first;
  uint8_t combining_class;
};

struct BreakRun {
  uint32_t first;
  uint8_t kind;
};

// A character and what it becomes, or two characters and what they become.
struct Mapping {
  uint32_t first, second, third;
};

struct Range {
  uint32_t first, last;
};

#include "text/unicode_tables.inc"

// The entry of the run that holds the character.
template <class Run>
const Run& run_of(std::span<const Run> runs, char32_t character) {
  const auto next = std::ranges::upper_bound(runs, uint32_t{character}, {}, &Run::first);
  return *std::prev(next);
}

bool holds(std::span<const Range> ranges, char32_t character) {
  const auto next = std::ranges::upper_bound(ranges, uint32_t{character}, {}, &Range::first);
  return next != ranges.begin() && character <= std::prev(next)->last;
}

const Mapping* mapping_of(std::span<const Mapping> mappings, char32_t character) {
  const auto found = std::ranges::lower_bound(mappings, uint32_t{character}, {}, &Mapping::first);
  return found != mappings.end() && found->first == character ? &*found : nullptr;
}

uint8_t combining_class(char32_t character) {
  if (character < 0x300) return 0;
  return run_of<ClassRun>(kCombiningClasses, character).combining_class;
}

// Hangul syllables are composed by arithmetic: chapter 3.12 of the Unicode standard.
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

void append_decomposed(char32_t character, std::u32string& out) {
  if (character < 0xC0) {
    out += character;
  } else if (character - kSyllables < kSyllableCount) {
    const char32_t index = character - kSyllables;
    out += kLeads + index / (kVowelCount * kTailCount);
    out += kVowels + index % (kVowelCount * kTailCount) / kTailCount;
    if (index % kTailCount != 0) out += kTails + index % kTailCount;
  } else if (const Mapping* parts = mapping_of(kDecompositions, character)) {
    append_decomposed(parts->second, out);
    if (parts->third != 0) append_decomposed(parts->third, out);
  } else {
    out += character;
  }
}

// The character that the two are together; 0 where they stay two.
char32_t pair(char32_t first, char32_t second) {
  if (first - kLeads < kLeadCount && second - kVowels < kVowelCount)
    return kSyllables + ((first - kLeads) * kVowelCount + second - kVowels) * kTailCount;
  if (first - kSyllables < kSyllableCount && (first - kSyllables) % kTailCount == 0 &&
      second > kTails && second - kTails < kTailCount)
    return first + second - kTails;
  const auto order = [](const Mapping& entry) { return std::pair{entry.first, entry.second}; };
  const std::pair wanted{uint32_t{first}, uint32_t{second}};
  const std::span<const Mapping> all = kCompositions;
  const auto found = std::ranges::lower_bound(all, wanted, {}, order);
  return found != all.end() && order(*found) == wanted ? char32_t{found->third} : char32_t{0};
}

char32_t character_at(std::string_view utf8, size_t length) {
  const auto first = static_cast<unsigned char>(utf8[0]);
  if (length == 1) return first;
  char32_t character = first & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i)
    character = character << 6 | (static_cast<unsigned char>(utf8[i]) & 0x3Fu);
  return character;
}

}  // namespace

GraphemeBreak grapheme_break_of(char32_t character) {
  if (character >= 0x20 && character < 0x7F) return GraphemeBreak::other;
  return static_cast<GraphemeBreak>(run_of<BreakRun>(kGraphemeBreaks, character).kind);
}

Category category_of(char32_t character) {
  if (character > 0x10FFFF) return Category::unassigned;
  return static_cast<Category>(run_of<CategoryRun>(kCategories, character).category);
}

bool is_word_character(char32_t character) {
  // Symbols that are alphabetic: circled and squared letters.
  constexpr Range kLetterLike[] = {
      {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
  const Category category = category_of(character);
  const bool is_letter_or_mark = category >= Category::upper && category <= Category::letter_number;
  const bool joins = character == 0x200C || character == 0x200D;
  return is_letter_or_mark || category == Category::connector || joins ||
         holds(kLetterLike, character);
}

bool is_white_space(char32_t character) {
  if (character <= ' ') return character == ' ' || (character >= '\t' && character <= '\r');
  if (character == 0x85) return true;
  const Category category = category_of(character);
  return category == Category::space || category == Category::line_separator ||
         category == Category::paragraph_separator;
}

bool bert_removes(char32_t character) { return holds(kBertRemoved, character); }
bool bert_punctuates(char32_t character) { return holds(kBertPunctuation, character); }
bool bert_strips(char32_t character) { return holds(kBertAccents, character); }

size_t find_invalid_utf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = utf8_length(bytes.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

std::u32string to_characters(std::string_view utf8) {
  std::u32string characters;
  characters.reserve(utf8.size());
  for (size_t i = 0; i < utf8.size();) {
    const size_t length = utf8_length(utf8.substr(i));
    characters += character_at(utf8.substr(i), length);
    i += length;
  }
  return characters;
}

void append_utf8(char32_t character, std::string& utf8) {
  const auto add = [&](char32_t byte) { utf8 += static_cast<char>(byte); };
  if (character < 0x80) {
    add(character);
    return;
  }
  const int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  add((0xFF00u >> (more + 1) & 0xFF) | character >> (6 * more));
  for (int i = more - 1; i >= 0; --i) add(0x80 | (character >> (6 * i) & 0x3F));
}

std::string to_utf8(std::u32string_view characters) {
  std::string utf8;
  utf8.reserve(characters.size());
  for (const char32_t character : characters) append_utf8(character, utf8);
  return utf8;
}

std::u32string to_lower(std::u32string_view characters) {
  std::u32string lower;
  lower.reserve(characters.size());
  for (const char32_t character : characters) {
    if (character < 0x80) {
      lower += character >= 'A' && character <= 'Z' ? character + ('a' - 'A') : character;
    } else if (const Mapping* mapping = mapping_of(kLowered, character)) {
      lower += mapping->second;
      if (mapping->third != 0) lower += mapping->third;
    } else {
      lower += character;
    }
  }
  return lower;
}

std::u32string decomposed(std::u32string_view characters) {
  std::u32string out;
  out.reserve(characters.size());
  for (const char32_t character : characters) append_decomposed(character, out);
  // Marks in a row are ordered by their class; those of one class keep their order.
  for (size_t i = 0; i < out.size();) {
    if (combining_class(out[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < out.size() && combining_class(out[end]) != 0) ++end;
    const auto begin = out.begin();
    std::stable_sort(
        begin + static_cast<ptrdiff_t>(i), begin + static_cast<ptrdiff_t>(end),
        [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
    i = end;
  }
  return out;
}

std::u32string composed(std::u32string_view characters) {
  std::u32string out = decomposed(characters);
  constexpr size_t kNone = std::u32string::npos;
  size_t starter = kNone;  // the latest character of class 0 that was kept
  size_t kept = 0;
  uint8_t class_before = 0;  // of the latest character that was kept behind the starter
  for (size_t i = 0; i < out.size(); ++i) {
    const char32_t character = out[i];
    const uint8_t own_class = combining_class(character);
    // A mark is blocked by another one of its class or a higher one between it and the starter.
    const bool is_adjacent = starter != kNone && kept == starter + 1;
    if (starter != kNone && (is_adjacent || class_before < own_class)) {
      if (const char32_t both = pair(out[starter], character); both != 0) {
        out[starter] = both;
        continue;
      }
    }
    if (own_class == 0) starter = kept;
    class_before = own_class;
    out[kept++] = character;
  }
  out.resize(kept);
  return out;
}

}  // namespace akunu
