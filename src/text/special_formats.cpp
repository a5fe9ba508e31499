// Formats that look into messages.
#include <algorithm>
#include <array>
#include <string>

#include "core/error.h"
#include "text/chat_writer.h"

namespace akunu {
namespace {

using Messages = std::span<const ChatMessage>;

bool is_system(const Messages& messages) { return messages[0].role == ChatRole::system; }

// Text before the first `marker`, and behind the last.
std::string_view before_first(std::string_view text, std::string_view marker) {
  return text.substr(0, text.find(marker));
}

std::string_view behind_last(std::string_view text, std::string_view marker) {
  const size_t at = text.rfind(marker);
  return at == std::string_view::npos ? text : text.substr(at + marker.size());
}

std::string_view behind_first(std::string_view text, std::string_view marker) {
  const size_t at = text.find(marker);
  return at == std::string_view::npos ? text : text.substr(at + marker.size());
}

// All system messages, with an empty line between them, or the last.
std::string system_in_front(const Messages& messages, bool joins) {
  std::string system;
  bool is_first = true;
  for (const auto& [role, text] : messages) {
    if (role != ChatRole::system) continue;
    system = is_first || !joins ? std::string(text) : system + "\n\n" + std::string(text);
    is_first = false;
  }
  return system;
}

// ---- Llama 3.1 and on: the day is told, whether there is a system message or not ----

void write_llama31(const Messages& all, ChatWriter& out, const std::string& day) {
  const auto header = [&](std::string_view role) {
    out.own("<|start_header_id|>").own(role).own("<|end_header_id|>\n\n");
  };
  Messages messages = all;
  out.own("{bos}");
  header("system");
  out.own("Cutting Knowledge Date: December 2023\nToday Date: ").own(day).own("\n\n");
  if (is_system(messages)) {
    out.given(stripped(messages[0].content));
    messages = messages.subspan(1);
  }
  out.own("<|eot_id|>");
  for (const ChatMessage& message : messages) {
    header(role_name(message.role));
    out.given(stripped(message.content)).own("<|eot_id|>");
  }
  if (out.options().generation_prompt) header("assistant");
}

// ---- Qwen 3: thoughts of earlier turns are left out ----

void write_qwen3(Messages messages, ChatWriter& out) {
  size_t last_query = messages.size() - 1;
  for (size_t i = messages.size(); i-- > 0;) {
    const std::string_view text = messages[i].content;
    if (messages[i].role != ChatRole::user ||
        (text.starts_with("<tool_response>") && text.ends_with("</tool_response>")))
      continue;
    last_query = i;
    break;
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto& [role, text] = messages[i];
    out.own("<|im_start|>").own(role_name(role)).own("\n");
    if (role != ChatRole::assistant) {
      out.given(text).own("<|im_end|>\n");
      continue;
    }
    std::string_view content = text, thoughts;
    if (text.find("</think>") != std::string_view::npos) {
      content = without_opening_lines(behind_last(text, "</think>"));
      thoughts = without_closing_lines(before_first(text, "</think>"));
      thoughts = without_opening_lines(behind_last(thoughts, "<think>"));
    }
    if (i > last_query && (i + 1 == messages.size() || !thoughts.empty())) {
      out.own("<think>\n").given(without_closing_lines(without_opening_lines(thoughts)));
      out.own("\n</think>\n\n");
      content = without_opening_lines(content);
    }
    out.given(content).own("<|im_end|>\n");
  }
  if (!out.options().generation_prompt) return;
  out.own("<|im_start|>assistant\n");
  if (!out.options().thinking) out.own("<think>\n\n</think>\n\n");
}

// ---- QwQ: likewise; the last reply may keep its own ----

void write_qwq(Messages messages, ChatWriter& out, bool keeps_last) {
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto& [role, text] = messages[i];
    const bool keeps = role != ChatRole::assistant || (keeps_last && i + 1 == messages.size());
    out.own("<|im_start|>").own(role_name(role)).own("\n");
    out.given(keeps ? text : without_opening_lines(behind_last(text, "</think>")));
    out.own("<|im_end|>\n");
  }
  if (out.options().generation_prompt) out.own("<|im_start|>assistant\n<think>\n");
}

// ---- SmolLM 3: the system message may say /think or /no_think ----

std::string without(std::string text, std::string_view part) {
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos;) text.erase(at, part.size());
  return text;
}

