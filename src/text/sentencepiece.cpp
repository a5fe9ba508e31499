// SentencePiece's BPE and Gemma 4's: characters are merged into pieces; a character without a piece
// becomes its bytes, or unknown where those have no tokens.
#include <algorithm>
#include <array>

#include "core/error.h"
#include "files/printable.h"
#include "text/merge_ranks.h"
#include "text/text_model.h"
#include "text/unicode.h"

namespace akunu {
namespace {

constexpr uint32_t kMissing = ~0u;

class SentencePiece final : public TextModel {
 public:
  explicit SentencePiece(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    if (!has_scores()) merges_.emplace(vocabulary);
    bytes_.fill(kMissing);
    size_t n_bytes = 0;
    for (uint32_t id = 0; id < vocabulary.tokens.size(); ++id)
      if (vocabulary.types[id] == TokenType::byte) {
        bytes_[*byte_of(vocabulary.tokens[id])] = id;
        ++n_bytes;
      }
    if (!vocabulary.unknown && n_bytes < 256)
      throw ModelFormatError("tokenizer.ggml.tokens has " + std::to_string(n_bytes) +
                             " of 256 byte tokens and there is no "
                             "tokenizer.ggml.unknown_token_id: some text would have no tokens");
  }

  std::string normalized(std::string_view text, bool& opens) const override {
    std::string changed = opens && vocabulary_.add_space_prefix ? std::string(kSpelledSpace) : "";
    changed += vocabulary_.spells_spaces_late ? std::string(text) : with_spelled_spaces(text);
    return vocabulary_.nfc ? to_utf8(composed(to_characters(changed))) : changed;
  }

  void encode_normalized(std::string_view text, bool, std::vector<uint32_t>& ids) const override {
    const std::string spelled =
        vocabulary_.spells_spaces_late ? with_spelled_spaces(text) : std::string(text);
    if (vocabulary_.model != TokenizerModel::gemma4) return encode_piece(spelled, ids);
    // A run of newlines is cut off; one that is a token is that token.
    for (size_t at = 0; at < spelled.size();) {
      const bool is_break = spelled[at] == '\n';
      const size_t end = std::min(
          is_break ? spelled.find_first_not_of('\n', at) : spelled.find('\n', at), spelled.size());
      const std::string_view part = std::string_view(spelled).substr(at, end - at);
      const uint32_t whole = is_break ? find(part) : kMissing;
      if (whole != kMissing)
        ids.push_back(whole);
      else
        encode_piece(part, ids);
      at = end;
    }
  }

 private:
  static std::string with_spelled_spaces(std::string_view text) {
    std::string spelled;
    for (const char c : text) {
      if (c == ' ')
        spelled += kSpelledSpace;
      else
        spelled += c;
    }
    return spelled;
  }

  bool has_scores() const { return !vocabulary_.scores.empty(); }

  uint32_t find(std::string_view text) const {
    const auto found = vocabulary_.ids.find(text);
    if (found == vocabulary_.ids.end() || !is_ordinary(vocabulary_, found->second)) return kMissing;
    // User-defined tokens are cut out of the text before this; merging by score never makes one.
    if (has_scores() && vocabulary_.types[found->second] == TokenType::user_defined)
      return kMissing;
    return found->second;
  }

  void encode_piece(std::string_view text, std::vector<uint32_t>& ids) const {
    std::vector<uint32_t> tokens;
    bool was_unknown = false;
    for (size_t at = 0; at < text.size();) {
      const std::string_view character = text.substr(at, utf8_length(text.substr(at)));
      at += character.size();
      const uint32_t token = find(character);
      const auto id_of_byte = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
      const bool has_bytes =
          std::ranges::all_of(character, [&](char byte) { return id_of_byte(byte) != kMissing; });
      const bool is_unknown = token == kMissing && !has_bytes;
      if (token != kMissing)
        tokens.push_back(token);
      else if (has_bytes)
        for (const char byte : character) tokens.push_back(id_of_byte(byte));
      else if (!was_unknown)  // neighbours are one unknown
        tokens.push_back(*vocabulary_.unknown);
      was_unknown = is_unknown;
    }
    if (has_scores())
      merge_neighbours(tokens,
                       [&](uint32_t left, uint32_t right) { return by_score(left, right); });
    else
      merge_neighbours(tokens,
                       [&](uint32_t left, uint32_t right) { return merges_->find(left, right); });
    ids.insert(ids.end(), tokens.begin(), tokens.end());
  }

  // SentencePiece joins the neighbours whose union has the best score; their ids decide between
  // equal scores.
  std::optional<Merge> by_score(uint32_t left, uint32_t right) const {
    if (!is_piece(left) || !is_piece(right)) return std::nullopt;
    const uint32_t token = find(vocabulary_.tokens[left] + vocabulary_.tokens[right]);
    if (token == kMissing) return std::nullopt;
    return Merge{{-vocabulary_.scores[token], left, right}, token};
  }

  bool is_piece(uint32_t token) const {
    return vocabulary_.types[token] != TokenType::byte && is_ordinary(vocabulary_, token);
  }

  const Vocabulary& vocabulary_;
  std::optional<MergeRanks> merges_;
  std::array<uint32_t, 256> bytes_;
};

}  // namespace

std::unique_ptr<const TextModel> make_sentencepiece(const Vocabulary& vocabulary) {
  return std::make_unique<SentencePiece>(vocabulary);
}

}  // namespace akunu
