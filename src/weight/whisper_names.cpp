#include "weight/whisper_names.h"

#include <array>

namespace akunu {
namespace {

// Whisper's in the layout of docs/gguf.md: "enc.blk.N." is a layer of its encoder, whose tensors have
// the same rules.
constexpr std::array kGgufWhisperModel{
    same("token_embd", "token_embedding"),
    same("position_embd", "position_embedding"),
    same("output_norm", "output_norm"),
    same("output", "output"),
    NameRule{"enc.conv1", {{{"encoder.conv1"}}}, Transform::none, 3, true},
    NameRule{"enc.conv2", {{{"encoder.conv2"}}}, Transform::none, 3, true},
    same("enc.position_embd", "encoder.position_embedding"),
    same("enc.output_norm", "encoder.output_norm"),
};
constexpr std::array kGgufWhisperLayer{
    same("attn_norm", "attention_norm"),
    same("attn_q", "attention.q"),
    same("attn_k", "attention.k"),
    same("attn_v", "attention.v"),
    same("attn_output", "attention.output"),
    same("cross_attn_norm", "cross_norm"),
    same("cross_attn_q", "cross.q"),
    same("cross_attn_k", "cross.k"),
    same("cross_attn_v", "cross.v"),
    same("cross_attn_output", "cross.output"),
    same("ffn_norm", "ffn_norm"),
    same("ffn_up", "ffn.up"),
    same("ffn_down", "ffn.down"),
};

// Whisper's: "decoder.layers.N." is a layer. Its encoder's layers are told apart by their names, which
// have a number of their own.
constexpr std::array kWhisperModel{
    same("decoder.embed_tokens", "token_embedding"),
    same("decoder.embed_positions", "position_embedding"),
    same("decoder.layer_norm", "output_norm"),
    same("proj_out", "output"),
    NameRule{"encoder.conv1", {{{"encoder.conv1"}}}, Transform::none, 3, true},
    NameRule{"encoder.conv2", {{{"encoder.conv2"}}}, Transform::none, 3, true},
    same("encoder.embed_positions", "encoder.position_embedding"),
    same("encoder.layer_norm", "encoder.output_norm"),
};
constexpr std::array kWhisperLayer{
    same("self_attn_layer_norm", "attention_norm"),
    same("self_attn.q_proj", "attention.q"),
    same("self_attn.k_proj", "attention.k"),
    same("self_attn.v_proj", "attention.v"),
    same("self_attn.out_proj", "attention.output"),
    same("encoder_attn_layer_norm", "cross_norm"),
    same("encoder_attn.q_proj", "cross.q"),
    same("encoder_attn.k_proj", "cross.k"),
    same("encoder_attn.v_proj", "cross.v"),
    same("encoder_attn.out_proj", "cross.output"),
    same("final_layer_norm", "ffn_norm"),
    same("fc1", "ffn.up"),
    same("fc2", "ffn.down"),
};

// whisper.cpp's are OpenAI's own; its position embeddings have no suffix, and get one.
constexpr std::array kWhisperCppModel{
    same("decoder.token_embedding", "token_embedding"),
    same("decoder.positional_embedding", "position_embedding"),
    same("decoder.ln", "output_norm"),
    NameRule{"encoder.conv1", {{{"encoder.conv1"}}}, Transform::none, 3, true},
    NameRule{"encoder.conv2", {{{"encoder.conv2"}}}, Transform::none, 3, true},
    same("encoder.positional_embedding", "encoder.position_embedding"),
    same("encoder.ln_post", "encoder.output_norm"),
};
constexpr std::array kWhisperCppLayer{
    same("attn_ln", "attention_norm"),
    same("attn.query", "attention.q"),
    same("attn.key", "attention.k"),
    same("attn.value", "attention.v"),
    same("attn.out", "attention.output"),
    same("cross_attn_ln", "cross_norm"),
    same("cross_attn.query", "cross.q"),
    same("cross_attn.key", "cross.k"),
    same("cross_attn.value", "cross.v"),
    same("cross_attn.out", "cross.output"),
    same("mlp_ln", "ffn_norm"),
    same("mlp.0", "ffn.up"),
    same("mlp.2", "ffn.down"),
};

}  // namespace

const NameRules& whisper_gguf_names() {
  static constexpr NameRules kRules{"blk.", kGgufWhisperModel, kGgufWhisperLayer, {}, "enc.blk."};
  return kRules;
}

const NameRules& whisper_hf_names() {
  static constexpr NameRules kRules{
      "decoder.layers.", kWhisperModel, kWhisperLayer, {}, "encoder.layers."};
  return kRules;
}

const NameRules& whisper_cpp_names() {
  static constexpr NameRules kRules{
      "decoder.blocks.", kWhisperCppModel, kWhisperCppLayer, {}, "encoder.blocks."};
  return kRules;
}

}  // namespace akunu