constexpr std::string_view kSmolThinks =
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face. Your role as an "
    "assistant "
    "involves thoroughly exploring questions through a systematic thinking process before "
    "providing "
    "the final precise and accurate solutions. This requires engaging in a comprehensive cycle of "
    "analysis, summarizing, exploration, reassessment, reflection, backtracking, and iteration to "
    "develop well-considered thinking process. Please structure your response into two main "
    "sections: Thought and Solution using the specified format: <think> Thought section </think> "
    "Solution section. In the Thought section, detail your reasoning process in steps. Each step "
    "should include detailed considerations such as analysing questions, summarizing relevant "
    "findings, brainstorming new ideas, verifying the accuracy of the current steps, refining any "
    "errors, and revisiting previous steps. In the Solution section, based on various attempts, "
    "explorations, and reflections from the Thought section, systematically present the final "
    "solution that you deem correct. The Solution section should be logical, accurate, and concise "
    "and detail necessary steps needed to reach the conclusion.\n\n";

void write_smollm3(Messages messages, ChatWriter& out) {
  bool thinks = out.options().thinking;
  std::string instructions;
  if (is_system(messages)) {
    const std::string given(messages[0].content);
    if (given.find("/no_think") != std::string::npos)
      thinks = false;
    else if (given.find("/think") != std::string::npos)
      thinks = true;
    instructions = without(without(given, "/no_think"), "/think");
    instructions = right_stripped(instructions);
  }
  constexpr std::string_view kNoThoughts = "<think>\n\n</think>\n";
  out.own("<|im_start|>system\n## Metadata\n\nKnowledge Cutoff Date: June 2025\nReasoning Mode: ");
  out.own(thinks ? "/think" : "/no_think").own("\n\n## Custom Instructions\n\n");
  if (!instructions.empty())
    out.given(instructions).own("\n\n");
  else if (thinks)
    out.own(kSmolThinks);
  else
    out.own("You are a helpful AI assistant named SmolLM, trained by Hugging Face.\n\n");
  out.own("<|im_end|>\n");
  for (const auto& [role, text] : messages) {
    if (role == ChatRole::system) continue;  // also those behind the first
    out.own("<|im_start|>").own(role_name(role)).own("\n");
    if (role == ChatRole::assistant && !thinks) out.own(kNoThoughts);
    out.given(role == ChatRole::assistant ? without_opening_lines(text) : text).own("<|im_end|>\n");
  }
  if (!out.options().generation_prompt) return;
  out.own("<|im_start|>assistant\n");
  if (!thinks) out.own(kNoThoughts);
}

// ---- DeepSeek V3 and R1: system messages stand in front ----

struct Deepseek {
  bool joins_system;    // false: of several system messages, the last
  bool keeps_thoughts;  // of earlier replies
  std::string_view generation;
  bool question_opens_reply = false;  // "<｜Assistant｜>" ends questions, and begins no reply
};

void write_deepseek(Messages messages, ChatWriter& out, const Deepseek& format) {
  out.own("{bos}").given(system_in_front(messages, format.joins_system));
  bool is_open = false;
  for (const auto& [role, text] : messages) {
    if (role == ChatRole::user) {
      out.own("<｜User｜>").given(text);
      if (format.question_opens_reply) out.own("<｜Assistant｜>");
      is_open = format.question_opens_reply;
    }
    if (role == ChatRole::assistant) {
      if (!format.question_opens_reply) out.own("<｜Assistant｜>");
      out.given(format.keeps_thoughts ? text : behind_last(text, "</think>"));
      out.own("<｜end▁of▁sentence｜>");
      is_open = false;
    }
  }
  if (out.options().generation_prompt && !is_open) out.own(format.generation);
}

// ---- DeepSeek V3.1: likewise; each reply to a question says that there are no thoughts ----

