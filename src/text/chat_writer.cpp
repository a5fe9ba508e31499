#include "text/chat_writer.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "core/error.h"
#include "files/printable.h"
#include "text/unicode.h"

namespace akunu {
namespace {

// What Python's str.isspace says (Unicode's bidirectional types WS, B and S, and Zs).
bool is_python_space(std::string_view character) {
  constexpr std::array<std::string_view, 29> kSpaces = {
      "\t",           "\n",           "\v",           "\f",           "\r",
      "\x1c",         "\x1d",         "\x1e",         "\x1f",         " ",
      "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81",
      "\xE2\x80\x82", "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86",
      "\xE2\x80\x87", "\xE2\x80\x88", "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8",
      "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80"};
  return std::ranges::find(kSpaces, character) != kSpaces.end();
}

}  // namespace

ChatWriter& ChatWriter::add(std::string_view text, bool is_template) {
  if (text.empty()) return *this;
  if (parts_.empty() || parts_.back().is_template != is_template)
    parts_.push_back({std::string(), is_template});
  parts_.back().text += text;
  return *this;
}

ChatWriter& ChatWriter::own(std::string_view text) {
  while (!text.empty()) {
    constexpr std::string_view kToday = "{today ";
    const size_t at = std::min({text.find("{bos}"), text.find("{eos}"), text.find(kToday)});
    add(text.substr(0, at), true);
    if (at == std::string_view::npos) break;
    text.remove_prefix(at);
    const size_t end = text.find('}');
    if (text.starts_with(kToday))
      add(today(text.substr(kToday.size(), end - kToday.size())), true);
    else
      add(text[1] == 'b' ? options_.bos : options_.eos, true);
    text.remove_prefix(end + 1);
  }
  return *this;
}

ChatWriter& ChatWriter::given(std::string_view text) { return add(text, false); }

std::string_view right_stripped(std::string_view text) {
  while (!text.empty()) {
    size_t length = 1;  // of the last character
    while (length < 4 && length < text.size() && (text[text.size() - length] & 0xC0) == 0x80)
      ++length;
    if (!is_python_space(text.substr(text.size() - length))) break;
    text.remove_suffix(length);
  }
  return text;
}

std::string_view stripped(std::string_view text) {
  while (!text.empty()) {
    const size_t length = std::max<size_t>(utf8_length(text), 1);
    if (!is_python_space(text.substr(0, length))) break;
    text.remove_prefix(length);
  }
  return right_stripped(text);
}

std::string_view without_opening_lines(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}

std::string_view without_closing_lines(std::string_view text) {
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

std::string today(std::string_view form) {
  constexpr std::array<std::string_view, 12> kMonths = {
      "January", "February", "March",     "April",   "May",      "June",
      "July",    "August",   "September", "October", "November", "December"};
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  localtime_r(&now, &date);
  const std::string_view month = kMonths[static_cast<size_t>(date.tm_mon)];
  const auto two_digits = [](int number) {
    return (number < 10 ? "0" : "") + std::to_string(number);
  };
  std::string text;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '%') {
      text += form[i];
      continue;
    }
    switch (form[++i]) {
      case 'd':
        text += two_digits(date.tm_mday);
        break;
      case 'm':
        text += two_digits(date.tm_mon + 1);
        break;
      case 'Y':
        text += std::to_string(date.tm_year + 1900);
        break;
      case 'b':
        text += month.substr(0, 3);
        break;
      default:
        text += month;
    }
  }
  return text;
}

std::string_view role_name(ChatRole role) {
  switch (role) {
    case ChatRole::system:
      return "system";
    case ChatRole::user:
      return "user";
    case ChatRole::assistant:
      break;
  }
  return "assistant";
}

}  // namespace akunu
