// Keys of a config.json that nobody reads, and why that is right.
#pragma once

#include <string_view>

namespace akunu {

// Whether a key of config.json may be left unread: it does not change what is computed (dropout rates),
// or the tokenizer reads it (ids of special tokens).
bool has_no_effect(std::string_view key);

}  // namespace akunu
