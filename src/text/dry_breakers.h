// DRY's sequence breakers: texts, as the tokens that hold, end or begin them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace akunu {

// A breaker ends a repetition wherever it stands, inside a token or across several. So the list says, for every way in
// which one can go on behind a token, which tokens it may go on behind (`dry_breakers` in core/rows.h). Of breakers that
// need more than the engine takes, it has no more than shows that.
std::vector<uint32_t> breaker_words(const Tokenizer& tokenizer,
                                    std::span<const std::string> breakers);

}  // namespace akunu
