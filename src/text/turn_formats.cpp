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

constexpr TurnFormat chatml(std::string_view name, std::string_view default_system,
                            std::string_view begin = "") {
  return {.name = name,
          .begin = begin,
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

// From Small 3.1 on: without a system message, the day is told.
constexpr TurnFormat mistral_small(std::string_view name, std::string_view default_system,
                                   bool takes_turns, Turn::Fate later_system) {
  return {.name = name,
          .begin = "{bos}",
          .default_system = default_system,
          .opening = Opening::apart,
          .takes_turns = takes_turns,
          .system = {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", Content::as_is, later_system},
          .user = {"[INST]", "[/INST]"},
          .assistant = {"", "{eos}"},
          .generation = "",
          .otherwise = ""};
}

constexpr std::string_view kDevstralSystem =
    "[SYSTEM_PROMPT]You are Devstral, a Large Language Model (LLM) created by Mistral AI, a French "
    "startup headquartered in Paris.\n"
    "Your knowledge base was last updated on 2023-10-01. The current date is {today %Y-%m-%d}.\n"
    "\n"
    "When you're not sure about some information, you say that you don't have the information and "
    "don't make up anything.\n"
    "If the user's question is not clear, ambiguous, or does not provide enough context for you to "
    "accurately answer the question, you do not try to answer it right away and you rather ask the "
    "user to clarify their request (e.g. \"What are some good restaurants around me?\" => \"Where "
    "are you?\" or \"When is the next flight to Tokyo\" => \"Where do you travel from?\")"
    "[/SYSTEM_PROMPT]";

// The ends of its lines are escaped in the template, which takes them away.
constexpr std::string_view kMistralSmall31System =
    "[SYSTEM_PROMPT]You are Mistral Small 3, a Large Language Model (LLM) created by Mistral AI, a "
    "French startup headquartered in Paris."
    "Your knowledge base was last updated on 2023-10-01. The current date is {today %Y-%m-%d}."
    "When you're not sure about some information, you say that you don't have the information and "
    "don't make up anything."
    "If the user's question is not clear, ambiguous, or does not provide enough context for you to "
    "accurately answer the question, you do not try to answer it right away and you rather ask the "
    "user to clarify their request (e.g. \"What are some good restaurants around me?\" => \"Where "
    "are you?\" or \"When is the next flight to Tokyo\" => \"Where do you travel from?\")"
    "[/SYSTEM_PROMPT]";

constexpr std::string_view kMistralSmall32System =
    "[SYSTEM_PROMPT]You are Mistral Small 3, a Large Language Model (LLM) created by Mistral AI, "
    "a French startup headquartered in Paris.\n"
    "Your knowledge base was last updated on 2023-10-01. The current date is {today %Y-%m-%d}"
    ".\n"
    "\n"
    "When you're not sure about some information or when the user's request "
    "requires up-to-date or specific data, you must use the available tools to "
    "fetch the information. Do not hesitate to use tools whenever they can provide "
    "a more accurate or complete response. If no relevant tools are available, "
    "then clearly state that you don't have the information and avoid making up "
    "anything.\n"
    "\n"
    "If the user's question is not clear, ambiguous, or does not provide enough "
    "context for you to accurately answer the question, you do not try to answer "
    "it right away and you rather ask the user to clarify their request (e.g. "
    "\"What are some good restaurants around me?\" => \"Where are you?\" or \"When is "
    "the next flight to Tokyo\" => \"Where do you travel from?\").\n"
    "You are always very attentive to dates, and when asked about information at "
    "specific dates, you discard information that is at another date.\n"
    "You follow these instructions in all languages, and always respond to the "
    "user in the language they use or request.\n"
    "Next sections describe the capabilities that you have.\n"
    "\n"
    "# WEB BROWSING INSTRUCTIONS\n"
    "\n"
    "You cannot perform any web search or access internet to open URLs, links etc. "
    "If it seems like the user is expecting you to do so, you clarify the "
    "situation and ask the user to copy paste the text directly in the chat.\n"
    "\n"
    "# MULTI-MODAL INSTRUCTIONS\n"
    "\n"
    "You have the ability to read images, but you cannot generate images. You also "
    "cannot transcribe audio files or videos.\n"
    "You cannot read nor transcribe audio files or videos.\n"
    "\n"
    "# TOOL CALLING INSTRUCTIONS\n"
    "\n"
    "You may have access to tools that you can use to fetch information or perform "
    "actions. You must use these tools in the following situations:\n"
    "\n"
    "1. When the request requires up-to-date information.\n"
    "2. When the request requires specific data that you do not have in your "
    "knowledge base.\n"
    "3. When the request involves actions that you cannot perform without tools.\n"
    "\n"
    "Always prioritize using tools to provide the most accurate and helpful "
    "response. If tools are not available, inform the user that you cannot perform "
    "the requested action at the moment."
    "[/SYSTEM_PROMPT]";

// Of the day, from 3.1 on; 3.0 has none.
constexpr TurnFormat granite(std::string_view name, std::string_view default_system) {
  return {.name = name,
          .begin = "",
          .default_system = default_system,
          .opening = Opening::turn,
          .takes_turns = false,
          .system = {"<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>\n"},
          .user = {"<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>\n"},
          .assistant = {"<|start_of_role|>assistant<|end_of_role|>", "<|end_of_text|>\n"},
          .generation = "<|start_of_role|>assistant<|end_of_role|>",
          .otherwise = "",
          .answers_system_alone = default_system.empty()};
}

// The system message is apart, and empty where there is none.
constexpr TurnFormat command(std::string_view name, std::string_view begin,
                             std::string_view default_system, std::string_view opens_reply,
                             std::string_view ends_reply) {
  return {
      .name = name,
      .begin = begin,
      .default_system = default_system,
      .opening = Opening::apart,
      .takes_turns = true,
      .system = {"<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>", Content::as_is,
                 Turn::Fate::left_out},
      .user = {"<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>", Content::trimmed},
      .assistant = {opens_reply, ends_reply, Content::trimmed},
      .generation = opens_reply,
      .otherwise = ""};
}

constexpr std::string_view kCommandSystem =
    "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|><|END_OF_TURN_TOKEN|>";
constexpr std::string_view kCommandReply =
    "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_RESPONSE|>";
constexpr std::string_view kCommandReplyEnds = "<|END_RESPONSE|><|END_OF_TURN_TOKEN|>";

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
    chatml("qwen2-first",  // as the small ones were first published
           "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"),
    chatml("qwen2.5",
           "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
           "assistant.<|im_end|>\n"),
    chatml("smollm2",
           "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
           "Face<|im_end|>\n"),
    chatml(
        "qwq-preview",
        "<|im_start|>system\nYou are a helpful and harmless assistant. You are Qwen developed by "
        "Alibaba. You should think step-by-step.<|im_end|>\n"),
    chatml("hermes3", "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n", "{bos}"),
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
    mistral("mixtral-8x22b", Opening::joins_last, {"[INST] ", "[/INST]"}, {" ", "{eos}"}),
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
    TurnFormat{.name = "mistral-v7-tekken",
               .begin = "{bos}",
               .default_system = "",
               .opening = Opening::turn,
               .takes_turns = false,
               .system = {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"},
               .user = {"[INST]", "[/INST]"},
               .assistant = {"", "{eos}"},
               .generation = "",
               .otherwise = ""},
    mistral_small("devstral", kDevstralSystem, false, Turn::Fate::written),
    mistral_small("mistral-small-3.1", kMistralSmall31System, false, Turn::Fate::refused),
    mistral_small("mistral-small-3.2", kMistralSmall32System, true, Turn::Fate::written),
    phi3("phi3", Turn::Fate::written),
    phi3("phi3.5", Turn::Fate::left_out_where_empty),
    TurnFormat{.name = "phi3-medium",
               .begin = "",
               .default_system = "",
               .opening = Opening::turn,
               .takes_turns = false,
               .system = {"", "", Content::as_is, Turn::Fate::left_out},
               .user = {"<|user|>\n", "<|end|>\n<|assistant|>\n"},
               .assistant = {"", "<|end|>\n"},
               .generation = "",
               .otherwise = ""},
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
    granite("granite3.0", ""),
    granite("granite3.1",
            "<|start_of_role|>system<|end_of_role|>Knowledge Cutoff Date: April 2024.\n"
            "Today's Date: {today %B %d, %Y}.\nYou are Granite, developed by IBM. You are a "
            "helpful AI assistant.<|end_of_text|>\n"),
    granite("granite3.3-first",
            "<|start_of_role|>system<|end_of_role|> Knowledge Cutoff Date: April 2024.\n "
            "Today's Date: {today %B %d, %Y}. You are Granite, developed by IBM. You are a "
            "helpful AI assistant.<|end_of_text|>\n"),
    granite("granite3.3",
            "<|start_of_role|>system<|end_of_role|>Knowledge Cutoff Date: April 2024. Today's "
            "Date: {today %B %d, %Y}. You are Granite, developed by IBM. You are a helpful AI "
            "assistant.<|end_of_text|>\n"),
    command("command-r", "{bos}", "", "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
            "<|END_OF_TURN_TOKEN|>"),
    command("command-r7b", "", kCommandSystem, kCommandReply, kCommandReplyEnds),
    command("command-r7b-arabic", "{bos}", kCommandSystem, kCommandReply, kCommandReplyEnds),
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
  const bool is_system_alone = messages.size() == 1 && messages[0].role == ChatRole::system;
  if (is_system_alone && !format.answers_system_alone) return;
  out.own(out.options().generation_prompt ? format.generation : format.otherwise);
}

}  // namespace akunu
