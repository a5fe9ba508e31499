// Kimi-Linear (Moonshot AI, 2025): DeepSeek-V3 without rotary positions, three of four layers having the delta rule
// whose channels decay apart.
#include "files/huggingface/config.h"
#include "files/huggingface/delta_rule_config.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::kimi_linear {

ArchDescriptor describe(const ModelConfig& config) {
  ArchDescriptor arch = decoder(config);
  give_latents(arch, config);
  rotate_as(arch, RopeStyle::none);
  give_delta_rules(arch, config);
  give_experts(arch, config, Scoring::sigmoid, true);
  return arch;
}

namespace {

// Of directories. Convolutions have another name in MLX; transformers calls a dense layer's network as experts, too.
constexpr std::array kOwnLayer{
    same("self_attn.f_a_proj", "delta.a_low"),
    same("self_attn.f_b_proj", "delta.a"),
    same("self_attn.forget_gate.f_a_proj", "delta.a_low"),  // of adapters by transformers
    same("self_attn.forget_gate.f_b_proj", "delta.a"),
    same("self_attn.g_a_proj", "delta.gate_low"),
    same("self_attn.g_b_proj", "delta.gate"),
    same("self_attn.b_proj", "delta.b"),
    numbers("self_attn.q_conv1d", "delta.kernel_q"),
    numbers("self_attn.k_conv1d", "delta.kernel_k"),
    numbers("self_attn.v_conv1d", "delta.kernel_v"),
    numbers("self_attn.q_conv.conv", "delta.kernel_q"),
    numbers("self_attn.k_conv.conv", "delta.kernel_k"),
    numbers("self_attn.v_conv.conv", "delta.kernel_v"),
    same("self_attn.dt", "delta.time"),
    NameRule{.name = "self_attn.A_log",
             .pieces = {{{"delta.rate"}}},
             .transform = Transform::minus_exp,
             .max_dims = 3,
             .is_vector = true},
    same("self_attn.o_norm", "delta.norm"),
    same("block_sparse_moe.gate.e_score_correction", "ffn.router_choice"),
    same("block_sparse_moe.shared_experts.gate_proj", "ffn.shared.gate"),
    same("block_sparse_moe.shared_experts.up_proj", "ffn.shared.up"),
    same("block_sparse_moe.shared_experts.down_proj", "ffn.shared.down"),
    same("block_sparse_moe.gate_proj", "ffn.gate"),
    same("block_sparse_moe.up_proj", "ffn.up"),
    same("block_sparse_moe.down_proj", "ffn.down"),
};

constexpr std::string_view kMixerWords[]{"linear_attention"};
constexpr std::array kDirectories{
    HfModel{.model_type = "kimi_linear",
            .names = &hf::UsualAnd<hf::kNoNames, kOwnLayer>::kNames,
            .n_heads = 32,
            .vocab_size = 163840,
            .context_length = 1048576,
            .norm_epsilon = 1e-5f,
            .context_key = "model_max_length",
            .latents = HfLatents{.query_rank = 0},
            .experts = HfExperts{.usual_n = 256,
                                 .n_chosen = "num_experts_per_token",
                                 .usual_n_chosen = 8,
                                 .usual_dim = 1024,
                                 .n_shared = "num_shared_experts",
                                 .usual_n_shared = 1,
                                 .n_leading_dense = "first_k_dense_replace",
                                 .usual_leading_dense = 1,
                                 .normalised = "moe_renormalize",
                                 .scoring = Scoring::sigmoid,
                                 .has_groups = true,
                                 .n_groups = "num_expert_group",
                                 .usual_scale = 2.446f,
                                 .has_layers_ahead = true,
                                 .names_layers = true},
            .read_layers = [](ConfigObject& config,
                              HfConfig& result) { read_hf_channels(config, result.model); },
            .mixer_words = kMixerWords}};

// Of the delta rule whose channels decay apart; its projections of q, k and v and the output are called attention's.
constexpr std::array kGgufChannels{
    same("ssm_f_a", "delta.a_low"),
    same("ssm_f_b", "delta.a"),
    same("ssm_g_a", "delta.gate_low"),
    same("ssm_g_b", "delta.gate"),
    same("ssm_beta", "delta.b"),
    numbers("ssm_conv1d_q", "delta.kernel_q"),
    numbers("ssm_conv1d_k", "delta.kernel_k"),
    numbers("ssm_conv1d_v", "delta.kernel_v"),
    same("ssm_dt", "delta.time"),
    numbers("ssm_a", "delta.rate"),
    same("ssm_norm", "delta.norm"),
};
constexpr auto kGgufLayer = joined(kGgufChannels, gguf::kUsualLayer);
constexpr NameRules kGgufNames{"blk.", gguf::kModel, kGgufLayer, gguf::kLeftOut};

}  // namespace

constinit const Family family{
    .architecture = "kimi-linear",
    .titles = {.recurrent = "Kimi-Linear (a decay for each channel, latent attention, experts)"},
    .describe = describe,
    .traits =
        {.rotates = false, .experts = true, .latent = true, .recurs = true, .channels_decay = true},
    .gguf_names = &kGgufNames,
    .written = {.always_with_experts = true, .latents_apart = true},
    .directories = kDirectories,
};

}  // namespace akunu::models::kimi_linear
