// Canonical tensor names: what the rest of the engine calls a tensor, whatever file it came from.
//   token_embedding.weight  output_norm.weight  output.weight
//   rope_factors.weight, or rope_factors_long.weight and rope_factors_short.weight
//   layers.N.attention_norm.weight  layers.N.ffn_norm.weight
//   layers.N.attention.{q,k,v,output}.{weight,bias}  layers.N.attention.{q_norm,k_norm}.weight
//   layers.N.ffn.{gate,up,down}.{weight,bias}
//   layers.N.attention_post_norm.weight  layers.N.ffn_post_norm.weight  layers.N.output_scale.weight
//   per_layer_embedding.weight  per_layer_projection.weight  per_layer_norm.weight
//   layers.N.per_layer.{gate,output}.weight  layers.N.per_layer_post_norm.weight
//   streams.{in,out}.{0,1,2}.weight  layers.N.branch.{left,right}.weight  layers.N.branch.post_norm.weight
//   layers.N.streams.{router_norm,router,predict,correct,scale}.weight, vectors
//   layers.N.attention.{q_a,q_b,kv_a}.{weight,bias}  layers.N.attention.{q_a_norm,kv_a_norm}.weight
//   layers.N.attention.kv_b.weight, or {k_b,v_b}.weight, of latent attention
//   layers.N.delta.{a_low,a,gate_low,gate,b}.weight  layers.N.delta.kernel_{q,k,v}.weight  layers.N.delta.norm.weight
//   layers.N.delta.{rate.weight,time.bias}, beside attention.{q,k,v,output}, of a delta rule whose channels decay apart
// of a prediction head, which is the last layer
//   layers.N.ahead.join.{weight,bias}  layers.N.ahead.{embedding_norm,hidden_norm,output_norm}.weight
// with experts, whose weights are stacks of matrices
//   layers.N.ffn.router.{weight,bias}  layers.N.ffn.router_choice.bias
//   layers.N.ffn.experts.{gate,up,down}.{weight,bias}
//   layers.N.ffn.shared.{gate,up,down}.weight  layers.N.ffn.shared_router.weight
//   layers.N.ffn.experts_scale.weight, a number for each expert; where they are beside a dense network
//   layers.N.ffn.router_norm.weight  layers.N.{experts_norm,experts_post_norm,ffn_dense_post_norm}.weight
// and of encoders
//   position_embedding.weight  token_types.weight  embedding_norm.{weight,bias}
//   layers.N.attention_output_norm.{weight,bias}  layers.N.layer_output_norm.{weight,bias}
//   dense.{0,1}.{weight,bias}  head.{dense,norm,output}.{weight,bias}, behind the pool
//
// and of models of speech
//   layers.N.cross_norm.{weight,bias}  layers.N.cross.{q,k,v,output}.{weight,bias}
//   encoder.{conv1,conv2}.{weight,bias}  encoder.position_embedding.weight
//   encoder.output_norm.{weight,bias}  encoder.layers.N.*, as a layer's above
// and of models that read images, beside the same encoder.{position_embedding,output_norm,layers.N.*}
//   encoder.patch_embedding.{weight,bias}  encoder.projection_norm.weight  encoder.projection.weight
//
// How they follow from the names in a kind of file is data: a table of rules per kind. A rule may
// also cut a tensor by its rows into several, each a view of the same bytes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weight/model_source.h"

