#include "text/turn_formats.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/error.h"

namespace akunu {
namespace {

constexpr Turn kRefused = {.fate = Turn::Fate::refused};

constexpr Turn kChatmlSystem = {"<|im_start|>system\n", "<|im_end|>\n"};
constexpr Turn kChatmlUser = {"<|im_start|>user\n", "<|im_end|>\n"};
constexpr Turn kChatmlAssistant = {"<|im_start|>assistant\n", "<|im_end|>\n"};

constexpr TurnFormat chatml(std::string_view name, std::string_view default_system) {
  return {.name = name,
          .begin = "",
          .default_system = default_system,
          .opening = Opening::turn,
          .takes_turns = false,
          .system = kChatmlSystem,
          .user = kChatmlUser,
          .assistant = kChatmlAssistant,
          .generation = "<|im_start|>assistant\n",
          .otherwise = ""};
}

constexpr std::string_view kLlama3Generation = "<|start_header_id|>assistant<|end_header_id|>\n\n";

constexpr TurnFormat llama3(std::string_view name, std::string_view otherwise) {
  return {
      .name = name,
      .begin = "{bos}",
      .default_system = "",
      .opening = Opening::turn,
      .takes_turns = false,
      .system = {"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>", Content::trimmed},
      .user = {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>", Content::trimmed},
      .assistant = {kLlama3Generation, "<|eot_id|>", Content::trimmed},
      .generation = kLlama3Generation,
      .otherwise = otherwise};
}

constexpr TurnFormat gemma(std::string_view name, std::string_view begin, Opening opening) {
  return {.name = name,
          .begin = begin,
          .default_system = "",
          .opening = opening,
          .takes_turns = true,
          .system = {"<start_of_turn>system\n", "<end_of_turn>\n", Content::trimmed},
          .user = {"<start_of_turn>user\n", "<end_of_turn>\n", Content::trimmed},
          .assistant = {"<start_of_turn>model\n", "<end_of_turn>\n", Content::trimmed},
          .generation = "<start_of_turn>model\n",
          .otherwise = ""};
}

constexpr TurnFormat mistral(std::string_view name, Opening opening, Turn user, Turn assistant) {
  return {.name = name,
          .begin = "{bos}",
          .default_system = "",
          .opening = opening,
          .takes_turns = true,
          .system = kRefused,
          .user = user,
          .assistant = assistant,
          .generation = "",
          .otherwise = ""};
}

constexpr TurnFormat phi3(std::string_view name, Turn::Fate system) {
  return {.name = name,
          .begin = "",
          .default_system = "",
          .opening = Opening::turn,
          .takes_turns = false,
          .system = {"<|system|>\n", "<|end|>\n", Content::as_is, system},
          .user = {"<|user|>\n", "<|end|>\n"},
          .assistant = {"<|assistant|>\n", "<|end|>\n"},
          .generation = "<|assistant|>\n",
          .otherwise = "{eos}"};
}

constexpr TurnFormat kimi(std::string_view name, std::string_view default_system) {
  constexpr std::string_view kGeneration = "<|im_assistant|>assistant<|im_middle|>";
  return {.name = name,
          .begin = "",
          .default_system = default_system,
          .opening = Opening::turn,
          .takes_turns = false,
          .system = {"<|im_system|>system<|im_middle|>", "<|im_end|>"},
          .user = {"<|im_user|>user<|im_middle|>", "<|im_end|>"},
          .assistant = {kGeneration, "<|im_end|>"},
          .generation = kGeneration,
          .otherwise = ""};
}

constexpr std::array kTurnFormats = {
    chatml("chatml", ""),
    chatml("qwen2", "<|im_start|>system\nYou are a helpful assistant<|im_end|>\n"),
    chatml("qwen2.5",
           "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
           "assistant.<|im_end|>\n"),
    chatml("smollm2",
           "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
           "Face<|im_end|>\n"),
    llama3("llama3", ""),
    llama3("llama3-first", kLlama3Generation),  // as first published: opens the turn always
    gemma("gemma", "", Opening::refused),
    gemma("gemma2", "{bos}", Opening::refused),
    gemma("gemma3", "{bos}", Opening::joins_first),
    mistral("mistral-v0.1", Opening::turn, {"[INST] ", " [/INST]"}, {"", "{eos} "}),
    mistral("mistral-v0.2", Opening::turn, {"[INST] ", " [/INST]"}, {"", "{eos}"}),
    mistral("mistral-v1", Opening::joins_first, {" [INST] ", " [/INST]"}, {" ", "{eos}"}),
    mistral("mistral-v3", Opening::joins_last, {"[INST] ", "[/INST]"},
            {" ", "{eos}", Content::trimmed}),
    mistral("mistral-nemo", Opening::joins_last, {"[INST]", "[/INST]"}, {"", "{eos}"}),
    TurnFormat{.name = "mistral-v7",
               .begin = "{bos}",
               .default_system = "",
               .opening = Opening::turn,
               .takes_turns = false,
               .system = {"[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"},
               .user = {"[INST] ", "[/INST]"},
               .assistant = {" ", "{eos}"},
               .generation = "",
               .otherwise = ""},
    phi3("phi3", Turn::Fate::written),
    phi3("phi3.5", Turn::Fate::left_out_where_empty),
    TurnFormat{.name = "phi4",
               .begin = "",
               .default_system = "",
               .opening = Opening::turn,
               .takes_turns = false,
               .system = {"<|im_start|>system<|im_sep|>", "<|im_end|>"},
               .user = {"<|im_start|>user<|im_sep|>", "<|im_end|><|im_start|>assistant<|im_sep|>"},
               .assistant = {"", "<|im_end|>"},
               .generation = "",
               .otherwise = ""},
    TurnFormat{.name = "phi4-mini",
               .begin = "",
               .default_system = "",
               .opening = Opening::turn,
               .takes_turns = false,
               .system = {"<|system|>", "<|end|>"},
               .user = {"<|user|>", "<|end|>"},
               .assistant = {"<|assistant|>", "<|end|>"},
               .generation = "<|assistant|>",
               .otherwise = "{eos}"},
    kimi("kimi-k2-first",  // as first published
         "<|im_system|>system<|im_middle|>You are a helpful assistant<|im_end|>"),
    kimi("kimi-k2",
         "<|im_system|>system<|im_middle|>You are Kimi, an AI assistant created by Moonshot AI."
         "<|im_end|>\n"),
    TurnFormat{.name = "granite3.0",
               .begin = "",
               .default_system = "",
               .opening = Opening::turn,
               .takes_turns = false,
               .system = {"<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>\n"},
               .user = {"<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>\n"},
               .assistant = {"<|start_of_role|>assistant<|end_of_role|>", "<|end_of_text|>\n"},
               .generation = "<|start_of_role|>assistant<|end_of_role|>",
               .otherwise = ""},
    TurnFormat{.name = "command-r",
               .begin = "{bos}",
               .default_system = "",
               .opening = Opening::apart,
               .takes_turns = true,
               .system = {"<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>",
                          Content::as_is, Turn::Fate::left_out},
               .user = {"<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>",
                        Content::trimmed},
               .assistant = {"<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>",
                             Content::trimmed},
               .generation = "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
               .otherwise = ""},
    TurnFormat{.name = "deepseek2",
               .begin = "{bos}",
               .default_system = "",
               .opening = Opening::turn,
               .takes_turns = false,
               .system = {"", "\n\n"},
               .user = {"User: ", "\n\n"},
               .assistant = {"Assistant: ", "{eos}"},
               .generation = "Assistant:",
               .otherwise = ""},
};

const Turn& turn_of(const TurnFormat& format, ChatRole role) {
  switch (role) {
    case ChatRole::system:
      return format.system;
    case ChatRole::user:
      return format.user;
    case ChatRole::assistant:
      break;
  }
  return format.assistant;
}

[[noreturn]] void refuse(const TurnFormat& format, const std::string& why) {
  throw ArgumentError("this model's chat template (" + std::string(format.name) +
                      ") refuses: " + why);
}

}  // namespace

const TurnFormat* turn_format(std::string_view name) {
  const auto* found = std::ranges::find(kTurnFormats, name, &TurnFormat::name);
  return found == kTurnFormats.end() ? nullptr : found;
}

void write_turns(const TurnFormat& format, std::span<const ChatMessage> messages, ChatWriter& out) {
  out.own(format.begin);
  size_t first = 0;  // of the messages that are turns
  std::string_view joining;
  bool joins = false;
  if (messages[0].role != ChatRole::system) {
    out.own(format.default_system);
  } else if (format.opening == Opening::refused) {
    refuse(format,
           "messages[0] is a system message, which it has no place for; put its text into "
           "the first question");
  } else if (format.opening != Opening::turn) {
    first = 1;
    if (format.opening == Opening::apart) {
      out.own(format.system.before).given(messages[0].content).own(format.system.after);
    } else {
      joining = messages[0].content;
      joins = true;
    }
  }
  if (format.takes_turns)
    for (size_t i = first; i < messages.size(); ++i)
      if ((messages[i].role == ChatRole::user) != ((i - first) % 2 == 0))
        refuse(format, "user and assistant must take turns, beginning with user, but messages[" +
                           std::to_string(i) + "] is of " +
                           std::string(role_name(messages[i].role)));
  const size_t joined = format.opening == Opening::joins_last ? messages.size() - 1 : first;
  for (size_t i = first; i < messages.size(); ++i) {
    const Turn& turn = turn_of(format, messages[i].role);
    if (turn.fate == Turn::Fate::left_out) continue;
    if (turn.fate == Turn::Fate::left_out_where_empty && messages[i].content.empty()) continue;
    if (turn.fate == Turn::Fate::refused)
      refuse(format, "it has no place for messages[" + std::to_string(i) + "], which is of " +
                         std::string(role_name(messages[i].role)));
    out.own(turn.before);
    if (joins && i == joined && messages[i].role == ChatRole::user) out.given(joining).own("\n\n");
    out.given(turn.content == Content::trimmed ? stripped(messages[i].content)
                                               : messages[i].content);
    out.own(turn.after);
  }
  out.own(out.options().generation_prompt ? format.generation : format.otherwise);
}

}  // namespace akunu
