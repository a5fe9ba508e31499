#include "files/huggingface/scan_config.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace akunu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A number, or infinity as Python writes it, or as transformers does: {"__float__": "Infinity"}.
float limit_of(ConfigObject& config, const JsonValue& item) {
  if (const std::optional<double> number = item.number()) return static_cast<float>(*number);
  const JsonValue* const written = item.find("__float__");
  const bool is_number = item.kind == JsonValue::Kind::number;
  const bool is_infinite = is_number            ? item.text == kJsonInfinity
                           : written != nullptr ? written->text == kJsonInfinity
                                                : false;
  if (!is_infinite) config.refuse_value("time_step_limit", "two numbers are needed");
  return kInfinity;
}

void read_time_limits(ConfigObject& config, Scan& scan) {
  const JsonValue* const limits = config.find("time_step_limit");
  if (limits == nullptr) return;
  if (limits->kind != JsonValue::Kind::array || limits->items.size() != 2)
    config.refuse_value("time_step_limit", "two numbers are needed");
  scan.time_min = limit_of(config, limits->items[0]);
  scan.time_max = limit_of(config, limits->items[1]);
}

// What the layers of Nemotron-H are, as newer files say it and as older ones do.
constexpr const char* kListed = "layers_block_type";
constexpr const char* kPattern = "hybrid_override_pattern";

enum class Part : uint8_t { scan, attention, feed_forward, experts };

struct PartName {
  std::string_view listed;
  std::string_view also;
  char in_pattern;
  Part part;
};
constexpr PartName kParts[] = {{"linear_attention", "mamba", 'M', Part::scan},
                               {"full_attention", "attention", '*', Part::attention},
                               {"mlp", "mlp", '-', Part::feed_forward},
                               {"moe", "moe", 'E', Part::experts}};

std::vector<Part> parts_of(ConfigObject& config) {
  std::vector<Part> parts;
  const JsonValue* const list = config.find(kListed);
  if (list != nullptr) {
    if (list->kind != JsonValue::Kind::array) config.refuse_value(kListed, "a list is needed");
    for (const JsonValue& item : list->items) {
      const auto* const named = std::ranges::find_if(kParts, [&](const PartName& name) {
        return item.text == name.listed || item.text == name.also;
      });
      if (named == std::end(kParts))
        throw UnsupportedModelError(
            config.named(kListed) + " holds " + item.shown() +
            R"(; akunu has "linear_attention", "full_attention", "mlp" and "moe")");
      parts.push_back(named->part);
    }
  }
  const std::optional<std::string> pattern = config.text(kPattern);
  if (list != nullptr || !pattern) return parts;
  for (const char letter : *pattern) {
    const auto* const named = std::ranges::find(kParts, letter, &PartName::in_pattern);
    if (named == std::end(kParts))
      config.refuse_support(
          kPattern, "akunu has M for a scan, * for attention, - for an MLP and E for experts");
    parts.push_back(named->part);
  }
  return parts;
}

}  // namespace

namespace {

void read_mixed_experts(ConfigObject& config, ModelConfig& model) {
  if (config.find("moe_latent_size") != nullptr)
    config.refuse_support("moe_latent_size", "akunu has experts as wide as the residual");
  ExpertConfig& experts = model.experts;
  experts.n = config.needed_count("n_routed_experts", 8);
  experts.n_chosen = config.needed_count("num_experts_per_tok", 2);
  experts.dim = config.needed_count("moe_intermediate_size", 7688);
  experts.shared_dim = config.needed_count("moe_shared_expert_intermediate_size", 7688);
  experts.scoring = Scoring::sigmoid;
  experts.normalised = config.flag("norm_topk_prob").value_or(true);
  experts.scale = config.number("routed_scaling_factor").value_or(1.0f);
  experts.n_groups = config.needed_count("n_group", 1);
  experts.n_groups_chosen = config.needed_count("topk_group", 1);
  model.architecture = "nemotron_h_moe";
}

}  // namespace

std::optional<uint32_t> count_hf_mixers(ConfigObject& config) {
  const std::vector<Part> parts = parts_of(config);
  if (parts.empty()) return std::nullopt;
  return static_cast<uint32_t>(parts.size());
}

