#include "text/directory_vocabulary.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "files/json_file.h"
#include "files/mapped_file.h"
#include "files/printable.h"
#include "text/tokenizer_json.h"

namespace akunu {
namespace {

namespace fs = std::filesystem;
using Kind = JsonValue::Kind;
using namespace tokenizer_json;

constexpr size_t kLargestJson = size_t{1} << 28;  // bytes; tokenizers of 262,144 tokens have 33 MB

// What the library's ByteLevel cuts with, and its Punctuation.
constexpr std::string_view kByteLevelCut =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kPunctuationCut = R"([\p{P}\$\+<=>\^~\|`])";

std::optional<JsonValue> json_file(const fs::path& path) {
  if (!fs::is_regular_file(path)) return std::nullopt;
  return read_json_object(path.string(), path.filename().string(), kLargestJson);
}

// What is put around every text.
struct Frame {
  std::optional<uint32_t> before, behind;
};

std::optional<Frame> frame_of(const JsonValue& processor) {
  const std::string type = text_in(&processor, "type");
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    const auto id_of = [&](std::string_view key) {
      const JsonValue* pair = member(&processor, key);
      const bool is_pair = pair != nullptr && pair->kind == Kind::array && pair->items.size() == 2;
      return id_in(is_pair ? &pair->items[1] : nullptr, "post_processor." + std::string(key));
    };
    return Frame{id_of("cls"), id_of("sep")};
  }
  if (type != "TemplateProcessing") return std::nullopt;
  const JsonValue* single = member(&processor, "single");
  if (single != nullptr && single->kind != Kind::array)
    refuse_form("post_processor.single is no list");
  std::vector<std::optional<uint32_t>> pieces;  // none: the text
  for (const JsonValue& piece : single == nullptr ? std::vector<JsonValue>{} : single->items) {
    if (piece.find("Sequence") != nullptr) {
      pieces.emplace_back();
      continue;
    }
    const std::string name = text_in(piece.find("SpecialToken"), "id");
    const JsonValue* token = member(member(&processor, "special_tokens"), name);
    const JsonValue* ids = member(token, "ids");
    if (ids == nullptr) refuse_form("post_processor has no id for '" + printable(name) + "'");
    for (const JsonValue& id : ids->items) pieces.emplace_back(id_in(&id, "post_processor"));
  }
  const auto is_text = [](const std::optional<uint32_t>& piece) { return !piece.has_value(); };
  const auto text = std::ranges::find_if(pieces, is_text);
  const auto n_before = text - pieces.begin(), n_behind = pieces.end() - text - 1;
  if (std::ranges::count_if(pieces, is_text) != 1 || n_before > 1 || n_behind > 1)
    refuse_part("post_processor puts " + std::to_string(pieces.size()) +
                " pieces in a row; akunu has one token before and one behind a text");
  return Frame{n_before > 0 ? pieces.front() : std::nullopt,
               n_behind > 0 ? pieces.back() : std::nullopt};
}

// One directory's files.
class DirectoryReader {
 public:
  explicit DirectoryReader(const fs::path& folder) : folder_(folder) {
    std::optional<JsonValue> described = json_file(folder / "tokenizer.json");
    for (const char* const other : {"tokenizer.model", "tiktoken.model"})
      if (!described && fs::is_regular_file(folder / other))
        throw UnsupportedModelError(std::string(other) +
                                    " is read by the Python package only; the C library reads "
                                    "tokenizer.json");
    if (!described)
      throw ModelFormatError("there is no tokenizer.json: the model has no tokenizer");
    described_ = std::move(*described);
    settings_ = json_file(folder / "tokenizer_config.json").value_or(JsonValue{});
    generation_ = json_file(folder / "generation_config.json").value_or(JsonValue{});
    config_ = json_file(folder / "config.json").value_or(JsonValue{});
  }

  VocabularySource read() {
    const JsonValue* model = member(&described_, "model");
    if (model == nullptr || model->kind != Kind::object) refuse_form("model is no object");
    const std::string type = text_in(model, "type");
    if (type == "WordPiece")
      read_wordpiece(*model);
    else if (type == "Unigram")
      read_unigram(*model);
    else
      read_bpe(*model, type);
    source_.chat_template = chat_template();
    return std::move(source_);
  }

