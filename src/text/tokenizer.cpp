#include "text/tokenizer.h"

#include <algorithm>

#include "core/error.h"
#include "files/printable.h"
#include "text/unicode.h"

namespace akunu {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Bytes at the start of `text`, no character of UTF-8, that are one mistake: the longest beginning of
// a character (Unicode, "maximal subpart"), one byte at least. `is_unfinished`: whether more bytes could
// make it one.
struct Mistake {
  size_t length;
  bool is_unfinished;
};

Mistake mistake_at(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t wanted = first < 0xC2 || first > 0xF4 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (wanted == 0) return {1, false};
  size_t length = 1;
  for (; length < wanted && length < text.size(); ++length) {
    // The second byte is bounded where a longer form, a surrogate or no character would begin.
    const unsigned char least = length > 1      ? 0x80
                                : first == 0xE0 ? 0xA0
                                : first == 0xF0 ? 0x90
                                                : 0x80;
    const unsigned char most = length > 1      ? 0xBF
                               : first == 0xED ? 0x9F
                               : first == 0xF4 ? 0x8F
                                               : 0xBF;
    if (byte(length) < least || byte(length) > most) return {length, false};
  }
  return {length, length == text.size()};
}

std::string replace_all(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t found = text.find(what, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return out;
    out += with;
    at = found + what.size();
  }
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const Vocabulary> vocabulary)
    : vocabulary_(std::move(vocabulary)), model_(make_text_model(*vocabulary_)) {
  bytes_.reserve(size());
  for (uint32_t id = 0; id < size(); ++id) bytes_.push_back(spell(id));
  for (const AddedToken& token : vocabulary_->added) add(token, vocabulary_->tokens[token.id]);
  for (uint32_t id = 0; id < size(); ++id) {
    const std::string& token = vocabulary_->tokens[id];
    if (token.empty() || !vocabulary_->is_text[id]) continue;
    if (is_control(id)) control_.add(token, {.id = id});
    const bool is_name = is_control(id) || vocabulary_->types[id] == TokenType::user_defined;
    if (is_name && vocabulary_->find_added(id) == nullptr) add({.id = id}, token);
  }
}

void Tokenizer::add(const AddedToken& token, const std::string& text) {
  if (text.empty() || !vocabulary_->is_text[token.id]) return;
  const auto add_to = [&](TokenMatcher Matchers::* matcher, std::string_view pattern) {
    if (!is_control(token.id)) (added_.*matcher).add(pattern, token);
    (added_and_control_.*matcher).add(pattern, token);
  };
  if (!token.normalized) return add_to(&Matchers::raw, text);
  bool opens = true;
  const std::string& pattern = patterns_.emplace_back(model_->normalized(text, opens));
  if (pattern.empty())  // the library finds it between all characters
    throw UnsupportedModelError(
        "tokenizer.json: the normalizer leaves nothing of the added token '" + printable(text) +
        "'");
  add_to(&Matchers::normalized, pattern);
}

bool Tokenizer::is_control(uint32_t token) const {
  const TokenType type = vocabulary_->types[token];
  return type == TokenType::control || type == TokenType::unknown;
}

// Whether text right after this token opens anew.
bool Tokenizer::is_special(uint32_t token) const {
  if (is_wordpiece()) return vocabulary_->types[token] == TokenType::control;
  return is_control(token) || vocabulary_->types[token] == TokenType::user_defined;
}

std::vector<uint32_t> Tokenizer::encode(std::string_view text, bool add_special,
                                        bool parse_special) const {
  if (const size_t bad = find_invalid_utf8(text); bad != std::string_view::npos)
    throw ArgumentError("the text is not valid UTF-8 at byte " + std::to_string(bad));
  std::vector<uint32_t> ids;
  bool opens = true;
  // What the text itself begins and ends with, if that is a token of its own.
  std::optional<uint32_t> begins_with, ends_with;
  bool is_first = true;
  const Matchers& matchers = parse_special ? added_and_control_ : added_;
  const auto on_text = [&](std::string_view part) {
    encode_text(part, opens, matchers.normalized, ids);
    opens = false;
    is_first = false;
    ends_with.reset();
  };
  const auto on_token = [&](uint32_t id) {
    ids.push_back(id);
    opens = vocabulary_->opens_anew;
    if (is_first) begins_with = id;
    is_first = false;
    ends_with = id;
  };
  matchers.raw.split(text, on_text, on_token);
  if (!add_special) return ids;
  if (parse_special && !matchers.normalized.is_empty() && !ids.empty()) {
    begins_with = ids.front();
    ends_with = ids.back();
  }
  const bool is_bert = is_wordpiece();
  const std::optional<uint32_t>& last = is_bert ? vocabulary_->separator : vocabulary_->eos;
  if ((is_bert || vocabulary_->add_bos) && begins_with != vocabulary_->bos)
    ids.insert(ids.begin(), *vocabulary_->bos);
  if ((is_bert || vocabulary_->add_eos) && ends_with != last) ids.push_back(*last);
  return ids;
}

// Tokens with `normalized` are found in the normalised text.
void Tokenizer::encode_text(std::string_view text, bool opens, const TokenMatcher& normalized,
                            std::vector<uint32_t>& ids) const {
  if (normalized.is_empty()) return model_->encode(text, opens, ids);
  const std::string changed = model_->normalized(text, opens);
  normalized.split(
      changed,
      [&](std::string_view part) {
        const bool is_first = part.data() == changed.data();
        model_->encode_normalized(part, opens && is_first, ids);
      },
      [&](uint32_t id) { ids.push_back(id); });
}

// A text between two tokens, without the white space that they take; other tokens in that space stay.
std::string_view Tokenizer::without_taken_spaces(std::string_view text,
                                                 std::optional<uint32_t> before,
                                                 std::optional<uint32_t> behind) const {
  const AddedToken* const left = before ? vocabulary_->find_added(*before) : nullptr;
  const AddedToken* const right = behind ? vocabulary_->find_added(*behind) : nullptr;
  // The lengths of what lies before the first token in it, and behind the last.
  const auto ends = [&] {
    std::optional<size_t> first;
    size_t last = 0;
    added_.raw.split(
        text,
        [&](std::string_view part) {
          last = part.size();
          if (!first) first = last;
        },
        [&](uint32_t) {
          last = 0;
          if (!first) first = 0;
        });
    return std::pair(first.value_or(0), last);
  };
  if (left != nullptr && left->rstrip)
    text.remove_prefix(std::min(spaces_end(text, 0), ends().first));
  if (right != nullptr && right->lstrip)
    text = text.substr(0, spaces_begin(text, text.size(), text.size() - ends().second));
  return text;
}

std::vector<uint32_t> Tokenizer::encode_chat(std::span<const ChatPart> parts) const {
  std::vector<uint32_t> ids;
  bool opens = true;
  std::string text;  // that stands between two control tokens, whoever wrote it
  std::optional<uint32_t> before;
  const auto on_text = [&](std::string_view part) {
    encode_text(part, opens, added_.normalized, ids);
    opens = false;
  };
  const auto on_token = [&](uint32_t id) {
    ids.push_back(id);
    opens = vocabulary_->opens_anew;
  };
  const auto flush = [&](std::optional<uint32_t> behind) {
    added_.raw.split(without_taken_spaces(text, before, behind), on_text, on_token);
    text.clear();
    before = behind;
  };
  for (const ChatPart& part : parts) {
    if (!part.is_template) {
      text += part.text;
      continue;
    }
    control_.split(
        part.text, [&](std::string_view own) { text += own; },
        [&](uint32_t id) {
          flush(id);
          on_token(id);
        });
  }
  flush(std::nullopt);
  const std::optional<uint32_t>& bos = vocabulary_->bos;
  if (vocabulary_->add_bos && bos && (ids.empty() || ids[0] != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

std::string_view Tokenizer::token_bytes(uint32_t token) const {
  if (token >= size())
    throw ArgumentError("token id " + std::to_string(token) +
                        " is out of range: this vocabulary has ids 0 to " +
                        std::to_string(size() - 1));
  return bytes_[token];
}

std::string Tokenizer::spell(uint32_t token) const {
  const std::string& text = vocabulary_->tokens[token];
  const TokenType type = vocabulary_->types[token];
  if (is_wordpiece() && type == TokenType::unknown) return " " + text;
  if (vocabulary_->is_text[token] && (is_control(token) || type == TokenType::user_defined))
    return text;
  if (vocabulary_->model == TokenizerModel::byte_level && vocabulary_->is_text[token]) {
    std::string bytes;
    for (const char32_t character : to_characters(text)) {
      // The alphabet's letters are below U+0144; see byte_alphabet.
      const bool is_printable = (character > 0x20 && character < 0x7F) ||
                                (character > 0xA0 && character < 0x100 && character != 0xAD);
      if (is_printable) {
        bytes += static_cast<char>(character);
        continue;
      }
      // 0 to 0x20, 0x7F to 0xA0 and 0xAD are written as U+0100 and on.
      if (character < 0x100 || character > 0x143) return text;
      const char32_t index = character - 0x100;
      const char32_t byte = index <= 0x20 ? index : index < 0x43 ? index - 0x21 + 0x7F : 0xAD;
      bytes += static_cast<char>(byte);
    }
    return bytes;
  }
  if (type == TokenType::byte && !is_wordpiece())
    if (const std::optional<uint8_t> byte = byte_of(text)) return {static_cast<char>(*byte)};
  return replace_all(text, kSpelledSpace, " ");
}

std::string TextStream::push(uint32_t token) {
  std::string_view bytes = tokenizer_.token_bytes(token);
  const Vocabulary& vocabulary = tokenizer_.vocabulary();
  const bool is_skipped = skip_special_ && tokenizer_.is_control(token);
  if (tokenizer_.is_special(token)) {
    // Words on both sides of a token that is not shown stay apart.
    if (!is_skipped || !tokenizer_.is_wordpiece()) opens_ = vocabulary.opens_anew;
    if (is_skipped) return {};
  } else {
    if (is_skipped) return {};
    // Where encoding puts a space in front of text, decoding takes it away again.
    const bool strips = vocabulary.add_space_prefix || tokenizer_.is_wordpiece();
    if (opens_ && strips && bytes.starts_with(' ')) bytes.remove_prefix(1);
    opens_ = false;
  }
  pending_ += bytes;
  std::string text;
  size_t at = 0;
  while (at < pending_.size()) {
    const std::string_view rest = std::string_view(pending_).substr(at);
    size_t length = utf8_length(rest);
    if (length > 0) {
      text += rest.substr(0, length);
    } else {
      const Mistake mistake = mistake_at(rest);
      if (mistake.is_unfinished) break;
      text += kReplacement;
      length = mistake.length;
    }
    at += length;
  }
  pending_.erase(0, at);
  return text;
}

std::string TextStream::finish() {
  const bool is_cut = !pending_.empty();
  pending_.clear();
  return is_cut ? std::string(kReplacement) : std::string();
}

}  // namespace akunu