void write_deepseek31(Messages messages, ChatWriter& out) {
  constexpr std::string_view kOpens = "<｜Assistant｜></think>";
  out.own("{bos}").given(system_in_front(messages, true));
  bool is_asked = false;
  for (const auto& [role, text] : messages) {
    if (role == ChatRole::user) {
      out.own("<｜User｜>").given(text);
      is_asked = true;
    }
    if (role == ChatRole::assistant) {
      if (is_asked) out.own(kOpens);
      out.given(behind_first(text, "</think>")).own("<｜end▁of▁sentence｜>");
      is_asked = false;
    }
  }
  if (out.options().generation_prompt && is_asked) out.own(kOpens);
}

// ---- Llama 2: the system message is part of the first question ----

void write_llama2(Messages messages, ChatWriter& out) {
  std::string opening;
  if (is_system(messages)) {
    opening = "<<SYS>>\n" + std::string(messages[0].content) + "\n<</SYS>>\n\n";
    messages = messages.subspan(1);
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto& [role, text] = messages[i];
    if ((role == ChatRole::user) != (i % 2 == 0))
      throw ArgumentError(
          "this model's chat template (llama2) refuses: user and assistant must take turns, "
          "beginning with user");
    const std::string content = (i == 0 ? opening : "") + std::string(text);
    if (role == ChatRole::user) out.own("{bos}[INST] ").given(stripped(content)).own(" [/INST]");
    if (role == ChatRole::assistant) out.own(" ").given(stripped(content)).own(" {eos}");
  }
}

// ---- Granite 4: an empty system message is none ----

void write_granite4(Messages messages, ChatWriter& out, std::string_view default_system) {
  const auto turn = [&](std::string_view role) {
    return std::string("<|start_of_role|>").append(role).append("<|end_of_role|>");
  };
  constexpr std::string_view kEnd = "<|end_of_text|>\n";
  std::string_view system;
  if (is_system(messages)) {
    system = messages[0].content;
    messages = messages.subspan(1);
  }
  if (!system.empty())
    out.own(turn("system")).given(system).own(kEnd);
  else if (!default_system.empty())
    out.own(turn("system")).own(default_system).own(kEnd);
  for (const auto& [role, text] : messages) out.own(turn(role_name(role))).given(text).own(kEnd);
  if (out.options().generation_prompt) out.own(turn("assistant"));
}

// ---- Phi-4-mini-reasoning: all system messages stand behind its own ----

void write_phi4_mini_reasoning(Messages messages, ChatWriter& out) {
  out.own("<|system|>Your name is Phi, an AI math expert developed by Microsoft.");
  for (const auto& [role, text] : messages)
    if (role == ChatRole::system) out.own(" ").given(text);
  out.own("<|end|>");
  for (const auto& [role, text] : messages)
    if (role != ChatRole::system)
      out.own("<|").own(role_name(role)).own("|>").given(text).own("<|end|>");
  out.own(out.options().generation_prompt ? "<|assistant|>" : "{eos}");
}

// ---- Tulu 3 and OLMo 2: the last reply does not end its line ----

void write_tulu(Messages messages, ChatWriter& out, std::string_view begin) {
  out.own(begin);
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto& [role, text] = messages[i];
    out.own("<|").own(role_name(role)).own("|>\n").given(text);
    if (role == ChatRole::assistant) out.own("{eos}");
    if (role != ChatRole::assistant || i + 1 != messages.size()) out.own("\n");
  }
  if (out.options().generation_prompt) out.own("<|assistant|>\n");
}

// ---- gpt-oss (harmony) ----

