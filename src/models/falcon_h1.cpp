// Falcon-H1 (TII, 2025): qwen2 whose every layer scans beside its attention, with factors on nearly everything. Files
// that have them in the weights say none.
#include "files/huggingface/config.h"
#include "files/huggingface/scan_config.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::falcon_h1 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder_of_halves(config);
  give_scans_beside(arch, config);
  give_attention_scale(arch, config, 0);
  if (config.embedding_scale != 0) arch.embedding_scale = config.embedding_scale;
  if (config.logit_scale != 0) arch.logit_scale = config.logit_scale;
  for (Attention& attention : attention_of(arch)) attention.factor = config.layer_factors.attention;
  for (FeedForward& network : networks_of(arch)) {
    network.gate_factor = config.layer_factors.gate;
    network.factor = config.layer_factors.feed_forward;
  }
  return arch;
}

namespace {

// Of directories.
constexpr std::array kOwnModel{same("final_layernorm", "output_norm")};
constexpr std::array kOwnLayer{
    same("pre_ff_layernorm", "ffn_norm"),
    same("feed_forward.gate_proj", "ffn.gate"),
    same("feed_forward.up_proj", "ffn.up"),
    same("feed_forward.down_proj", "ffn.down"),
};

constexpr std::string_view kMixerWords[]{"hybrid"};
constexpr std::string_view kOwnKeys[]{"embedding_multiplier"};
constexpr std::array kDirectories{
    HfModel{.model_type = "falcon_h1",
            .names = &hf::UsualAnd<kOwnModel, kOwnLayer>::kNames,
            .n_heads = 32,
            .n_kv_heads = 8,
            .vocab_size = 128000,
            .context_length = 8192,
            .norm_epsilon = 1e-5f,
            .read_layers = [](ConfigObject& config,
                              HfConfig& result) { read_hf_scans_beside(config, result.model); },
            .mixer_words = kMixerWords,
            .own_keys = kOwnKeys,
            .without_effect = "mamba_"}};

constexpr PreTokenizerName kPreTokenizers[]{{"falcon-h1", &cuts::kLlama3}};

// Of GGUF. llama.cpp writes ffn_norm without ".weight".
constexpr NameRules kGgufNames{"blk.",         gguf::kModel, gguf::kUsualLayer,
                               gguf::kLeftOut, {},           "ffn_norm"};

}  // namespace

constinit const Family family{
    .architecture = "falcon-h1",
    .titles = {.recurrent = "Falcon-H1 (Mamba-2 and attention in each layer)"},
    .describe = describe,
    .traits = {.scans_beside = true},
    .gguf_names = &kGgufNames,
    .written = {.factors_in_weights = true},
    .directories = kDirectories,
    .pre_tokenizers = kPreTokenizers,
};

}  // namespace akunu::models::falcon_h1
