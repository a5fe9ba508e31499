// Emits the operations of a forward pass, layer by layer: forward.cpp says how it goes. Each block of a layer
// (core/blocks) has a function: forward_attention.cpp has those of attention, forward_mixers.cpp those of the blocks in
// its place, forward_feed_forward.cpp that of feed-forward networks, and projections. forward_audio.cpp has an encoder of
// audio and the attention to it, forward_images.cpp an encoder of images.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/emitter.h"
#include "core/forward.h"
#include "core/recurrent_layer.h"
#include "core/residual_streams.h"

namespace akunu {

// The encoder of a model that reads images, as an architecture of its own.
ArchDescriptor tower_of(const ImageEncoder& images);

class ForwardBuilder : Emitter {
 public:
  ForwardBuilder(const ArchDescriptor& arch, const TensorMap& tensors,
                 const std::vector<Binding>& inverse_frequencies, const ForwardMemory& memory,
                 const Device& device, RowClass row_class, Values& values,
                 const AdapterTargets* adapters)
      : Emitter(arch, tensors, device, row_class, values),
        arch_(arch),
        inverse_frequencies_(inverse_frequencies),
        memory_(memory),
        adapters_(adapters) {}

  Forward build();
  // As the builder of tower_of(images): what an image becomes, for a text of rows of `text_dim` numbers.
  Forward encode_image(const ImageEncoder& images, uint32_t text_dim);

 private:
  // A layer, and how its tensors ("layers.3.") and its commands ("layer 3 ") begin.
  struct Layer {
    uint32_t index;
    const LayerDescriptor& is;
    std::string name, label;
    bool is_of_encoder = false;  // in front of a decoder
  };
  // One of several projections of one input.
  struct Part {
    const char* name;
    uint32_t n;
    ValueId out;
  };

  // forward.cpp
  void body();
  ValueId convolve(const std::string& name, ValueId input, uint32_t n_channels, uint32_t stride,
                   uint32_t n_frames);
  void adapt_if_wanted(const std::string& label, ValueId input, const std::string& name, uint32_t n,
                       uint32_t k, ValueId data);
  void embed();
  void embed_per_layer();
  void add_embedding_if_present(const std::string& label, ValueId data, const std::string& name,
                                uint32_t index, uint32_t n_least);
  void norm_sum(const std::string& label, ValueId sum, const std::string& name);
  void angles();
  void layer(const Layer& layer);
  void parallel_layer(const Layer& layer);
  void add_mixed(const Layer& layer, const std::string& label, ValueId made, float factor = 1);
  void add_feed_forward(const Layer& layer, ValueId made);
  void add_per_layer(const Layer& layer);
  ValueId per_layer(const Layer& layer);
  ValueId branch(const Layer& layer);
  void widen(const std::string& label, ValueId low, uint32_t rank, const std::string& name,
             uint32_t n, ValueId out);
  void add_branch(const Layer& layer, ValueId made);
  struct Head {
    ValueId residual;
    std::string norm;   // its tensor, without ".weight"
    std::string label;  // how commands begin
  };
  void head(const Head& of);
  void choose(bool scores);

  // forward_ahead.cpp
  void predict_ahead();

  // What mixes the rows of a text, and is added to the residual.
  void mix(const Layer&, const NoMixer&) {}
  void mix(const Layer& layer, const Attention& is);
  void mix(const Layer& layer, const LatentAttention& is);
  void mix(const Layer& layer, const ShortConvolution& is);
  void mix(const Layer& layer, const DeltaRule& is);
  void mix(const Layer& layer, const Scan& is);
  void mix(const Layer& layer, const AttentionAndScan& is);

  // forward_attention.cpp
  struct Heads {
    ValueId query;
    ValueId key = kNoValue, value = kNoValue;  // another layer may have them
    ValueId gate = kNoValue;                   // on the result

