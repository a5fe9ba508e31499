// Canonical tensor names out of those of files, by tables. names.h lists the canonical ones.
//
// 1. What it does. `give_names` takes a name apart into layer, stem and suffix (`take_apart`),
//    finds the rule for the stem (`find_rule`) and gives the tensor its canonical name, or cuts it
//    by rows into several, each a view of the same bytes (`rows_from`). Tables come first: GGUF,
//    Hugging Face by naming, what may be left out with a note. The functions below them know no
//    family.
// 2. What bounds it. Nothing: one search for each tensor, at load. Two rules may have one name;
//    the one holds whose pieces have the tensor's rows.
// 3. Where to change it. A tensor by another name: a rule in the table of its kind of file. A
//    naming of its own: a value of HfNaming, a NameRules in `hf_names`, and `hf_embedding`. A
//    tensor that changes nothing: kHfLeftOut or kGgufLeftOut, with the reason. Never a branch by
//    architecture.
#include "weight/names.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <memory>
#include <optional>

#include "core/error.h"
#include "weight/delta_projections.h"
#include "weight/whisper_names.h"

namespace akunu {
namespace {

// Of experts: one matrix for each.
constexpr NameRule stack(std::string_view name, std::string_view canonical) {
  return {.name = name, .pieces = {{{canonical}}}, .max_dims = 3};
}
// Gate and up of each expert, one above the other.
constexpr NameRule gate_up_stack(std::string_view name) {
  return {.name = name,
          .pieces = {{{"ffn.experts.gate", PieceRows::half}, {"ffn.experts.up", PieceRows::half}}},
          .max_dims = 3};
}

// Matrices of a few rows or columns, which kernels take as vectors.
constexpr NameRule numbers(std::string_view name, std::string_view canonical) {
  return {.name = name, .pieces = {{{canonical}}}, .max_dims = 3, .is_vector = true};
}
// The weights of a convolution of each number alone.
constexpr NameRule kernel(std::string_view name) { return numbers(name, "convolution.kernel"); }

// A matrix for each stream of the residual but the first.
constexpr NameRule of_streams(std::string_view name, std::string_view first,
                              std::string_view second, std::string_view third) {
  return {.name = name,
          .pieces = {{{first, PieceRows::third},
                      {second, PieceRows::third},
                      {third, PieceRows::third}}},
          .max_dims = 3};
}

// LFM2's last norm has the name that others' has behind the embedding.
constexpr std::array kGgufLfm2Model{
    same("token_embd", "token_embedding"),
    same("token_embd_norm", "output_norm"),
    same("output", "output"),
    same("rope_freqs", "rope_factors"),
};

constexpr std::array kGgufModel{
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
constexpr std::array kGgufLayer{
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
constexpr std::array kGgufDelta{
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
};
constexpr std::array kGgufNorms{
    same("post_attention_norm", "attention_post_norm"),
    same("ffn_norm", "ffn_norm"),
};
// Seed-OSS, GLM-4.5, gpt-oss and Qwen3.5 call the norm before the feed-forward network as Hugging Face does.
constexpr std::array kGgufSeedNorms{same("post_attention_norm", "ffn_norm")};

constexpr std::array kGgufLeftOut{
    // Buffers that old checkpoints of llama carry along; llama.cpp and transformers ignore them too.
    LeftOut{"blk.*.attn_rot_embd.weight", "RoPE's frequencies follow from the model's numbers"},
    // Ollama's files hold the encoder of images beside the model of text.
    LeftOut{"v.*", "it is of an encoder of images, and akunu reads text"},
    LeftOut{"mm.*", "it is of an encoder of images, and akunu reads text"},
};

// Hugging Face's names, without what stands before those of the text model. Gemma's norms multiply by
// 1 + w.
template <Transform kNorm>
constexpr std::array kHfModel{
    same("embed_tokens", "token_embedding"),
    same("norm", "output_norm", kNorm),
    same("lm_head", "output"),
    same("embedding_norm", "output_norm", kNorm),  // LFM2's
};

constexpr std::array kHfProjections{
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
    // Gemma 3n's and 4's.
    same("per_layer_input_gate", "per_layer.gate"),
    same("per_layer_projection", "per_layer.output"),
    same("laurel.linear_left", "branch.left"),
    same("laurel.linear_right", "branch.right"),
    // StarCoder2's.
    same("mlp.c_fc", "ffn.up"),
    same("mlp.c_proj", "ffn.down"),
    // LFM2's.
    same("self_attn.out_proj", "attention.output"),
    same("feed_forward.w1", "ffn.gate"),
    same("feed_forward.w3", "ffn.up"),
    same("feed_forward.w2", "ffn.down"),
    same("conv.in_proj", "convolution.in"),
    kernel("conv.conv"),
    same("conv.out_proj", "convolution.output"),
    // Granite 4's scans.
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

// Experts. Those of directories that have a tensor for each were stacked before (hf_experts.h).
constexpr std::array kHfExperts{
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
    // Granite's.
    same("block_sparse_moe.router.layer", "ffn.router"),
    gate_up_stack("block_sparse_moe.input_linear"),
    stack("block_sparse_moe.output_linear", "ffn.experts.down"),
};

// Granite's expert of all rows, beside others.
constexpr std::array kHfSharedMlp{
    NameRule{"shared_mlp.input_linear",
             {{{"ffn.shared.gate", PieceRows::half}, {"ffn.shared.up", PieceRows::half}}}},
    same("shared_mlp.output_linear", "ffn.shared.down"),
};

constexpr std::array kHfGptOss{
    same("self_attn.sinks", "attention.sinks"),
    same("mlp.router", "ffn.router"),
    NameRule{.name = "mlp.experts.gate_up_proj",
             .pieces = {{{"ffn.experts.gate", PieceRows::every_second},
                         {"ffn.experts.up", PieceRows::every_second}}},
             .max_dims = 3},
    stack("mlp.experts.down_proj", "ffn.experts.down"),
};

template <Transform kNorm>
constexpr std::array kHfHeadNorms{
    same("self_attn.q_norm", "attention.q_norm", kNorm),
    same("self_attn.k_norm", "attention.k_norm", kNorm),
    same("input_layernorm", "attention_norm", kNorm),
    // Hunyuan's.
    same("self_attn.query_layernorm", "attention.q_norm", kNorm),
    same("self_attn.key_layernorm", "attention.k_norm", kNorm),
    // LFM2's.
    same("self_attn.q_layernorm", "attention.q_norm", kNorm),
    same("self_attn.k_layernorm", "attention.k_norm", kNorm),
    same("operator_norm", "attention_norm", kNorm),
};

template <Transform kNorm>
constexpr std::array kHfTwoNorms{
    same("post_attention_layernorm", "ffn_norm", kNorm),
    same("ffn_norm", "ffn_norm", kNorm),  // LFM2's
    // GLM-4's, behind both parts.
    same("post_self_attn_layernorm", "attention_post_norm", kNorm),
    same("post_mlp_layernorm", "ffn_post_norm", kNorm),
};

constexpr std::array kHfNormsBehind{
    same("post_attention_layernorm", "attention_post_norm"),
    same("post_feedforward_layernorm", "ffn_post_norm"),
};

// Later Gemmas have norms behind both parts of a layer, too.
template <Transform kNorm>
constexpr std::array kHfFourNorms{
    same("post_attention_layernorm", "attention_post_norm", kNorm),
    same("pre_feedforward_layernorm", "ffn_norm", kNorm),
    same("post_feedforward_layernorm", "ffn_post_norm", kNorm),
};

// Gemma 4's.
constexpr std::array kHfPerLayer{
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
// Gemma 3n's.
constexpr std::array kHfStreams{
    same("laurel.post_laurel_norm", "branch.post_norm"),
    same("altup.router_norm", "streams.router_norm"),
    numbers("altup.modality_router", "streams.router"),
    numbers("altup.prediction_coefs", "streams.predict"),
    numbers("altup.correction_coefs", "streams.correct"),
    same("altup.correct_output_scale", "streams.scale"),
};
constexpr std::array kHfStreamsModel{
    same("altup_projections.0", "streams.in.0"),
    same("altup_projections.1", "streams.in.1"),
    same("altup_projections.2", "streams.in.2"),
    same("altup_unembed_projections.0", "streams.out.0"),
    same("altup_unembed_projections.1", "streams.out.1"),
    same("altup_unembed_projections.2", "streams.out.2"),
};
constexpr std::array kHfGemma4Model{
    same("embed_tokens", "token_embedding"),
    same("norm", "output_norm"),
    same("lm_head", "output"),
    same("embed_tokens_per_layer", "per_layer_embedding"),
    same("per_layer_model_projection", "per_layer_projection"),
    same("per_layer_projection_norm", "per_layer_norm"),
};

constexpr std::array kHfMixersNorm{same("norm", "attention_norm")};
constexpr std::array kHfMixersModel{
    same("embeddings", "token_embedding"),
    same("norm_f", "output_norm"),
    same("lm_head", "output"),
};

template <size_t... kSizes>
constexpr auto joined(const std::array<NameRule, kSizes>&... tables) {
  std::array<NameRule, (kSizes + ...)> result{};
  size_t n = 0;
  const auto append = [&](const auto& table) {
    for (const NameRule& rule : table) result[n++] = rule;
  };
  (append(tables), ...);
  return result;
}

template <Transform kNorm>
constexpr auto kHfLayer =
    joined(kHfProjections, kHfExperts, kHfHeadNorms<kNorm>, kHfTwoNorms<kNorm>);
// The first rule of a name holds.
constexpr auto kHfSharedMlpLayer = joined(kHfSharedMlp, kHfLayer<Transform::none>);
constexpr auto kHfMixersLayer = joined(kHfProjections, kHfMixersNorm);
constexpr auto kHfLaterGemmaLayer =
    joined(kHfProjections, kHfHeadNorms<Transform::add_one>, kHfFourNorms<Transform::add_one>);
constexpr auto kHfGemma4Layer = joined(kHfProjections, kHfHeadNorms<Transform::none>,
                                       kHfFourNorms<Transform::none>, kHfPerLayer);
constexpr auto kHfGemma3nModel = joined(kHfGemma4Model, kHfStreamsModel);
constexpr auto kHfGemma3nLayer = joined(kHfGemma4Layer, kHfStreams);
constexpr auto kHfNormsBehindLayer =
    joined(kHfProjections, kHfHeadNorms<Transform::none>, kHfNormsBehind);

constexpr auto kHfGptOssLayer =
    joined(kHfProjections, kHfGptOss, kHfHeadNorms<Transform::none>, kHfTwoNorms<Transform::none>);

constexpr auto kGgufUsualLayer = joined(kGgufLayer, kGgufNorms);
constexpr auto kGgufSeedLayer = joined(kGgufLayer, kGgufSeedNorms);
constexpr auto kGgufDeltaLayer = joined(kGgufDelta, kGgufSeedLayer);

constexpr std::array kBertModel{
    same("embeddings.word_embeddings", "token_embedding"),
    same("embeddings.position_embeddings", "position_embedding"),
    same("embeddings.token_type_embeddings", "token_types"),
    same("embeddings.LayerNorm", "embedding_norm"),
};
constexpr std::array kBertLayer{
    same("attention.self.query", "attention.q"),
    same("attention.self.key", "attention.k"),
    same("attention.self.value", "attention.v"),
    same("attention.output.dense", "attention.output"),
    same("attention.output.LayerNorm", "attention_output_norm"),
    same("intermediate.dense", "ffn.up"),
    same("output.dense", "ffn.down"),
    same("output.LayerNorm", "layer_output_norm"),
};
constexpr std::string_view kGuesses = "it guesses hidden tokens, and texts are embedded without it";
constexpr std::array kBertLeftOut{
    LeftOut{"embeddings.position_ids", "it counts positions"},
    LeftOut{"cls.*", kGuesses},
    LeftOut{"lm_head.*", kGuesses},
    // Only classifiers read what it makes of the first token.
    LeftOut{"pooler.*", "texts are embedded without it"},
};
constexpr std::array kBertClassifierLeftOut{
    LeftOut{"embeddings.position_ids", "it counts positions"},
};

// What classifiers have behind the pool. BERT's read what its pooler makes of the first token.
constexpr std::array kHfHead{
    same("pooler.dense", "head.dense"),         same("classifier.dense", "head.dense"),
    same("classifier.out_proj", "head.output"), same("classifier", "head.output"),
    same("head.dense", "head.dense"),           same("head.norm", "head.norm"),
};

// nomic-bert as its authors' code has it; transformers writes the same.
constexpr std::array kNomicModel{
    same("embeddings.word_embeddings", "token_embedding"),
    same("embeddings.token_type_embeddings", "token_types"),
    same("emb_ln", "embedding_norm"),
};
constexpr std::array kNomicLayer{
    NameRule{"attn.Wqkv",
             {{{"attention.q", PieceRows::query},
               {"attention.k", PieceRows::key_value},
               {"attention.v", PieceRows::key_value}}}},
    same("attn.out_proj", "attention.output"),
    same("norm1", "attention_output_norm"),
    same("mlp.fc11", "ffn.up"),
    same("mlp.fc12", "ffn.gate"),
    same("mlp.fc2", "ffn.down"),
    same("norm2", "layer_output_norm"),
};
constexpr std::array kModernBertModel{
    same("embeddings.tok_embeddings", "token_embedding"),
    same("embeddings.norm", "embedding_norm"),
    same("final_norm", "output_norm"),
};
constexpr std::array kModernBertLayer{
    NameRule{"attn.Wqkv",
             {{{"attention.q", PieceRows::query},
               {"attention.k", PieceRows::key_value},
               {"attention.v", PieceRows::key_value}}}},
    same("attn.Wo", "attention.output"),
    same("attn_norm", "attention_norm"),
    NameRule{"mlp.Wi", {{{"ffn.gate", PieceRows::ffn}, {"ffn.up", PieceRows::ffn}}}},
    same("mlp.Wo", "ffn.down"),
    same("mlp_norm", "ffn_norm"),
};
constexpr std::array kModernBertLeftOut{
    LeftOut{"head.*", kGuesses},
    LeftOut{"decoder.*", kGuesses},
};

constexpr std::string_view kImages = "it is of an encoder of images, and akunu reads text";
constexpr std::string_view kSounds = "it is of an encoder of sounds, and akunu reads text";
constexpr std::string_view kFp8Activations = "akunu rounds no activations to FP8";
constexpr std::array kHfLeftOut{
    LeftOut{"layers.*.rotary_emb.inv_freq", "RoPE's frequencies follow from the model's numbers"},
    LeftOut{"rotary_emb.inv_freq", "RoPE's frequencies follow from the model's numbers"},
    LeftOut{"*.input_scale", kFp8Activations},
    LeftOut{"*.activation_scale", kFp8Activations},
    LeftOut{"*.k_scale", kFp8Activations},
    LeftOut{"*.v_scale", kFp8Activations},
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

bool matches(std::string_view name, std::string_view pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  const std::string_view begin = pattern.substr(0, star), end = pattern.substr(star + 1);
  return name.size() >= begin.size() + end.size() && name.starts_with(begin) && name.ends_with(end);
}

constexpr std::string_view kScale = ".scale";
// Tensors of GGUF files whose names end with their stems.
constexpr std::string_view kBare[] = {"ssm_a", "ssm_d"};
bool is_bare(std::string_view stem) { return std::ranges::find(kBare, stem) != std::end(kBare); }

// A name in the file, taken apart.
struct FileName {
  std::optional<uint32_t> layer;
  std::string_view stem;    // "attn_q"
  std::string_view suffix;  // ".weight"
};

std::optional<FileName> take_apart(std::string_view name, std::string_view layer_prefix) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  FileName result{.layer = {}, .stem = name.substr(0, dot), .suffix = name.substr(dot)};
  // "ffn_down_exps.scale" is beside "ffn_down_exps.weight", and another tensor.
  if (result.suffix == kScale || is_bare(result.suffix.substr(1)))
    result = {.layer = {}, .stem = name, .suffix = ".weight"};
  if (result.suffix != ".weight" && result.suffix != ".bias") return std::nullopt;
  if (!result.stem.starts_with(layer_prefix)) return result;
  uint32_t layer = 0;
  const char* const end = result.stem.data() + result.stem.size();
  const auto [after, error] = std::from_chars(result.stem.data() + layer_prefix.size(), end, layer);
  if (error != std::errc{} || after == end || *after != '.') return std::nullopt;
  result.layer = layer;
  result.stem = {after + 1, end};
  return result;
}

// What stands before the number of a layer in `name`, if it is one of a layer.
std::string_view prefix_of(const NameRules& rules, std::string_view name) {
  const bool is_of_encoder =
      !rules.encoder_prefix.empty() && name.starts_with(rules.encoder_prefix);
  return is_of_encoder ? rules.encoder_prefix : rules.layer_prefix;
}

uint64_t rows_of(PieceRows rows, const LayerConfig& layer, uint64_t all) {
  switch (rows) {
    case PieceRows::all:
      return all;
    case PieceRows::query:
      return uint64_t{layer.n_heads} * layer.head_dim;
    case PieceRows::key_value:
      return uint64_t{layer.n_kv_heads} * layer.head_dim;
    case PieceRows::ffn:
      return layer.ffn_dim;
    case PieceRows::half:
    case PieceRows::every_second:
      return all / 2;
    case PieceRows::third:
      return all / 3;
  }
  __builtin_unreachable();
}

std::span<const Piece> pieces_of(const NameRule& rule) {
  size_t n = 0;
  while (n < rule.pieces.size() && !rule.pieces[n].canonical.empty()) ++n;
  return std::span(rule.pieces).first(n);
}

// What a cut goes along: rows, or the numbers of a vector.
uint64_t length_of(const SourceTensor& tensor) {
  return tensor.n_dims == 1 ? tensor.k() : tensor.rows();
}

uint64_t length_of(const NameRule& rule, const LayerConfig& layer, uint64_t all) {
  uint64_t length = 0;
  for (const Piece& piece : pieces_of(rule)) length += rows_of(piece.rows, layer, all);
  return length;
}

[[noreturn]] void refuse_length(const NameRule& rule, const SourceTensor& tensor,
                                const LayerConfig& layer) {
  const uint64_t length = length_of(tensor);
  std::string text = tensor.label() + " has " + std::to_string(length) +
                     (tensor.n_dims == 1 ? " numbers" : " rows") +
                     "; the model's numbers ask for " +
                     std::to_string(length_of(rule, layer, length)) + ":";
  for (const Piece& piece : pieces_of(rule))
    text += (&piece == &rule.pieces[0] ? " " : ", ") +
            std::to_string(rows_of(piece.rows, layer, length)) + " of " +
            std::string(piece.canonical);
  throw ModelFormatError(text);
}

// Rows [first, first + n) of a tensor: the same bytes, seen in part. Planes have their rows in the
// same order, each row as long as the others.
SourceTensor rows_from(const SourceTensor& tensor, uint64_t first, uint64_t n) {
  SourceTensor result = tensor;
  const uint64_t length = length_of(tensor);
  if (tensor.n_dims == 3) {
    result.shape[0] = 1;
    result.n_dims = 2;
  }
  (tensor.n_dims == 1 ? result.shape[2] : result.shape[1]) = n;
  for (WeightPart& part : result.parts) {
    const uint64_t each = part.bytes.size() / length;
    part.bytes = part.bytes.subspan(first * each, n * each);
  }
  return result;
}

// n rows, from `first` on and `step` apart, of each matrix of a tensor that holds several: copies of them. Of
// several vectors, numbers.
SourceTensor rows_of_each(SourceTensor tensor, uint64_t first, uint64_t n, uint64_t step) {
  if (tensor.n_dims == 2) tensor.shape = {tensor.shape[1], tensor.shape[2], 1};
  tensor.n_dims = 3;
  SourceTensor result = tensor;
  result.shape[1] = n;
  for (WeightPart& part : result.parts) {
    if (part.bytes.empty()) continue;
    const uint64_t each = part.bytes.size() / tensor.rows();
    const auto copy = std::make_shared<std::vector<std::byte>>(tensor.shape[0] * n * each);
    std::byte* to = copy->data();
    for (uint64_t i = 0; i < tensor.shape[0]; ++i)
      for (uint64_t row = 0; row < n; ++row, to += each)
        std::ranges::copy(
            part.bytes.subspan((i * tensor.shape[1] + first + row * step) * each, each), to);
    part = {.bytes = *copy, .owner = copy};
  }
  return result;
}

// The rule for `stem` that has the tensor's rows; null where there is no rule for it at all.
const NameRule* find_rule(std::span<const NameRule> rules, std::string_view stem,
                          const SourceTensor& tensor, const LayerConfig& layer) {
  const uint64_t length = length_of(tensor);
  const NameRule* other = nullptr;
  for (const NameRule& rule : rules) {
    if (rule.name != stem) continue;
    if (length_of(rule, layer, length) == length) return &rule;
    other = &rule;
  }
  if (other != nullptr) refuse_length(*other, tensor, layer);
  return nullptr;
}

}  // namespace

const NameRules& gguf_names(std::string_view architecture) {
  static constexpr NameRules kUsual{"blk.", kGgufModel, kGgufUsualLayer, kGgufLeftOut};
  static constexpr NameRules kSeed{"blk.", kGgufModel, kGgufSeedLayer, kGgufLeftOut};
  static constexpr NameRules kDelta{"blk.", kGgufModel, kGgufDeltaLayer, kGgufLeftOut};
  static constexpr NameRules kLfm2{"blk.", kGgufLfm2Model, kGgufUsualLayer, kGgufLeftOut};
  if (architecture == "whisper") return whisper_gguf_names();
  if (architecture == "lfm2") return kLfm2;
  if (const FamilyTraits* const family = find_family(architecture); family && family->recurs)
    return kDelta;
  return architecture == "seed_oss" || architecture == "glm4moe" || architecture == "gpt-oss"
             ? kSeed
             : kUsual;
}

const NameRules& hf_names(HfNaming naming, bool classifies) {
  static constexpr NameRules kUsual{"layers.", kHfModel<Transform::none>, kHfLayer<Transform::none>,
                                    kHfLeftOut};
  static constexpr NameRules kSharedMlp{"layers.", kHfModel<Transform::none>, kHfSharedMlpLayer,
                                        kHfLeftOut};
  static constexpr NameRules kMixers{"layers.", kHfMixersModel, kHfMixersLayer, kHfLeftOut};
  static constexpr NameRules kGemma{"layers.", kHfModel<Transform::add_one>,
                                    kHfLayer<Transform::add_one>, kHfLeftOut};
  static constexpr NameRules kLaterGemma{"layers.", kHfModel<Transform::add_one>,
                                         kHfLaterGemmaLayer, kHfLeftOut};
  static constexpr NameRules kGemma4{"layers.", kHfGemma4Model, kHfGemma4Layer, kHfLeftOut};
  static constexpr NameRules kGemma3n{"layers.", kHfGemma3nModel, kHfGemma3nLayer, kHfLeftOut};
  static constexpr NameRules kNormsBehind{"layers.", kHfModel<Transform::none>, kHfNormsBehindLayer,
                                          kHfLeftOut};
  static constexpr NameRules kGptOss{"layers.", kHfModel<Transform::none>, kHfGptOssLayer,
                                     kHfLeftOut};
  static constexpr NameRules kBert{"encoder.layer.", kBertModel, kBertLayer, kBertLeftOut};
  static constexpr auto kBertHeadModel = joined(kBertModel, kHfHead);
  static constexpr NameRules kBertHead{"encoder.layer.", kBertHeadModel, kBertLayer,
                                       kBertClassifierLeftOut};
  static constexpr NameRules kNomic{"encoder.layers.", kNomicModel, kNomicLayer, kBertLeftOut};
  static constexpr NameRules kModern{"layers.", kModernBertModel, kModernBertLayer,
                                     kModernBertLeftOut};
  static constexpr auto kModernHeadModel = joined(kModernBertModel, kHfHead);
  static constexpr NameRules kModernHead{"layers.", kModernHeadModel, kModernBertLayer,
                                         kBertClassifierLeftOut};
  switch (naming) {
    case HfNaming::whisper:
      return whisper_hf_names();
    case HfNaming::usual:
      return kUsual;
    case HfNaming::shared_mlp:
      return kSharedMlp;
    case HfNaming::mixers:
      return kMixers;
    case HfNaming::gemma:
    case HfNaming::centred_norms:
      return kGemma;
    case HfNaming::later_gemma:
      return kLaterGemma;
    case HfNaming::gemma4:
      return kGemma4;
    case HfNaming::gemma3n:
      return kGemma3n;
    case HfNaming::norms_behind:
      return kNormsBehind;
    case HfNaming::gpt_oss:
      return kGptOss;
    case HfNaming::bert:
      return classifies ? kBertHead : kBert;
    case HfNaming::nomic_bert:
      return kNomic;
    case HfNaming::modern_bert:
      return classifies ? kModernHead : kModern;
  }
  __builtin_unreachable();
}

std::string gguf_name(std::string_view canonical, std::string_view architecture) {
  const NameRules& rules = gguf_names(architecture);
  constexpr std::string_view kEncoderLayers = "encoder.layers.";
  const bool is_of_encoder = !rules.encoder_prefix.empty() && canonical.starts_with(kEncoderLayers);
  const std::optional<FileName> parts =
      take_apart(canonical, is_of_encoder ? kEncoderLayers : "layers.");
  const std::string_view prefix = is_of_encoder ? rules.encoder_prefix : rules.layer_prefix;
  if (parts)
    for (const NameRule& rule : parts->layer ? rules.layer : rules.model)
      if (pieces_of(rule).size() == 1 && rule.pieces[0].canonical == parts->stem)
        return (parts->layer ? std::string(prefix) + std::to_string(*parts->layer) + "." : "") +
               std::string(rule.name) +
               (rule.name.ends_with(kScale) || is_bare(rule.name) ? ""
                                                                  : std::string(parts->suffix));
  throw UnsupportedModelError("GGUF has no name for the tensor " + std::string(canonical));
}

std::vector<std::pair<std::string, std::vector<std::string>>> gguf_joined_names() {
  std::vector<std::pair<std::string, std::vector<std::string>>> joined;
  for (const NameRule& rule : kGgufLayer) {
    if (pieces_of(rule).size() == 1) continue;
    std::vector<std::string>& pieces = joined.emplace_back(rule.name, 0).second;
    for (const Piece& piece : pieces_of(rule)) pieces.emplace_back(piece.canonical);
  }
  return joined;
}

std::string_view hf_embedding(HfNaming naming) {
  switch (naming) {
    case HfNaming::usual:
    case HfNaming::shared_mlp:
    case HfNaming::gemma:
    case HfNaming::centred_norms:
    case HfNaming::later_gemma:
    case HfNaming::gemma4:
    case HfNaming::gemma3n:
    case HfNaming::norms_behind:
    case HfNaming::gpt_oss:
      return "embed_tokens.weight";
    case HfNaming::bert:
    case HfNaming::nomic_bert:
      return "embeddings.word_embeddings.weight";
    case HfNaming::mixers:
      return "embeddings.weight";
    case HfNaming::modern_bert:
      return "embeddings.tok_embeddings.weight";
    case HfNaming::whisper:
      return "decoder.embed_tokens.weight";
  }
  __builtin_unreachable();
}

const LeftOut* find_left_out(const NameRules& rules, std::string_view name) {
  for (const LeftOut& known : rules.left_out)
    if (matches(name, known.pattern)) return &known;
  return nullptr;
}

bool is_of_layer_behind(const NameRules& rules, std::string_view name, size_t n_layers) {
  if (!name.starts_with(rules.layer_prefix)) return false;
  uint32_t layer = 0;
  const char* const digits = name.data() + rules.layer_prefix.size();
  const auto [after, error] = std::from_chars(digits, name.data() + name.size(), layer);
  return error == std::errc{} && layer >= n_layers;
}

std::string_view why_unused(std::string_view canonical, const ModelConfig& config) {
  const std::optional<FileName> parts = take_apart(canonical, "layers.");
  if (!parts || !parts->layer) return {};
  if (parts->stem == "streams.scale" && !config.scales_streams)
    return "altup_correct_scale is false";
  const bool makes_keys = parts->stem == "attention.k" || parts->stem == "attention.v" ||
                          parts->stem == "attention.k_norm";
  if (makes_keys && *parts->layer + config.n_shared_kv_layers >= config.layers.size())
    return "its layer reads the keys and values of an earlier one";
  return {};
}

bool is_named(const NameRules& rules, std::string_view name) {
  if (find_left_out(rules, name) != nullptr) return true;
  const std::optional<FileName> parts = take_apart(name, prefix_of(rules, name));
  if (!parts) return false;
  return std::ranges::any_of(parts->layer ? rules.layer : rules.model,
                             [&](const NameRule& rule) { return rule.name == parts->stem; });
}

std::vector<SourceTensor> give_names(const NameRules& rules, std::string_view name,
                                     const SourceTensor& tensor, const ModelConfig& config) {
  const std::string_view prefix = prefix_of(rules, name);
  const bool is_of_encoder = prefix == rules.encoder_prefix;
  const std::optional<FileName> parts = take_apart(name, prefix);
  if (!parts) return {};
  const std::vector<LayerConfig>& layers = is_of_encoder ? config.audio_layers : config.layers;
  // Whoever describes the model refuses layers that it does not have.
  const LayerConfig layer =
      parts->layer && *parts->layer < layers.size() ? layers[*parts->layer] : LayerConfig{};
  const NameRule* rule =
      find_rule(parts->layer ? rules.layer : rules.model, parts->stem, tensor, layer);
  if (rule == nullptr) return {};
  const std::span<const Piece> pieces = pieces_of(*rule);
  if (tensor.n_dims > rule->max_dims)
    throw UnsupportedModelError(tensor.label() + " has " + std::to_string(tensor.n_dims) +
                                " dimensions; akunu has one and two there");
  if (pieces.size() > 1) refuse_quantised_vector(tensor);
  std::vector<SourceTensor> named;
  uint64_t first = 0;
  for (const Piece& piece : pieces) {
    const bool takes_turns = piece.rows == PieceRows::every_second;
    const bool is_of_each = rule->max_dims == 3 && (piece.rows == PieceRows::half || takes_turns);
    const uint64_t of_each = tensor.n_dims == 3 ? tensor.shape[1] : tensor.k();
    const uint64_t n = rows_of(piece.rows, layer, is_of_each ? of_each : length_of(tensor));
    named.push_back(pieces.size() == 1 ? tensor
                    : takes_turns      ? rows_of_each(tensor, named.size(), n, 2)
                    : is_of_each       ? rows_of_each(tensor, first, n, 1)
                                       : rows_from(tensor, first, n));
    named.back().name = (is_of_encoder ? "encoder." : "") +
                        (parts->layer ? "layers." + std::to_string(*parts->layer) + "." : "") +
                        std::string(piece.canonical) + std::string(parts->suffix);
    named.back().transform = rule->transform;
    if (SourceTensor& each = named.back(); rule->joins_columns && each.n_dims == 3) {
      each.shape = {1, each.shape[0], each.shape[1] * each.shape[2]};
      each.n_dims = 2;
    }
    if (SourceTensor& each = named.back(); rule->is_vector && parts->suffix == ".weight") {
      each.shape = {1, 1, each.rows() * each.k()};
      each.n_dims = 1;
    }
    if (SourceTensor& each = named.back();
        rule->max_dims == 3 && each.n_dims >= 2 && parts->suffix == ".bias") {
      each.shape = {1, 1, each.rows() * each.k()};
      each.n_dims = 1;
    }
    first += n;
  }
  return cut_by_key_heads(std::move(named), config.delta_rule);
}

}  // namespace akunu
