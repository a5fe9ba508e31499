#include "files/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#ifdef __APPLE__
#include <xlocale.h>

#include <cstdlib>
#endif

#include "core/error.h"
#include "files/printable.h"

namespace akunu {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_character(std::string& text, uint32_t code) {
  const auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

class JsonParser {
 public:
  JsonParser(std::string_view text, const std::string& where, uint64_t first_byte,
             bool has_infinity)
      : text_(text), where_(where), first_byte_(first_byte), has_infinity_(has_infinity) {}

  JsonValue parse() {
    JsonValue value = parse_value(0);
    skip_space();
    if (at_ < text_.size()) refuse("there is more after the end of the JSON value");
    return value;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw ModelFormatError(where_ + ", byte " + std::to_string(first_byte_ + at_) + ": " + what);
  }
  [[noreturn]] void refuse_here(std::string_view wanted) const {
    refuse("expected " + std::string(wanted) + ", got " +
           (at_ < text_.size() ? "\"" + printable(text_.substr(at_, 1)) + "\""
                               : std::string("the end of the text")));
  }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool take(char wanted) {
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  JsonValue parse_value(size_t depth) {
    if (depth > kJsonDepth)
      refuse("arrays and objects are nested deeper than " + std::to_string(kJsonDepth));
    if (++n_values_ > kJsonValues)
      refuse("there are more than " + std::to_string(kJsonValues) + " values");
    skip_space();
    JsonValue value;
    if (take('{')) {
      value.kind = JsonValue::Kind::object;
      parse_members(value, depth);
    } else if (take('[')) {
      value.kind = JsonValue::Kind::array;
      parse_items(value, depth);
    } else if (at_ < text_.size() && text_[at_] == '"') {
      value.kind = JsonValue::Kind::string;
      value.text = parse_string();
    } else if (at_ < text_.size() && (text_[at_] == '-' || is_digit(text_[at_]))) {
      value.kind = JsonValue::Kind::number;
      value.text = parse_number();
    } else if (has_infinity_ && take_word(kJsonInfinity)) {
      value.kind = JsonValue::Kind::number;
      value.text = kJsonInfinity;
    } else if (take_word("true")) {
      value.kind = JsonValue::Kind::boolean;
      value.boolean = true;
    } else if (take_word("false")) {
      value.kind = JsonValue::Kind::boolean;
    } else if (!take_word("null")) {
      refuse_here("a value");
    }
    return value;
  }

  bool take_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  void parse_members(JsonValue& object, size_t depth) {
    skip_space();
    if (!take('}')) {
      do {
        skip_space();
        if (at_ >= text_.size() || text_[at_] != '"') refuse_here("a key in quotes");
        object.keys.push_back(parse_string());
        skip_space();
        if (!take(':')) refuse_here("\":\"");
        object.items.push_back(parse_value(depth + 1));
        skip_space();
      } while (take(','));
      if (!take('}')) refuse_here("\",\" or \"}\"");
    }
    refuse_double_keys(object);
  }

  void refuse_double_keys(const JsonValue& object) const {
    std::vector<std::string_view> sorted(object.keys.begin(), object.keys.end());
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice != sorted.end())
      refuse("the object that ends here has the key \"" + printable(*twice) + "\" twice");
  }

  void parse_items(JsonValue& array, size_t depth) {
    skip_space();
    if (take(']')) return;
    do {
      array.items.push_back(parse_value(depth + 1));
      skip_space();
    } while (take(','));
    if (!take(']')) refuse_here("\",\" or \"]\"");
  }

  std::string parse_number() {
    const size_t begin = at_;
    take('-');
    if (!take('0')) take_digits();
    if (take('.')) take_digits();
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      take_digits();
    }
    return std::string(text_.substr(begin, at_ - begin));
  }
  void take_digits() {
    if (at_ >= text_.size() || !is_digit(text_[at_])) refuse_here("a digit");
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  }

  std::string parse_string() {
    std::string result;
    ++at_;  // the quote
    for (;;) {
      if (at_ >= text_.size()) refuse_here("the end of a string");
      if (take('"')) return result;
      if (take('\\')) {
        parse_escape(result);
        continue;
      }
      if (static_cast<unsigned char>(text_[at_]) < 0x20)
        refuse("a control character in a string must be written as \\u00XX");
      const size_t length = utf8_length(text_.substr(at_));
      if (length == 0) refuse("the text is not valid UTF-8");
      result.append(text_, at_, length);
      at_ += length;
    }
  }

  void parse_escape(std::string& result) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (at_ >= text_.size()) refuse_here("the rest of an escape");
    if (const size_t i = kNames.find(text_[at_]); i != std::string_view::npos) {
      ++at_;
      result += kMeant[i];
      return;
    }
    if (!take('u')) refuse_here("an escape that JSON has");
    uint32_t code = parse_hex();
    if (code >= 0xd800 && code < 0xdc00) {
      if (!take_word("\\u")) refuse("half of a surrogate pair is no character");
      const uint32_t low = parse_hex();
      if (low < 0xdc00 || low > 0xdfff) refuse("half of a surrogate pair is no character");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
      refuse("half of a surrogate pair is no character");
    }
    append_character(result, code);
  }
  uint32_t parse_hex() {
    uint32_t code = 0;
    const std::string_view digits = text_.substr(std::min(at_, text_.size()), 4);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc{} || digits.size() != 4 || end != digits.data() + 4)
      refuse("\\u needs four hexadecimal digits");
    at_ += 4;
    return code;
  }

  std::string_view text_;
  const std::string& where_;
  uint64_t first_byte_;
  bool has_infinity_;
  size_t at_ = 0;
  size_t n_values_ = 0;
};

}  // namespace

JsonValue parse_json(std::string_view text, const std::string& where, uint64_t first_byte) {
  return JsonParser(text, where, first_byte, false).parse();
}

JsonValue parse_python_json(std::string_view text, const std::string& where) {
  return JsonParser(text, where, 0, true).parse();
}

const JsonValue* JsonValue::find(std::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i)
    if (keys[i] == key) return &items[i];
  return nullptr;
}

std::optional<uint64_t> JsonValue::unsigned_integer() const {
  if (kind != Kind::number) return std::nullopt;
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && after == end) return value;
  // Written with a fraction or an exponent: exact up to 2^53.
  const std::optional<double> real = number();
  constexpr double kExact = 9007199254740992.0;
  if (!real || *real < 0 || *real > kExact || *real != std::floor(*real)) return std::nullopt;
  return static_cast<uint64_t>(*real);
}

std::optional<double> JsonValue::number() const {
  if (kind != Kind::number) return std::nullopt;
  double value = 0;
#ifdef __APPLE__  // whose library has no from_chars of floats; without a locale it is the one of C
  value = strtod_l(text.c_str(), nullptr, nullptr);
#else
  const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;  // beyond the range
#endif
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string_view JsonValue::kind_name() const {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "true or false";
    case Kind::number:
      return "a number";
    case Kind::string:
      return "a string";
    case Kind::array:
      return "a list";
    case Kind::object:
      return "an object";
  }
  __builtin_unreachable();
}

std::string JsonValue::shown() const {
  if (kind == Kind::boolean) return boolean ? "true" : "false";
  if (kind == Kind::number) return printable(text);
  if (kind == Kind::string) return "\"" + printable(text) + "\"";
  return std::string(kind_name());
}

}  // namespace akunu
