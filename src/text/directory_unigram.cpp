// What a tokenizer.json of the kind Unigram says of texts, before pieces are looked for.
#include <array>
#include <optional>

#include "files/printable.h"
#include "text/tokenizer_json.h"
#include "text/vocabulary.h"

namespace akunu::tokenizer_json {
namespace {

std::optional<uint32_t> base64_digit(char c) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t found = kDigits.find(c);
  return found == std::string_view::npos ? std::nullopt
                                         : std::optional(static_cast<uint32_t>(found));
}

std::string from_base64(std::string_view text) {
  std::string bytes;
  uint32_t bits = 0;
  int n_bits = 0;
  for (const char c : text.substr(0, text.find('='))) {
    const auto digit = base64_digit(c);
    if (!digit) refuse_form("normalizer.precompiled_charsmap is no base64");
    bits = bits << 6 | *digit;
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes += static_cast<char>(static_cast<unsigned char>(bits >> n_bits & 0xFF));
  }
  return bytes;
}

TextStep replacement(const JsonValue& step) {
  const std::string with = text_in(&step, "content");
  const JsonValue* pattern = member(&step, "pattern");
  if (const std::string what = text_in(pattern, "String"); !what.empty())
    return {TextStep::Kind::replace, what, with};
  // An expression that published files have, and the only one.
  if (const std::string regex = text_in(pattern, "Regex"); regex == " {2,}")
    return {TextStep::Kind::collapse, " ", with};
  refuse_part("normalizer Replace has a pattern that is not supported in C");
}

TextStep text_step(const JsonValue& step) {
  using Kind = TextStep::Kind;
  const std::string type = text_in(&step, "type");
  if (type == "Precompiled")
    return {Kind::map, from_base64(text_in(&step, "precompiled_charsmap"))};
  if (type == "Replace") return replacement(step);
  if (type == "Strip")
    return {Kind::strip, {}, {}, is_set(&step, "strip_left"), is_set(&step, "strip_right")};
  if (type == "NFC") return {Kind::compose};
  if (type == "NFD") return {Kind::decompose};
  if (type == "Lowercase") return {Kind::lower};
  refuse_part("normalizer " + printable(type) + " is not supported in C");
}

void read_metaspace(const JsonValue& step, UnigramSteps& steps) {
  using Prefix = UnigramSteps::Prefix;
  if (text_in(&step, "replacement") != kSpelledSpace)
    refuse_part("pre_tokenizer Metaspace writes a space as '" +
                printable(text_in(&step, "replacement")) + "'; akunu has U+2581");
  if (steps.has_spaces_spelled) refuse_part("pre_tokenizer has two Metaspace");
  steps.has_spaces_spelled = true;
  steps.splits_words = is_set(&step, "split", true);
  const std::string scheme = text_in(&step, "prepend_scheme");
  if (scheme.empty())
    steps.prefix = is_set(&step, "add_prefix_space", true) ? Prefix::always : Prefix::never;
  else if (scheme == "always")
    steps.prefix = Prefix::always;
  else if (scheme == "first")
    steps.prefix = Prefix::at_start;
  else if (scheme == "never")
    steps.prefix = Prefix::never;
  else
    refuse_form("pre_tokenizer.prepend_scheme is '" + printable(scheme) + "'");
}

}  // namespace

UnigramSteps unigram_steps(const JsonValue& described) {
  UnigramSteps steps;
  for (const JsonValue* step : steps_of(described, "normalizer", "normalizers"))
    steps.text.push_back(text_step(*step));
  for (const JsonValue* step : steps_of(described, "pre_tokenizer", "pretokenizers")) {
    const std::string type = text_in(step, "type");
    if (type == "Metaspace")
      read_metaspace(*step, steps);
    else if (type == "WhitespaceSplit" && !steps.has_spaces_spelled)
      steps.cuts_at_spaces = true;
    else
      refuse_part("pre_tokenizer " + printable(type) + " is not supported in C");
  }
  // Whether a word is the first is decided by its place in the text as it was given.
  if (steps.cuts_at_spaces && steps.prefix == UnigramSteps::Prefix::at_start)
    refuse_part("pre_tokenizer Metaspace with 'first' behind WhitespaceSplit");
  steps.byte_fallback = is_set(member(&described, "model"), "byte_fallback");
  return steps;
}

}  // namespace akunu::tokenizer_json
