#include "weight/names.h"

#include <array>
#include <charconv>
#include <cstdint>

namespace akunu {
namespace {

struct Rule {
  std::string_view gguf;
  std::string_view canonical;
};

constexpr std::array kModelRules{
    Rule{"token_embd", "token_embedding"},
    Rule{"output_norm", "output_norm"},
    Rule{"output", "output"},
    Rule{"rope_freqs", "rope_factors"},
};

// Behind "blk.N."
constexpr std::array kLayerRules{
    Rule{"attn_norm", "attention_norm"},
    Rule{"attn_q", "attention.q"},
    Rule{"attn_k", "attention.k"},
    Rule{"attn_v", "attention.v"},
    Rule{"attn_output", "attention.output"},
    Rule{"attn_q_norm", "attention.q_norm"},
    Rule{"attn_k_norm", "attention.k_norm"},
    Rule{"ffn_norm", "ffn_norm"},
    Rule{"ffn_gate", "ffn.gate"},
    Rule{"ffn_up", "ffn.up"},
    Rule{"ffn_down", "ffn.down"},
};

template <size_t N>
std::optional<std::string> translate(const std::array<Rule, N>& rules, std::string_view stem) {
  for (const Rule& rule : rules)
    if (rule.gguf == stem) return std::string(rule.canonical);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> canonical_from_gguf(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view suffix = name.substr(dot);
  if (suffix != ".weight" && suffix != ".bias") return std::nullopt;
  const std::string_view stem = name.substr(0, dot);

  constexpr std::string_view kBlock = "blk.";
  if (!stem.starts_with(kBlock)) {
    std::optional<std::string> canonical = translate(kModelRules, stem);
    if (canonical) *canonical += suffix;
    return canonical;
  }
  uint32_t layer = 0;
  const char* const end = stem.data() + stem.size();
  const auto [after, error] = std::from_chars(stem.data() + kBlock.size(), end, layer);
  if (error != std::errc{} || after == end || *after != '.') return std::nullopt;
  std::optional<std::string> canonical =
      translate(kLayerRules, std::string_view(after + 1, static_cast<size_t>(end - after - 1)));
  if (canonical)
    *canonical = "layers." + std::to_string(layer) + "." + *canonical + std::string(suffix);
  return canonical;
}

}  // namespace akunu
