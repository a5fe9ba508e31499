// Finds whole tokens in a text: leftmost first, then longest. Control tokens and those that the
// vocabulary's author added are cut out of a text before the rest is split into words.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace akunu {

class TokenMatcher {
 public:
  // A text, which is not empty and must outlive the matcher, and its id.
  void add(std::string_view token, uint32_t id);

  bool is_empty() const { return tokens_.empty(); }

  // Calls `on_text` for what lies between tokens and `on_token` for the tokens, in order.
  void split(std::string_view text, const std::function<void(std::string_view)>& on_text,
             const std::function<void(uint32_t)>& on_token) const;

 private:
  std::unordered_map<std::string_view, uint32_t> tokens_;
  std::array<std::vector<size_t>, 256> lengths_;  // by the first byte, longest first
};

}  // namespace akunu
