// The names of tensors in directories of Hugging Face, by naming. A tensor by another name is a rule here; a naming of its
// own is a value of HfNaming, a NameRules in `hf_names`, and `hf_embedding`. names.cpp applies them.
#include <array>
#include <string_view>

#include "weight/delta_projections.h"
#include "weight/name_tables.h"
#include "weight/whisper_names.h"

namespace akunu {
namespace {

// Hugging Face's names, without what stands before those of the text model. Gemma's norms multiply by
// 1 + w.
template <Transform kNorm>
constexpr std::array kHfModel{
    same("embed_tokens", "token_embedding"),
    same("norm", "output_norm", kNorm),
    same("lm_head", "output"),
    same("embedding_norm", "output_norm", kNorm),   // LFM2's
    same("final_layernorm", "output_norm", kNorm),  // Falcon-H1's
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
    // MLX's, in two: W_k transposed, and W_v.
    stack("self_attn.embed_q", "attention.k_b"),
    stack("self_attn.unembed_out", "attention.v_b"),
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
    // Falcon-H1's.
    same("feed_forward.gate_proj", "ffn.gate"),
    same("feed_forward.up_proj", "ffn.up"),
    same("feed_forward.down_proj", "ffn.down"),
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
    // Kimi-Linear's; convolutions have another name in MLX.
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
    // Kimi-Linear's; transformers writes a dense layer's so, too, MLX the bias beside the router.
    same("block_sparse_moe.gate.e_score_correction", "ffn.router_choice"),
    same("mlp.e_score_correction", "ffn.router_choice"),
    same("block_sparse_moe.shared_experts.gate_proj", "ffn.shared.gate"),
    same("block_sparse_moe.shared_experts.up_proj", "ffn.shared.up"),
    same("block_sparse_moe.shared_experts.down_proj", "ffn.shared.down"),
    same("block_sparse_moe.gate_proj", "ffn.gate"),
    same("block_sparse_moe.up_proj", "ffn.up"),
    same("block_sparse_moe.down_proj", "ffn.down"),
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

// Of a prediction head, whose tensors hf_source.cpp gives the number of a layer.
template <Transform kNorm>
constexpr std::array kHfAhead{
    same("mtp.fc", "ahead.join"),
    same("mtp.pre_fc_norm_embedding", "ahead.embedding_norm", kNorm),
    same("mtp.pre_fc_norm_hidden", "ahead.hidden_norm", kNorm),
    same("mtp.norm", "ahead.output_norm", kNorm),
};

template <Transform kNorm>
constexpr std::array kHfTwoNorms{
    same("post_attention_layernorm", "ffn_norm", kNorm),
    same("ffn_norm", "ffn_norm", kNorm),          // LFM2's
    same("pre_ff_layernorm", "ffn_norm", kNorm),  // Falcon-H1's
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

template <Transform kNorm>
constexpr auto kHfLayer =
    joined(kHfProjections, kHfExperts, kHfHeadNorms<kNorm>, kHfTwoNorms<kNorm>, kHfAhead<kNorm>);
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
// Those of what reads Gemma 3's images, as name_of_image_tensor has them; a layer's beside a decoder's.
constexpr std::array kHfGemma3ImagesModel{
    NameRule{"vision_tower.embeddings.patch_embedding",
             {{{"encoder.patch_embedding"}}},
             Transform::none,
             3,
             true},
    same("vision_tower.embeddings.position_embedding", "encoder.position_embedding"),
    same("vision_tower.post_layernorm", "encoder.output_norm"),
    same("multi_modal_projector.mm_soft_emb_norm", "encoder.projection_norm", Transform::add_one),
    same("multi_modal_projector.mm_input_projection", "encoder.projection"),
};
constexpr std::array kHfSiglipLayer{
    same("layer_norm1", "attention_norm"),
    same("layer_norm2", "ffn_norm"),
    same("mlp.fc1", "ffn.up"),
    same("mlp.fc2", "ffn.down"),
};
constexpr std::array kHfGemma3ImagesLeftOut{
    LeftOut{"vision_tower.embeddings.position_ids", "it counts positions"},
    LeftOut{"vision_tower.head.*", "it makes one vector of an image, and a text gets several"},
};

// In every directory.
constexpr std::array kHfAlwaysLeftOut{
    LeftOut{"layers.*.rotary_emb.inv_freq", "RoPE's frequencies follow from the model's numbers"},
    LeftOut{"rotary_emb.inv_freq", "RoPE's frequencies follow from the model's numbers"},
    LeftOut{"*.input_scale", kFp8Activations},
    LeftOut{"*.activation_scale", kFp8Activations},
    LeftOut{"*.k_scale", kFp8Activations},
    LeftOut{"*.v_scale", kFp8Activations},
};
constexpr std::array kHfOtherPartsLeftOut{
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
constexpr auto kHfLeftOut = joined(kHfAlwaysLeftOut, kHfOtherPartsLeftOut);

}  // namespace

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
  static constexpr auto kGemma3ImagesModel =
      joined(kHfModel<Transform::add_one>, kHfGemma3ImagesModel);
  static constexpr auto kGemma3ImagesLayer = joined(kHfLaterGemmaLayer, kHfSiglipLayer);
  static constexpr auto kGemma3ImagesLeftOut = joined(kHfAlwaysLeftOut, kHfGemma3ImagesLeftOut);
  static constexpr NameRules kGemma3Images{"layers.", kGemma3ImagesModel, kGemma3ImagesLayer,
                                           kGemma3ImagesLeftOut, "vision_tower.encoder.layers."};
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
    case HfNaming::gemma3_images:
      return kGemma3Images;
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

std::string_view hf_embedding(HfNaming naming) {
  switch (naming) {
    case HfNaming::usual:
    case HfNaming::shared_mlp:
    case HfNaming::gemma:
    case HfNaming::centred_norms:
    case HfNaming::later_gemma:
    case HfNaming::gemma3_images:
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

}  // namespace akunu
