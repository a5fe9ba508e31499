#include "weight/hf_scan_config.h"

#include <algorithm>
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

enum class Part : uint8_t { scan, attention, feed_forward };

struct PartName {
  std::string_view listed;
  std::string_view also;
  char in_pattern;
  Part part;
};
constexpr PartName kParts[] = {{"linear_attention", "mamba", 'M', Part::scan},
                               {"full_attention", "attention", '*', Part::attention},
                               {"mlp", "mlp", '-', Part::feed_forward}};

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
            R"(; akunu has "linear_attention", "full_attention" and "mlp")");
      parts.push_back(named->part);
    }
  }
  const std::optional<std::string> pattern = config.text(kPattern);
  if (list != nullptr || !pattern) return parts;
  for (const char letter : *pattern) {
    const auto* const named = std::ranges::find(kParts, letter, &PartName::in_pattern);
    if (named == std::end(kParts))
      config.refuse_support(kPattern, "akunu has M for a scan, * for attention and - for an MLP");
    parts.push_back(named->part);
  }
  return parts;
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
  Scan& scan = model.scan;
  scan.n_heads = config.needed_count("mamba_n_heads", 128);
  scan.n_groups = config.needed_count("mamba_n_groups", 1);
  scan.state_dim = config.needed_count("mamba_d_state", 256);
  scan.width = config.needed_count("mamba_d_conv", 4);
  const uint64_t inner = uint64_t{config.needed_count("mamba_expand", 2)} * model.dim;
  const auto usual = static_cast<uint32_t>(inner / scan.n_heads);
  const JsonValue* const head = config.find("mamba_d_head");
  scan.head_dim = head != nullptr && head->kind == JsonValue::Kind::string && head->text == "auto"
                      ? usual
                      : config.needed_count("mamba_d_head", usual);
  if (uint64_t{scan.head_dim} * scan.n_heads != inner)
    config.refuse_value("mamba_d_head", "heads of that length are not mamba_expand * hidden_size");
  read_time_limits(config, scan);
}

}  // namespace akunu
