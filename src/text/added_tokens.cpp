#include "text/added_tokens.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "files/gguf/gguf.h"

namespace akunu {
namespace {

// What a file has for each of them, in the order of the library: special tokens first.
constexpr std::string_view kAddedTokens = "akunu.tokenizer.added_tokens";
constexpr uint32_t kBits = 5;  // of a number that are no id

AddedToken token_of(int64_t number, size_t index, size_t n_tokens) {
  const int64_t id = number >> kBits;
  if (number < 0 || static_cast<uint64_t>(id) >= n_tokens)
    throw ModelFormatError(std::string(kAddedTokens) + "[" + std::to_string(index) +
                           "] is about token " + std::to_string(id) + ", but there are " +
                           std::to_string(n_tokens) + " tokens");
  const auto has = [&](int bit) { return (number >> bit & 1) == 1; };
  return {.id = static_cast<uint32_t>(id),
          .lstrip = has(0),
          .rstrip = has(1),
          .single_word = has(2),
          .normalized = has(3),
          .is_piece = has(4)};
}

// A string in ASCII's lower case; "" for a value that is none.
std::string lowered(const GgufFile& file, std::string_view key) {
  const GgufValue* value = file.find(key);
  if (value == nullptr || value->is_array || value->type != GgufValueType::string) return {};
  std::string text(*file.get_string(key));
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

// Beyond llama.cpp, a Phi-3 that was given another name: the architecture with this tokenizer.
std::vector<AddedToken> by_name(const GgufFile& file, std::span<const std::string> tokens,
                                std::span<const uint32_t> names) {
  const std::string name = lowered(file, "general.name");
  const std::string architecture = lowered(file, "general.architecture");
  std::string_view mask;
  if (has_any(lowered(file, "tokenizer.ggml.pre"), {"jina-v2-de", "jina-v2-es", "jina-v2-code"}) ||
      has_any(architecture, {"nomic-bert-moe", "jina-bert-v3"})) {
    mask = "<mask>";
  } else if (has_any(name, {"phi-3", "phi3"}) ||
             (architecture == "phi3" && lowered(file, "tokenizer.ggml.model") == "llama")) {
    std::vector<AddedToken> added;
    const auto add = [&](uint32_t id) {
      const std::string& token = tokens[id];
      const bool is_other =
          token.empty() || token == "<unk>" || token == "<s>" || token == "<|endoftext|>";
      if (!is_other && std::ranges::find(added, id, &AddedToken::id) == added.end())
        added.push_back({.id = id, .rstrip = true});
    };
    std::ranges::for_each(names, add);
    const auto end = std::ranges::find(tokens, "</s>");
    if (end != tokens.end()) add(static_cast<uint32_t>(end - tokens.begin()));
    return added;
  } else if (has_any(name, {"modern-bert"})) {
    mask = "[MASK]";
  }
  const auto found = std::ranges::find(tokens, mask);
  if (mask.empty() || found == tokens.end()) return {};
  return {{.id = static_cast<uint32_t>(found - tokens.begin()), .lstrip = true}};
}

}  // namespace

std::vector<AddedToken> read_added(const GgufFile& file, std::span<const std::string> tokens,
                                   std::span<const uint32_t> names) {
  const auto numbers = file.get_int_array(kAddedTokens);
  if (!numbers) return by_name(file, tokens, names);
  std::vector<AddedToken> added;
  for (size_t i = 0; i < numbers->size(); ++i)
    added.push_back(token_of((*numbers)[i], i, tokens.size()));
  return added;
}

}  // namespace akunu
