// Canonical tensor names out of those of files, by tables. names.h lists the canonical ones.
//
// 1. What it does. `give_names` takes a name apart into layer, stem and suffix (`take_apart`),
//    finds the rule for the stem (`find_rule`) and gives the tensor its canonical name, or cuts it
//    by rows into several, each a view of the same bytes (`rows_from`). The tables are the families'
//    (models); the functions here know none.
// 2. What bounds it. Nothing: one search for each tensor, at load. Two rules may have one name;
//    the one holds whose pieces have the tensor's rows.
// 3. Where to change it. A tensor by another name: a rule in the table of its family, or of all. A
//    tensor that changes nothing: a LeftOut, with the reason. Never a branch by architecture.
#include "files/names.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <memory>
#include <optional>

#include "core/error.h"
#include "files/delta_projections.h"
#include "files/scan_factors.h"
#include "models/registry.h"

namespace akunu {
namespace {

bool matches(std::string_view name, std::string_view pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  const std::string_view begin = pattern.substr(0, star), end = pattern.substr(star + 1);
  return name.size() >= begin.size() + end.size() && name.starts_with(begin) && name.ends_with(end);
}

constexpr std::string_view kScale = ".scale";
// Tensors of GGUF files whose names end with their stems.
constexpr std::string_view kBare[] = {"ssm_a", "ssm_d"};
bool is_bare(std::string_view stem) { return std::ranges::find(kBare, stem) != std::end(kBare); }
// Of some architectures; see NameRules::bare.
constexpr std::string_view kSometimesBare = "ffn_norm";

// A name in the file, taken apart.
struct FileName {
  std::optional<uint32_t> layer;
  std::string_view stem;    // "attn_q"
  std::string_view suffix;  // ".weight"
};

std::optional<FileName> take_apart(std::string_view name, std::string_view layer_prefix) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  FileName result{.layer = {}, .stem = name.substr(0, dot), .suffix = name.substr(dot)};
  // "ffn_down_exps.scale" is beside "ffn_down_exps.weight", and another tensor.
  const std::string_view last = result.suffix.substr(1);
  if (result.suffix == kScale || is_bare(last) || last == kSometimesBare)
    result = {.layer = {}, .stem = name, .suffix = ".weight"};
  if (result.suffix != ".weight" && result.suffix != ".bias") return std::nullopt;
  if (!result.stem.starts_with(layer_prefix)) return result;
  uint32_t layer = 0;
  const char* const end = result.stem.data() + result.stem.size();
  const auto [after, error] = std::from_chars(result.stem.data() + layer_prefix.size(), end, layer);
  if (error != std::errc{} || after == end || *after != '.') return std::nullopt;
  result.layer = layer;
  result.stem = {after + 1, end};
  return result;
}

// What stands before the number of a layer in `name`, if it is one of a layer.
std::string_view prefix_of(const NameRules& rules, std::string_view name) {
  const bool is_of_encoder =
      !rules.encoder_prefix.empty() && name.starts_with(rules.encoder_prefix);
  return is_of_encoder ? rules.encoder_prefix : rules.layer_prefix;
}

uint64_t rows_of(PieceRows rows, const LayerConfig& layer, uint64_t all) {
  switch (rows) {
    case PieceRows::all:
      return all;
    case PieceRows::query:
      return uint64_t{layer.n_heads} * layer.head_dim;
    case PieceRows::key_value:
      return uint64_t{layer.n_kv_heads} * layer.head_dim;
    case PieceRows::ffn:
      return layer.ffn_dim;
    case PieceRows::half:
    case PieceRows::every_second:
      return all / 2;
    case PieceRows::third:
      return all / 3;
  }
  __builtin_unreachable();
}

// What a cut goes along: rows, or the numbers of a vector.
uint64_t length_of(const SourceTensor& tensor) {
  return tensor.n_dims == 1 ? tensor.k() : tensor.rows();
}

uint64_t length_of(const NameRule& rule, const LayerConfig& layer, uint64_t all) {
  uint64_t length = 0;
  for (const Piece& piece : pieces_of(rule)) length += rows_of(piece.rows, layer, all);
  return length;
}

[[noreturn]] void refuse_length(const NameRule& rule, const SourceTensor& tensor,
                                const LayerConfig& layer) {
  const uint64_t length = length_of(tensor);
  std::string text = tensor.label() + " has " + std::to_string(length) +
                     (tensor.n_dims == 1 ? " numbers" : " rows") +
                     "; the model's numbers ask for " +
                     std::to_string(length_of(rule, layer, length)) + ":";
  for (const Piece& piece : pieces_of(rule))
    text += (&piece == &rule.pieces[0] ? " " : ", ") +
            std::to_string(rows_of(piece.rows, layer, length)) + " of " +
            std::string(piece.canonical);
  throw ModelFormatError(text);
}

// Rows [first, first + n) of a tensor: the same bytes, seen in part. Planes have their rows in the
// same order, each row as long as the others.
SourceTensor rows_from(const SourceTensor& tensor, uint64_t first, uint64_t n) {
  SourceTensor result = tensor;
  const uint64_t length = length_of(tensor);
  if (tensor.n_dims == 3) {
    result.shape[0] = 1;
    result.n_dims = 2;
  }
  (tensor.n_dims == 1 ? result.shape[2] : result.shape[1]) = n;
  for (WeightPart& part : result.parts) {
    const uint64_t each = part.bytes.size() / length;
    part.bytes = part.bytes.subspan(first * each, n * each);
  }
  return result;
}

// n rows, from `first` on and `step` apart, of each matrix of a tensor that holds several: copies of them. Of
// several vectors, numbers.
SourceTensor rows_of_each(SourceTensor tensor, uint64_t first, uint64_t n, uint64_t step) {
  if (tensor.n_dims == 2) tensor.shape = {tensor.shape[1], tensor.shape[2], 1};
  tensor.n_dims = 3;
  SourceTensor result = tensor;
  result.shape[1] = n;
  for (WeightPart& part : result.parts) {
    if (part.bytes.empty()) continue;
    const uint64_t each = part.bytes.size() / tensor.rows();
    const auto copy = std::make_shared<std::vector<std::byte>>(tensor.shape[0] * n * each);
    std::byte* to = copy->data();
    for (uint64_t i = 0; i < tensor.shape[0]; ++i)
      for (uint64_t row = 0; row < n; ++row, to += each)
        std::ranges::copy(
            part.bytes.subspan((i * tensor.shape[1] + first + row * step) * each, each), to);
    part = {.bytes = *copy, .owner = copy};
  }
  return result;
}

// The rule for `stem` that has the tensor's rows; null where there is no rule for it at all.
const NameRule* find_rule(std::span<const NameRule> rules, std::string_view stem,
                          const SourceTensor& tensor, const LayerConfig& layer) {
  const uint64_t length = length_of(tensor);
  const NameRule* other = nullptr;
  for (const NameRule& rule : rules) {
    if (rule.name != stem) continue;
    if (length_of(rule, layer, length) == length) return &rule;
    other = &rule;
  }
  if (other != nullptr) refuse_length(*other, tensor, layer);
  return nullptr;
}

}  // namespace

