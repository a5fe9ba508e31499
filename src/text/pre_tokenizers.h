// How each family of byte-level BPE vocabularies cuts text into words before merging: regular
// expressions, one after the other, each applied to the words that the ones before it left. The
// table is that of the Python package (akunu/tokenizers/pretokenizers.py).
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace akunu {

struct PreTokenizer {
  std::vector<std::string_view> names;  // values of `tokenizer.ggml.pre`
  std::vector<std::string_view> splits;
  bool ignore_merges = false;  // a word that is a token as a whole is that token
  bool add_bos = false;        // where the file does not say
  bool add_sep = false;        // likewise: one more token between two texts
};

// By name; null for an unknown one. "default" is there.
const PreTokenizer* find_pre_tokenizer(std::string_view name);

}  // namespace akunu
