// Finds whole tokens in a text: leftmost first, then longest. Control tokens and those that the
// vocabulary's author added are cut out of a text before the rest is split into words.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/added_tokens.h"

namespace akunu {

class TokenMatcher {
 public:
  // A text, which is not empty and must outlive the matcher, and its token. Of equal texts the first counts.
  void add(std::string_view text, const AddedToken& token);

  bool is_empty() const { return tokens_.empty(); }

  // Calls `on_text` for what lies between tokens and `on_token` for the tokens, in order.
  void split(std::string_view text, const std::function<void(std::string_view)>& on_text,
             const std::function<void(uint32_t)>& on_token) const;

 private:
  std::unordered_map<std::string_view, AddedToken> tokens_;
  std::array<std::vector<size_t>, 256> lengths_;  // by the first byte, longest first
};

// Where the white space of valid UTF-8 begins that ends at `end`, not before `least`; and where that ends
// which begins at `begin`.
size_t spaces_begin(std::string_view text, size_t end, size_t least = 0);
size_t spaces_end(std::string_view text, size_t begin);

}  // namespace akunu