const NameRules& gguf_names(std::string_view architecture) {
  const Family* const family = find_family(architecture);
  return family == nullptr ? gguf::kUsualNames : *family->gguf_names;
}

std::vector<std::pair<std::string, std::vector<std::string>>> gguf_joined_names() {
  std::vector<std::pair<std::string, std::vector<std::string>>> joined;
  for (const NameRule& rule : gguf::kLayer) {
    if (pieces_of(rule).size() == 1) continue;
    std::vector<std::string>& pieces = joined.emplace_back(rule.name, 0).second;
    for (const Piece& piece : pieces_of(rule)) pieces.emplace_back(piece.canonical);
  }
  return joined;
}

std::string gguf_name(std::string_view canonical, std::string_view architecture) {
  const NameRules& rules = gguf_names(architecture);
  constexpr std::string_view kEncoderLayers = "encoder.layers.";
  const bool is_of_encoder = !rules.encoder_prefix.empty() && canonical.starts_with(kEncoderLayers);
  const std::optional<FileName> parts =
      take_apart(canonical, is_of_encoder ? kEncoderLayers : "layers.");
  const std::string_view prefix = is_of_encoder ? rules.encoder_prefix : rules.layer_prefix;
  if (parts)
    for (const NameRule& rule : parts->layer ? rules.layer : rules.model)
      if (pieces_of(rule).size() == 1 && rule.pieces[0].canonical == parts->stem)
        return (parts->layer ? std::string(prefix) + std::to_string(*parts->layer) + "." : "") +
               std::string(rule.name) +
               (rule.name.ends_with(kScale) || is_bare(rule.name) || rule.name == rules.bare
                    ? ""
                    : std::string(parts->suffix));
  throw UnsupportedModelError("GGUF has no name for the tensor " + std::string(canonical));
}

