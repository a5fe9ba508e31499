// Conversations as prompts, without a Jinja interpreter: the formats of common families are built in.
//
//   const ChatFormat& format = chat_format_of(vocabulary.chat_template);
//   const std::vector<ChatPart> parts = format_chat(format, messages, options);
//
// A format is taken only for a template that is known letter by letter (by its SHA-256), and writes what
// that template writes. Another template is an error: a prompt that is nearly right is a model that
// is quietly worse.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace akunu {

enum class ChatRole { system, user, assistant };

struct ChatMessage {
  ChatRole role;
  std::string_view content;  // UTF-8
};

struct ChatOptions {
  bool generation_prompt = true;  // what opens the model's own turn is written at the end
  bool thinking = true;           // false: what tells the model to do without
  std::string_view bos, eos;      // the texts of these tokens
};

// A piece of a prompt. What is not the template's is text, also where it spells a control token.
struct ChatPart {
  std::string text;
  bool is_template;
};

struct ChatFormat;

// Throws UnsupportedModelError for a template that is not known, and where there is none.
const ChatFormat& chat_format_of(std::string_view chat_template);

std::string_view name_of(const ChatFormat& format);

// `messages` has one at least. Throws ArgumentError where the template refuses the conversation, and
// for `thinking = false` where the template has no such switch.
std::vector<ChatPart> format_chat(const ChatFormat& format, std::span<const ChatMessage> messages,
                                  const ChatOptions& options);

std::string text_of(std::span<const ChatPart> parts);

}  // namespace akunu
