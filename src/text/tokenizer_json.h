// Values of a tokenizer.json, and what happens to texts before Unigram as it describes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "files/json.h"
#include "text/unigram.h"

namespace akunu::tokenizer_json {

// What akunu has no counterpart of: throws UnsupportedModelError.
[[noreturn]] void refuse_part(const std::string& what);
// What contradicts itself: throws ModelFormatError.
[[noreturn]] void refuse_form(const std::string& what);

// Absent and null are the same in these files: null. `object` may be null.
const JsonValue* member(const JsonValue* object, std::string_view key);
std::string text_in(const JsonValue* object, std::string_view key);
bool is_set(const JsonValue* object, std::string_view key, bool otherwise = false);

// The steps of a part ("normalizer"), those of its Sequences (whose `key` is "normalizers") one by one.
std::vector<const JsonValue*> steps_of(const JsonValue& described, std::string_view part,
                                       std::string_view key);

// A token's id; `where` stands in the error.
uint32_t id_in(const JsonValue* value, const std::string& where);

// Throws as refuse_part for a step that is not known.
UnigramSteps unigram_steps(const JsonValue& described);

}  // namespace akunu::tokenizer_json