void write_harmony(Messages messages, ChatWriter& out) {
  out.own(
      "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
      "Knowledge cutoff: 2024-06\nCurrent date: ");
  out.own(today("%Y-%m-%d")).own("\n\nReasoning: medium\n\n");
  out.own(
      "# Valid channels: analysis, commentary, final. Channel must be included for every "
      "message.<|end|>");
  if (is_system(messages)) {
    if (!messages[0].content.empty())
      out.own("<|start|>developer<|message|># Instructions\n\n")
          .given(messages[0].content)
          .own("\n\n<|end|>");
    messages = messages.subspan(1);
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto& [role, text] = messages[i];
    if (role == ChatRole::user) out.own("<|start|>user<|message|>").given(text).own("<|end|>");
    if (role != ChatRole::assistant) continue;
    for (const std::string_view channel : {"analysis", "final"})
      if (text.find("<|channel|>" + std::string(channel) + "<|message|>") != std::string_view::npos)
        throw ArgumentError(
            "this model's chat template (gpt-oss) refuses: a reply holds "
            "<|channel|>; give its final text alone");
    const bool is_end = i + 1 == messages.size() && !out.options().generation_prompt;
    out.own("<|start|>assistant<|channel|>final<|message|>").given(text);
    out.own(is_end ? "<|return|>" : "<|end|>");
  }
  if (out.options().generation_prompt) out.own("<|start|>assistant");
}

constexpr std::string_view kThinks = "<｜Assistant｜><think>\n";
constexpr std::string_view kReplies = "<｜Assistant｜>";

constexpr std::array kSpecialFormats = {
    SpecialFormat{"llama3.1", false,
                  [](Messages m, ChatWriter& out) { write_llama31(m, out, "26 Jul 2024"); }},
    SpecialFormat{"llama3.2", false,
                  [](Messages m, ChatWriter& out) { write_llama31(m, out, today("%d %b %Y")); }},
    SpecialFormat{"qwen3", true, write_qwen3},
    SpecialFormat{"smollm3", true, write_smollm3},
    SpecialFormat{
        "deepseek3-first", false,
        [](Messages m, ChatWriter& out) { write_deepseek(m, out, {true, true, kReplies}); }},
    SpecialFormat{
        "deepseek3", false,
        [](Messages m, ChatWriter& out) { write_deepseek(m, out, {true, false, kThinks}); }},
    SpecialFormat{"deepseek3.1", false, write_deepseek31},
    SpecialFormat{
        "deepseek-r1-first", false,
        [](Messages m, ChatWriter& out) { write_deepseek(m, out, {true, false, kReplies}); }},
    SpecialFormat{
        "deepseek-r1-0528", false,
        [](Messages m, ChatWriter& out) { write_deepseek(m, out, {true, false, kReplies, true}); }},
    SpecialFormat{
        "deepseek-r1-distill-first", false,
        [](Messages m, ChatWriter& out) { write_deepseek(m, out, {false, false, kReplies}); }},
    SpecialFormat{
        "deepseek-r1", false,
        [](Messages m, ChatWriter& out) { write_deepseek(m, out, {false, false, kThinks}); }},
    SpecialFormat{"tulu3", false, [](Messages m, ChatWriter& out) { write_tulu(m, out, ""); }},
    SpecialFormat{"olmo2", false, [](Messages m, ChatWriter& out) { write_tulu(m, out, "{bos}"); }},
    SpecialFormat{"qwq-first", false,
                  [](Messages m, ChatWriter& out) { write_qwq(m, out, false); }},
    SpecialFormat{"qwq", false, [](Messages m, ChatWriter& out) { write_qwq(m, out, true); }},
    SpecialFormat{"granite4", false,
                  [](Messages m, ChatWriter& out) { write_granite4(m, out, ""); }},
    SpecialFormat{"granite4-nano", false,
                  [](Messages m, ChatWriter& out) {
                    write_granite4(m, out,
                                   "You are a helpful assistant. Please ensure responses are "
                                   "professional, accurate, and safe.");
                  }},
    SpecialFormat{"phi4-mini-reasoning", false, write_phi4_mini_reasoning},
    SpecialFormat{"llama2", false, write_llama2},
    SpecialFormat{"gpt-oss", false, write_harmony},
};

}  // namespace

const SpecialFormat* special_format(std::string_view name) {
  const auto* found = std::ranges::find(kSpecialFormats, name, &SpecialFormat::name);
  return found == kSpecialFormats.end() ? nullptr : found;
}

}  // namespace akunu
