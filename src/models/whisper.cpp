// Whisper (Radford et al., 2022): learned positions, norms with bias, GELU.
#include "files/huggingface/config.h"
#include "files/huggingface/whisper_config.h"
#include "models/common/layers.h"
#include "models/families.h"

namespace akunu::models::whisper {

ArchDescriptor describe(const ModelConfig& config) {
  const auto plain = [](ArchDescriptor arch) {
    rotate_as(arch, RopeStyle::none);
    give_plain_networks(arch, Activation::gelu);
    return arch;
  };
  ArchDescriptor arch = plain(decoder(config));
  arch.norm = NormKind::layer;
  ModelConfig encoder = config;
  encoder.layers = config.audio_layers;
  arch.audio = AudioEncoder{.n_mels = config.n_mels,
                            .n_positions = config.audio_positions,
                            .layers = plain(decoder(encoder)).layers};
  return arch;
}

namespace {

// GGUF, in the layout of docs/reference/model-files.md. "enc.blk.N." is a layer of the encoder, whose tensors have the same rules.
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

constexpr NameRules kGgufNames{"blk.", kGgufWhisperModel, kGgufWhisperLayer, {}, "enc.blk."};

// Hugging Face. "decoder.layers.N." is a layer; the encoder's are told apart by their names, which have a number of their
// own.
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

constexpr NameRules kHfRules{
    "decoder.layers.", kWhisperModel, kWhisperLayer, {}, "encoder.layers."};
constexpr HfNames kNames{.rules = &kHfRules, .embedding = "decoder.embed_tokens.weight"};

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
constexpr NameRules kWhisperCppNames{
    "decoder.blocks.", kWhisperCppModel, kWhisperCppLayer, {}, "encoder.blocks."};

constexpr HfModel kDirectories[]{HfModel{.model_type = "whisper",
                                         .names = &kNames,
                                         .layers_key = "decoder_layers",
                                         .read = read_hf_whisper}};

}  // namespace

constinit const Family family{
    .architecture = "whisper",
    .titles = {.speech = "Whisper"},
    .describe = describe,
    .traits = {.layer_norm = true, .rotates = false, .has_audio_encoder = true},
    .gguf_names = &kGgufNames,
    .whisper_cpp_names = &kWhisperCppNames,
    .directories = kDirectories,
};

}  // namespace akunu::models::whisper
