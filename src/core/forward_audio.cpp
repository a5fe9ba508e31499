// An encoder of audio in front of a decoder, and the decoder's attention to what it made.
#include "core/forward_builder.h"
#include "core/kernel_params.h"

namespace akunu {

void ForwardBuilder::encode_audio(const AudioEncoder& audio) {
  const uint32_t dim = arch_.dim;
  emit_to(forward_.first_convolution);
  const ValueId convolved = convolve("encoder.conv1", bound("frames", memory_.frames), audio.n_mels,
                                     1, audio.kFramesPerPosition);

  begin_encoder_part();
  const ValueId positions = convolve("encoder.conv2", convolved, dim, audio.kFramesPerPosition, 1);
  const std::string table = "encoder.position_embedding.weight";
  const ValueId embedding = weight(table, audio.n_positions, dim);
  emit(Operation::add_embedding, "encoder position embedding", {positions, embedding},
       AddEmbeddingParams{dim, audio.n_positions, kIndexPosition, 0});
  residual_ = positions;
  for (uint32_t i = 0; i < audio.layers.size(); ++i) encoder_layer(i, audio.layers[i], "encoder");
  encoded_[ActivationKind::f32] = rows("encoded", dim);
  norm("encoder norm", residual_, "encoder.output_norm", encoded_.at(ActivationKind::f32));
  for (uint32_t i = 0; i < arch_.layers.size(); ++i) write_cross(i);
}

void ForwardBuilder::begin_encoder_part() {
  forward_.encode.emplace_back();
  emit_to(forward_.encode.back());
}

// In two parts: a row's attention (see `attention`) needs the keys and values of all rows, and they stay as they are
// until all rows have had theirs.
void ForwardBuilder::encoder_layer(uint32_t index, const LayerDescriptor& is,
                                   const std::string& label) {
  if (index > 0) begin_encoder_part();
  const std::string number = std::to_string(index);
  layer({index, is, "encoder.layers." + number + ".", label + " layer " + number + " ", true});
}

// The keys and values of a decoder's layer, of what came out of the encoder.
void ForwardBuilder::write_cross(uint32_t index) {
  const Attention& is = *arch_.layers[index].attention();
  const uint32_t kv_dim = is.kv_dim();
  const std::string name = "layers." + std::to_string(index) + ".cross.";
  const std::string label = "layer " + std::to_string(index) + " cross ";
  const ValueId key = rows("key", kv_dim), value = rows("value", kv_dim);
  for (const auto& [letter, out] : {std::pair("k", key), std::pair("v", value)}) {
    const std::string weight_name = name + letter + ".weight";
    matmul(label + letter, encoded_as(kind_for(weight_name, kv_dim, arch_.dim)), weight_name,
           kv_dim, arch_.dim, out);
    bias_if_present(label + letter + " bias", out, name + letter + ".bias", kv_dim);
  }
  const LayerCache& pools = memory_.cross[index];
  emit(Operation::kv_write, label + "kv write",
       {key, value, bound(label + "keys", pools.keys, pools.format),
        bound(label + "values", pools.values, pools.format)},
       KvWriteParams{is.n_kv_heads, is.head_dim, memory_.page_table_stride,
                     memory_.page_table_bases[pools.group]});
}

// What came out of the encoder, in the kind that a weight wants: written once for all layers.
ValueId ForwardBuilder::encoded_as(ActivationKind kind) {
  const auto [found, is_new] = encoded_.try_emplace(kind, kNoValue);
  if (is_new) {
    found->second = activation("encoded", kind, arch_.dim);
    emit(Operation::activate, "encoded activation",
         {encoded_.at(ActivationKind::f32), found->second},
         ActivateParams{arch_.dim, kActivationNone, 0, 0});
  }
  return found->second;
}

// Attention to what an encoder made.
ValueId ForwardBuilder::cross_attention(const Layer& layer, const Attention& is) {
  const uint32_t q_dim = is.query_dim();
  const ValueId query = rows("query", q_dim);
  const Part part{"q", q_dim, query};
  project_normed(layer, "cross norm", "cross_norm", "cross.", {&part, 1});
  const ValueId attended =
      activation("attended", kind_for(layer.name + "cross.output.weight", arch_.dim, q_dim), q_dim);
  const LayerCache& pools = memory_.cross[layer.index];
  if (is_aligned_) cross_weights(layer, is, query);
  emit(Operation::cross_attention, layer.label + "cross attention",
       {query, bound(layer.label + "cross keys", pools.keys, pools.format),
        bound(layer.label + "cross values", pools.values, pools.format), attended},
       CrossAttentionParams{is.n_heads, is.n_kv_heads, is.head_dim, arch_.audio->n_positions,
                            is.scale, 0, memory_.page_table_stride,
                            memory_.page_table_bases[pools.group]});
  return project(layer, "cross output", attended, "cross.output", q_dim);
}

void ForwardBuilder::cross_weights(const Layer& layer, const Attention& is, ValueId query) {
  const AudioEncoder& audio = *arch_.audio;
  const uint32_t heads = audio.alignment_heads[layer.index];
  if (heads == 0) return;
  uint32_t first = 0;
  for (uint32_t i = 0; i < layer.index; ++i)
    first += static_cast<uint32_t>(std::popcount(audio.alignment_heads[i]));
  const LayerCache& pools = memory_.cross[layer.index];
  emit(Operation::cross_weights, layer.label + "cross weights",
       {query, bound(layer.label + "cross keys", pools.keys, pools.format),
        bound("alignment", memory_.alignment)},
       CrossWeightsParams{is.n_heads,
                          is.n_kv_heads,
                          is.head_dim,
                          audio.n_positions,
                          is.scale,
                          heads,
                          first,
                          audio.n_alignment_heads(),
                          memory_.page_table_stride,
                          memory_.page_table_bases[pools.group],
                          {}});
}

}  // namespace akunu
