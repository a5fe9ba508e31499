#include "text/merge_ranks.h"

#include "core/error.h"
#include "files/printable.h"
#include "text/text_model.h"

namespace akunu {

MergeRanks::MergeRanks(const Vocabulary& vocabulary) {
  merges_.reserve(vocabulary.merges.size());
  std::string both;
  for (uint32_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const std::string& merge = vocabulary.merges[rank];
    const auto refuse = [&](const std::string& why) {
      throw ModelFormatError("tokenizer.ggml.merges[" + std::to_string(rank) + "] is '" +
                             printable(merge) + "', " + why);
    };
    // The first token may begin with a space.
    const size_t space = merge.find(' ', 1);
    if (space == std::string::npos || space + 1 == merge.size())
      refuse("expected two tokens with a space between");
    const std::string_view left(merge.data(), space);
    const std::string_view right(merge.data() + space + 1, merge.size() - space - 1);
    both.assign(left).append(right);
    const auto id_of = [&](std::string_view text) {
      const auto found = vocabulary.ids.find(text);
      if (found == vocabulary.ids.end())
        refuse("but '" + printable(text) + "' is not in tokenizer.ggml.tokens");
      return found->second;
    };
    const uint32_t first = id_of(left), second = id_of(right), token = id_of(both);
    if (!is_ordinary(vocabulary, first) || !is_ordinary(vocabulary, second) ||
        !is_ordinary(vocabulary, token))
      continue;
    merges_.emplace(uint64_t{first} << 32 | second, Ranked{rank, token});
  }
}

}  // namespace akunu
