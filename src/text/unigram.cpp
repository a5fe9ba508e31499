// Unigram (T5, XLM-R): of all ways to cut a word into pieces the one whose scores have the largest sum.
#include "text/unigram.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "core/error.h"
#include "files/printable.h"
#include "text/character_map.h"
#include "text/graphemes.h"
#include "text/text_model.h"
#include "text/unicode.h"

namespace akunu {
namespace {

// What an unknown character costs more than the piece with the lowest score: `K_UNK_PENALTY` of the library.
constexpr double kUnknownPenalty = 10.0;

// The pieces by their bytes, to find all that a text begins with.
class PieceTable {
 public:
  explicit PieceTable(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    for (uint32_t id = 0; id < vocabulary.tokens.size(); ++id) {
      const TokenType type = vocabulary.types[id];
      const AddedToken* added = vocabulary.find_added(id);
      const bool is_piece = added != nullptr && added->is_piece;
      const bool is_hidden =
          type == TokenType::control || (type == TokenType::user_defined && !is_piece);
      if (!is_hidden && vocabulary.is_text[id] && !vocabulary.tokens[id].empty())
        sorted_.push_back(id);
    }
    std::ranges::sort(sorted_, {}, [&](uint32_t id) { return text(id); });
  }

  // Calls `use` with the id and the length of each piece that the text begins with, the shortest first.
  template <class Use>
  void prefixes(std::string_view of, const Use& use) const {
    auto first = sorted_.begin(), last = sorted_.end();
    for (size_t n = 0; n < of.size() && first != last; ++n) {
      // Of the pieces that begin with n bytes of the text, those that go on with the next one.
      const auto byte = [&](uint32_t id) {
        return text(id).size() > n ? static_cast<unsigned char>(text(id)[n]) : -1;
      };
      const auto range =
          std::ranges::equal_range(first, last, static_cast<unsigned char>(of[n]), {}, byte);
      first = range.begin(), last = range.end();
      if (first != last && text(*first).size() == n + 1) use(*first, n + 1);
    }
  }

  std::optional<uint32_t> find(std::string_view piece) const {
    const auto found =
        std::ranges::lower_bound(sorted_, piece, {}, [&](uint32_t id) { return text(id); });
    return found != sorted_.end() && text(*found) == piece ? std::optional(*found) : std::nullopt;
  }

 private:
  std::string_view text(uint32_t id) const { return vocabulary_.tokens[id]; }

  const Vocabulary& vocabulary_;
  std::vector<uint32_t> sorted_;
};

class Unigram final : public TextModel {
 public:
  explicit Unigram(const Vocabulary& vocabulary)
      : vocabulary_(vocabulary), steps_(vocabulary.unigram), pieces_(vocabulary) {
    if (!vocabulary.unknown)
      throw ModelFormatError("a Unigram vocabulary needs tokenizer.ggml.unknown_token_id");
    unknown_score_ = *std::ranges::min_element(vocabulary.scores) - kUnknownPenalty;
    for (const TextStep& step : steps_.text) {
      const bool is_map = step.kind == TextStep::Kind::map;
      maps_.push_back(is_map ? std::make_unique<CharacterMap>(step.first) : nullptr);
    }
  }

  std::string normalized(std::string_view text, bool& opens) const override {
    std::string changed =
        vocabulary_.nfc ? to_utf8(composed(to_characters(text))) : std::string(text);
    // A text that begins with something else than was given does not open any more.
    for (size_t i = 0; i < steps_.text.size(); ++i) {
      opens = opens && !drops_first(i, changed);
      changed = changed_by(i, changed);
    }
    return changed;
  }

  void encode_normalized(std::string_view changed, bool opens,
                         std::vector<uint32_t>& ids) const override {
    if (!steps_.cuts_at_spaces) return encode_part(changed, opens, ids);
    for (size_t at = 0; at < changed.size();) {
      const size_t begin = at;
      while (at < changed.size() && !is_space(changed, at)) at += length(changed, at);
      if (at > begin) encode_part(changed.substr(begin, at - begin), false, ids);
      if (at < changed.size()) at += length(changed, at);
    }
  }

 private:
  static size_t length(std::string_view text, size_t at) { return utf8_length(text.substr(at)); }
  static bool is_space(std::string_view text, size_t at) {
    return is_white_space(to_characters(text.substr(at, length(text, at)))[0]);
  }

  // Step `i` of those that change the text.
  std::string changed_by(size_t i, const std::string& text) const {
    const TextStep& step = steps_.text[i];
    switch (step.kind) {
      case TextStep::Kind::map:
        return maps_[i]->apply(text);
      case TextStep::Kind::replace:
        return replaced(text, step.first, step.second);
      case TextStep::Kind::collapse:
        return collapsed(text, step.first, step.second);
      case TextStep::Kind::strip:
        return stripped(text, step);
      case TextStep::Kind::compose:
        return to_utf8(composed(to_characters(text)));
      case TextStep::Kind::decompose:
        return to_utf8(decomposed(to_characters(text)));
      case TextStep::Kind::lower:
        return to_utf8(to_lower(to_characters(text)));
    }
    return text;
  }

