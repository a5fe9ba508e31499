#include "text/token_matcher.h"

#include <algorithm>

namespace akunu {

void TokenMatcher::add(std::string_view token, uint32_t id) {
  tokens_.emplace(token, id);
  std::vector<size_t>& lengths = lengths_[static_cast<unsigned char>(token[0])];
  const auto place = std::ranges::lower_bound(lengths, token.size(), std::greater<>());
  if (place == lengths.end() || *place != token.size()) lengths.insert(place, token.size());
}

void TokenMatcher::split(std::string_view text,
                         const std::function<void(std::string_view)>& on_text,
                         const std::function<void(uint32_t)>& on_token) const {
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    auto found = tokens_.end();
    for (const size_t length : lengths_[static_cast<unsigned char>(text[at])]) {
      if (length > text.size() - at) continue;
      found = tokens_.find(text.substr(at, length));
      if (found != tokens_.end()) break;
    }
    if (found == tokens_.end()) {
      ++at;
      continue;
    }
    if (at > done) on_text(text.substr(done, at - done));
    on_token(found->second);
    done = at += found->first.size();
  }
  if (done < text.size()) on_text(text.substr(done));
}

}  // namespace akunu
