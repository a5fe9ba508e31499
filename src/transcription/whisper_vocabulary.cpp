#include "transcription/whisper_vocabulary.h"

#include <algorithm>
#include <initializer_list>

#include "core/error.h"
#include "files/printable.h"

namespace akunu {
namespace {

constexpr uint32_t kFirstMultilingual = 51865;  // English vocabularies have a token less

void sort_once(std::vector<uint32_t>& tokens) {
  std::ranges::sort(tokens);
  const auto repeated = std::ranges::unique(tokens);
  tokens.erase(repeated.begin(), repeated.end());
}

// "<|en|>": two or three small letters.
std::string language_of(std::string_view token) {
  if (!token.starts_with("<|") || !token.ends_with("|>")) return {};
  if (token.size() != 6 && token.size() != 7) return {};
  const std::string_view code = token.substr(2, token.size() - 4);
  const bool is_code = std::ranges::all_of(code, [](char c) { return c >= 'a' && c <= 'z'; });
  return is_code ? std::string(code) : std::string();
}

}  // namespace

WhisperVocabulary::WhisperVocabulary(std::shared_ptr<const Tokenizer> tokenizer,
                                     const WhisperSettings& settings, uint32_t vocab_size,
                                     const std::string& where)
    : tokenizer_(std::move(tokenizer)),
      vocab_size_(vocab_size),
      special_(find_special(where)),
      is_multilingual_(settings.is_multilingual.value_or(vocab_size >= kFirstMultilingual)) {
  if (is_multilingual_) languages_ = find_languages();
  const auto add_known = [&](const std::vector<int64_t>& listed, std::vector<uint32_t>& tokens) {
    for (const int64_t token : listed)
      if (token >= 0 && token < int64_t{vocab_size_})
        tokens.push_back(static_cast<uint32_t>(token));
  };
  banned_ = {special_.start,    special_.translate, special_.transcribe,   special_.start_of_model,
             special_.previous, special_.no_speech, special_.no_timestamps};
  add_known(settings.suppress_tokens, banned_);
  sort_once(banned_);
  banned_first_ = encode(" ");
  banned_first_.push_back(special_.end_of_text);
  add_known(settings.begin_suppress_tokens, banned_first_);
  sort_once(banned_first_);
}

WhisperVocabulary::Special WhisperVocabulary::find_special(const std::string& where) const {
  const Vocabulary& known = tokenizer_->vocabulary();
  const auto needed = [&](std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      const auto found = known.ids.find(name);
      if (found != known.ids.end() && found->second < vocab_size_) return found->second;
    }
    throw ModelFormatError(printable(where, kPathLimit) + ": there is no token " +
                           std::string(*names.begin()));
  };
  return {.end_of_text = needed({"<|endoftext|>"}),
          .start = needed({"<|startoftranscript|>"}),
          .translate = needed({"<|translate|>"}),
          .transcribe = needed({"<|transcribe|>"}),
          .start_of_model = needed({"<|startoflm|>"}),
          .previous = needed({"<|startofprev|>"}),
          .no_speech = needed({"<|nospeech|>", "<|nocaptions|>"}),
          .no_timestamps = needed({"<|notimestamps|>"})};
}

std::vector<std::pair<std::string, uint32_t>> WhisperVocabulary::find_languages() const {
  std::vector<std::pair<std::string, uint32_t>> found;
  const std::vector<std::string>& tokens = tokenizer_->vocabulary().tokens;
  const size_t end =
      std::min<size_t>(std::min(special_.translate, special_.transcribe), tokens.size());
  for (size_t token = special_.start + 1; token < end; ++token)
    if (std::string code = language_of(tokens[token]); !code.empty())
      found.emplace_back(std::move(code), static_cast<uint32_t>(token));
  return found;
}

uint32_t WhisperVocabulary::language_token(const std::string& language) const {
  const auto found =
      std::ranges::find(languages_, language, &std::pair<std::string, uint32_t>::first);
  if (found != languages_.end()) return found->second;
  std::string known;
  for (const auto& [code, token] : languages_) known += (known.empty() ? "" : ", ") + code;
  throw ArgumentError("language is '" + printable(language) + "'; this model knows " + known);
}

std::vector<uint32_t> WhisperVocabulary::encode(std::string_view text) const {
  std::vector<uint32_t> tokens = tokenizer_->encode(text, false, true);
  std::erase_if(tokens, [&](uint32_t token) { return token >= special_.end_of_text; });
  return tokens;
}

std::string WhisperVocabulary::decode(std::span<const uint32_t> tokens) const {
  TextStream stream(*tokenizer_);
  std::string text;
  for (const uint32_t token : tokens)
    if (token < special_.end_of_text) text += stream.push(token);
  return text + stream.finish();
}

std::vector<uint32_t> WhisperVocabulary::start_of(const std::string& language,
                                                  bool translates) const {
  if (!is_multilingual_) return {special_.start};
  return {special_.start, language_token(language),
          translates ? special_.translate : special_.transcribe};
}

}  // namespace akunu
