#include "text/dry_breakers.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "core/rows.h"

namespace akunu {

std::vector<uint32_t> breaker_words(const Tokenizer& tokenizer,
                                    std::span<const std::string> breakers) {
  // The tokens behind which a text may go on with these, which then hold or end a breaker.
  std::map<std::vector<uint32_t>, std::set<uint32_t>> heads;
  size_t longest = 0;  // of a longer beginning, no token has the end
  for (uint32_t token = 0; token < tokenizer.size(); ++token)
    longest = std::max(longest, tokenizer.token_bytes(token).size());
  for (const std::string& breaker : breakers) {
    const std::string_view whole = breaker;
    for (uint32_t token = 0; token < tokenizer.size(); ++token)
      if (tokenizer.token_bytes(token).find(whole) != std::string_view::npos)
        heads[{}].insert(token);
    for (size_t cut = 1; cut < whole.size() && cut <= longest; ++cut) {
      if ((static_cast<unsigned char>(whole[cut]) & 0xC0) == 0x80) continue;  // inside a character
      std::set<uint32_t> ends;
      for (uint32_t token = 0; token < tokenizer.size(); ++token)
        if (tokenizer.token_bytes(token).ends_with(whole.substr(0, cut))) ends.insert(token);
      if (!ends.empty()) heads[tokenizer.encode(whole.substr(cut), false)].merge(ends);
    }
    size_t n = 0;
    for (const auto& [following, tokens] : heads) n += tokens.size();
    if (n > kMaxOptionWords) break;
  }
  std::vector<std::pair<std::vector<uint32_t>, std::set<uint32_t>>> entries(heads.begin(),
                                                                            heads.end());
  std::ranges::stable_sort(entries, std::greater<>(),
                           [](const auto& entry) { return entry.first.size(); });
  std::vector<uint32_t> words;
  for (const auto& [following, tokens] : entries) {
    if (tokens.empty()) continue;
    words.push_back(static_cast<uint32_t>(following.size()));
    words.push_back(static_cast<uint32_t>(tokens.size()));
    words.insert(words.end(), following.begin(), following.end());
    words.insert(words.end(), tokens.begin(), tokens.end());
  }
  return words;
}

}  // namespace akunu
