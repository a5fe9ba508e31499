// What the formats of conversations are written with: parts of a prompt, and Python's ways with text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_format.h"

namespace akunu {

class ChatWriter {
 public:
  explicit ChatWriter(const ChatOptions& options) : options_(options) {}

  // The template's own words; `{bos}` and `{eos}` are the names of those tokens, `{today %Y-%m-%d}` is the
  // day (see `today`).
  ChatWriter& own(std::string_view text);
  // Those of a message.
  ChatWriter& given(std::string_view text);

  const ChatOptions& options() const { return options_; }
  std::vector<ChatPart> take() { return std::move(parts_); }

 private:
  ChatWriter& add(std::string_view text, bool is_template);

  const ChatOptions& options_;
  std::vector<ChatPart> parts_;
};

// One format, and how it writes a conversation.
struct SpecialFormat {
  std::string_view name;
  bool has_thinking_switch;
  void (*write)(std::span<const ChatMessage> messages, ChatWriter& out);
};

// Those that no table of turns describes, by name; null where there is none.
const SpecialFormat* special_format(std::string_view name);

// As Python's `text.strip()`, and with "\n" its `lstrip`, `rstrip` and `strip`.
std::string_view stripped(std::string_view text);
std::string_view right_stripped(std::string_view text);
std::string_view without_opening_lines(std::string_view text);
std::string_view without_closing_lines(std::string_view text);

// Today as `strftime` writes it, in English: %d, %m, %Y, %b and %B.
std::string today(std::string_view form);

std::string_view role_name(ChatRole role);

}  // namespace akunu