void read_hf_mixers(ConfigObject& config, ModelConfig& model) {
  const std::vector<Part> parts = parts_of(config);
  if (parts.empty()) config.refuse_missing(kListed);
  if (parts.size() != model.layers.size())
    throw ModelFormatError("config.json lists " + std::to_string(parts.size()) +
                           " layers and has " + std::to_string(model.layers.size()));
  for (size_t i = 0; i < parts.size(); ++i) {
    LayerConfig& layer = model.layers[i];
    layer.scans = parts[i] == Part::scan;
    if (parts[i] != Part::attention) layer.n_kv_heads = 0;
    if (parts[i] != Part::feed_forward) layer.ffn_dim = 0;
  }
  if (std::ranges::find(parts, Part::experts) != parts.end()) {
    if (std::ranges::find(parts, Part::feed_forward) != parts.end())
      config.refuse_support(config.find(kListed) != nullptr ? kListed : kPattern,
                            "akunu has experts in all feed-forward layers, or in none");
    read_mixed_experts(config, model);
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i] == Part::experts) model.layers[i].ffn_dim = model.experts.dim;
  }
  const auto need = [&](const char* key, std::string_view has) {
    const std::optional<std::string> said = config.text(key);
    if (said && *said != has) config.refuse_support(key, "akunu has " + std::string(has));
  };
  // Older files have both.
  if (const std::optional<float> epsilon = config.number("rms_norm_eps");
      epsilon && *epsilon != model.norm_epsilon)
    config.refuse_value("rms_norm_eps", "layer_norm_epsilon is another number");
  need("mlp_hidden_act", "relu2");
  need("mamba_hidden_act", "silu");
  Scan& scan = model.scan;
  scan.n_heads = config.needed_count("mamba_num_heads", 128);
  scan.head_dim = config.needed_count("mamba_head_dim", 64);
  scan.n_groups = config.needed_count("n_groups", 8);
  scan.state_dim = config.needed_count("ssm_state_size", 128);
  scan.width = config.needed_count("conv_kernel", 4);
  read_time_limits(config, scan);
  // Of the beginning of training, of other implementations, and of experts, which no layer has.
  for (const char* const key : {"chunk_size",
                                "expand",
                                "mamba_proj_bias",
                                "mamba_ssm_cache_dtype",
                                "moe_intermediate_size",
                                "moe_latent_size",
                                "moe_shared_expert_intermediate_size",
                                "moe_shared_expert_overlap",
                                "mtp_layers_block_type",
                                "n_group",
                                "n_routed_experts",
                                "n_shared_experts",
                                "norm_topk_prob",
                                "num_logits_to_keep",
                                "num_nextn_predict_layers",
                                "rescale_prenorm_residual",
                                "residual_in_fp32",
                                "routed_scaling_factor",
                                "time_step_floor",
                                "time_step_max",
                                "time_step_min",
                                "topk_group",
                                "use_conv_bias",
                                "use_mamba_kernels"})
    config.find(key);
}

void read_hf_mamba2(ConfigObject& config, ModelConfig& model) {
  for (LayerConfig& layer : model.layers)
    layer = {.windowed = {}, .rotates = {}, .gate_cut = {}, .scans = true};
  Scan& scan = model.scan;
  scan.n_heads = config.needed_count("num_heads", 128);
  scan.head_dim = config.needed_count("head_dim", 64);
  scan.n_groups = config.needed_count("n_groups", 8);
  scan.state_dim = config.needed_count("state_size", 128);
  scan.width = config.needed_count("conv_kernel", 4);
  if (uint64_t{config.needed_count("expand", 2)} * model.dim !=
      uint64_t{scan.n_heads} * scan.head_dim)
    config.refuse_value("head_dim", "num_heads heads of that length are not expand * hidden_size");
  read_time_limits(config, scan);
  // What the first code may do otherwise.
  if (!config.flag("rms_norm").value_or(true))
    config.refuse_support("rms_norm", "akunu has the norm behind a scan");
  if (config.flag("norm_before_gate").value_or(false))
    config.refuse_support("norm_before_gate", "akunu has the gate before the norm");
  // Of the beginning of training and of other implementations; biases are seen by their tensors.
  for (const char* const key :
       {"chunk_size", "rescale_prenorm_residual", "residual_in_fp32", "time_step_floor",
        "time_step_max", "time_step_min", "time_step_rank", "use_conv_bias"})
    config.find(key);
}