    bool has_own() const { return key != kNoValue; }  // keys and values
  };
  ValueId attention(const Layer& layer, const Attention& is);
  Heads project_heads(const Layer& layer, const Attention& is);
  void place_heads(const Layer& layer, const Attention& is, Heads& heads);
  void attend_to_cache(const Layer& layer, const Attention& is, const Heads& heads,
                       ValueId attended);
  ValueId head_norm(const Layer& layer, const Attention& is, const std::string& letter,
                    ValueId data, uint32_t n_heads);
  void rope(const Layer& layer, const Attention& is, const std::string& letter, ValueId data,
            uint32_t n_heads, const std::vector<ValueId>& angles);
  ValueId hadamard(const Layer& layer, const std::string& letter, ValueId data, uint32_t n,
                   uint32_t width);
  ValueId latent_attention(const Layer& layer, const LatentAttention& is);

  // forward_mixers.cpp
  ValueId convolution(const Layer& layer, const ShortConvolution& is);
  RecurrentCaches recurrent_caches(const Layer& layer, const RecurrentState& state);
  ValueId scan(const Layer& layer, const Scan& is);
  ValueId delta_rule(const Layer& layer, const DeltaRule& is);
  ValueId project_channels(const Layer& layer, const DeltaRule& is, ValueId gate, ValueId a,
                           ValueId b);

  // forward_feed_forward.cpp
  ValueId feed_forward(const Layer& layer, const FeedForward& is);
  ValueId dense(const Layer& layer, const FeedForward& is);
  ValueId mixture(const Layer& layer, const FeedForward& is, const Experts& experts);
  const char* norm_before_network(const Layer& layer) const;
  void project_normed(const Layer& layer, const char* norm_label, const std::string& norm_name,
                      const std::string& prefix, std::span<const Part> parts);
  void norm_inputs(const Layer& layer, const char* norm_label, const std::string& norm_name,
                   const std::string& prefix, std::span<const ActivationKind> kinds);
  void project_parts(const Layer& layer, const std::string& prefix, std::span<const Part> parts);
  ValueId norm_of_residual(const Layer& layer, const char* label, const std::string& name,
                           ActivationKind kind);
  ValueId residual_as(ActivationKind kind);
  ValueId plain_residual_as(ActivationKind kind, const std::string& label);
  // Whether two parts of a layer read the same normed input.
  bool shares_input(const Layer& layer) const {
    return arch_.parallel || layer.is.has<AttentionAndScan>();
  }
  ValueId project(const Layer& layer, const char* label, ValueId input, const std::string& name,
                  uint32_t k);
  void add_to_residual(const Layer& layer, const std::string& label, ValueId made,
                       const std::string& norm_name, const std::string& sum_norm_name,
                       float factor = 1);

  // forward_images.cpp
  void project_means(ValueId encoded, uint32_t text_dim);
  void project_squares(ValueId encoded, const ImageEncoder& images, uint32_t text_dim);

  // forward_audio.cpp
  void encode_audio(const AudioEncoder& audio);
  void begin_encoder_part();
  void encoder_layer(uint32_t index, const LayerDescriptor& is, const std::string& label);
  void write_cross(uint32_t index);
  ValueId encoded_as(ActivationKind kind);
  ValueId cross_attention(const Layer& layer, const Attention& is);
  void cross_weights(const Layer& layer, const Attention& is, ValueId query);

  const ArchDescriptor& arch_;
  const std::vector<Binding>& inverse_frequencies_;
  const ForwardMemory& memory_;
  const AdapterTargets* const adapters_;
  Forward forward_;
  std::vector<ValueId> angles_;        // per layer
  std::vector<ValueId> query_angles_;  // the same, unless queries grow
  ValueId tokens_ = kNoValue;
  ValueId residual_ = kNoValue;
  StreamValues streams_;  // where the residual is several; a layer's is a copy of the active one
  ValueId per_layer_ = kNoValue;  // what each layer has of a token, one behind the other
  std::map<ActivationKind, ValueId> inputs_;  // of the matmuls that read the residual
  std::map<ActivationKind, ValueId> encoded_;
  bool is_aligned_ = false;  // the body at hand also writes weights of cross-attention
  // With norms behind the sums: the last sum, whose norm the residual is, and that norm's names.
  struct Sum {
    std::string label;
    ValueId value = kNoValue;
    std::string norm;
  } sum_;
};

}  // namespace akunu
