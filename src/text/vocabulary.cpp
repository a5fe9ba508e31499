#include "text/vocabulary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "core/error.h"
#include "files/printable.h"
#include "text/unicode.h"

namespace akunu {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";
constexpr std::string_view kTemplate = "tokenizer.chat_template";

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

std::string entry(std::string_view key, size_t index) {
  return std::string(key) + "[" + std::to_string(index) + "]";
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

// Reads the values of one file into a vocabulary.
class Reader {
 public:
  Reader(const GgufFile& file, BesideGguf beside) : file_(file) {
    made_->beside = std::move(beside);
  }

  std::unique_ptr<const Vocabulary> read() {
    read_model();
    read_tokens();
    read_types();
    const bool is_unigram = is(TokenizerModel::unigram);
    const bool by_rank = is(TokenizerModel::sentencepiece) && has(kMerges) && !has(kScores);
    if ((is(TokenizerModel::sentencepiece) && !by_rank) || is_unigram) read_scores();
    if (is(TokenizerModel::byte_level) || is(TokenizerModel::gemma4) || by_rank) read_merges();
    read_added_tokens();
    read_special_tokens();
    mark_control();
    read_flags();
    read_template();
    add_beside();
    return std::move(made_);
  }

 private:
  bool is(TokenizerModel model) const { return made_->model == model; }
  bool has(std::string_view key) const { return file_.find(key) != nullptr; }
  void note(std::string text) { made_->notes.push_back(std::move(text)); }
  std::optional<uint32_t> find(std::string_view text) const {
    const auto found = made_->ids.find(text);
    return found == made_->ids.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<bool> flag(std::string_view key) {
    const GgufValue* value = file_.find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_array || value->type != GgufValueType::boolean) {
      note(std::string(key) + " is no bool: ignored");
      return std::nullopt;
    }
    return file_.get_bool(key);
  }

  std::optional<uint32_t> special(std::string_view name, std::optional<uint32_t> usual = {},
                                  bool needed = false) {
    const std::string key = "tokenizer.ggml." + std::string(name) + "_token_id";
    const uint64_t n_tokens = made_->tokens.size();
    const GgufValue* value = file_.find(key);
    if (value != nullptr) {
      std::optional<int64_t> id;
      try {
        id = file_.get_int(key);
      } catch (const ModelFormatError&) {
        if (needed) throw;
        note(key + " is no token id: ignored");
      }
      if (id && *id >= 0 && static_cast<uint64_t>(*id) < n_tokens)
        return static_cast<uint32_t>(*id);
      if (id) {
        const std::string fault = key + " is " + std::to_string(*id) + ", but " +
                                  std::string(kTokens) + " has ids 0 to " +
                                  std::to_string(n_tokens - 1);
        if (needed) throw ModelFormatError(fault);
        note(fault + ": ignored");
      }
    }
    return usual && *usual < n_tokens ? usual : std::nullopt;
  }

  void read_model() {
    const std::optional<std::string_view> model = file_.get_string("tokenizer.ggml.model");
    if (!model)
      throw ModelFormatError("tokenizer.ggml.model is missing: the file has no tokenizer");
    constexpr std::pair<std::string_view, TokenizerModel> kModels[] = {
        {"gpt2", TokenizerModel::byte_level}, {"llama", TokenizerModel::sentencepiece},
        {"bert", TokenizerModel::wordpiece},  {"gemma4", TokenizerModel::gemma4},
        {"t5", TokenizerModel::unigram},
    };
    const auto* known =
        std::ranges::find(kModels, *model, &std::pair<std::string_view, TokenizerModel>::first);
    if (known == std::end(kModels))
      throw UnsupportedModelError("tokenizer model " + quoted(*model) +
                                  " is not supported; known are gpt2, llama, bert, gemma4, t5");
    made_->model = known->second;
    const std::string_view pre = file_.get_string("tokenizer.ggml.pre").value_or("");
    // The others have one way to cut text each. An old file without the key is cut as "default",
    // which may differ from its own family (llama.cpp does the same).
    const bool is_default = pre.empty() || !is(TokenizerModel::byte_level);
    made_->pre = find_pre_tokenizer(is_default ? "default" : pre);
    if (made_->pre == nullptr)
      throw UnsupportedModelError("pre-tokenizer " + quoted(pre) +
                                  " (tokenizer.ggml.pre) is not supported");
  }

  void read_tokens() {
    const auto tokens = file_.get_string_array(kTokens);
    if (!tokens) throw ModelFormatError(std::string(kTokens) + " is missing");
    if (tokens->empty()) throw ModelFormatError(std::string(kTokens) + " is empty");
    made_->tokens.assign(tokens->begin(), tokens->end());
    made_->is_text.resize(tokens->size());
    made_->ids.reserve(tokens->size());
    size_t n_raw = 0;
    for (uint32_t id = 0; id < tokens->size(); ++id) {
      const std::string& token = made_->tokens[id];
      made_->is_text[id] = find_invalid_utf8(token) == std::string_view::npos;
      if (!made_->is_text[id]) {
        ++n_raw;
        continue;
      }
      if (token.empty()) continue;
      const auto [place, is_new] = made_->ids.emplace(token, id);
      if (!is_new)
        throw ModelFormatError(entry(kTokens, id) + " is " + quoted(token) + ", and so is " +
                               entry(kTokens, place->second));
    }
    if (n_raw > 0)
      note(std::to_string(n_raw) + " of " + std::string(kTokens) +
           " are not valid UTF-8: no text becomes one of them");
  }

  void read_types() {
    made_->types.resize(made_->tokens.size(), TokenType::undefined);
    const auto types = file_.get_int_array(kTypes);
    if (!types) return;
    check_length(kTypes, types->size());
    size_t n_undefined = 0;
    for (size_t i = 0; i < types->size(); ++i) {
      if ((*types)[i] < 0 || (*types)[i] > 6)
        throw ModelFormatError(entry(kTypes, i) + " is " + std::to_string((*types)[i]) +
                               ", expected 1 to 6");
      made_->types[i] = static_cast<TokenType>((*types)[i]);
      n_undefined += (*types)[i] == 0;
    }
    if (n_undefined > 0)
      note(std::to_string(n_undefined) + " of " + std::string(kTypes) +
           " are 0 (undefined): taken as normal");
  }

  void read_added_tokens() {
    std::vector<uint32_t> names;
    for (uint32_t id = 0; id < made_->types.size(); ++id) {
      const TokenType type = made_->types[id];
      if (type == TokenType::unknown || type == TokenType::control ||
          type == TokenType::user_defined)
        names.push_back(id);
    }
    made_->added = read_added(file_, made_->tokens, names);
    for (size_t i = 0; i < made_->added.size(); ++i) made_->added_at[made_->added[i].id] = i;
  }

  void check_length(std::string_view key, size_t length) const {
    if (length != made_->tokens.size())
      throw ModelFormatError(std::string(key) + " has " + std::to_string(length) +
                             " entries, but there are " + std::to_string(made_->tokens.size()) +
                             " tokens");
  }

  void read_scores() {
    auto scores = file_.get_float_array(kScores);
    if (!scores) throw ModelFormatError(std::string(kScores) + " is missing");
    check_length(kScores, scores->size());
    for (size_t i = 0; i < scores->size(); ++i)
      if (std::isnan((*scores)[i])) throw ModelFormatError(entry(kScores, i) + " is not a number");
    made_->scores = std::move(*scores);
  }

  void read_merges() {
    const auto merges = file_.get_string_array(kMerges);
    if (!merges) throw ModelFormatError(std::string(kMerges) + " is missing");
    size_t n_raw = 0;
    for (const std::string_view merge : *merges) {
      if (find_invalid_utf8(merge) == std::string_view::npos)
        made_->merges.emplace_back(merge);
      else
        ++n_raw;
    }
    if (n_raw > 0)
      note(std::to_string(n_raw) + " of " + std::string(kMerges) + " are not valid UTF-8: ignored");
  }

  void read_special_tokens() {
    Vocabulary& made = *made_;
    const bool spm = is(TokenizerModel::sentencepiece), bert = is(TokenizerModel::wordpiece);
    made.bos = special("bos", spm ? std::optional(1u) : std::nullopt);
    made.eos = special("eos", spm ? std::optional(2u) : std::nullopt);
    made.eot = special("eot");
    const std::optional<uint32_t> end_of_message = special("eom");
    for (size_t i = 0; !made.eot && i < std::size(kEndOfTurn); ++i) made.eot = find(kEndOfTurn[i]);
    find_stops(end_of_message);
    const auto n_bytes = std::ranges::count(made.types, TokenType::byte);
    const bool spells_all = is(TokenizerModel::byte_level) || n_bytes == 256;
    made.unknown = special("unknown",
                           spm    ? std::optional(0u)
                           : bert ? std::optional(100u)
                                  : std::nullopt,
                           !spells_all);
    if (bert && !made.bos) made.bos = special("cls", 101, true);
    // Spelled so in files.
    made.separator = bert ? special("seperator", 102, true) : special("seperator");
    if (bert && (!made.bos || !made.separator || !made.unknown))
      throw ModelFormatError(
          "a bert vocabulary needs tokenizer.ggml.cls_token_id, seperator_token_id and "
          "unknown_token_id");
    made.pad = special("padding");
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
        throw ModelFormatError(entry(kTokens, id) + " is " + quoted(token) +
                               ", but its type is byte: expected <0x00> to <0xFF>");
    }
  }

  void read_flags() {
    Vocabulary& made = *made_;
    const bool spm = is(TokenizerModel::sentencepiece), bert = is(TokenizerModel::wordpiece);
    const bool unigram = is(TokenizerModel::unigram);
    const std::optional<bool> add_bos = flag("tokenizer.ggml.add_bos_token");
    const std::optional<bool> add_eos = flag("tokenizer.ggml.add_eos_token");
    const bool usual =
        spm || bert || unigram || (is(TokenizerModel::byte_level) && made.pre->add_bos);
    // Files of Gemma 4 say false by mistake; every user of them overrides it.
    made.add_bos = is(TokenizerModel::gemma4) || add_bos.value_or(usual && made.bos.has_value());
    made.add_eos = add_eos.value_or(unigram && made.eos.has_value());
    const auto needs = [&](bool& adds, std::optional<uint32_t> id, const char* name) {
      if (!adds || id) return;
      note("tokenizer.ggml." + std::string(name) +
           "_token_id is missing: none is added to texts, " + "although the model wants one");
      adds = false;
    };
    needs(made.add_bos, made.bos, "bos");
    needs(made.add_eos, made.eos, "eos");
    const std::optional<bool> prefix = flag("tokenizer.ggml.add_space_prefix");
    made.add_space_prefix = prefix ? *prefix && !bert : spm || unigram;
    made.lowercase = flag("tokenizer.ggml.normalizer.lowercase").value_or(true);
    made.strip_accents = flag("tokenizer.ggml.normalizer.strip_accents").value_or(made.lowercase);
    made.nfc = flag("tokenizer.ggml.normalizer.nfc").value_or(false);
    if (unigram) read_unigram_steps();
  }

  // SentencePiece's settings; a directory has the library's.
  void read_unigram_steps() {
    UnigramSteps& steps = made_->unigram;
    steps.cuts_at_spaces = flag("tokenizer.ggml.remove_extra_whitespaces").value_or(true);
    steps.has_spaces_spelled = true;
    steps.prefix =
        made_->add_space_prefix ? UnigramSteps::Prefix::always : UnigramSteps::Prefix::never;
    if (const auto map = file_.get_int_array("tokenizer.ggml.precompiled_charsmap")) {
      std::string table;
      for (const int64_t byte : *map) table += static_cast<char>(byte);
      if (!table.empty()) steps.text.push_back({TextStep::Kind::map, std::move(table)});
    }
  }

  void read_template() {
    const GgufValue* value = file_.find(kTemplate);
    if (value == nullptr) return;
    if (value->is_array || value->type != GgufValueType::string) {
      note(std::string(kTemplate) + " is no string: the model cannot be used for conversations");
      return;
    }
    const std::string_view text = *file_.get_string(kTemplate);
    if (const size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
      note(std::string(kTemplate) + " is not valid UTF-8 at byte " + std::to_string(bad) +
           ": the model cannot be used for conversations");
      return;
    }
    if (text.find_first_not_of(" \t\r\n\v\f") != std::string_view::npos)
      made_->chat_template = text;
  }

  void add_beside() {
    made_->spells_spaces_late = made_->beside.spells_spaces_late;
    if (made_->beside.unigram) {
      made_->unigram = *made_->beside.unigram;
      made_->add_space_prefix = made_->unigram.prefix != UnigramSteps::Prefix::never;
      made_->opens_anew = made_->unigram.prefix != UnigramSteps::Prefix::at_start;
    }
    for (const uint32_t id : made_->beside.stops) {
      if (made_->types[id] != TokenType::unknown) made_->types[id] = TokenType::control;
      if (std::ranges::find(made_->stops, id) == made_->stops.end()) made_->stops.push_back(id);
    }
    std::ranges::sort(made_->stops);
    if (!made_->beside.splits) return;
    const std::vector<std::string>& splits = *made_->beside.splits;
    made_->own_splits.assign(splits.begin(), splits.end());
    made_->own_pre = {.splits = made_->own_splits, .ignore_merges = made_->beside.ignore_merges};
    made_->pre = &made_->own_pre;
  }

  const GgufFile& file_;
  std::unique_ptr<Vocabulary> made_ = std::make_unique<Vocabulary>();
};

}  // namespace

std::unique_ptr<const Vocabulary> read_vocabulary(const GgufFile& file, BesideGguf beside) {
  return Reader(file, std::move(beside)).read();
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
