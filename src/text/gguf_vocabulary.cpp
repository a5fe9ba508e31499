#include "text/gguf_vocabulary.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "files/printable.h"
#include "text/unicode.h"

namespace akunu {
namespace {

constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";
constexpr std::string_view kTemplate = "tokenizer.chat_template";

std::string entry(std::string_view key, size_t index) {
  return std::string(key) + "[" + std::to_string(index) + "]";
}

class GgufVocabularyReader {
 public:
  explicit GgufVocabularyReader(const GgufFile& file) : file_(file) {}

  VocabularySource read() {
    read_model();
    read_tokens();
    read_types();
    const bool is_unigram = is(TokenizerModel::unigram);
    const bool by_rank = is(TokenizerModel::sentencepiece) && has(kMerges) && !has(kScores);
    if ((is(TokenizerModel::sentencepiece) && !by_rank) || is_unigram) read_scores();
    if (is(TokenizerModel::byte_level) || is(TokenizerModel::gemma4) || by_rank) read_merges();
    read_added_tokens();
    read_special_tokens();
    read_flags();
    if (is_unigram) read_unigram_steps();
    read_template();
    return std::move(source_);
  }

 private:
  bool is(TokenizerModel model) const { return source_.model == model; }
  bool has(std::string_view key) const { return file_.find(key) != nullptr; }

  std::optional<bool> flag(std::string_view key) const {
    const GgufValue* value = file_.find(key);
    if (value == nullptr || value->is_array || value->type != GgufValueType::boolean)
      return std::nullopt;
    return file_.get_bool(key);
  }

  SourceTokenId special(std::string_view name) const {
    try {
      return {.id = file_.get_int("tokenizer.ggml." + std::string(name) + "_token_id")};
    } catch (const ModelFormatError& error) {
      return {.fault = error.what()};
    }
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
      throw UnsupportedModelError("tokenizer model '" + printable(*model) +
                                  "' is not supported; known are gpt2, llama, bert, gemma4, t5");
    source_.model = known->second;
    const std::string_view pre = file_.get_string("tokenizer.ggml.pre").value_or("");
    // The others have one way to cut text each. An old file without the key is cut as "default",
    // which may differ from its own family (llama.cpp does the same).
    const bool is_default = pre.empty() || !is(TokenizerModel::byte_level);
    source_.pre = find_pre_tokenizer(is_default ? "default" : pre);
    if (source_.pre == nullptr)
      throw UnsupportedModelError("pre-tokenizer '" + printable(pre) +
                                  "' (tokenizer.ggml.pre) is not supported");
  }

  void read_tokens() {
    const auto tokens = file_.get_string_array(kTokensKey);
    if (!tokens) throw ModelFormatError(std::string(kTokensKey) + " is missing");
    if (tokens->empty()) throw ModelFormatError(std::string(kTokensKey) + " is empty");
    source_.tokens.assign(tokens->begin(), tokens->end());
  }

  void check_length(std::string_view key, size_t length) const {
    if (length != source_.tokens.size())
      throw ModelFormatError(std::string(key) + " has " + std::to_string(length) +
                             " entries, but there are " + std::to_string(source_.tokens.size()) +
                             " tokens");
  }

  void read_types() {
    const auto types = file_.get_int_array(kTypes);
    if (!types) return;
    check_length(kTypes, types->size());
    source_.types.reserve(types->size());
    for (size_t i = 0; i < types->size(); ++i) {
      if ((*types)[i] < 0 || (*types)[i] > 6)
        throw ModelFormatError(entry(kTypes, i) + " is " + std::to_string((*types)[i]) +
                               ", expected 1 to 6");
      source_.types.push_back(static_cast<TokenType>((*types)[i]));
    }
  }

  void read_scores() {
    auto scores = file_.get_float_array(kScores);
    if (!scores) throw ModelFormatError(std::string(kScores) + " is missing");
    check_length(kScores, scores->size());
    for (size_t i = 0; i < scores->size(); ++i)
      if (std::isnan((*scores)[i])) throw ModelFormatError(entry(kScores, i) + " is not a number");
    source_.scores = std::move(*scores);
  }

  // Without those that are not UTF-8: no text meets them.
  void read_merges() {
    const auto merges = file_.get_string_array(kMerges);
    if (!merges) throw ModelFormatError(std::string(kMerges) + " is missing");
    for (const std::string_view merge : *merges)
      if (find_invalid_utf8(merge) == std::string_view::npos) source_.merges.emplace_back(merge);
  }

  void read_added_tokens() {
    std::vector<uint32_t> names;
    for (uint32_t id = 0; id < source_.types.size(); ++id) {
      const TokenType type = source_.types[id];
      if (type == TokenType::unknown || type == TokenType::control ||
          type == TokenType::user_defined)
        names.push_back(id);
    }
    source_.added = read_added(file_, source_.tokens, names);
  }

  void read_special_tokens() {
    source_.bos = special("bos");
    source_.eos = special("eos");
    source_.eot = special("eot");
    source_.eom = special("eom");
    source_.pad = special("padding");
    source_.unknown = special("unknown");
    source_.separator = special("seperator");  // spelled so in files
    source_.cls = special("cls");
  }

  void read_flags() {
    source_.add_bos = flag("tokenizer.ggml.add_bos_token");
    source_.add_eos = flag("tokenizer.ggml.add_eos_token");
    source_.add_space_prefix = flag("tokenizer.ggml.add_space_prefix");
    source_.lowercase = flag("tokenizer.ggml.normalizer.lowercase");
    source_.strip_accents = flag("tokenizer.ggml.normalizer.strip_accents");
    source_.nfc = flag("tokenizer.ggml.normalizer.nfc");
  }

  void read_unigram_steps() {
    using Prefix = UnigramSteps::Prefix;
    UnigramSteps& steps = source_.unigram;
    steps.cuts_at_spaces = flag("tokenizer.ggml.remove_extra_whitespaces").value_or(true);
    steps.has_spaces_spelled = true;
    steps.prefix = source_.add_space_prefix.value_or(true) ? Prefix::always : Prefix::never;
    if (const auto map = file_.get_int_array("tokenizer.ggml.precompiled_charsmap")) {
      std::string table;
      for (const int64_t byte : *map) table += static_cast<char>(byte);
      if (!table.empty()) steps.text.push_back({TextStep::Kind::map, std::move(table)});
    }
  }

  void read_template() {
    const GgufValue* value = file_.find(kTemplate);
    if (value != nullptr && !value->is_array && value->type == GgufValueType::string)
      source_.chat_template = *file_.get_string(kTemplate);
  }

  const GgufFile& file_;
  VocabularySource source_;
};

}  // namespace

std::unique_ptr<const Vocabulary> read_vocabulary(const GgufFile& file) {
  return make_vocabulary(GgufVocabularyReader(file).read());
}

}  // namespace akunu
