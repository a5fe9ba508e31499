// Keys of a config.json that nobody reads, and why that is right.
#pragma once

#include <string_view>

namespace akunu {

// Whether a key changes nothing of what is computed, or is read elsewhere (token ids: the tokenizer).
bool has_no_effect(std::string_view key);

}  // namespace akunu
