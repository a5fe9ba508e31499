// How byte-level BPE vocabularies cut text into words before merging: regular expressions that their authors published in
// their `tokenizer.json`, applied one after the other, each to the pieces that the ones before it left. Whatever no
// expression matches stays a piece of its own.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

namespace akunu {

struct PreTokenizer {
  std::span<const std::string_view> splits = {};
  bool ignore_merges = false;  // a word that is a token as a whole is that token
  bool add_bos = false;        // a prompt starts with BOS, where the file does not say
  bool add_sep = false;        // likewise: one more token between two texts
};

// A value of `tokenizer.ggml.pre`.
struct PreTokenizerName {
  std::string_view name;
  const PreTokenizer* cuts = nullptr;
};

// Concatenated texts.
template <const std::string_view&... kParts>
inline constexpr auto kJoinedLetters = [] {
  std::array<char, (kParts.size() + ...)> letters{};
  auto to = letters.begin();
  ((to = std::copy(kParts.begin(), kParts.end(), to)), ...);
  return letters;
}();
template <const std::string_view&... kParts>
inline constexpr std::string_view kJoinedText{kJoinedLetters<kParts...>.data(),
                                              kJoinedLetters<kParts...>.size()};

// Pre-tokenizers that several families have.
namespace cuts {
extern const PreTokenizer kDefault;
extern const PreTokenizer kLlama3;
extern const PreTokenizer kDbrx;
extern const PreTokenizer kQwen2;
extern const PreTokenizer kDeepseek3;
extern const PreTokenizer kGpt2;
extern const PreTokenizer kRoberta;
extern const PreTokenizer kFalcon;
extern const PreTokenizer kStarcoder;
}  // namespace cuts

// All names. Of several for the same pre-tokenizer, akunu writes the first one into files.
std::vector<PreTokenizerName> pre_tokenizers();

// By name; null for an unknown one. "default" is there.
const PreTokenizer* find_pre_tokenizer(std::string_view name);

}  // namespace akunu
