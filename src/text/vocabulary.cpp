#include "text/vocabulary.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "files/printable.h"
#include "text/unicode.h"

namespace akunu {
namespace {

// Tokens after which a model has said what it had to say, best known first: where the file names
// no end-of-turn token, the first one present is it.
constexpr std::string_view kEndOfTurn[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<end_of_turn>",
    "<turn|>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
    "<end_of_utterance>",
};
constexpr std::string_view kMoreStops[] = {
    "<|eom_id|>",       "<|return|>",  "<|call|>",      "<|calls|>",    "<|flush|>",
    "<|tool_response>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>",
};
// These spellings may also be ordinary text, so they stop only where the file marks them.
constexpr std::string_view kStopsIfMarked[] = {"</s>",  "<eos>", "<EOT>", "_<EOT>",
                                               "[EOT]", "[EOS]", "[e~["};

std::string quoted(std::string_view text) { return "'" + printable(text) + "'"; }

std::string token_entry(size_t index) {
  return std::string(kTokensKey) + "[" + std::to_string(index) + "]";
}

// Whether a token looks like `<|name|>` or the same with full-width bars.
bool is_control_shape(std::string_view token) {
  constexpr std::string_view kWideBar = "\xEF\xBD\x9C";
  const auto is_framed = [&](std::string_view bar, std::string_view refused) {
    if (token.size() <= 2 + 2 * bar.size()) return false;
    if (!token.starts_with('<') || !token.ends_with('>')) return false;
    const std::string_view inner = token.substr(1, token.size() - 2);
    if (!inner.starts_with(bar) || !inner.ends_with(bar)) return false;
    const std::u32string name =
        to_characters(inner.substr(bar.size(), inner.size() - 2 * bar.size()));
    return std::ranges::none_of(name, [&](char32_t character) {
      return is_white_space(character) || (character >= 0x1C && character <= 0x1F) ||
             (character < 0x80 &&
              refused.find(static_cast<char>(character)) != std::string_view::npos) ||
             (refused.empty() && character == 0xFF5C);
    });
  };
  return is_framed("|", "|<>") || is_framed(kWideBar, "<>");
}

class VocabularyMaker {
 public:
  explicit VocabularyMaker(VocabularySource source) : source_(std::move(source)) {
    Vocabulary& made = *made_;
    made.model = source_.model;
    made.pre = source_.pre;
    made.tokens = std::move(source_.tokens);
    made.types = std::move(source_.types);
    made.types.resize(made.tokens.size(), TokenType::undefined);
    made.scores = std::move(source_.scores);
    made.merges = std::move(source_.merges);
    made.added = std::move(source_.added);
    if (made.pre == nullptr) {
      made.splits = std::move(source_.splits);
      made.own_splits.assign(made.splits.begin(), made.splits.end());
      made.own_pre = {.splits = made.own_splits, .ignore_merges = source_.ignore_merges};
      made.pre = &made.own_pre;
    }
    made.unigram = std::move(source_.unigram);
    made.spells_spaces_late = source_.spells_spaces_late;
  }

  std::unique_ptr<const Vocabulary> make() {
    index_tokens();
    find_special_tokens();
    mark_control();
    set_flags();
    set_template();
    add_stops();
    return std::move(made_);
  }

