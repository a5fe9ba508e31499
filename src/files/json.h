// JSON as model directories and headers of safetensors files have it, read strictly: no comments, no
// trailing commas, no NaN, no key twice, valid UTF-8, bounded depth and number of values.
//
//   const JsonValue config = parse_json(text, "config.json");
//   if (const JsonValue* heads = config.find("num_attention_heads")) heads->unsigned_integer();
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace akunu {

class JsonValue {
 public:
  enum class Kind : uint8_t { null, boolean, number, string, array, object };

  Kind kind = Kind::null;
  bool boolean = false;
  std::string text;               // of a string, decoded; of a number, as it is written
  std::vector<std::string> keys;  // of an object, in the order of the text; none is there twice
  std::vector<JsonValue> items;   // of an array, or the values of an object's keys

  // Of an object: null where it has no such key. (Of other kinds too.)
  const JsonValue* find(std::string_view key) const;

  // The number, if it is one without fraction and sign that 64 bits hold; 1e3 and 4.0 count.
  std::optional<uint64_t> unsigned_integer() const;
  std::optional<double> number() const;  // finite
  // "a string", for messages.
  std::string_view kind_name() const;
  // A scalar as it is written, a string in quotes, "an object": what a message says that it found.
  std::string shown() const;
};

// The most that a text may hold: far beyond real models, far below what exhausts memory.
inline constexpr size_t kJsonDepth = 64;
inline constexpr size_t kJsonValues = size_t{1} << 22;

// Throws ModelFormatError, with `where` and the byte, for what is no JSON or beyond these limits.
// `first_byte`: where the text begins in its file, for messages.
JsonValue parse_json(std::string_view text, const std::string& where, uint64_t first_byte = 0);
// The same of what Python's json writes, which has a word for infinity: a number that number() does not give.
JsonValue parse_python_json(std::string_view text, const std::string& where);
inline constexpr std::string_view kJsonInfinity = "Infinity";

}  // namespace akunu
