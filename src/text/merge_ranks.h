// The merges of a vocabulary by the tokens that they join.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "text/merging.h"
#include "text/vocabulary.h"

namespace akunu {

class MergeRanks {
 public:
  // Merges that would make a control token out of text are left out. Throws ModelFormatError for a
  // merge that is not two tokens whose union is one.
  explicit MergeRanks(const Vocabulary& vocabulary);

  std::optional<Merge> find(uint32_t left, uint32_t right) const {
    const auto found = merges_.find(uint64_t{left} << 32 | right);
    if (found == merges_.end()) return std::nullopt;
    return Merge{{found->second.rank, 0, 0}, found->second.token};
  }

 private:
  struct Ranked {
    uint32_t rank, token;
  };
  std::unordered_map<uint64_t, Ranked> merges_;  // by both tokens
};

}  // namespace akunu
