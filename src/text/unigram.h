// What happens to a text before Unigram looks for pieces, as the `tokenizers` library has it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace akunu {

// A step that changes the text.
struct TextStep {
  enum class Kind : uint8_t { map, replace, collapse, strip, compose, decompose, lower };
  Kind kind;
  std::string first =
      {};  // map: the table; replace: what; collapse: the character that is one of a run
  std::string second = {};         // replace, collapse: with what
  bool left = true, right = true;  // strip: which ends
};

struct UnigramSteps {
  enum class Prefix : uint8_t { never, at_start, always };

  std::vector<TextStep> text = {};
  bool cuts_at_spaces = false;      // at white space, which is left out
  bool has_spaces_spelled = false;  // a space is spelled U+2581, and begins a word
  bool splits_words = true;         // where it is
  Prefix prefix = Prefix::never;    // what words have one in front
  bool byte_fallback = false;       // an unknown character becomes its bytes
};

}  // namespace akunu
