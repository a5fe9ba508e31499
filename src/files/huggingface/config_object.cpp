#include "files/huggingface/config_object.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"
#include "files/printable.h"

namespace akunu {

ConfigObject::ConfigObject(const JsonValue& object, std::string where, std::string prefix)
    : object_(&object), where_(std::move(where)), prefix_(std::move(prefix)) {
  if (object.kind != JsonValue::Kind::object)
    throw ModelFormatError(where_ + ": expected an object, got " + std::string(object.kind_name()));
}

const JsonValue* ConfigObject::find(std::string_view key) {
  used_.emplace(key);
  const JsonValue* const value = object_->find(key);
  return value == nullptr || value->kind == JsonValue::Kind::null ? nullptr : value;
}

bool ConfigObject::has_null(std::string_view key) {
  used_.emplace(key);
  const JsonValue* const value = object_->find(key);
  return value != nullptr && value->kind == JsonValue::Kind::null;
}

std::string ConfigObject::said(std::string_view key) const {
  const JsonValue* const value = object_->find(key);
  return named(key) + " is " + (value == nullptr ? "missing" : value->shown());
}

void ConfigObject::refuse_value(std::string_view key, const std::string& why) const {
  throw ModelFormatError(said(key) + "; " + why);
}
void ConfigObject::refuse_support(std::string_view key, const std::string& why) const {
  throw UnsupportedModelError(said(key) + "; " + why);
}
void ConfigObject::refuse_missing(std::string_view key) const {
  throw ModelFormatError(named(key) + " is missing");
}
void ConfigObject::refuse_kind(std::string_view key, std::string_view wanted) const {
  refuse_value(key, std::string(wanted) + " is needed");
}

std::optional<uint32_t> ConfigObject::count(std::string_view key) {
  const JsonValue* const value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<uint64_t> number = value->unsigned_integer();
  if (!number) refuse_kind(key, "a whole number from 0 on");
  if (*number > std::numeric_limits<int32_t>::max())
    refuse_value(key, "that is out of any sensible range");
  return static_cast<uint32_t>(*number);
}

std::optional<float> ConfigObject::number(std::string_view key) {
  const JsonValue* const value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<double> number = value->number();
  if (!number) refuse_kind(key, "a number");
  if (std::abs(*number) > static_cast<double>(std::numeric_limits<float>::max()))
    refuse_value(key, "that is out of any sensible range");
  return static_cast<float>(*number);
}

std::optional<std::vector<float>> ConfigObject::numbers(std::string_view key) {
  const JsonValue* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->kind != JsonValue::Kind::array) refuse_kind(key, "a list of numbers");
  std::vector<float> numbers;
  for (const JsonValue& item : value->items) {
    const std::optional<double> number = item.number();
    if (!number || std::abs(*number) > static_cast<double>(std::numeric_limits<float>::max()))
      throw ModelFormatError(named(key) + " holds " + item.shown() + "; numbers are needed");
    numbers.push_back(static_cast<float>(*number));
  }
  return numbers;
}

std::optional<bool> ConfigObject::flag(std::string_view key) {
  const JsonValue* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->kind != JsonValue::Kind::boolean) refuse_kind(key, "true or false");
  return value->boolean;
}

std::optional<std::string> ConfigObject::text(std::string_view key) {
  const JsonValue* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->kind != JsonValue::Kind::string) refuse_kind(key, "a string");
  return value->text;
}

std::optional<ConfigObject> ConfigObject::object(std::string_view key) {
  const JsonValue* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->kind != JsonValue::Kind::object) refuse_kind(key, "an object");
  return ConfigObject(*value, where_, prefix_ + std::string(key) + ".");
}

uint32_t ConfigObject::needed_count(std::string_view key, uint32_t usual) {
  const std::optional<uint32_t> value = count(key);
  if (!value && usual == 0) refuse_missing(key);
  if (value && *value == 0) refuse_value(key, "it must be 1 or more");
  return value.value_or(usual);
}

float ConfigObject::needed_number(std::string_view key) {
  const std::optional<float> value = number(key);
  if (!value) refuse_missing(key);
  return *value;
}

std::vector<std::string> ConfigObject::unused() const {
  std::vector<std::string> result;
  for (const std::string& key : object_->keys)
    if (!used_.contains(key)) result.push_back(printable(key));
  return result;
}

}  // namespace akunu