const LeftOut* find_left_out(const NameRules& rules, std::string_view name) {
  for (const LeftOut& known : rules.left_out)
    if (matches(name, known.pattern)) return &known;
  return nullptr;
}

bool is_of_layer_behind(const NameRules& rules, std::string_view name, size_t n_layers) {
  if (!name.starts_with(rules.layer_prefix)) return false;
  uint32_t layer = 0;
  const char* const digits = name.data() + rules.layer_prefix.size();
  const auto [after, error] = std::from_chars(digits, name.data() + name.size(), layer);
  return error == std::errc{} && layer >= n_layers;
}

std::string_view why_unused(std::string_view canonical, const ModelConfig& config) {
  const std::optional<FileName> parts = take_apart(canonical, "layers.");
  if (!parts || !parts->layer) return {};
  if (parts->stem == "streams.scale" && config.streams && !config.streams->is_scaled)
    return "altup_correct_scale is false";
  const bool makes_keys = parts->stem == "attention.k" || parts->stem == "attention.v" ||
                          parts->stem == "attention.k_norm";
  if (makes_keys && *parts->layer + config.n_shared_kv_layers >= config.layers.size())
    return "its layer reads the keys and values of an earlier one";
  return {};
}

bool is_named(const NameRules& rules, std::string_view name) {
  if (find_left_out(rules, name) != nullptr) return true;
  const std::optional<FileName> parts = take_apart(name, prefix_of(rules, name));
  if (!parts) return false;
  return std::ranges::any_of(parts->layer ? rules.layer : rules.model,
                             [&](const NameRule& rule) { return rule.name == parts->stem; });
}

std::vector<SourceTensor> give_names(const NameRules& rules, std::string_view name,
                                     const SourceTensor& tensor, const ModelConfig& config) {
  const std::string_view prefix = prefix_of(rules, name);
  const bool is_of_encoder = prefix == rules.encoder_prefix;
  const std::optional<FileName> parts = take_apart(name, prefix);
  if (!parts) return {};
  const std::vector<LayerConfig>& layers = is_of_encoder ? config.audio_layers : config.layers;
  // Whoever describes the model refuses layers that it does not have.
  const LayerConfig layer =
      parts->layer && *parts->layer < layers.size() ? layers[*parts->layer] : LayerConfig{};
  const NameRule* rule =
      find_rule(parts->layer ? rules.layer : rules.model, parts->stem, tensor, layer);
  if (rule == nullptr) return {};
  const std::span<const Piece> pieces = pieces_of(*rule);
  if (tensor.n_dims > rule->max_dims)
    throw UnsupportedModelError(tensor.label() + " has " + std::to_string(tensor.n_dims) +
                                " dimensions; akunu has one and two there");
  if (pieces.size() > 1) refuse_quantised_vector(tensor);
  std::vector<SourceTensor> named;
  uint64_t first = 0;
  for (const Piece& piece : pieces) {
    const bool takes_turns = piece.rows == PieceRows::every_second;
    const bool is_of_each = rule->max_dims == 3 && (piece.rows == PieceRows::half || takes_turns);
    const uint64_t of_each = tensor.n_dims == 3 ? tensor.shape[1] : tensor.k();
    const uint64_t n = rows_of(piece.rows, layer, is_of_each ? of_each : length_of(tensor));
    named.push_back(pieces.size() == 1 ? tensor
                    : takes_turns      ? rows_of_each(tensor, named.size(), n, 2)
                    : is_of_each       ? rows_of_each(tensor, first, n, 1)
                                       : rows_from(tensor, first, n));
    named.back().name = (is_of_encoder ? "encoder." : "") +
                        (parts->layer ? "layers." + std::to_string(*parts->layer) + "." : "") +
                        std::string(piece.canonical) + std::string(parts->suffix);
    named.back().transform = rule->transform;
    if (SourceTensor& each = named.back(); rule->joins_columns && each.n_dims == 3) {
      each.shape = {1, each.shape[0], each.shape[1] * each.shape[2]};
      each.n_dims = 2;
    }
    if (SourceTensor& each = named.back(); rule->is_vector && parts->suffix == ".weight") {
      each.shape = {1, 1, each.rows() * each.k()};
      each.n_dims = 1;
    }
    if (SourceTensor& each = named.back();
        rule->max_dims == 3 && each.n_dims >= 2 && parts->suffix == ".bias") {
      each.shape = {1, 1, each.rows() * each.k()};
      each.n_dims = 1;
    }
    first += n;
  }
  return with_scan_factors(cut_by_key_heads(std::move(named), config.delta_rule), config.scan);
}

}  // namespace akunu
