// Whisper's vocabulary: text, languages, timestamps and what else has a token. The rules are those of the
// Python package (akunu/speech/vocabulary/tokenizer.py).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer.h"
#include "transcription/whisper_settings.h"

namespace akunu {

class WhisperVocabulary {
 public:
  // Tokens that are no text.
  struct Special {
    uint32_t end_of_text, start, translate, transcribe, start_of_model, previous, no_speech,
        no_timestamps;

    uint32_t first_timestamp() const { return no_timestamps + 1; }  // 0.00 s
  };
  static constexpr uint32_t kTimestampsPerSecond = 50;

  // `vocab_size`: of the model's logits. Throws ModelFormatError for a vocabulary that is not Whisper's;
  // `where` is for messages.
  WhisperVocabulary(std::shared_ptr<const Tokenizer> tokenizer, const WhisperSettings& settings,
                    uint32_t vocab_size, const std::string& where);

  const Special& special() const { return special_; }
  uint32_t vocab_size() const { return vocab_size_; }
  bool is_multilingual() const { return is_multilingual_; }
  // Codes and tokens, in the order of the tokens; none of an English model.
  std::span<const std::pair<std::string, uint32_t>> languages() const { return languages_; }
  // Throws ArgumentError for a language that the model does not know.
  uint32_t language_token(const std::string& language) const;

  std::vector<uint32_t> encode(std::string_view text) const;  // without special tokens
  // Special tokens and timestamps have no text.
  std::string decode(std::span<const uint32_t> tokens) const;
  // What a window's text begins with, before it is said whether it has timestamps.
  std::vector<uint32_t> start_of(const std::string& language, bool translates) const;

  // Ascending: tokens that no text has, and with which none begins.
  const std::vector<uint32_t>& banned() const { return banned_; }
  const std::vector<uint32_t>& banned_first() const { return banned_first_; }

 private:
  Special find_special(const std::string& where) const;
  std::vector<std::pair<std::string, uint32_t>> find_languages() const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  uint32_t vocab_size_;
  Special special_;
  bool is_multilingual_;
  std::vector<std::pair<std::string, uint32_t>> languages_;
  std::vector<uint32_t> banned_, banned_first_;
};

}  // namespace akunu
