// Decoders with layers that have no attention: short convolutions, scans (Mamba-2), the gated delta rule. families.h
// says what a family is.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/families/families.h"
#include "core/kernel_params.h"

namespace akunu::families {

// LFM2 (Liquid AI, 2025): qwen3, most of whose layers have a short convolution instead of attention.
ArchDescriptor lfm2(const ModelConfig& config) {
  constexpr uint32_t kMostWidth = 64;
  ArchDescriptor arch = qwen3(config);
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    if (!config.layers[i].convolves) continue;
    LayerDescriptor& layer = arch.layers[i];
    layer.mixer = Mixer::convolution;
    layer.rope_style = RopeStyle::none;
    layer.head_norms = false;
    layer.convolution = ShortConvolution{.dim = config.dim, .width = config.convolution_width};
    if (config.convolution_width < 2 || config.convolution_width > kMostWidth)
      throw ModelFormatError("the width of the short convolution is " +
                             std::to_string(config.convolution_width) + "; it must be 2 to " +
                             std::to_string(kMostWidth));
  }
  return arch;
}

namespace {

// Layers with the gated delta rule instead of attention, whose own attention has gates.
void give_delta_rules(ArchDescriptor& arch, const ModelConfig& config) {
  constexpr uint32_t kMostWidth = 64;
  const DeltaRule& rule = config.delta_rule;
  const auto text = [](uint64_t number) { return std::to_string(number); };
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    LayerDescriptor& layer = arch.layers[i];
    layer.output_gate = !config.layers[i].recurs;
    if (!config.layers[i].recurs) continue;
    layer.mixer = Mixer::delta_rule;
    layer.rope_style = RopeStyle::none;
    layer.head_norms = false;
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
    if (rule.width < 2 || rule.width > kMostWidth)
      throw ModelFormatError("the convolution before the delta rule is over " + text(rule.width) +
                             " rows; it must be 2 to " + text(kMostWidth));
    constexpr uint64_t kMost = 1u << 28;  // numbers of a row have 32 bits in the kernels
    if (uint64_t{rule.n_key_heads} * rule.key_dim >= kMost ||
        uint64_t{rule.n_value_heads} * rule.value_dim >= kMost)
      throw ModelFormatError(text(rule.n_value_heads) + " heads of the delta rule, of " +
                             text(rule.value_dim) + " numbers, are beyond what any model has");
    layer.state = RecurrentState{.n_heads = rule.n_value_heads,
                                 .head_size = rule.key_dim * rule.value_dim,
                                 .convolved = rule.convolved(),
                                 .width = rule.width};
  }
}

}  // namespace

// Qwen3.5 (2026): qwen3 with gates on what attention makes, three of four layers having the gated delta
// rule instead. Its norms multiply by 1 + w; whoever makes the file adds the 1.
ArchDescriptor qwen35(const ModelConfig& config) {
  ArchDescriptor arch = qwen3(config);
  give_delta_rules(arch, config);
  return arch;
}

namespace {

// Layers that scan instead of attending.
void give_scans(ArchDescriptor& arch, const ModelConfig& config) {
  constexpr uint32_t kMostWidth = 64;
  const ScanConfig& from = config.scan;
  const auto text = [](uint64_t number) { return std::to_string(number); };
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    if (!config.layers[i].scans) continue;
    LayerDescriptor& layer = arch.layers[i];
    layer.mixer = Mixer::scan;
    layer.rope_style = RopeStyle::none;
    layer.head_norms = false;
    layer.scan = Scan{.n_heads = from.n_heads,
                      .head_dim = from.head_dim,
                      .state_dim = from.state_dim,
                      .n_groups = from.n_groups,
                      .width = from.width,
                      .time_min = from.time_min,
                      .time_max = from.time_max};
    if (from.n_heads == 0 || from.head_dim == 0 || from.n_groups == 0 ||
        from.n_heads % from.n_groups != 0)
      throw ModelFormatError(text(from.n_heads) + " heads of a scan, of " + text(from.head_dim) +
                             " numbers, do not go into " + text(from.n_groups) + " groups");
    if (from.state_dim == 0 || from.state_dim > kMaxStateDim)
      throw UnsupportedModelError("the state of a scan has " + text(from.state_dim) +
                                  " numbers for each of a head; akunu has 1 to " +
                                  text(kMaxStateDim));
    if (from.width < 2 || from.width > kMostWidth)
      throw ModelFormatError("the convolution before a scan is over " + text(from.width) +
                             " rows; it must be 2 to " + text(kMostWidth));
    constexpr uint64_t kMost = 1u << 28;  // numbers of a row have 32 bits in the kernels
    if (uint64_t{from.n_heads} * from.head_dim >= kMost ||
        uint64_t{from.n_groups} * from.state_dim >= kMost)
      throw ModelFormatError(text(from.n_heads) + " heads of a scan, of " + text(from.head_dim) +
                             " numbers, are beyond what any model has");
    layer.state = RecurrentState{.n_heads = from.n_heads,
                                 .head_size = from.head_dim * from.state_dim,
                                 .convolved = layer.scan->convolved_dim(),
                                 .width = from.width};
    if (!(from.time_min >= 0 && from.time_max >= from.time_min))
      throw ModelFormatError("the limits of a scan's steps of time are " +
                             std::to_string(from.time_min) + " and " +
                             std::to_string(from.time_max));
  }
}

}  // namespace

// Qwen3.5 and Qwen3-Next (2025) with experts, and one more for all rows, with a router of its own.
ArchDescriptor qwen35_moe(const ModelConfig& config) {
  ArchDescriptor arch = qwen35(config);
  give_experts(arch, config, Scoring::softmax, true);
  return arch;
}

// Granite 4 (2025): most of whose layers scan. Dense, or with experts and one more for all rows.
ArchDescriptor granite_hybrid(const ModelConfig& config) {
  ArchDescriptor arch = granite_moe(config);
  give_scans(arch, config);
  return arch;
}

// Nemotron-H (2025): each layer is one thing alone, a scan, attention without positions, or a feed-forward
// network, and has one norm.
ArchDescriptor nemotron_h(const ModelConfig& config) {
  ArchDescriptor arch = qwen2(config);
  for (LayerDescriptor& layer : arch.layers) {
    layer.rope_style = RopeStyle::none;
    if (layer.ffn_dim == 0) {
      layer.feed_forward = FeedForward::none;
      continue;
    }
    layer.mixer = Mixer::none;
    layer.feed_forward = FeedForward::plain;
    layer.activation = Activation::relu_squared;
  }
  give_scans(arch, config);
  return arch;
}

}  // namespace akunu::families
