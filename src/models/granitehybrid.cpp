// Granite 4 (2025): most of whose layers scan. Dense, or with experts and one more for all rows.
#include <algorithm>

#include "files/huggingface/config.h"
#include "files/huggingface/scan_config.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::granitehybrid {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = granitemoe::describe(config);
  give_scans(arch, config);
  return arch;
}

namespace {

// A file may have none of the layers that scan, none of the experts, or neither.
void read_layers(ConfigObject& config, HfConfig& result) {
  ModelConfig& model = result.model;
  read_hf_scans(config, model);
  const bool has_experts = model.experts.n > 0;
  if (std::ranges::none_of(model.layers, &LayerConfig::scans))
    model.architecture = has_experts ? "granitemoe" : "granite";
  if (!has_experts) return;
  result.names = &hf::kSharedMlpNames;
  // GGUF, too, has the length of one routed expert here. That of the shared expert is in `experts`.
  for (LayerConfig& layer : model.layers) layer.ffn_dim = model.experts.dim;
}

constexpr std::string_view kMixerWords[]{"attention", "mamba", "linear_attention"};
constexpr std::array kDirectories{
    HfModel{.model_type = "granitemoehybrid",
            .ffn_key = "shared_intermediate_size",
            .names_positions = true,
            .experts = HfExperts{.n = "num_local_experts",
                                 .usual_n = 8,
                                 .usual_n_chosen = 2,
                                 .dim = "intermediate_size",
                                 .usual_dim = 11008,
                                 .shared_dim = "shared_intermediate_size",
                                 .usual_shared_dim = 1024,
                                 .may_have_none = true},
            .read_layers = read_layers,
            .mixer_words = kMixerWords,
            .own_keys = kMultipliers,
            .without_effect = "mamba_"}};

}  // namespace

constinit const Family family{
    .architecture = "granitehybrid",
    .titles = {.recurrent = "Granite 4 (Mamba-2 or attention in each layer)"},
    .describe = describe,
    .traits = {.attention_scale = true,
               .multipliers = true,
               .logit_scale = true,
               .may_not_rotate = true,
               .experts = true,
               .scans = true},
    .written = {.attention_scale = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::granitehybrid
