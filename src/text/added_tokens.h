// How tokens that were added to a vocabulary are found in a text, as the `tokenizers` library does. The
// rules are those of the Python package (akunu/tokenizers/added_tokens.py); the reasons for them are given there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace akunu {

class GgufFile;

struct AddedToken {
  uint32_t id;
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space behind it
  bool single_word = false;  // only where neither neighbour is a letter, mark, digit or "_"
  bool normalized = false;   // looked for in the normalised text, by its own normalised text
  bool is_piece = false;     // the model's own vocabulary has it: ordinary text may become it
};

// Of a file's own key, or what llama.cpp knows by the names of some models. `names`: the ids of control,
// unknown and user-defined tokens. Throws ModelFormatError for ids that are none.
std::vector<AddedToken> read_added(const GgufFile& file, std::span<const std::string> tokens,
                                   std::span<const uint32_t> names);

}  // namespace akunu