 private:
  void read_bpe(const JsonValue& model, const std::string& type) {
    if (type != "BPE" && !(type.empty() && member(&model, "merges") != nullptr))
      refuse_part(
          "model is of type '" + printable(type) +
          "', which the Python package may read; the C library reads BPE, Unigram and WordPiece");
    for (const std::string_view option :
         {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
      if (const JsonValue* given = member(&model, option))
        if (given->kind == Kind::string ? !given->text.empty() : given->number() != 0.0)
          refuse_part("model." + std::string(option) + " is " + given->shown() +
                      "; akunu has no such option");
    const std::vector<const JsonValue*> steps =
        steps_of(described_, "pre_tokenizer", "pretokenizers");
    const bool is_byte_level = std::ranges::any_of(
        steps, [](const JsonValue* step) { return text_in(step, "type") == "ByteLevel"; });
    source_.model = is_byte_level ? TokenizerModel::byte_level : TokenizerModel::sentencepiece;
    read_normalizer(is_byte_level);
    if (is_byte_level)
      read_cuts(steps, is_set(&model, "ignore_merges"));
    else
      check_cuts(steps, !source_.spells_spaces_late);
    read_tokens(model, is_byte_level ? Spelling::bytes : Spelling::characters,
                text_in(&model, "unk_token"));
    read_merges(model);
    read_special(read_frame());
  }

  // SentencePiece's BPE goes over the whole text, whose spaces are U+2581.
  static void check_cuts(const std::vector<const JsonValue*>& steps, bool spells_spaces) {
    for (const JsonValue* step : steps) {
      const std::string type = text_in(step, "type");
      // There is no space any more that this one could split at.
      if (spells_spaces && type == "Split" && text_in(member(step, "pattern"), "String") == " ")
        continue;
      if (type != "Metaspace" || text_in(step, "replacement") != kSpelledSpace)
        refuse_part("pre_tokenizer " + printable(type) + " is not supported in C");
      if (is_set(step, "split", true))
        refuse_part("pre_tokenizer Metaspace with split is not supported for BPE");
      const bool is_never = member(step, "prepend_scheme") == nullptr
                                ? !is_set(step, "add_prefix_space", true)
                                : text_in(step, "prepend_scheme") == "never";
      if (!is_never)
        refuse_part(
            "pre_tokenizer Metaspace that puts a space in front of texts is read by the Python "
            "package only");
      spells_spaces = true;
    }
    if (!spells_spaces)
      refuse_part("nothing writes a space as U+2581, which akunu does where there is no ByteLevel");
  }

  // BERT's: other settings than its own are refused.
  void read_wordpiece(const JsonValue& model) {
    const JsonValue* prefix = model.find("continuing_subword_prefix");
    if (prefix != nullptr && prefix->text != "##")
      refuse_part("model.continuing_subword_prefix is " + prefix->shown() + "; akunu has '##'");
    const JsonValue* longest = model.find("max_input_chars_per_word");
    if (longest != nullptr && longest->unsigned_integer() != 100)
      refuse_part("model.max_input_chars_per_word is " + longest->shown() + "; akunu has 100");
    const JsonValue* normalizer = member(&described_, "normalizer");
    if (text_in(normalizer, "type") != "BertNormalizer")
      refuse_part("normalizer is not one of BERT's, which WordPiece has here");
    for (const std::string_view key : {"clean_text", "handle_chinese_chars"})
      if (!is_set(normalizer, key, true))
        refuse_part("normalizer." + std::string(key) + " is false; akunu has true");
    if (text_in(member(&described_, "pre_tokenizer"), "type") != "BertPreTokenizer")
      refuse_part("pre_tokenizer is not one of BERT's, which WordPiece has here");
    const bool lowercase = is_set(normalizer, "lowercase", true);
    source_.model = TokenizerModel::wordpiece;
    source_.lowercase = lowercase;
    source_.strip_accents = is_set(normalizer, "strip_accents", lowercase);
    std::string unknown = text_in(&model, "unk_token");
    if (unknown.empty()) unknown = "[UNK]";
    read_tokens(model, Spelling::word_pieces, unknown);
    if (!unknown_) refuse_form("'" + printable(unknown) + "' is not in model.vocab");
    const JsonValue* processor = member(&described_, "post_processor");
    const std::optional<Frame> frame = processor == nullptr ? std::nullopt : frame_of(*processor);
    if (!frame || !frame->before || !frame->behind ||
        std::max(*frame->before, *frame->behind) >= source_.tokens.size())
      refuse_part("post_processor does not put one token before a text and one behind it");
    source_.separator.id = *frame->behind;
    read_special(Frame{frame->before, std::nullopt}, true);
  }

  void read_unigram(const JsonValue& model) {
    const JsonValue* vocab = member(&model, "vocab");
    if (vocab == nullptr || vocab->kind != Kind::array || vocab->items.empty())
      refuse_form("model.vocab is not a list of pieces");
    std::map<uint32_t, std::string> by_id;
    std::vector<double> scores;
    for (const JsonValue& entry : vocab->items) {
      const auto id = static_cast<uint32_t>(scores.size());
      if (entry.kind != Kind::array || entry.items.size() != 2 ||
          entry.items[0].kind != Kind::string || entry.items[1].kind != Kind::number)
        refuse_form("model.vocab[" + std::to_string(id) + "] is no pair of a piece and its score");
      put_token(by_id, id, entry.items[0].text);
      scores.push_back(entry.items[1].number().value_or(0));
    }
    const uint32_t unknown = id_in(member(&model, "unk_id"), "model.unk_id");
    put_tokens(std::move(by_id), [&](uint32_t id, const std::string&) {
      return id == unknown ? TokenType::unknown : TokenType::normal;
    });
    if (unknown >= source_.tokens.size()) refuse_form("model.unk_id is no token");
    unknown_ = unknown;
    scores.resize(source_.tokens.size());
    source_.model = TokenizerModel::unigram;
    source_.scores = std::move(scores);
    source_.unigram = unigram_steps(described_);
    read_special(read_frame());
  }

  void read_cuts(const std::vector<const JsonValue*>& steps, bool ignore_merges) {
    source_.ignore_merges = ignore_merges;
    for (const JsonValue* step : steps) {
      const std::string type = text_in(step, "type"), behaviour = text_in(step, "behavior");
      const std::string pattern = text_in(member(step, "pattern"), "Regex");
      const bool isolates = behaviour == "Isolated" && !is_set(step, "invert");
      // Published expressions of this form match all of a text, so nothing is removed.
      const bool keeps = behaviour == "Removed" && is_set(step, "invert");
      if (type == "ByteLevel") {
        if (is_set(step, "add_prefix_space"))
          refuse_part("pre_tokenizer ByteLevel with add_prefix_space is not supported");
        if (is_set(step, "use_regex", true)) source_.splits.emplace_back(kByteLevelCut);
      } else if (type == "Digits") {
        source_.splits.emplace_back(is_set(step, "individual_digits") ? R"(\p{N})" : R"(\p{N}+)");
      } else if (type == "Punctuation" && (behaviour == "Isolated" || behaviour == "Contiguous")) {
        source_.splits.push_back(std::string(kPunctuationCut) +
                                 (behaviour == "Contiguous" ? "+" : ""));
      } else if (type == "Split" && (isolates || keeps) && !pattern.empty()) {
        source_.splits.push_back(pattern);
      } else {
        refuse_part("pre_tokenizer " + printable(type) + " is not supported in C");
      }
    }
  }

  void put_token(std::map<uint32_t, std::string>& by_id, uint32_t id, const std::string& text) {
    const auto [place, is_new] = by_id.emplace(id, text);
    if (!is_new && place->second != text)
      refuse_form("id " + std::to_string(id) + " is '" + printable(text) + "', and '" +
                  printable(place->second) + "' too");
  }

  // How a vocabulary spells tokens: bytes as letters, spaces as U+2581, or "##" before what goes on with a
  // word, where GGUF has U+2581 before what begins one.
  enum class Spelling { bytes, characters, word_pieces };

  void read_tokens(const JsonValue& model, Spelling spelling, const std::string& unknown) {
    const JsonValue* vocab = member(&model, "vocab");
    if (vocab == nullptr || vocab->kind != Kind::object) refuse_form("model.vocab is no object");
    std::map<uint32_t, std::string> by_id;
    for (size_t i = 0; i < vocab->keys.size(); ++i)
      put_token(by_id, id_in(&vocab->items[i], "model.vocab"), vocab->keys[i]);
    const bool has_bytes = is_set(&model, "byte_fallback");
    put_tokens(std::move(by_id), [&](uint32_t, std::string& text) {
      const bool is_unknown = spelling != Spelling::bytes && !unknown.empty() && text == unknown;
      if (is_unknown) return TokenType::unknown;
      if (spelling == Spelling::word_pieces)
        text = text.starts_with("##") ? text.substr(2) : std::string(kSpelledSpace) + text;
      const bool is_byte = spelling == Spelling::characters && has_bytes && byte_of(text);
      return is_byte ? TokenType::byte : TokenType::normal;
    });
    unknown_ = find_token(unknown);
  }

  // Puts the added tokens among the model's. `type_of`: of one that was not added, whose text it may change.
  template <class TypeOf>
  void put_tokens(std::map<uint32_t, std::string> by_id, const TypeOf& type_of) {
    std::map<uint32_t, TokenType> added;
    std::vector<AddedToken> special, others;  // as the library looks for them
    const JsonValue* tokens = member(&described_, "added_tokens");
    if (tokens != nullptr && tokens->kind != Kind::array) refuse_form("added_tokens is no list");
    if (tokens != nullptr)
      for (const JsonValue& token : tokens->items) {
        const JsonValue* content = member(&token, "content");
        if (content == nullptr || content->kind != Kind::string)
          refuse_form("added_tokens has an entry without content");
        const uint32_t id = id_in(member(&token, "id"), "added_tokens");
        const AddedToken rule = {.id = id,
                                 .lstrip = is_set(&token, "lstrip"),
                                 .rstrip = is_set(&token, "rstrip"),
                                 .single_word = is_set(&token, "single_word"),
                                 .normalized = is_set(&token, "normalized"),
                                 .is_piece = by_id.contains(id) && !added.contains(id)};
        if (!content->text.empty()) (is_set(&token, "special") ? special : others).push_back(rule);
        put_token(by_id, id, content->text);
        added[id] = is_set(&token, "special") ? TokenType::control : TokenType::user_defined;
      }
    if (by_id.empty()) refuse_form("model.vocab is empty");
    const size_t n = size_t{by_id.rbegin()->first} + 1;
    if (n > 2 * by_id.size() + 1024)
      refuse_form("the largest token id is " + std::to_string(n - 1) + ", and there are " +
                  std::to_string(by_id.size()) + " tokens");
    source_.tokens.resize(n);
    source_.types.assign(n, TokenType::unused);
    for (auto& [id, text] : by_id) {
      const auto kind = added.find(id);
      std::string spelled = text;
      const TokenType own = type_of(id, spelled);
      const bool is_own = kind == added.end();
      source_.types[id] = is_own || own == TokenType::unknown ? own : kind->second;
      source_.tokens[id] = is_own ? std::move(spelled) : std::move(text);
    }
    if (const size_t rows = n_rows(); rows > 0 && rows < n) {  // the model has no more
      source_.tokens.resize(rows);
      source_.types.resize(rows);
    }
    special.insert(special.end(), others.begin(), others.end());
    for (const AddedToken& token : special)
      if (token.id < source_.tokens.size()) source_.added.push_back(token);
    for (uint32_t id = 0; id < source_.tokens.size(); ++id)
      if (!source_.tokens[id].empty()) ids_.emplace(source_.tokens[id], id);
  }

  // Of the model's embeddings; 0 where config.json does not say.
  size_t n_rows() const {
    for (const JsonValue* config :
         {static_cast<const JsonValue*>(&config_), member(&config_, "text_config")})
      if (const JsonValue* rows = member(config, "vocab_size"))
        if (const auto n = rows->unsigned_integer()) return *n;
    return 0;
  }

  void read_merges(const JsonValue& model) {
    const JsonValue* merges = member(&model, "merges");
    if (merges == nullptr || merges->kind != Kind::array) refuse_form("model.merges is no list");
    std::vector<std::string>& joined = source_.merges;
    joined.reserve(merges->items.size());
    for (const JsonValue& merge : merges->items) {
      const bool is_pair = merge.kind == Kind::array && merge.items.size() == 2 &&
                           merge.items[0].kind == Kind::string &&
                           merge.items[1].kind == Kind::string;
      if (!is_pair && merge.kind != Kind::string)
        refuse_form("model.merges[" + std::to_string(joined.size()) +
                    "] is neither a string nor a pair of them");
      joined.push_back(is_pair ? merge.items[0].text + " " + merge.items[1].text : merge.text);
    }
  }

  void read_normalizer(bool is_byte_level) {
    bool nfc = false, prefixes = false, spells_spaces = false;
    for (const JsonValue* step : steps_of(described_, "normalizer", "normalizers")) {
      const std::string type = text_in(step, "type");
      const bool replaces_spaces = type == "Replace" &&
                                   text_in(member(step, "pattern"), "String") == " " &&
                                   text_in(step, "content") == kSpelledSpace;
      if (type == "NFC")
        nfc = true;
      else if (!is_byte_level && type == "Prepend" && text_in(step, "prepend") == kSpelledSpace &&
               !prefixes)
        prefixes = true;
      else if (!is_byte_level && replaces_spaces)
        spells_spaces = true;
      else
        refuse_part("normalizer " + printable(type) + " is not supported in C");
    }
    source_.spells_spaces_late = !is_byte_level && !spells_spaces;
    source_.nfc = nfc;
    source_.add_space_prefix = prefixes;
  }

  std::optional<Frame> read_frame() {
    if (text_in(&config_, "model_type") == "whisper") return std::nullopt;  // said for each text
    for (const JsonValue* step : steps_of(described_, "post_processor", "processors")) {
      if (const auto frame = frame_of(*step)) return frame;
      if (text_in(step, "type") != "ByteLevel")
        refuse_part("post_processor " + printable(text_in(step, "type")) + " is not supported");
    }
    return std::nullopt;
  }

  // `is_wordpiece`: what opens a text is what the template says, whatever the settings do.
  void read_special(const std::optional<Frame>& frame, bool is_wordpiece = false) {
    const auto find = [&](std::string_view name) {
      const std::string key = std::string(name) + "_token";
      const JsonValue* token = member(&settings_, key);
      std::optional<uint32_t> id =
          find_token(token != nullptr && token->kind == Kind::object ? text_in(token, "content")
                                                                     : text_in(&settings_, key));
      if (!id && (name == "bos" || name == "eos") && settings_.find(key) == nullptr)
        if (const auto listed = listed_ids(key + "_id"); !listed.empty()) id = listed[0];
      return id;
    };
    source_.bos.id = is_wordpiece ? frame->before : find("bos");
    source_.eos.id = find("eos");
    source_.pad.id = find("pad");
    source_.unknown.id = find("unk");
    if (!source_.unknown.id) source_.unknown.id = unknown_;
    if (frame && frame->behind) {
      source_.eos.id = frame->behind;
      if (frame->before) source_.bos.id = frame->before;
    }
    source_.add_bos = is_set(&settings_, "add_bos_token", frame && frame->before);
    source_.add_eos = is_set(&settings_, "add_eos_token", frame && frame->behind);
    for (const uint32_t id : listed_ids("eos_token_id"))
      if (id < source_.tokens.size()) source_.stops.push_back(id);
  }

  // As generation_config.json and config.json have them, each once.
  std::vector<uint32_t> listed_ids(const std::string& key) const {
    std::vector<uint32_t> ids;
    const auto add = [&](const JsonValue& value) {
      const auto id = value.unsigned_integer();
      if (!id || *id > UINT32_MAX) return;
      if (std::ranges::find(ids, *id) == ids.end()) ids.push_back(static_cast<uint32_t>(*id));
    };
    for (const JsonValue* source : {&generation_, &config_})
      if (const JsonValue* value = member(source, key)) {
        if (value->kind == Kind::array)
          std::ranges::for_each(value->items, add);
        else
          add(*value);
      }
    return ids;
  }

  std::string chat_template() const {
    if (const fs::path path = folder_ / "chat_template.jinja"; fs::is_regular_file(path)) {
      const auto file = MappedFile::open(path.string());
      return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
    }
    const JsonValue* given = member(&settings_, "chat_template");
    if (given != nullptr && given->kind == Kind::array)
      for (const JsonValue& each : given->items)
        if (text_in(&each, "name") == "default") return text_in(&each, "template");
    return text_in(&settings_, "chat_template");
  }

  std::optional<uint32_t> find_token(const std::string& text) const {
    const auto found = ids_.find(text);
    return text.empty() || found == ids_.end() ? std::nullopt : std::optional(found->second);
  }

  const fs::path folder_;
  JsonValue described_, settings_, generation_, config_;
  VocabularySource source_;
  std::unordered_map<std::string_view, uint32_t> ids_;  // of its tokens
  std::optional<uint32_t> unknown_;
};

}  // namespace

std::unique_ptr<const Vocabulary> read_directory_vocabulary(const std::string& path) {
  const fs::path given(path);
  return make_vocabulary(
      DirectoryReader(fs::is_directory(given) ? given : given.parent_path()).read());
}

}  // namespace akunu
