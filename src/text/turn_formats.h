// Formats that are described by what stands around each turn.
#pragma once

#include <span>
#include <string_view>

#include "text/chat_writer.h"

namespace akunu {

enum class Content { as_is, trimmed };

// What stands around the text of one role's turns.
struct Turn {
  enum class Fate { written, left_out, left_out_where_empty, refused };
  std::string_view before = "", after = "";
  Content content = Content::as_is;
  Fate fate = Fate::written;
};

// What becomes of a system message at the start.
enum class Opening {
  turn,         // as of any other
  apart,        // likewise, untrimmed, and user and assistant take turns behind it
  refused,      //
  joins_first,  // it stands before the first question, with an empty line between
  joins_last,   // likewise before the last message, where that is a question
};

struct TurnFormat {
  std::string_view name;
  std::string_view begin;           // of every conversation
  std::string_view default_system;  // written where the first message is no system message
  Opening opening;
  bool takes_turns;  // user, another, user, another...: else it is refused
  Turn system, user, assistant;
  std::string_view generation;       // opens the model's turn
  std::string_view otherwise;        // stands there without it
  bool answers_system_alone = true;  // false: neither is written behind a system message alone
};

// By name; null where there is none.
const TurnFormat* turn_format(std::string_view name);

void write_turns(const TurnFormat& format, std::span<const ChatMessage> messages, ChatWriter& out);

}  // namespace akunu
