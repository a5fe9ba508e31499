#include "weight/hf_scan_config.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>

namespace akunu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A number, or infinity as transformers writes it: {"__float__": "Infinity"}.
float limit_of(ConfigObject& config, const JsonValue& item) {
  if (const std::optional<double> number = item.number()) return static_cast<float>(*number);
  const JsonValue* const written = item.find("__float__");
  const bool is_infinite = written != nullptr && written->text == "Infinity";
  if (!is_infinite) config.refuse_value("time_step_limit", "two numbers are needed");
  return kInfinity;
}

void read_time_limits(ConfigObject& config, ScanConfig& scan) {
  const JsonValue* const limits = config.find("time_step_limit");
  if (limits == nullptr) return;
  if (limits->kind != JsonValue::Kind::array || limits->items.size() != 2)
    config.refuse_value("time_step_limit", "two numbers are needed");
  scan.time_min = limit_of(config, limits->items[0]);
  scan.time_max = limit_of(config, limits->items[1]);
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
  ScanConfig& scan = model.scan;
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