namespace akunu {

// How many rows of a tensor belong to a piece of it, in the model's numbers.
enum class PieceRows : uint8_t {
  all,        // it is not cut
  query,      // n_heads * head_dim
  key_value,  // n_kv_heads * head_dim
  ffn,        // ffn_dim
  half,       // of each matrix where a tensor may hold several; copies then
  // Of each such matrix; copies.
  every_second,
  third,  // of all rows, also those of several matrices
};

struct Piece {
  std::string_view canonical;  // empty: there is no such piece
  PieceRows rows = PieceRows::all;
};

struct NameRule {
  std::string_view name;        // in the file, without ".weight" or ".bias"
  std::array<Piece, 3> pieces;  // from the first row on
  Transform transform = Transform::none;
  uint32_t max_dims = 2;  // 3 where a tensor holds several matrices; several biases are one vector
  bool joins_columns =
      false;               // of three dimensions, the last two are one: weights of a convolution
  bool is_vector = false;  // its numbers are taken as one vector, row after row
};

// A rule for one tensor under another name.
constexpr NameRule same(std::string_view name, std::string_view canonical,
                        Transform transform = Transform::none) {
  return {name, {{{canonical}}}, transform};
}

// Tensors that may be in a file and that a model computes the same without, each with the reason. They
// are left out with a note; all others without a rule are refused.
struct LeftOut {
  std::string_view pattern;  // of whole names; a '*' stands for any characters
  std::string_view why;      // ends the sentence "tensor x is left out: ..."
};

// Of several rules for one name, the one holds whose pieces have as many rows as the tensor.
struct NameRules {
  std::string_view layer_prefix;  // "blk.": what stands before a layer's number
  std::span<const NameRule> model;
  std::span<const NameRule> layer;
  std::span<const LeftOut> left_out;
  // What stands before the number of a layer of an encoder in front; its tensors have the same rules.
  std::string_view encoder_prefix = {};
  // A tensor whose name is written without ".weight", as llama.cpp wants it; both are read.
  std::string_view bare = {};
};

const NameRules& gguf_names(std::string_view architecture);

// The name that GGUF has for a canonical one, by the rules the other way round. Throws
// UnsupportedModelError where there is none.
std::string gguf_name(std::string_view canonical, std::string_view architecture);

// Names of a layer's tensors in GGUF that hold several, one above the other, and which.
std::vector<std::pair<std::string, std::vector<std::string>>> gguf_joined_names();

// Those of Hugging Face's directories, which MLX has too, without what stands before "layers." and
// "embed_tokens" ("model.", "language_model.model.").
enum class HfNaming : uint8_t {
  usual,          // Llama's; Qwen's and Mistral's are the same
  gemma,          // its norms multiply by 1 + w
  later_gemma,    // Gemma 2 and 3: norms behind attention and the feed-forward network, too
  gemma3_images,  // the same, beside what reads images
  gemma4,         // the same, whose norms multiply by w
  gemma3n,        // Gemma 4's, with streams of the residual
  centred_norms,  // usual, but norms multiply by 1 + w
  norms_behind,   // OLMo 2 and EXAONE 4: only those
  bert,           // "encoder.layer.", behind "bert." or nothing; RoBERTa's are the same
  nomic_bert,     // of its authors' code
  modern_bert,
  shared_mlp,  // Llama's, of Granite with experts and one for all rows
  mixers,      // Nemotron-H's, behind "backbone."
  gpt_oss,     // experts' matrices [k, n], rows of gate and up in turns
  whisper,     // "encoder." and "decoder.", behind "model."
};
// `classifies`: tensors behind the pool are taken, else they are left out.
const NameRules& hf_names(HfNaming naming, bool classifies);
// The tensor that every model of this naming has, and before whose name others' prefix stands.
std::string_view hf_embedding(HfNaming naming);

// Null where a tensor of that name may not be left out.
const LeftOut* find_left_out(const NameRules& rules, std::string_view name);

// Whether a tensor is of a layer behind the first `n_layers`: those that some families have for guessing
// tokens further ahead.
bool is_of_layer_behind(const NameRules& rules, std::string_view name, size_t n_layers);
inline constexpr std::string_view kWhyLayerBehind =
    "it guesses tokens further ahead, and akunu makes one at a time";
// Of a prediction head that akunu computes where it is asked for.
inline constexpr std::string_view kWhyHeadNotWanted =
    "it guesses tokens further ahead; where the model is loaded with prediction_head "
    "(--prediction-head), it proposes them";

// Why a tensor, by its canonical name, is in a file for nothing: it makes keys or values of a layer that
// reads those of another, or the model's numbers say that it is not used. Empty: it is needed. Ends the
// sentence as LeftOut's.
std::string_view why_unused(std::string_view canonical, const ModelConfig& config);

// Whether a tensor of that name has a rule, or may be left out.
bool is_named(const NameRules& rules, std::string_view name);

// The tensor that the file calls `name` under its canonical name, or its pieces under theirs; none
// for a name without a rule. Throws ModelFormatError where the pieces together have another number
// of rows than the tensor, and UnsupportedModelError for more dimensions than the rule has.
std::vector<SourceTensor> give_names(const NameRules& rules, std::string_view name,
                                     const SourceTensor& tensor, const ModelConfig& config);

}  // namespace akunu
