// The names of tensors in GGUF files. A tensor by another name is a rule here, or in the file of its family.
#pragma once

#include <array>
#include <string_view>

#include "models/common/name_rules.h"

namespace akunu::gguf {

inline constexpr std::array kModel{
    same("token_embd", "token_embedding"),
    same("output_norm", "output_norm"),
    same("output", "output"),
    same("rope_freqs", "rope_factors"),
    same("rope_factors_long", "rope_factors_long"),
    same("rope_factors_short", "rope_factors_short"),
    same("position_embd", "position_embedding"),
    same("token_types", "token_types"),
    same("per_layer_token_embd", "per_layer_embedding"),
    same("per_layer_model_proj", "per_layer_projection"),
    same("per_layer_proj_norm", "per_layer_norm"),
    of_streams("altup_proj", "streams.in.0", "streams.in.1", "streams.in.2"),
    of_streams("altup_unembd_proj", "streams.out.0", "streams.out.1", "streams.out.2"),
    same("token_embd_norm", "embedding_norm"),
    same("cls", "head.dense"),
    same("cls.norm", "head.norm"),
    same("cls.output", "head.output"),
    same("dense_2", "dense.0"),
    same("dense_3", "dense.1"),
};

// Some architectures keep query, key and value in one tensor, and the gate above the rows of up
// (phi3); nothing forbids it for others.
inline constexpr std::array kLayer{
    NameRule{"attn_qkv",
             {{{"attention.q", PieceRows::query},
               {"attention.k", PieceRows::key_value},
               {"attention.v", PieceRows::key_value}}}},
    NameRule{"ffn_up", {{{"ffn.gate", PieceRows::ffn}, {"ffn.up", PieceRows::ffn}}}},
    same("attn_norm", "attention_norm"),
    same("attn_q", "attention.q"),
    same("attn_k", "attention.k"),
    same("attn_v", "attention.v"),
    same("attn_output", "attention.output"),
    same("attn_q_norm", "attention.q_norm"),
    same("attn_k_norm", "attention.k_norm"),
    same("ffn_gate", "ffn.gate"),
    same("ffn_up", "ffn.up"),
    same("ffn_down", "ffn.down"),
    same("ffn_gate_inp", "ffn.router"),
    same("exp_probs_b", "ffn.router_choice"),
    same("attn_sinks", "attention.sinks"),
    stack("ffn_gate_exps", "ffn.experts.gate"),
    stack("ffn_up_exps", "ffn.experts.up"),
    stack("ffn_down_exps", "ffn.experts.down"),
    same("ffn_gate_shexp", "ffn.shared.gate"),
    same("ffn_up_shexp", "ffn.shared.up"),
    same("ffn_down_shexp", "ffn.shared.down"),
    same("ffn_gate_inp_shexp", "ffn.shared_router"),
    same("post_ffw_norm", "ffn_post_norm"),
    same("inp_gate", "per_layer.gate"),
    same("proj", "per_layer.output"),
    same("post_norm", "per_layer_post_norm"),
    same("layer_output_scale", "output_scale"),
    same("laurel_l", "branch.left"),
    same("laurel_r", "branch.right"),
    same("laurel_post_norm", "branch.post_norm"),
    same("altup_router_norm", "streams.router_norm"),
    numbers("altup_router", "streams.router"),
    numbers("altup_predict_coef", "streams.predict"),
    numbers("altup_correct_coef", "streams.correct"),
    same("altup_correct_scale", "streams.scale"),
    gate_up_stack("ffn_gate_up_exps"),
    same("ffn_gate_inp.scale", "ffn.router_norm"),
    same("ffn_down_exps.scale", "ffn.experts_scale"),
    same("pre_ffw_norm_2", "experts_norm"),
    same("post_ffw_norm_1", "ffn_dense_post_norm"),
    same("post_ffw_norm_2", "experts_post_norm"),
    same("attn_output_norm", "attention_output_norm"),
    same("layer_output_norm", "layer_output_norm"),
    // Latent attention's; newer files have the keys' part of kv_b transposed, a matrix for each head.
    same("attn_q_a", "attention.q_a"),
    same("attn_q_a_norm", "attention.q_a_norm"),
    same("attn_q_b", "attention.q_b"),
    same("attn_kv_a_mqa", "attention.kv_a"),
    same("attn_kv_a_norm", "attention.kv_a_norm"),
    same("attn_kv_b", "attention.kv_b"),
    NameRule{"attn_k_b", {{{"attention.k_b"}}}, Transform::none, 3},
    NameRule{"attn_v_b", {{{"attention.v_b"}}}, Transform::none, 3},
    // LFM2's.
    same("shortconv.in_proj", "convolution.in"),
    kernel("shortconv.conv"),
    same("shortconv.out_proj", "convolution.output"),
    // Mamba-2's.
    same("ssm_in", "scan.in"),
    numbers("ssm_conv1d", "scan.kernel"),
    same("ssm_dt", "scan.time"),
    numbers("ssm_a", "scan.rate"),
    numbers("ssm_d", "scan.skip"),
    numbers("ssm_norm", "scan.norm"),
    same("ssm_out", "scan.output"),
};
// Of the delta rule, in architectures whose layers have it or attention; a tensor of those that have a rule
// above, too, is this one.
inline constexpr std::array kDelta{
    same("attn_qkv", "delta.qkv"),
    same("attn_gate", "delta.gate"),
    same("ssm_alpha", "delta.a"),
    same("ssm_beta", "delta.b"),
    same("ssm_in", kDeltaQkvz),
    same("ssm_ba", kDeltaBa),
    numbers("ssm_conv1d", "delta.kernel"),
    same("ssm_dt", "delta.time"),
    same("ssm_a", "delta.rate"),
    same("ssm_norm", "delta.norm"),
    same("ssm_out", "delta.output"),
    // Of a prediction head.
    same("nextn.eh_proj", "ahead.join"),
    same("nextn.enorm", "ahead.embedding_norm"),
    same("nextn.hnorm", "ahead.hidden_norm"),
    same("nextn.shared_head_norm", "ahead.output_norm"),
};
inline constexpr std::array kNorms{
    same("post_attention_norm", "attention_post_norm"),
    same("ffn_norm", "ffn_norm"),
};
// Seed-OSS, GLM-4.5, gpt-oss and Qwen3.5 call the norm before the feed-forward network as Hugging Face does.
inline constexpr std::array kSeedNorms{same("post_attention_norm", "ffn_norm")};

inline constexpr std::array kLeftOut{
    // Buffers that old checkpoints of llama carry along; llama.cpp and transformers ignore them too.
    LeftOut{"blk.*.attn_rot_embd.weight", "RoPE's frequencies follow from the model's numbers"},
    // Ollama's files hold the encoder of images beside the model of text.
    LeftOut{"v.*", "it is of an encoder of images, and akunu reads text"},
    LeftOut{"mm.*", "it is of an encoder of images, and akunu reads text"},
};

inline constexpr auto kUsualLayer = joined(kLayer, kNorms);
inline constexpr auto kSeedLayer = joined(kLayer, kSeedNorms);
inline constexpr auto kDeltaLayer = joined(kDelta, kSeedLayer);

extern const NameRules kUsualNames;
extern const NameRules kSeedNames;
extern const NameRules kDeltaNames;

}  // namespace akunu::gguf
