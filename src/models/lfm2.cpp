// LFM2 (Liquid AI, 2025): qwen3, most of whose layers have a short convolution instead of attention.
#include "files/huggingface/config.h"
#include "files/huggingface/convolution_config.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::lfm2 {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = qwen3::describe(config);
  give_convolutions(arch, config);
  return arch;
}

namespace {

// Of directories.
constexpr std::array kOwnModel{same("embedding_norm", "output_norm")};
constexpr std::array kOwnLayer{
    same("operator_norm", "attention_norm"),
    same("self_attn.q_layernorm", "attention.q_norm"),
    same("self_attn.k_layernorm", "attention.k_norm"),
    same("self_attn.out_proj", "attention.output"),
    same("conv.in_proj", "convolution.in"),
    kernel("conv.conv"),
    same("conv.out_proj", "convolution.output"),
    same("ffn_norm", "ffn_norm"),
    same("feed_forward.w1", "ffn.gate"),
    same("feed_forward.w3", "ffn.up"),
    same("feed_forward.w2", "ffn.down"),
};

constexpr std::string_view kMixerWords[]{"conv"};
constexpr std::array kDirectories{
    HfModel{.model_type = "lfm2",
            .names = &hf::UsualAnd<kOwnModel, kOwnLayer>::kNames,
            .n_heads = 32,
            .n_kv_heads = 8,
            .vocab_size = 65536,
            .context_length = 128000,
            .rope_theta = 1000000,
            .norm_epsilon = 1e-5f,
            .epsilon_key = "norm_eps",
            .read_layers = [](ConfigObject& config,
                              HfConfig& result) { read_hf_convolutions(config, result.model); },
            .mixer_words = kMixerWords,
            .without_effect = "block_"}};

// Of GGUF. The last norm has the name that others' has behind the embedding.
constexpr std::array kGgufModel{
    same("token_embd", "token_embedding"),
    same("token_embd_norm", "output_norm"),
    same("output", "output"),
    same("rope_freqs", "rope_factors"),
};
constexpr NameRules kGgufNames{"blk.", kGgufModel, gguf::kUsualLayer, gguf::kLeftOut};

}  // namespace

constinit const Family family{
    .architecture = "lfm2",
    .titles = {.recurrent = "LFM2 (short convolutions)"},
    .describe = describe,
    .traits = {.convolves = true},
    .gguf_names = &kGgufNames,
    .directories = kDirectories,
};

}  // namespace akunu::models::lfm2
