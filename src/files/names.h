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

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/model_source.h"
#include "models/common/name_rules.h"

namespace akunu {

const NameRules& gguf_names(std::string_view architecture);

// The name that GGUF has for a canonical one, by the rules the other way round. Throws
// UnsupportedModelError where there is none.
std::string gguf_name(std::string_view canonical, std::string_view architecture);

// Names of a layer's tensors in GGUF that hold several, one above the other, and which.
std::vector<std::pair<std::string, std::vector<std::string>>> gguf_joined_names();

// Null where a tensor of that name may not be left out.
const LeftOut* find_left_out(const NameRules& rules, std::string_view name);

// Whether a tensor is of a layer behind the first `n_layers`: those that some families have for guessing
// tokens further ahead.
bool is_of_layer_behind(const NameRules& rules, std::string_view name, size_t n_layers);
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