 private:
  bool is(TokenizerModel model) const { return made_->model == model; }
  std::optional<uint32_t> find(std::string_view text) const {
    const auto found = made_->ids.find(text);
    return found == made_->ids.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<uint32_t> special(std::string_view name, const SourceTokenId& given,
                                  std::optional<uint32_t> usual = {}, bool needed = false) const {
    const uint64_t n_tokens = made_->tokens.size();
    if (given.id && *given.id >= 0 && static_cast<uint64_t>(*given.id) < n_tokens)
      return static_cast<uint32_t>(*given.id);
    if (needed && !given.fault.empty()) throw ModelFormatError(given.fault);
    if (needed && given.id)
      throw ModelFormatError("tokenizer.ggml." + std::string(name) + "_token_id is " +
                             std::to_string(*given.id) + ", but " + std::string(kTokensKey) +
                             " has ids 0 to " + std::to_string(n_tokens - 1));
    return usual && *usual < n_tokens ? usual : std::nullopt;
  }

  void index_tokens() {
    Vocabulary& made = *made_;
    made.is_text.resize(made.tokens.size());
    made.ids.reserve(made.tokens.size());
    for (uint32_t id = 0; id < made.tokens.size(); ++id) {
      const std::string& token = made.tokens[id];
      made.is_text[id] = find_invalid_utf8(token) == std::string_view::npos;
      if (!made.is_text[id] || token.empty()) continue;
      const auto [place, is_new] = made.ids.emplace(token, id);
      if (!is_new)
        throw ModelFormatError(token_entry(id) + " is " + quoted(token) + ", and so is " +
                               token_entry(place->second));
    }
    for (size_t i = 0; i < made.added.size(); ++i) made.added_at[made.added[i].id] = i;
  }

  void find_special_tokens() {
    Vocabulary& made = *made_;
    const bool spm = is(TokenizerModel::sentencepiece), bert = is(TokenizerModel::wordpiece);
    made.bos = special("bos", source_.bos, spm ? std::optional(1u) : std::nullopt);
    made.eos = special("eos", source_.eos, spm ? std::optional(2u) : std::nullopt);
    made.eot = special("eot", source_.eot);
    for (size_t i = 0; !made.eot && i < std::size(kEndOfTurn); ++i) made.eot = find(kEndOfTurn[i]);
    find_stops(special("eom", source_.eom));
    const auto n_bytes = std::ranges::count(made.types, TokenType::byte);
    const bool spells_all = is(TokenizerModel::byte_level) || n_bytes == 256;
    made.unknown = special("unknown", source_.unknown,
                           spm    ? std::optional(0u)
                           : bert ? std::optional(100u)
                                  : std::nullopt,
                           !spells_all);
    if (bert && !made.bos) made.bos = special("cls", source_.cls, 101, true);
    // Spelled so in files.
    made.separator = bert ? special("seperator", source_.separator, 102, true)
                          : special("seperator", source_.separator);
    if (bert && (!made.bos || !made.separator || !made.unknown))
      throw ModelFormatError(
          "a bert vocabulary needs tokenizer.ggml.cls_token_id, seperator_token_id and "
          "unknown_token_id");
    made.pad = special("padding", source_.pad);
  }

  void find_stops(std::optional<uint32_t> end_of_message) {
    std::vector<uint32_t>& stops = made_->stops;
    const auto add = [&](std::optional<uint32_t> id) {
      if (id && std::ranges::find(stops, *id) == stops.end()) stops.push_back(*id);
    };
    for (const std::string_view text : kEndOfTurn) add(find(text));
    for (const std::string_view text : kMoreStops) add(find(text));
    for (const std::string_view text : kStopsIfMarked) {
      const std::optional<uint32_t> id = find(text);
      if (id &&
          (made_->types[*id] == TokenType::control || made_->types[*id] == TokenType::user_defined))
        add(id);
    }
    add(made_->eot);
    add(end_of_message);
    // In these two families a token that ends a turn elsewhere is something else: "<|end|>" ends
    // one part of a gpt-oss answer, "</s>" is a tag for Gemma 4.
    const auto drop = [&](std::string_view text) {
      if (const std::optional<uint32_t> id = find(text)) std::erase(stops, *id);
    };
    if ((find("<|return|>") && find("<|call|>")) || (find("<|calls|>") && find("<|flush|>")))
      drop("<|end|>");
    if (find("<|tool_response>")) drop("</s>");
    add(made_->eos);
    std::ranges::sort(stops);
  }

  // Marks as control what must never come out of a user's text although the file says otherwise:
  // some converters call chat markers user-defined or even normal.
  void mark_control() {
    Vocabulary& made = *made_;
    const bool untyped = std::ranges::all_of(
        made.types, [](TokenType type) { return type == TokenType::undefined; });
    std::vector<uint32_t> controls = made.stops;
    for (const std::optional<uint32_t> id : {made.bos, made.eos})
      if (untyped && id) controls.push_back(*id);
    for (const uint32_t id : controls)
      if (made.is_text[id] && !made.tokens[id].empty() && made.types[id] != TokenType::unknown)
        made.types[id] = TokenType::control;
    const bool by_character = is(TokenizerModel::sentencepiece) || is(TokenizerModel::gemma4);
    for (size_t id = 0; id < made.types.size(); ++id) {
      TokenType& type = made.types[id];
      const std::string& token = made.tokens[id];
      if (type == TokenType::undefined) type = TokenType::normal;
      if (!made.is_text[id]) {
        if (type == TokenType::normal || type == TokenType::user_defined || type == TokenType::byte)
          type = TokenType::unused;
        continue;
      }
      if (type == TokenType::user_defined && is_control_shape(token)) type = TokenType::control;
      if (!by_character) continue;
      // Spelled with U+2581, such a token is not to be found in text: it comes out of merging.
      if (type == TokenType::user_defined && token.find(kSpelledSpace) != std::string::npos)
        type = TokenType::normal;
      if (type == TokenType::byte && !byte_of(token))
        throw ModelFormatError(token_entry(id) + " is " + quoted(token) +
                               ", but its type is byte: expected <0x00> to <0xFF>");
    }
  }

  void set_flags() {
    Vocabulary& made = *made_;
    const bool spm = is(TokenizerModel::sentencepiece), bert = is(TokenizerModel::wordpiece);
    const bool unigram = is(TokenizerModel::unigram);
    const bool usual =
        spm || bert || unigram || (is(TokenizerModel::byte_level) && made.pre->add_bos);
    // Files of Gemma 4 say false by mistake; every user of them overrides it.
    made.add_bos =
        made.bos.has_value() && (is(TokenizerModel::gemma4) || source_.add_bos.value_or(usual));
    made.add_eos = made.eos.has_value() && source_.add_eos.value_or(unigram);
    made.add_space_prefix = source_.add_space_prefix ? *source_.add_space_prefix && !bert : spm;
    if (unigram) {
      made.add_space_prefix = made.unigram.prefix != UnigramSteps::Prefix::never;
      made.opens_anew = made.unigram.prefix != UnigramSteps::Prefix::at_start;
    }
    made.lowercase = source_.lowercase.value_or(true);
    made.strip_accents = source_.strip_accents.value_or(made.lowercase);
    made.nfc = source_.nfc.value_or(false);
  }

  // A template that is no text, or blank, is none.
  void set_template() {
    std::string& text = source_.chat_template;
    if (find_invalid_utf8(text) == std::string_view::npos &&
        text.find_first_not_of(" \t\r\n\v\f") != std::string::npos)
      made_->chat_template = std::move(text);
  }

  void add_stops() {
    for (const uint32_t id : source_.stops) {
      if (made_->types[id] != TokenType::unknown) made_->types[id] = TokenType::control;
      if (std::ranges::find(made_->stops, id) == made_->stops.end()) made_->stops.push_back(id);
    }
    std::ranges::sort(made_->stops);
  }

  VocabularySource source_;
  std::unique_ptr<Vocabulary> made_ = std::make_unique<Vocabulary>();
};

}  // namespace

std::unique_ptr<const Vocabulary> make_vocabulary(VocabularySource source) {
  return VocabularyMaker(std::move(source)).make();
}

std::optional<uint8_t> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  unsigned byte = 0;
  for (const char digit : token.substr(3, 2)) {
    const bool is_number = digit >= '0' && digit <= '9';
    const char letter = static_cast<char>(digit | 0x20);
    if (!is_number && (letter < 'a' || letter > 'f')) return std::nullopt;
    byte = byte * 16 + static_cast<unsigned>(is_number ? digit - '0' : letter - 'a' + 10);
  }
  return static_cast<uint8_t>(byte);
}

}  // namespace akunu
