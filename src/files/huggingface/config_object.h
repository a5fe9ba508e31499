// The keys of a config.json, typed and checked; which of them nobody asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "files/json.h"

namespace akunu {

// Reads one object of a JSON file; `where` ("config.json") and `prefix` ("text_config.") name it in
// messages. Keys whose value is null count as absent. Every method throws ModelFormatError, with the
// key, for a value of the wrong kind or out of range.
class ConfigObject {
 public:
  ConfigObject(const JsonValue& object, std::string where, std::string prefix = "");

  const JsonValue* find(std::string_view key);  // null where it is absent or null
  bool has_null(std::string_view key);          // whether it is there, and null
  std::optional<uint32_t> count(std::string_view key);
  std::optional<float> number(std::string_view key);
  std::optional<bool> flag(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  std::optional<ConfigObject> object(std::string_view key);
  std::optional<std::vector<float>> numbers(std::string_view key);

  // What a model cannot do without: positive, and there unless `usual` says what it is otherwise.
  uint32_t needed_count(std::string_view key, uint32_t usual = 0);
  float needed_number(std::string_view key);

  const std::vector<std::string>& keys() const { return object_->keys; }
  // Keys that nobody asked for by now, printable, without the prefix.
  std::vector<std::string> unused() const;
  const std::string& prefix() const { return prefix_; }

  // "config.json: num_attention_heads is 0; " before what is wrong with it.
  [[noreturn]] void refuse_value(std::string_view key, const std::string& why) const;
  // The same for what akunu does not have.
  [[noreturn]] void refuse_support(std::string_view key, const std::string& why) const;
  [[noreturn]] void refuse_missing(std::string_view key) const;
  std::string named(std::string_view key) const {
    return where_ + ": " + prefix_ + std::string(key);
  }

 private:
  [[noreturn]] void refuse_kind(std::string_view key, std::string_view wanted) const;
  std::string said(std::string_view key) const;

  const JsonValue* object_;
  std::string where_, prefix_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace akunu
