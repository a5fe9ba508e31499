// The C API's conversations: a prompt as text, and as tokens.
#include "capi/border.h"
#include "capi/handles.h"
#include "capi/objects.h"
#include "text/chat_format.h"
#include "text/unicode.h"

namespace akunu::capi {
namespace {

ChatRole role_of(std::string_view role, const std::string& name) {
  if (role == "system") return ChatRole::system;
  if (role == "user") return ChatRole::user;
  if (role == "assistant") return ChatRole::assistant;
  if (role == "tool")
    throw UnsupportedModelError(name +
                                R"(.role is "tool": the C library's chat has no tools, which )"
                                "the Python package has");
  throw ArgumentError(name + R"(.role is not one of "system", "user" and "assistant")");
}

std::vector<ChatMessage> messages_of(const akunu_message* messages, size_t n_messages) {
  if (n_messages == 0)
    throw ArgumentError("there are no messages: a conversation has one at least");
  need(messages, "messages");
  std::vector<ChatMessage> known;
  for (size_t i = 0; i < n_messages; ++i) {
    const std::string name = "messages[" + std::to_string(i) + "]";
    const auto& [role, content] = messages[i];
    need(role, (name + ".role").c_str());
    need(content, (name + ".content").c_str());
    if (const size_t bad = find_invalid_utf8(content); bad != std::string_view::npos)
      throw ArgumentError(name + ".content is not valid UTF-8 at byte " + std::to_string(bad));
    known.push_back({role_of(role, name), content});
  }
  return known;
}

std::string_view token_of(const Tokenizer& tokenizer, const std::optional<uint32_t>& token) {
  return token ? tokenizer.token_bytes(*token) : std::string_view();
}

std::vector<ChatPart> parts_of(const Tokenizer& tokenizer, const akunu_message* messages,
                               size_t n_messages, const akunu_chat_options* options) {
  const akunu_chat_options given = taken(options, "options");
  const std::vector<ChatMessage> known = messages_of(messages, n_messages);
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  return format_chat(chat_format_of(vocabulary.chat_template), known,
                     {.generation_prompt = !given.no_generation_prompt,
                      .thinking = !given.no_thinking,
                      .bos = token_of(tokenizer, vocabulary.bos),
                      .eos = token_of(tokenizer, vocabulary.eos)});
}

}  // namespace
}  // namespace akunu::capi

using namespace akunu;
using namespace akunu::capi;

akunu_status akunu_format_chat(akunu_tokenizer tokenizer, const akunu_message* messages,
                               size_t n_messages, const akunu_chat_options* options, char* buffer,
                               size_t capacity, size_t* length) {
  return guarded([&] {
    const auto known = object_of<TokenizerObject>(tokenizer)->tokenizer;
    return give_text(text_of(parts_of(*known, messages, n_messages, options)), buffer, capacity,
                     length);
  });
}

akunu_status akunu_encode_chat(akunu_tokenizer tokenizer, const akunu_message* messages,
                               size_t n_messages, const akunu_chat_options* options,
                               uint32_t* tokens, size_t capacity, size_t* length) {
  return guarded([&] {
    const auto known = object_of<TokenizerObject>(tokenizer)->tokenizer;
    const std::vector<uint32_t> ids =
        known->encode_chat(parts_of(*known, messages, n_messages, options));
    return give(std::span<const uint32_t>(ids), tokens, capacity, length);
  });
}

akunu_status akunu_chat_format_name(akunu_tokenizer tokenizer, char* buffer, size_t capacity,
                                    size_t* length) {
  return guarded([&] {
    const auto known = object_of<TokenizerObject>(tokenizer)->tokenizer;
    return give_text(name_of(chat_format_of(known->vocabulary().chat_template)), buffer, capacity,
                     length);
  });
}
