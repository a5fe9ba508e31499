#include "text/chat_format.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/sha256.h"
#include "text/chat_writer.h"
#include "text/turn_formats.h"

namespace akunu {

// Described by turns, or written by a function of its own.
struct ChatFormat {
  std::string_view name;
  const TurnFormat* turns;
  const SpecialFormat* special;
};

namespace {

struct KnownTemplate {
  std::string_view sha256, format;
};

constexpr KnownTemplate kTemplates[] = {
#include "text/chat_templates.inc"
};

constexpr size_t kTemplateCount = std::size(kTemplates);

// One per known template: what they refer to lives for ever.
std::array<ChatFormat, kTemplateCount> make_formats() {
  std::array<ChatFormat, kTemplateCount> formats;
  for (size_t i = 0; i < kTemplateCount; ++i) {
    const std::string_view name = kTemplates[i].format;
    formats[i] = {name, turn_format(name), special_format(name)};
  }
  return formats;
}

std::string sha256_digits(std::string_view text) {
  std::string digits;
  for (const uint8_t byte : sha256(std::as_bytes(std::span(text)))) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 0xF];
  }
  return digits;
}

}  // namespace

const ChatFormat& chat_format_of(std::string_view chat_template) {
  static const std::array<ChatFormat, kTemplateCount> formats = make_formats();
  if (chat_template.empty())
    throw UnsupportedModelError(
        "this model has no chat template, so it was not made for conversations; it can go on from "
        "a "
        "text");
  if (chat_template.ends_with('\n')) chat_template.remove_suffix(1);  // as Jinja does
  const std::string digest = sha256_digits(chat_template);
  const auto* known = std::ranges::find(kTemplates, digest, &KnownTemplate::sha256);
  if (known == std::end(kTemplates))
    throw UnsupportedModelError(
        "this model's chat template (SHA-256 " + digest +
        ") is none of those that are built into the C library. The Python package renders every "
        "template; or write the prompt yourself (akunu_get_chat_template gives the source) and "
        "encode it with parse_special");
  return formats[static_cast<size_t>(known - kTemplates)];
}

std::string_view name_of(const ChatFormat& format) { return format.name; }

std::vector<ChatPart> format_chat(const ChatFormat& format, std::span<const ChatMessage> messages,
                                  const ChatOptions& options) {
  if (!options.thinking && (format.special == nullptr || !format.special->has_thinking_switch))
    throw ArgumentError("this model's chat template (" + std::string(format.name) +
                        ") has no switch for thinking; leave no_thinking off");
  ChatWriter out(options);
  if (format.special != nullptr)
    format.special->write(messages, out);
  else
    write_turns(*format.turns, messages, out);
  return out.take();
}

std::string text_of(std::span<const ChatPart> parts) {
  std::string text;
  for (const ChatPart& part : parts) text += part.text;
  return text;
}

}  // namespace akunu
