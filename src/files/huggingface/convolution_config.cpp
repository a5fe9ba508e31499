#include "files/huggingface/convolution_config.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"

namespace akunu {

uint32_t read_hf_adjusted_ffn_dim(ConfigObject& config) {
  const char* const key = config.find("block_ff_dim") != nullptr ? "block_ff_dim"  // of older files
                                                                 : "intermediate_size";
  const uint32_t said = config.needed_count(key, 12288);
  const bool is_adjusted = config.flag("block_auto_adjust_ff_dim").value_or(true);
  const bool has_no_factor = config.has_null("block_ffn_dim_multiplier");
  const float factor = config.number("block_ffn_dim_multiplier").value_or(1.0f);
  const uint32_t multiple = config.needed_count("block_multiple_of", 256);
  if (!is_adjusted) return said;
  const uint64_t cut = uint64_t{said} * 2 / 3;
  if (has_no_factor) return static_cast<uint32_t>(cut);
  const double scaled = std::trunc(static_cast<double>(factor) * static_cast<double>(cut));
  if (!(scaled >= 1 && scaled < 1u << 30))
    config.refuse_value("block_ffn_dim_multiplier", "the feed-forward length makes no sense then");
  return static_cast<uint32_t>((static_cast<uint64_t>(scaled) + multiple - 1) / multiple *
                               multiple);
}

void read_hf_convolutions(ConfigObject& config, ModelConfig& model) {
  if (config.flag("conv_bias").value_or(false))
    config.refuse_support("conv_bias", "akunu has convolutions without a bias");
  model.convolution.width = config.needed_count("conv_L_cache", 3);
  const std::optional<std::vector<float>> attend = config.numbers("full_attn_idxs");
  if (const JsonValue* const types = config.find("layer_types");
      types != nullptr && types->kind == JsonValue::Kind::array) {
    // Whoever reads windows checks the list.
    for (size_t i = 0; i < std::min(types->items.size(), model.layers.size()); ++i)
      model.layers[i].convolves = types->items[i].text == "conv";
    return;
  }
  if (!attend) return;
  for (LayerConfig& layer : model.layers) layer.convolves = true;
  for (const float index : *attend) {
    if (!(index >= 0 && index < static_cast<float>(model.layers.size()) &&
          index == std::trunc(index)))
      config.refuse_value("full_attn_idxs", "it must hold numbers of layers");
    model.layers[static_cast<size_t>(index)].convolves = false;
  }
}

}  // namespace akunu
