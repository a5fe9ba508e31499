// Bytes to tokens as byte-pair encoding merges them, with nothing of Python in it: what a grammar
// forces is cut into tokens while a text is generated. Words are not cut apart before, as a model's
// own tokenizer may do; what comes out has the same bytes always, and nearly always the same tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/rows.h"

namespace akunu {

class TokenMerger {
 public:
  struct Entry {
    std::string_view bytes;  // must outlive the merger; empty: of no text
    uint32_t rank = kNone;   // the lower, the sooner it is merged; kNone: by no merge
    bool is_whole = false;   // cut out of a text before anything is merged
  };

  // `by_character`: merging begins with characters, and with bytes where there is no token for one.
  TokenMerger(std::span<const Entry> entries, bool by_character);

  // Bytes for which there is no token are left out.
  void tokens_of(std::string_view bytes, std::vector<uint32_t>& out) const;

 private:
  void merge(std::string_view bytes, std::vector<uint32_t>& out) const;
  uint32_t find(std::string_view bytes) const;
  uint32_t whole_at(std::string_view bytes) const;

  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, uint32_t> ids_;
  std::unordered_map<std::string_view, uint32_t> whole_;
  std::vector<size_t> whole_lengths_;  // longest first
  const bool by_character_;
};

}  // namespace akunu
