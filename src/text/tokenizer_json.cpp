#include "text/tokenizer_json.h"

#include <utility>

#include "core/error.h"
#include "files/printable.h"

namespace akunu::tokenizer_json {

using Kind = JsonValue::Kind;

void refuse_part(const std::string& what) {
  throw UnsupportedModelError("tokenizer.json: " + what);
}

void refuse_form(const std::string& what) { throw ModelFormatError("tokenizer.json: " + what); }

const JsonValue* member(const JsonValue* object, std::string_view key) {
  const JsonValue* found = object == nullptr ? nullptr : object->find(key);
  return found == nullptr || found->kind == Kind::null ? nullptr : found;
}

std::string text_in(const JsonValue* object, std::string_view key) {
  const JsonValue* found = member(object, key);
  return found != nullptr && found->kind == Kind::string ? found->text : std::string();
}

bool is_set(const JsonValue* object, std::string_view key, bool otherwise) {
  const JsonValue* found = member(object, key);
  return found == nullptr || found->kind != Kind::boolean ? otherwise : found->boolean;
}

namespace {

// The steps of a part, those of a Sequence one by one.
void flatten(const JsonValue* part, std::string_view key, std::vector<const JsonValue*>& steps) {
  if (part == nullptr) return;
  if (part->kind != Kind::object) refuse_form(std::string(key) + " has a step that is no object");
  if (text_in(part, "type") != "Sequence") {
    steps.push_back(part);
    return;
  }
  const JsonValue* inner = member(part, key);
  if (inner == nullptr || inner->kind != Kind::array)
    refuse_form("a Sequence without " + std::string(key));
  for (const JsonValue& step : inner->items) flatten(&step, key, steps);
}

}  // namespace

std::vector<const JsonValue*> steps_of(const JsonValue& described, std::string_view part,
                                       std::string_view key) {
  std::vector<const JsonValue*> steps;
  flatten(member(&described, part), key, steps);
  return steps;
}

uint32_t id_in(const JsonValue* value, const std::string& where) {
  const auto id = value == nullptr ? std::nullopt : value->unsigned_integer();
  if (!id || *id > kJsonValues) refuse_form(where + " has no usable id");
  return static_cast<uint32_t>(*id);
}

}  // namespace akunu::tokenizer_json
