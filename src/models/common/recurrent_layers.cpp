#include <string>

#include "core/error.h"
#include "core/kernel_params.h"
#include "models/common/layers.h"

namespace akunu::models {
namespace {

constexpr uint32_t kMostWidth = 64;
constexpr uint64_t kMostNumbers = 1u << 28;  // numbers of a row have 32 bits in the kernels

void take_attention_away(LayerDescriptor& layer, Mixer mixer) {
  layer.mixer = mixer;
  layer.rope_style = RopeStyle::none;
  layer.head_norms = false;
}

// Of a convolution, in rows. `before` and `behind` are what the message says around it.
void check_width(uint32_t width, const std::string& before, const std::string& behind) {
  if (width < 2 || width > kMostWidth)
    throw ModelFormatError(before + std::to_string(width) + behind + "; it must be 2 to " +
                           std::to_string(kMostWidth));
}

}  // namespace

void give_convolutions(ArchDescriptor& arch, const ModelConfig& config) {
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    if (!config.layers[i].convolves) continue;
    LayerDescriptor& layer = arch.layers[i];
    take_attention_away(layer, Mixer::convolution);
    layer.convolution = ShortConvolution{.dim = config.dim, .width = config.convolution_width};
    check_width(config.convolution_width, "the width of the short convolution is ", "");
  }
}

void give_delta_rules(ArchDescriptor& arch, const ModelConfig& config) {
  const DeltaRule& rule = config.delta_rule;
  const auto text = [](uint64_t number) { return std::to_string(number); };
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    LayerDescriptor& layer = arch.layers[i];
    if (!config.layers[i].recurs) continue;
    take_attention_away(layer, Mixer::delta_rule);
    layer.delta_rule = rule;
    for (const uint32_t number :
         {rule.n_key_heads, rule.n_value_heads, rule.key_dim, rule.value_dim})
      require(number, "number or length of heads of the delta rule", config);
    if (rule.n_value_heads % rule.n_key_heads != 0)
      throw ModelFormatError(text(rule.n_value_heads) + " heads of values cannot share " +
                             text(rule.n_key_heads) + " heads of keys evenly");
    if (rule.key_dim > kMaxStateDim)
      throw UnsupportedModelError("keys of the delta rule have " + text(rule.key_dim) +
                                  " numbers; akunu has 1 to " + text(kMaxStateDim));
    check_width(rule.width, "the convolution before the delta rule is over ", " rows");
    if (uint64_t{rule.n_key_heads} * rule.key_dim >= kMostNumbers ||
        uint64_t{rule.n_value_heads} * rule.value_dim >= kMostNumbers)
      throw ModelFormatError(text(rule.n_value_heads) + " heads of the delta rule, of " +
                             text(rule.value_dim) + " numbers, are beyond what any model has");
    layer.state = RecurrentState{.n_heads = rule.n_value_heads,
                                 .head_size = rule.key_dim * rule.value_dim,
                                 .convolved = rule.convolved(),
                                 .width = rule.width};
  }
}

void give_scans(ArchDescriptor& arch, const ModelConfig& config, Mixer mixer) {
  const Scan& from = config.scan;
  const auto text = [](uint64_t number) { return std::to_string(number); };
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    if (!config.layers[i].scans) continue;
    LayerDescriptor& layer = arch.layers[i];
    if (mixer == Mixer::scan)
      take_attention_away(layer, mixer);
    else
      layer.mixer = mixer;
    layer.scan = from;
    if (from.n_heads == 0 || from.head_dim == 0 || from.n_groups == 0 ||
        from.n_heads % from.n_groups != 0)
      throw ModelFormatError(text(from.n_heads) + " heads of a scan, of " + text(from.head_dim) +
                             " numbers, do not go into " + text(from.n_groups) + " groups");
    if (from.state_dim == 0 || from.state_dim > kMaxStateDim)
      throw UnsupportedModelError("the state of a scan has " + text(from.state_dim) +
                                  " numbers for each of a head; akunu has 1 to " +
                                  text(kMaxStateDim));
    check_width(from.width, "the convolution before a scan is over ", " rows");
    if (uint64_t{from.n_heads} * from.head_dim >= kMostNumbers ||
        uint64_t{from.n_groups} * from.state_dim >= kMostNumbers)
      throw ModelFormatError(text(from.n_heads) + " heads of a scan, of " + text(from.head_dim) +
                             " numbers, are beyond what any model has");
    layer.state = RecurrentState{.n_heads = from.n_heads,
                                 .head_size = from.head_dim * from.state_dim,
                                 .convolved = from.convolved_dim(),
                                 .width = from.width};
    if (!(from.time_min >= 0 && from.time_max >= from.time_min))
      throw ModelFormatError("the limits of a scan's steps of time are " +
                             std::to_string(from.time_min) + " and " +
                             std::to_string(from.time_max));
  }
}

}  // namespace akunu::models
