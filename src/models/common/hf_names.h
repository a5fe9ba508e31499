// The names of tensors in directories of Hugging Face, which MLX has too, without what stands before "layers." and
// "embed_tokens" ("model.", "language_model.model."). A family's own stand in its file; here is what several have.
#pragma once

#include <array>
#include <string_view>

#include "models/common/name_rules.h"

namespace akunu {

// The names of a family's directories.
struct HfNames {
  const NameRules* rules = nullptr;
  // A tensor that every model of the family has. What stands before its name is the prefix of all names.
  std::string_view embedding = "embed_tokens.weight";
  const NameRules* of_classifier = nullptr;  // with the classifier's tensors behind the pool
  // For files of MLX's converter, which transposes convolutions and changes norms.
  const HfNames* of_mlx = nullptr;
};

namespace hf {

// Hugging Face's names, without what stands before those of the text model. Gemma's norms multiply by
// 1 + w.
template <Transform kNorm>
inline constexpr std::array kModel{
    same("embed_tokens", "token_embedding"),
    same("norm", "output_norm", kNorm),
    same("lm_head", "output"),
};

inline constexpr std::array kProjections{
    // Phi-3's.
    NameRule{"self_attn.qkv_proj",
             {{{"attention.q", PieceRows::query},
               {"attention.k", PieceRows::key_value},
               {"attention.v", PieceRows::key_value}}}},
    NameRule{"mlp.gate_up_proj", {{{"ffn.gate", PieceRows::ffn}, {"ffn.up", PieceRows::ffn}}}},
    same("self_attn.q_proj", "attention.q"),
    same("self_attn.k_proj", "attention.k"),
    same("self_attn.v_proj", "attention.v"),
    same("self_attn.o_proj", "attention.output"),
    same("mlp.gate_proj", "ffn.gate"),
    same("mlp.up_proj", "ffn.up"),
    same("mlp.down_proj", "ffn.down"),
    // Granite 4's.
    NameRule{"shared_mlp.input_linear",
             {{{"ffn.gate", PieceRows::ffn}, {"ffn.up", PieceRows::ffn}}}},
    same("shared_mlp.output_linear", "ffn.down"),
    // DeepSeek's latent attention.
    same("self_attn.q_a_proj", "attention.q_a"),
    same("self_attn.q_a_layernorm", "attention.q_a_norm"),
    same("self_attn.q_b_proj", "attention.q_b"),
    same("self_attn.kv_a_proj_with_mqa", "attention.kv_a"),
    same("self_attn.kv_a_layernorm", "attention.kv_a_norm"),
    same("self_attn.kv_b_proj", "attention.kv_b"),
    // MLX's, in two: W_k transposed, and W_v.
    stack("self_attn.embed_q", "attention.k_b"),
    stack("self_attn.unembed_out", "attention.v_b"),
    // Gemma 3n's and 4's.
    same("per_layer_input_gate", "per_layer.gate"),
    same("per_layer_projection", "per_layer.output"),
    same("laurel.linear_left", "branch.left"),
    same("laurel.linear_right", "branch.right"),
    // Scans of Granite 4 and Falcon-H1.
    same("mamba.in_proj", "scan.in"),
    numbers("mamba.conv1d", "scan.kernel"),
    same("mamba.dt", "scan.time"),
    same("mamba.A_log", "scan.rate", Transform::minus_exp),
    same("mamba.D", "scan.skip"),
    same("mamba.norm", "scan.norm"),
    same("mamba.out_proj", "scan.output"),
    // Nemotron-H's.
    same("mixer.in_proj", "scan.in"),
    numbers("mixer.conv1d", "scan.kernel"),
    same("mixer.dt", "scan.time"),
    same("mixer.A_log", "scan.rate", Transform::minus_exp),
    same("mixer.D", "scan.skip"),
    same("mixer.norm", "scan.norm"),
    same("mixer.out_proj", "scan.output"),
    same("mixer.q_proj", "attention.q"),
    same("mixer.k_proj", "attention.k"),
    same("mixer.v_proj", "attention.v"),
    same("mixer.o_proj", "attention.output"),
    same("mixer.up_proj", "ffn.up"),
    same("mixer.down_proj", "ffn.down"),
    same("mixer.gate", "ffn.router"),
    same("mixer.gate.e_score_correction", "ffn.router_choice"),
    stack("mixer.experts.up_proj", "ffn.experts.up"),
    stack("mixer.experts.down_proj", "ffn.experts.down"),
    same("mixer.shared_experts.up_proj", "ffn.shared.up"),
    same("mixer.shared_experts.down_proj", "ffn.shared.down"),
    // Qwen3.5's delta rule. The norm of what a head recalls multiplies by w.
    same("linear_attn.in_proj_qkv", "delta.qkv"),
    same("linear_attn.in_proj_z", "delta.gate"),
    same("linear_attn.in_proj_a", "delta.a"),
    same("linear_attn.in_proj_b", "delta.b"),
    same("linear_attn.in_proj_qkvz", kDeltaQkvz),
    same("linear_attn.in_proj_ba", kDeltaBa),
    numbers("linear_attn.conv1d", "delta.kernel"),
    same("linear_attn.dt", "delta.time"),
    same("linear_attn.A_log", "delta.rate", Transform::minus_exp),
    same("linear_attn.norm", "delta.norm"),
    same("linear_attn.out_proj", "delta.output"),
};

// Experts. Those of directories that have a tensor for each were stacked before (files/huggingface/experts.h).
inline constexpr std::array kExperts{
    same("mlp.gate", "ffn.router"),
    stack("mlp.experts.gate_proj", "ffn.experts.gate"),
    stack("mlp.experts.up_proj", "ffn.experts.up"),
    stack("mlp.experts.down_proj", "ffn.experts.down"),
    gate_up_stack("mlp.experts.gate_up_proj"),
    // MLX's.
    stack("mlp.switch_mlp.gate_proj", "ffn.experts.gate"),
    stack("mlp.switch_mlp.up_proj", "ffn.experts.up"),
    stack("mlp.switch_mlp.down_proj", "ffn.experts.down"),
    same("mlp.shared_expert.gate_proj", "ffn.shared.gate"),
    same("mlp.shared_expert.up_proj", "ffn.shared.up"),
    same("mlp.shared_expert.down_proj", "ffn.shared.down"),
    same("mlp.shared_expert_gate", "ffn.shared_router"),
    // GLM's and DeepSeek's.
    same("mlp.gate.e_score_correction", "ffn.router_choice"),
    same("mlp.shared_experts.gate_proj", "ffn.shared.gate"),
    same("mlp.shared_experts.up_proj", "ffn.shared.up"),
    same("mlp.shared_experts.down_proj", "ffn.shared.down"),
    // Hunyuan's.
    same("mlp.gate.wg", "ffn.router"),
    same("mlp.shared_mlp.gate_proj", "ffn.shared.gate"),
    same("mlp.shared_mlp.up_proj", "ffn.shared.up"),
    same("mlp.shared_mlp.down_proj", "ffn.shared.down"),
    // ERNIE's.
    stack("mlp.moe_statics.e_score_correction", "ffn.router_choice"),
    stack("mlp.gate.moe_statics.e_score_correction", "ffn.router_choice"),
    // Mixtral's.
    same("block_sparse_moe.gate", "ffn.router"),
    stack("block_sparse_moe.experts.w1", "ffn.experts.gate"),
    stack("block_sparse_moe.experts.w3", "ffn.experts.up"),
    stack("block_sparse_moe.experts.w2", "ffn.experts.down"),
    // Where MLX has the bias beside the router.
    same("mlp.e_score_correction", "ffn.router_choice"),
    // Granite's.
    same("block_sparse_moe.router.layer", "ffn.router"),
    gate_up_stack("block_sparse_moe.input_linear"),
    stack("block_sparse_moe.output_linear", "ffn.experts.down"),
};

// Granite's expert of all rows, beside others.
inline constexpr std::array kSharedMlp{
    NameRule{"shared_mlp.input_linear",
             {{{"ffn.shared.gate", PieceRows::half}, {"ffn.shared.up", PieceRows::half}}}},
    same("shared_mlp.output_linear", "ffn.shared.down"),
};

template <Transform kNorm>
inline constexpr std::array kHeadNorms{
    same("self_attn.q_norm", "attention.q_norm", kNorm),
    same("self_attn.k_norm", "attention.k_norm", kNorm),
    same("input_layernorm", "attention_norm", kNorm),
    // Hunyuan's.
    same("self_attn.query_layernorm", "attention.q_norm", kNorm),
    same("self_attn.key_layernorm", "attention.k_norm", kNorm),
};

// Of a prediction head, whose tensors files/huggingface/source.cpp gives the number of a layer.
template <Transform kNorm>
inline constexpr std::array kAhead{
    same("mtp.fc", "ahead.join"),
    same("mtp.pre_fc_norm_embedding", "ahead.embedding_norm", kNorm),
    same("mtp.pre_fc_norm_hidden", "ahead.hidden_norm", kNorm),
    same("mtp.norm", "ahead.output_norm", kNorm),
};

template <Transform kNorm>
inline constexpr std::array kTwoNorms{
    same("post_attention_layernorm", "ffn_norm", kNorm),
    // GLM-4's, behind both parts.
    same("post_self_attn_layernorm", "attention_post_norm", kNorm),
    same("post_mlp_layernorm", "ffn_post_norm", kNorm),
};

inline constexpr std::array kNormsBehind{
    same("post_attention_layernorm", "attention_post_norm"),
    same("post_feedforward_layernorm", "ffn_post_norm"),
};

// Later Gemmas have norms behind both parts of a layer, too.
template <Transform kNorm>
inline constexpr std::array kFourNorms{
    same("post_attention_layernorm", "attention_post_norm", kNorm),
    same("pre_feedforward_layernorm", "ffn_norm", kNorm),
    same("post_feedforward_layernorm", "ffn_post_norm", kNorm),
};

// Gemma 4's.
inline constexpr std::array kPerLayer{
    same("post_per_layer_input_norm", "per_layer_post_norm"),
    same("layer_scalar", "output_scale"),
    same("router.proj", "ffn.router"),
    same("router.scale", "ffn.router_norm"),
    same("router.per_expert_scale", "ffn.experts_scale"),
    gate_up_stack("experts.gate_up_proj"),
    stack("experts.down_proj", "ffn.experts.down"),
    same("pre_feedforward_layernorm_2", "experts_norm"),
    same("post_feedforward_layernorm_1", "ffn_dense_post_norm"),
    same("post_feedforward_layernorm_2", "experts_post_norm"),
};
inline constexpr std::array kGemma4Model{
    same("embed_tokens", "token_embedding"),
    same("norm", "output_norm"),
    same("lm_head", "output"),
    same("embed_tokens_per_layer", "per_layer_embedding"),
    same("per_layer_model_projection", "per_layer_projection"),
    same("per_layer_projection_norm", "per_layer_norm"),
};

inline constexpr std::array kMixersNorm{same("norm", "attention_norm")};
inline constexpr std::array kMixersModel{
    same("embeddings", "token_embedding"),
    same("norm_f", "output_norm"),
    same("lm_head", "output"),
};

template <Transform kNorm>
inline constexpr auto kLayer =
    joined(kProjections, kExperts, kHeadNorms<kNorm>, kTwoNorms<kNorm>, kAhead<kNorm>);
// The first rule of a name holds.
inline constexpr auto kSharedMlpLayer = joined(kSharedMlp, kLayer<Transform::none>);
inline constexpr auto kMixersLayer = joined(kProjections, kMixersNorm);
inline constexpr auto kLaterGemmaLayer =
    joined(kProjections, kHeadNorms<Transform::add_one>, kFourNorms<Transform::add_one>);
inline constexpr auto kGemma4Layer =
    joined(kProjections, kHeadNorms<Transform::none>, kFourNorms<Transform::none>, kPerLayer);
inline constexpr auto kNormsBehindLayer =
    joined(kProjections, kHeadNorms<Transform::none>, kNormsBehind);

inline constexpr std::string_view kGuesses =
    "it guesses hidden tokens, and texts are embedded without it";
inline constexpr std::array kBertLeftOut{
    LeftOut{"embeddings.position_ids", "it counts positions"},
    LeftOut{"cls.*", kGuesses},
    LeftOut{"lm_head.*", kGuesses},
    // Only classifiers read what it makes of the first token.
    LeftOut{"pooler.*", "texts are embedded without it"},
};
inline constexpr std::array kBertClassifierLeftOut{
    LeftOut{"embeddings.position_ids", "it counts positions"},
};

// What classifiers have behind the pool. BERT's read what its pooler makes of the first token.
inline constexpr std::array kHead{
    same("pooler.dense", "head.dense"),         same("classifier.dense", "head.dense"),
    same("classifier.out_proj", "head.output"), same("classifier", "head.output"),
    same("head.dense", "head.dense"),           same("head.norm", "head.norm"),
};

inline constexpr std::string_view kImages = "it is of an encoder of images, and akunu reads text";
inline constexpr std::string_view kSounds = "it is of an encoder of sounds, and akunu reads text";
inline constexpr std::string_view kFp8Activations = "akunu rounds no activations to FP8";

// In every directory.
inline constexpr std::array kAlwaysLeftOut{
    LeftOut{"layers.*.rotary_emb.inv_freq", "RoPE's frequencies follow from the model's numbers"},
    LeftOut{"rotary_emb.inv_freq", "RoPE's frequencies follow from the model's numbers"},
    LeftOut{"*.input_scale", kFp8Activations},
    LeftOut{"*.activation_scale", kFp8Activations},
    LeftOut{"*.k_scale", kFp8Activations},
    LeftOut{"*.v_scale", kFp8Activations},
};
inline constexpr std::array kOtherPartsLeftOut{
    LeftOut{"vision_tower.*", kImages},
    LeftOut{"model.vision_tower.*", kImages},
    LeftOut{"vision_model.*", kImages},
    LeftOut{"model.vision_model.*", kImages},
    LeftOut{"visual.*", kImages},
    LeftOut{"model.visual.*", kImages},
    LeftOut{"connector.*", kImages},
    LeftOut{"model.connector.*", kImages},
    LeftOut{"multi_modal_projector.*", kImages},
    LeftOut{"model.embed_vision.*", kImages},
    LeftOut{"model.audio_tower.*", kSounds},
    LeftOut{"model.embed_audio.*", kSounds},
    LeftOut{"model.multi_modal_projector.*", kImages},
    LeftOut{"image_newline", kImages},
    LeftOut{"mtp.*", kWhyLayerBehind},
    LeftOut{"model.image_newline", kImages},
};
inline constexpr auto kLeftOut = joined(kAlwaysLeftOut, kOtherPartsLeftOut);

// SigLIP's names, as name_of_image_tensor returns them. The rules of its layers stand next to those of the text's layers.
inline constexpr std::string_view kSiglipLayers = "vision_tower.encoder.layers.";
inline constexpr std::array kSiglipModel{
    NameRule{"vision_tower.embeddings.patch_embedding",
             {{{"encoder.patch_embedding"}}},
             Transform::none,
             3,
             true},
    same("vision_tower.embeddings.position_embedding", "encoder.position_embedding"),
    same("vision_tower.post_layernorm", "encoder.output_norm"),
};
inline constexpr std::array kSiglipLayer{
    same("self_attn.out_proj", "attention.output"),
    same("layer_norm1", "attention_norm"),
    same("layer_norm2", "ffn_norm"),
    same("mlp.fc1", "ffn.up"),
    same("mlp.fc2", "ffn.down"),
};
inline constexpr std::array kSiglipLeftOut{
    LeftOut{"vision_tower.embeddings.position_ids", "it counts positions"},
    LeftOut{"vision_tower.head.*", "it makes one vector of an image, and a text gets several"},
};

// The encoder of images of Qwen2-VL.
inline constexpr std::string_view kQwenImageLayers = "visual.blocks.";
inline constexpr std::array kQwen2ImageModel{
    NameRule{"visual.patch_embed.proj", {{{"encoder.patch_embedding"}}}, Transform::none, 3, true},
    same("visual.merger.ln_q", "encoder.output_norm"),
    same("visual.merger.mlp.0", "encoder.projection_up"),
    same("visual.merger.mlp.2", "encoder.projection"),
};
inline constexpr std::array kQwen2ImageLayer{
    same("norm1", "attention_norm"),
    NameRule{"attn.qkv",
             {{{"attention.q", PieceRows::third},
               {"attention.k", PieceRows::third},
               {"attention.v", PieceRows::third}}}},
    same("attn.proj", "attention.output"),
    same("norm2", "ffn_norm"),
    same("mlp.fc1", "ffn.up"),
    same("mlp.fc2", "ffn.down"),
};

// The usual names, and those of one family behind them.
inline constexpr std::array<NameRule, 0> kNoNames{};
template <const auto& kOwnModel, const auto& kOwnLayer>
struct UsualAnd {
  static constexpr auto kModelNames = joined(kModel<Transform::none>, kOwnModel);
  static constexpr auto kLayerNames = joined(kLayer<Transform::none>, kOwnLayer);
  static constexpr NameRules kRules{"layers.", kModelNames, kLayerNames, kLeftOut};
  static constexpr HfNames kNames{.rules = &kRules};
};

// Llama's; Qwen's and Mistral's are the same.
extern const HfNames kUsualNames;
// The same, but norms multiply by 1 + w. MLX's converter has added the 1 to Qwen3.5's, not to Gemma's.
extern const HfNames kCentredNormsNames;
extern const HfNames kGemmaNames;
// Gemma 2 and 3: norms behind attention and the feed-forward network, too.
extern const HfNames kLaterGemmaNames;
// The same, whose norms multiply by w.
extern const HfNames kGemma4Names;
// OLMo 2 and EXAONE 4: norms behind only.
extern const HfNames kNormsBehindNames;
// Llama's, of Granite with experts and one for all rows.
extern const HfNames kSharedMlpNames;
// Nemotron-H's, behind "backbone.".
extern const HfNames kMixersNames;

}  // namespace hf
}  // namespace akunu