namespace {

// "auto" stands for the usual length.
uint32_t head_dim_of(ConfigObject& config, uint32_t usual) {
  const JsonValue* const said = config.find("mamba_d_head");
  const bool is_usual =
      said != nullptr && said->kind == JsonValue::Kind::string && said->text == "auto";
  return is_usual ? usual : config.needed_count("mamba_d_head", usual);
}

// What Granite 4 and Falcon-H1 have in common. Returns mamba_expand * hidden_size.
uint64_t read_sizes(ConfigObject& config, ModelConfig& model) {
  Scan& scan = model.scan;
  scan.n_heads = config.needed_count("mamba_n_heads", 128);
  scan.n_groups = config.needed_count("mamba_n_groups", 1);
  scan.state_dim = config.needed_count("mamba_d_state", 256);
  scan.width = config.needed_count("mamba_d_conv", 4);
  return uint64_t{config.needed_count("mamba_expand", 2)} * model.dim;
}

void check_factor(const ConfigObject& config, std::string_view key, float factor) {
  if (!(factor > 0) || !std::isfinite(factor)) config.refuse_value(key, "it must be above 0");
}

float factor_of(ConfigObject& config, std::string_view key) {
  const float factor = config.number(key).value_or(1.0f);
  check_factor(config, key, factor);
  return factor;
}

std::vector<float> factors_of(ConfigObject& config, std::string_view key, size_t n) {
  std::vector<float> factors = config.numbers(key).value_or(std::vector<float>(n, 1.0f));
  if (factors.size() != n) config.refuse_value(key, std::to_string(n) + " numbers are needed");
  for (const float factor : factors) check_factor(config, key, factor);
  return factors;
}

// Those of Falcon-H1. A factor on the input of attention is one on queries, keys and values, so its square is on scores.
void read_factors(ConfigObject& config, ModelConfig& model) {
  model.embedding_scale = factor_of(config, "embedding_multiplier");
  model.logit_scale = factor_of(config, "lm_head_multiplier");
  const float attended = factor_of(config, "attention_in_multiplier");
  const auto head_dim = static_cast<float>(model.layers.empty() ? 1 : model.layers[0].head_dim);
  model.attention_scale =
      attended * attended * factor_of(config, "key_multiplier") / std::sqrt(head_dim);
  LayerFactors& factors = model.layer_factors;
  factors.attention = attended * factor_of(config, "attention_out_multiplier");
  model.scan.factor = factor_of(config, "ssm_out_multiplier");
  const std::vector<float> of_ffn = factors_of(config, "mlp_multipliers", 2);
  factors.gate = of_ffn[0];
  factors.feed_forward = of_ffn[1];
  const float scanned = factor_of(config, "ssm_in_multiplier");
  const std::vector<float> projected = factors_of(config, "ssm_multipliers", 5);  // z, x, B, C, t
  model.scan.gate_factor = scanned * projected[0];
  for (size_t i = 0; i < 3; ++i) model.scan.input_factors[i] = scanned * projected[1 + i];
  model.scan.time_factor = scanned * projected[4];
}

}  // namespace

void read_hf_scans(ConfigObject& config, ModelConfig& model) {
  const JsonValue* const types = config.find("layer_types");
  const bool is_list = types != nullptr && types->kind == JsonValue::Kind::array;
  // Whoever reads windows checks the list; without one all layers scan.
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const std::string_view type = is_list && i < types->items.size()
                                      ? std::string_view(types->items[i].text)
                                      : std::string_view("mamba");
    // transformers 5 writes the second name.
    model.layers[i].scans = type == "mamba" || type == "linear_attention";
  }
  if (std::ranges::none_of(model.layers, &LayerConfig::scans)) {
    config.find("time_step_limit");
    return;
  }
  const uint64_t inner = read_sizes(config, model);
  Scan& scan = model.scan;
  scan.head_dim = head_dim_of(config, static_cast<uint32_t>(inner / scan.n_heads));
  if (uint64_t{scan.head_dim} * scan.n_heads != inner)
    config.refuse_value("mamba_d_head", "heads of that length are not mamba_expand * hidden_size");
  read_time_limits(config, scan);
}

void read_hf_scans_beside(ConfigObject& config, ModelConfig& model) {
  for (LayerConfig& layer : model.layers) layer.scans = true;
  const uint64_t expanded = read_sizes(config, model);
  Scan& scan = model.scan;
  const uint64_t inner =
      config.has_null("mamba_d_ssm") ? expanded : config.needed_count("mamba_d_ssm", 1024);
  scan.head_dim = head_dim_of(config, static_cast<uint32_t>(inner / scan.n_heads));
  if (uint64_t{scan.head_dim} * scan.n_heads != inner)
    config.refuse_value("mamba_d_head", "mamba_n_heads heads of that length are not " +
                                            std::to_string(inner) + " numbers");
  read_time_limits(config, scan);
  scan.is_normed = config.flag("mamba_rms_norm").value_or(false);
  if (config.flag("mamba_norm_before_gate").value_or(true) && scan.is_normed)
    config.refuse_support("mamba_norm_before_gate", "akunu has the gate before the norm");
  // Factors are on products with weights and biases both, or not; no model has them.
  for (const char* const key : {"attention_bias", "mamba_proj_bias", "mlp_bias", "projectors_bias"})
    if (config.flag(key).value_or(false))
      config.refuse_support(key, "akunu has no biases beside factors");
  read_factors(config, model);
  for (const char* const key :
       {"layer_types", "layers_block_type", "mlp_expansion_factor", "num_logits_to_keep"})
    config.find(key);
}

}  // namespace akunu