  // Whether nothing is left of what the text begins with.
  bool drops_first(size_t i, std::string_view text) const {
    const TextStep& step = steps_.text[i];
    switch (step.kind) {
      case TextStep::Kind::map:
        return !text.empty() && maps_[i]->apply(text.substr(0, grapheme_length(text))).empty();
      case TextStep::Kind::replace:
        return step.second.empty() && text.starts_with(step.first);
      case TextStep::Kind::collapse:
        return step.second.empty() && text.starts_with(step.first + step.first);
      case TextStep::Kind::strip:
        return step.left && !text.empty() && is_space(text, 0);
      default:
        return false;
    }
  }

  static std::string replaced(std::string_view text, std::string_view what, std::string_view with) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t found = text.find(what, at);
      out += text.substr(at, found - at);
      if (found == std::string_view::npos) break;
      out += with;
      at = found + what.size();
    }
    return out;
  }

  // Runs of two and more.
  static std::string collapsed(std::string_view text, std::string_view what,
                               std::string_view with) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      while (text.substr(end).starts_with(what)) end += what.size();
      if (end - at >= 2 * what.size()) {
        out += with;
        at = end;
      } else {
        const size_t n = length(text, at);
        out += text.substr(at, n);
        at += n;
      }
    }
    return out;
  }

  static std::string stripped(std::string_view text, const TextStep& step) {
    while (step.left && !text.empty() && is_space(text, 0)) text.remove_prefix(length(text, 0));
    while (step.right && !text.empty()) {
      size_t last = text.size() - 1;
      while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
      if (!is_space(text, last)) break;
      text = text.substr(0, last);
    }
    return std::string(text);
  }

  // `opens`: it is the beginning of the text.
  void encode_part(std::string_view text, bool opens, std::vector<uint32_t>& ids) const {
    if (text.empty()) return;
    if (!steps_.has_spaces_spelled) return encode_word(text, ids);
    std::string spelled = replaced(text, " ", kSpelledSpace);
    const bool wants_prefix = steps_.prefix == UnigramSteps::Prefix::always ||
                              (steps_.prefix == UnigramSteps::Prefix::at_start && opens);
    if (wants_prefix && !spelled.starts_with(kSpelledSpace)) spelled.insert(0, kSpelledSpace);
    if (!steps_.splits_words) return encode_word(spelled, ids);
    for (size_t begin = 0; begin < spelled.size();) {
      const size_t end = std::min(spelled.find(kSpelledSpace, begin + 1), spelled.size());
      encode_word(std::string_view(spelled).substr(begin, end - begin), ids);
      begin = end;
    }
  }

  // The best way to the end of each character of a word.
  struct Best {
    double score = -std::numeric_limits<double>::infinity();
    size_t begin = 0;  // of its last piece
    uint32_t id = 0;
  };

  void encode_word(std::string_view word, std::vector<uint32_t>& ids) const {
    std::vector<Best> best(word.size() + 1);
    best[0].score = 0;
    for (size_t at = 0; at < word.size();) {
      const size_t n = length(word, at);
      const double score = best[at].score;
      bool has_character = false;
      pieces_.prefixes(word.substr(at), [&](uint32_t id, size_t n_bytes) {
        improve(best[at + n_bytes], {score + vocabulary_.scores[id], at, id});
        has_character = has_character || n_bytes == n;
      });
      if (!has_character) improve(best[at + n], {score + unknown_score_, at, *vocabulary_.unknown});
      at += n;
    }
    append_path(word, best, ids);
  }

  static void improve(Best& known, const Best& other) {
    if (other.score > known.score) known = other;
  }

  // Neighbours that are unknown are one.
  void append_path(std::string_view word, const std::vector<Best>& best,
                   std::vector<uint32_t>& ids) const {
    std::vector<std::string_view> parts;  // the last first
    bool was_unknown = false;
    for (size_t end = word.size(); end > 0; end = best[end].begin) {
      const size_t begin = best[end].begin;
      const bool is_unknown = best[end].id == *vocabulary_.unknown;
      if (is_unknown && was_unknown)
        parts.back() = word.substr(begin, parts.back().size() + end - begin);
      else
        parts.push_back(word.substr(begin, end - begin));
      was_unknown = is_unknown;
    }
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) append_part(*part, ids);
  }

  void append_part(std::string_view part, std::vector<uint32_t>& ids) const {
    if (const auto id = pieces_.find(part)) return ids.push_back(*id);
    std::vector<uint32_t> bytes;
    if (steps_.byte_fallback)
      for (const char c : part)
        if (const auto id = pieces_.find(name_of_byte(static_cast<unsigned char>(c))))
          bytes.push_back(*id);
    if (!bytes.empty() && bytes.size() == part.size())
      ids.insert(ids.end(), bytes.begin(), bytes.end());
    else
      ids.push_back(*vocabulary_.unknown);
  }

  static std::string name_of_byte(unsigned char byte) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + '>';
  }

  const Vocabulary& vocabulary_;
  const UnigramSteps& steps_;
  PieceTable pieces_;
  std::vector<std::unique_ptr<const CharacterMap>> maps_;  // of each step that is one
  double unknown_score_;
};

}  // namespace

std::unique_ptr<const TextModel> make_unigram(const Vocabulary& vocabulary) {
  return std::make_unique<Unigram>(vocabulary);
}

}  // namespace akunu
