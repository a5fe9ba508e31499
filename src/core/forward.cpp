// Builds the forward pass. forward.h says what it is.
//
// 1. What it does. Builder::build emits the operations of one row class in order: embedding, the
//    angles of RoPE, every layer (`layer`), the head, the choice of a token; of speech models also
//    the encoder (`encode_audio`), whose layers are `layer` too. It runs at load, never while generating.
// 2. What bounds it. Nothing: some hundred operations per row class. What it emits bounds all else:
//    each operation is a kernel that runs at every step.
// 3. Where to change it. What a layer does: `layer`, by facts of LayerDescriptor (core/arch.h). How
//    operations are joined: fusion_rules.cpp. Where values lie in memory: table.cpp.
#include "core/forward.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/delta_rule_layer.h"
#include "core/emitter.h"
#include "core/error.h"
#include "core/expert_layer.h"
#include "core/kernel_params.h"
#include "core/latent_layer.h"
#include "core/pooled_output.h"
#include "core/residual_streams.h"
#include "core/scan_layer.h"

namespace akunu {
namespace {

// The numbers of a value that are rotated together before they go into a cache of four bits, in whose blocks a
// large number would cost the others theirs: as many of a head as a kernel takes. 0: they stay as they are.
uint32_t hadamard_width(Format cache, uint32_t head_dim) {
  if (cache != Format::q4_0) return 0;
  return std::min(head_dim & (~head_dim + 1), kMaxHadamard);
}

class Builder : Emitter {
 public:
  Builder(const ArchDescriptor& arch, const TensorMap& tensors,
          const std::vector<Binding>& inverse_frequencies, const ForwardMemory& memory,
          const Device& device, RowClass row_class, Values& values, const AdapterTargets* adapters)
      : Emitter(arch, tensors, device, row_class, values),
        arch_(arch),
        inverse_frequencies_(inverse_frequencies),
        memory_(memory),
        adapters_(adapters) {}

  Forward build() {
    if (arch_.audio && row_class() == RowClass::many) encode_audio(*arch_.audio);
    if (arch_.audio && row_class() == RowClass::many && arch_.audio->n_alignment_heads() > 0) {
      emit_to(forward_.aligned);
      is_aligned_ = true;
      body();
      is_aligned_ = false;
    }
    emit_to(forward_.body);
    body();

    emit_to(forward_.logits);
    if (arch_.embeds) {
      forward_.logits_value = emit_pooled_output(*this, residual_);
      return std::move(forward_);
    }
    head();

    emit_to(forward_.choose);
    choose(false);
    emit_to(forward_.choose_scored);
    choose(true);
    return std::move(forward_);
  }

 private:
  void body() {
    tokens_ = bound("tokens", memory_.tokens);
    residual_ = rows("residual", arch_.dim);
    angles_.clear();
    query_angles_.clear();
    embed();
    if (arch_.per_layer_dim > 0) embed_per_layer();
    if (arch_.streams) {
      streams_ = emit_streams(*this, residual_);
      residual_ = rows("active stream", arch_.dim);
    }
    angles();
    for (uint32_t i = 0; i < arch_.layers.size(); ++i)
      layer({i, arch_.layers[i], "layers." + std::to_string(i) + ".",
             "layer " + std::to_string(i) + " "});
  }

  // --- an encoder of audio ------------------------------------------------------------------

  void encode_audio(const AudioEncoder& audio) {
    const uint32_t dim = arch_.dim;
    emit_to(forward_.first_convolution);
    const ValueId convolved = convolve("encoder.conv1", bound("frames", memory_.frames),
                                       audio.n_mels, 1, audio.kFramesPerPosition);

    emit_to(forward_.encode);
    residual_ = rows("residual", dim);
    const ValueId positions =
        convolve("encoder.conv2", convolved, dim, audio.kFramesPerPosition, 1);
    const std::string table = "encoder.position_embedding.weight";
    const ValueId embedding = weight(table, audio.n_positions, dim);
    emit(Operation::add_embedding, "encoder position embedding", {positions, embedding},
         AddEmbeddingParams{dim, audio.n_positions, kIndexPosition, 0});
    residual_ = positions;
    for (uint32_t i = 0; i < audio.layers.size(); ++i)
      layer({i, audio.layers[i], "encoder.layers." + std::to_string(i) + ".",
             "encoder layer " + std::to_string(i) + " ", true});
    forward_.encoded = rows("encoded", dim);
    norm("encoder norm", residual_, "encoder.output_norm", forward_.encoded);
    for (uint32_t i = 0; i < arch_.layers.size(); ++i) write_cross(i);
  }

  // gelu(a convolution of three rows), as a matmul of the rows that each result sees. Scratch has rows
  // for positions; where it runs over frames, each of those holds the rows of `n_frames` frames.
  ValueId convolve(const std::string& name, ValueId input, uint32_t n_channels, uint32_t stride,
                   uint32_t n_frames) {
    constexpr uint32_t kWidth = 3, kPadding = 1;
    const uint32_t k = n_channels * kWidth;
    const ValueId unfolded = activation(name + " input", kind_for(name + ".weight", arch_.dim, k),
                                        k, Extent::rows, n_frames);
    const uint64_t width = uint64_t{n_frames} * arch_.dim;
    const ValueId out = rows(name, width), activated = rows(name + " activated", width);
    emit(Operation::unfold, name + " unfold", {input, unfolded},
         UnfoldParams{n_channels, kWidth, stride, kPadding});
    matmul(name, unfolded, name + ".weight", arch_.dim, k, out);
    bias_if_present(name + " bias", out, name + ".bias", arch_.dim);
    emit(Operation::activate, name + " activation", {out, activated},
         ActivateParams{arch_.dim, kActivationGelu, 0, 0});
    return activated;
  }

  // The keys and values of a decoder's layer, of what came out of the encoder.
  void write_cross(uint32_t index) {
    const LayerDescriptor& is = arch_.layers[index];
    const uint32_t kv_dim = is.n_kv_heads * is.head_dim;
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
  ValueId encoded_as(ActivationKind kind) {
    if (kind == ActivationKind::f32) return forward_.encoded;
    const auto [found, is_new] = encoded_.try_emplace(kind, kNoValue);
    if (is_new) {
      found->second = activation("encoded", kind, arch_.dim);
      emit(Operation::activate, "encoded activation", {forward_.encoded, found->second},
           ActivateParams{arch_.dim, kActivationNone, 0, 0});
    }
    return found->second;
  }

  // Adds to `data`, the product of `input` and weight `name`, what low-rank adapters of that weight add:
  // B (A input).
  void adapt_if_wanted(const std::string& label, ValueId input, const std::string& name, uint32_t n,
                       uint32_t k, ValueId data) {
    if (adapters_ == nullptr) return;
    const auto found = adapters_->find(name);
    if (found == adapters_->end()) return;
    const AdapterTarget& target = found->second;
    const ValueId low = rows("adapted", target.rank);
    const ValueId parts = bound(name + ".adapters", target.parts);
    const ValueId options = bound("options", memory_.options);
    emit(Operation::adapter_down, label + " adapter down",
         {input, bound(name + ".down", target.down.planes[0], target.down.format), parts, options,
          low},
         AdapterParams{k, target.rank, {}});
    emit(Operation::adapter_up, label + " adapter up",
         {low, bound(name + ".up", target.up.planes[0], target.up.format), parts, options, data},
         AdapterParams{n, target.rank, {}});
  }

  void embed() {
    const bool has_norm = find("embedding_norm.weight") != nullptr;
    const ValueId embedded = has_norm ? rows("sum", arch_.dim) : residual_;
    emit(
        Operation::embed, "embedding",
        {tokens_, weight("token_embedding.weight", arch_.vocab_size, arch_.dim), embedded},
        EmbedParams{arch_.dim, arch_.vocab_size, memory_.log_stride, arch_.embedding_scale, 0, {}});
    add_embedding_if_present("position embedding", embedded, "position_embedding.weight",
                             kIndexPosition, arch_.context_length + arch_.position_offset);
    add_embedding_if_present("token types", embedded, "token_types.weight", kIndexTokenType, 1);
    if (has_norm) norm_sum("embedding norm", embedded, "embedding_norm");
  }

  // What each layer has of its own of a token (per-layer embeddings, Gemma 3n and 4): half of it a row
  // of a table, half made of the embedding.
  void embed_per_layer() {
    const auto n_layers = static_cast<uint32_t>(arch_.layers.size());
    const uint32_t dim = arch_.per_layer_dim, n = n_layers * dim;
    const float growth = std::sqrt(static_cast<float>(dim));
    const ValueId of_token = rows("per-layer embedding", n);
    // A vocabulary may end with tokens that stand for parts of images and sounds, and have no row.
    const std::string table = "per_layer_embedding.weight";
    const Weight* const stored = find(table);
    const uint32_t n_rows =
        stored == nullptr || stored->rows > arch_.vocab_size || stored->rows == 0
            ? arch_.vocab_size
            : static_cast<uint32_t>(stored->rows);
    emit(Operation::embed, "per-layer embedding", {tokens_, weight(table, n_rows, n), of_token},
         EmbedParams{n, arch_.vocab_size, memory_.log_stride, growth, n_rows, {}});
    const std::string name = "per_layer_projection", label = "per-layer projection";
    const ValueId input =
        plain_residual_as(kind_for(name + ".weight", n, arch_.dim), label + " input");
    per_layer_ = rows("per-layer inputs", n);
    matmul(label, input, name + ".weight", n, arch_.dim, per_layer_);
    emit(Operation::scale, label + " scale", {per_layer_},
         ScaleParams{n, 1 / std::sqrt(static_cast<float>(arch_.dim)), {}});
    emit(Operation::head_norm, "per-layer norm", {per_layer_, vector("per_layer_norm.weight", dim)},
         HeadNormParams{n_layers, dim, arch_.norm_epsilon, 0});
    emit(Operation::add, "per-layer add", {per_layer_, of_token}, AddParams{n, 0, {}});
    emit(Operation::scale, "per-layer scale", {per_layer_}, ScaleParams{n, std::sqrt(0.5f), {}});
  }

  // data += a row of a table that has `n_least` rows at least
  void add_embedding_if_present(const std::string& label, ValueId data, const std::string& name,
                                uint32_t index, uint32_t n_least) {
    const Weight* const table = find(name);
    if (table == nullptr) return;
    if (table->rows < n_least)
      throw ModelFormatError("tensor " + name + " has " + std::to_string(table->rows) +
                             " rows; the model's numbers ask for " + std::to_string(n_least));
    emit(Operation::add_embedding, label, {data, weight(name, table->rows, arch_.dim)},
         AddEmbeddingParams{arch_.dim, static_cast<uint32_t>(table->rows), index,
                            index == kIndexPosition ? arch_.position_offset : 0});
  }

  // residual = norm(sum)
  void norm_sum(const std::string& label, ValueId sum, const std::string& name) {
    norm(label, sum, name, residual_);
    sum_ = {label, sum, name};
  }

  // Layers with the same frequencies share their angles, computed once per step.
  void angles() {
    for (uint32_t i = 0; i < arch_.layers.size(); ++i) {
      const LayerDescriptor& layer = arch_.layers[i];
      if (layer.rope_style == RopeStyle::none) {
        angles_.push_back(kNoValue);
        query_angles_.push_back(kNoValue);
        continue;
      }
      const Binding& frequencies = inverse_frequencies_[i];
      const std::string name = "inverse frequencies " + std::to_string(i);
      ValueId out = kNoValue, of_queries = kNoValue;
      for (uint32_t earlier = 0; earlier < i && out == kNoValue; ++earlier)
        if (inverse_frequencies_[earlier].buffer.handle == frequencies.buffer.handle &&
            inverse_frequencies_[earlier].offset == frequencies.offset) {
          out = angles_[earlier];
          of_queries = query_angles_[earlier];
        }
      if (out == kNoValue) {
        out = of_queries = rows("angles of " + name, layer.rope_dim);
        emit(Operation::rope_angles, "rope angles", {bound(name, frequencies), out},
             RopeAnglesParams{layer.rope_dim / 2, 0, 0, layer.rotated_factor});
        if (layer.query_growth != 0) {
          of_queries = rows("query angles of " + name, layer.rope_dim);
          emit(Operation::rope_angles, "query rope angles", {bound(name, frequencies), of_queries},
               RopeAnglesParams{layer.rope_dim / 2, layer.query_growth, layer.query_growth_length,
                                layer.rotated_factor});
        }
      }
      angles_.push_back(out);
      query_angles_.push_back(of_queries);
    }
  }

  // A layer, and how its tensors ("layers.3.") and its commands ("layer 3 ") begin.
  struct Layer {
    uint32_t index;
    const LayerDescriptor& is;
    std::string name, label;
    bool is_of_encoder = false;  // in front of a decoder
  };

  void layer(const Layer& layer) {
    if (arch_.parallel) {
      const ValueId attended = attention(layer);
      const ValueId fed = feed_forward(layer);
      add_to_residual(layer, "attention output", attended, "attention_post_norm",
                      "attention_output_norm");
      add_to_residual(layer, "down", fed, "ffn_post_norm", "layer_output_norm");
      return;
    }
    const StreamsOfLayer of_streams{layer.name + "streams.", layer.label};
    if (arch_.streams) emit_prediction(*this, streams_, of_streams, residual_);
    if (layer.is.mixer == Mixer::none) {
      // It is a feed-forward network alone.
    } else if (layer.is.scan) {
      add_to_residual(layer, "scan output", scan(layer, *layer.is.scan), "attention_post_norm",
                      "attention_output_norm");
    } else if (layer.is.delta_rule) {
      add_to_residual(layer, "delta output", delta_rule(layer, *layer.is.delta_rule),
                      "attention_post_norm", "attention_output_norm");
    } else if (layer.is.convolution) {
      add_to_residual(layer, "convolution output", convolution(layer, *layer.is.convolution),
                      "attention_post_norm", "attention_output_norm");
    } else {
      const ValueId attended = attention(layer);
      const ValueId beside = layer.is.has_branch ? branch(layer) : kNoValue;
      add_to_residual(layer, "attention output", attended, "attention_post_norm",
                      "attention_output_norm");
      if (layer.is.has_branch) add_branch(layer, beside);
    }
    if (arch_.audio && !layer.is_of_encoder)
      add_to_residual(layer, "cross output", cross_attention(layer), "cross_post_norm",
                      "cross_output_norm");
    if (layer.is.feed_forward != FeedForward::none)
      add_to_residual(layer, "down", feed_forward(layer), "ffn_post_norm", "layer_output_norm");
    if (arch_.streams) emit_correction(*this, streams_, of_streams, residual_);
    if (arch_.per_layer_dim > 0) add_per_layer(layer);
    if (layer.is.output_scale != 1)
      emit(Operation::scale, layer.label + "output scale", {residual_},
           ScaleParams{arch_.dim, layer.is.output_scale, {}});
  }

  // To the residual; where that is several streams, to all but the first.
  void add_per_layer(const Layer& layer) {
    const char* const norm_name = "per_layer_post_norm";
    if (!arch_.streams)
      return add_to_residual(layer, "per-layer output", per_layer(layer), norm_name, "");
    const ValueId normed = rows("post-normed", arch_.dim);
    norm(layer.label + "per-layer output norm", per_layer(layer), layer.name + norm_name, normed);
    emit(Operation::add, layer.label + "per-layer output add", {streams_.others, normed},
         AddParams{arch_.dim, arch_.streams->n - 1, {}});
  }

  // The residual, through a gate, times what this layer has of the token.
  ValueId per_layer(const Layer& layer) {
    const uint32_t dim = arch_.per_layer_dim;
    const std::string name = layer.name + "per_layer.gate", label = layer.label + "per-layer gate";
    const ValueId input =
        plain_residual_as(kind_for(name + ".weight", dim, arch_.dim), label + " input");
    const ValueId gate = rows("per-layer gate", dim);
    matmul(label, input, name + ".weight", dim, arch_.dim, gate);
    adapt_if_wanted(label, input, name, dim, arch_.dim, gate);
    const ValueId hidden = activation(
        "per-layer hidden", kind_for(layer.name + "per_layer.output.weight", arch_.dim, dim), dim);
    emit(Operation::gated_activation, layer.label + "per-layer activation",
         {gate, per_layer_, hidden},
         GatedActivationParams{dim, number_of(layer.is.activation), layer.index * dim,
                               static_cast<uint32_t>(arch_.layers.size()) * dim});
    return project(layer, "per-layer output", hidden, "per_layer.output", dim);
  }

  // right(left(x)) of x, which attention reads, too; x itself stays in inputs_ as floats.
  ValueId branch(const Layer& layer) {
    const std::string name = layer.name + "branch.", label = layer.label + "branch ";
    const Weight* const left = find(name + "left.weight");
    if (left == nullptr) throw ModelFormatError("tensor " + name + "left.weight is missing");
    const auto rank = static_cast<uint32_t>(left->rows);
    const ActivationKind kind = kind_for(name + "left.weight", rank, arch_.dim);
    for (const ActivationKind wanted : {kind, ActivationKind::f32})
      if (!inputs_.contains(wanted))
        inputs_[wanted] = norm_of_residual(layer, "branch input norm", "attention_norm", wanted);
    const ValueId low = rows("branch low", rank), high = rows("branch high", arch_.dim);
    matmul(label + "left", inputs_.at(kind), name + "left.weight", rank, arch_.dim, low);
    adapt_if_wanted(label + "left", inputs_.at(kind), name + "left", rank, arch_.dim, low);
    const ActivationKind low_kind = kind_for(name + "right.weight", arch_.dim, rank);
    const ValueId input =
        low_kind == ActivationKind::f32 ? low : activation("branch", low_kind, rank);
    if (input != low)
      emit(Operation::activate, label + "input", {low, input},
           ActivateParams{rank, kActivationNone, 0, 0});
    matmul(label + "right", input, name + "right.weight", arch_.dim, rank, high);
    adapt_if_wanted(label + "right", input, name + "right", arch_.dim, rank, high);
    return high;
  }

  // residual = (residual + x + norm(what the branch made of x)) / the root of 2
  void add_branch(const Layer& layer, ValueId made) {
    const ValueId normed = rows("post-normed", arch_.dim);
    emit(Operation::add, layer.label + "branch input add",
         {residual_, inputs_.at(ActivationKind::f32)}, AddParams{arch_.dim, 0, {}});
    norm(layer.label + "branch norm", made, layer.name + "branch.post_norm", normed);
    emit(Operation::add, layer.label + "branch add", {residual_, normed},
         AddParams{arch_.dim, 0, {}});
    emit(Operation::scale, layer.label + "branch scale", {residual_},
         ScaleParams{arch_.dim, std::sqrt(0.5f), {}});
  }

  ValueId attention(const Layer& layer) {
    const LayerDescriptor& is = layer.is;
    if (is.latent) return latent_attention(layer, *is.latent);
    const uint32_t q_dim = is.n_heads * is.head_dim;
    const uint32_t kv_dim = is.n_kv_heads * is.head_dim;
    const bool has_own = !is.kv_from;  // keys and values
    ValueId query = rows("query", q_dim);
    ValueId key = rows("key", kv_dim);
    ValueId value = rows("value", kv_dim);

    // With a gate, each head's numbers of it lie behind those of its query.
    const ValueId gated_query = is.output_gate ? rows("gated query", 2 * q_dim) : query;
    std::vector<Part> parts{{"q", is.output_gate ? 2 * q_dim : q_dim, gated_query}};
    if (has_own) parts.push_back({"k", kv_dim, key});
    if (has_own && !is.values_are_keys) parts.push_back({"v", kv_dim, value});
    project_normed(layer, "attention norm", "attention_norm", "attention.", parts);
    const ValueId gate = is.output_gate ? rows("attention gate", q_dim) : kNoValue;
    if (is.output_gate)
      emit(Operation::split_heads, layer.label + "q gate", {gated_query, query, gate},
           SplitHeadsParams{is.n_heads, is.head_dim, {}});
    if (has_own && is.values_are_keys)
      emit(Operation::activate, layer.label + "v", {key, value},
           ActivateParams{kv_dim, kActivationNone, 0, 0});
    if (has_own && is.value_norms)
      emit(Operation::head_norm, layer.label + "v norm", {value, bound("ones", memory_.ones)},
           HeadNormParams{is.n_kv_heads, is.head_dim, arch_.norm_epsilon, 0});
    const auto norm_heads = [&] {
      query = head_norm(layer, "q", query, is.n_heads);
      if (has_own) key = head_norm(layer, "k", key, is.n_kv_heads);
    };
    if (!is.norms_behind_rope) norm_heads();
    rope(layer, "q", query, is.n_heads, query_angles_);
    if (has_own) rope(layer, "k", key, is.n_kv_heads, angles_);
    if (is.norms_behind_rope) norm_heads();

    const ValueId attended = activation(
        "attended", kind_for(layer.name + "attention.output.weight", arch_.dim, q_dim), q_dim);
    if (arch_.embeds || layer.is_of_encoder) {
      emit(Operation::span_attention, layer.label + "attention", {query, key, value, attended},
           span_attention(is, arch_.causal && !layer.is_of_encoder));
      return project(layer, "attention output", attended, "attention.output", q_dim);
    }

    const LayerCache& pools = memory_.layers[layer.index];
    const uint32_t width = hadamard_width(pools.format, is.head_dim);
    if (width > 0 && has_own) value = hadamard(layer, "v", value, kv_dim, width);
    const bool is_plain = width == 0 && !is.output_gate;
    const ValueId out = is_plain ? attended : rows("attended rows", q_dim);
    const std::string cache = "layer " + std::to_string(is.kv_from.value_or(layer.index)) + " ";
    const ValueId keys = bound(cache + "keys", pools.keys, format_of_keys(pools.format));
    const ValueId values = bound(cache + "values", pools.values, pools.format);
    const uint32_t stride = memory_.page_table_stride;
    const uint32_t base = memory_.page_table_bases[pools.group];
    if (has_own)
      emit(Operation::kv_write, layer.label + "kv write", {key, value, keys, values},
           KvWriteParams{is.n_kv_heads, is.head_dim, stride, base});

    const AttentionParams params{is.n_heads,         is.n_kv_heads,         is.head_dim, is.window,
                                 is.attention_scale, is.attention_soft_cap, stride,      base};
    if (const std::string sinks = layer.name + "attention.sinks.weight"; find(sinks) != nullptr)
      emit(Operation::sink_attention, layer.label + "attention",
           {query, keys, values, out, vector(sinks, is.n_heads)}, params);
    else
      emit(Operation::attention, layer.label + "attention", {query, keys, values, out}, params);
    ValueId ungated = out;
    if (width > 0) {  // the matrix is its own inverse
      ungated = is.output_gate ? rows("attended back", q_dim) : attended;
      emit(Operation::hadamard, layer.label + "attended rotation", {out, ungated},
           HadamardParams{q_dim, width, {}});
    }
    if (is.output_gate)
      emit(Operation::gated_activation, layer.label + "attention gate", {gate, ungated, attended},
           GatedActivationParams{q_dim, kActivationSigmoid, 0, 0});
    return project(layer, "attention output", attended, "attention.output", q_dim);
  }

  ValueId latent_attention(const Layer& layer, const Latent& latent) {
    const LayerDescriptor& is = layer.is;
    const uint32_t q_dim = is.n_heads * is.head_dim, row_dim = is.cached_dim();
    const ValueId query = rows("query", q_dim), row = rows("latent", row_dim);
    const bool has_low = latent.query_rank > 0;  // queries of a few numbers
    const ValueId low = has_low ? rows("query latent", latent.query_rank) : query;
    const Part parts[] = {has_low ? Part{"q_a", latent.query_rank, low} : Part{"q", q_dim, query},
                          {"kv_a", row_dim, row}};
    project_normed(layer, "attention norm", "attention_norm", "attention.", parts);
    if (has_low) {
      const std::string name = layer.name + "attention.q_b";
      const ValueId normed =
          activation("query latent normed", kind_for(name + ".weight", q_dim, latent.query_rank),
                     latent.query_rank);
      emit(Operation::rms_norm, layer.label + "q_a norm",
           {low, vector(layer.name + "attention.q_a_norm.weight", latent.query_rank), normed},
           NormParams{latent.query_rank, latent.norm_epsilon, {}});
      matmul(layer.label + "q_b", normed, name + ".weight", q_dim, latent.query_rank, query);
      adapt_if_wanted(layer.label + "q_b", normed, name, q_dim, latent.query_rank, query);
    }

    const LayerCache& pools = memory_.layers[layer.index];
    const ValueId attended = emit_latent_attention(
        *this, {.is = is,
                .name = layer.name + "attention.",
                .label = layer.label,
                .query = query,
                .row = row,
                .angles = angles_[layer.index],
                .cache = bound(layer.label + "latents", pools.keys, pools.format),
                .page_table_stride = memory_.page_table_stride,
                .page_table_base = memory_.page_table_bases[pools.group]});
    return project(layer, "attention output", attended, "attention.output", is.attended_dim());
  }

  // Its norm has the name of attention's, whose place it takes.
  ValueId convolution(const Layer& layer, const ShortConvolution& is) {
    const ValueId input = rows("convolution input", uint64_t{3} * is.dim);
    const Part part{"in", 3 * is.dim, input};
    project_normed(layer, "convolution norm", "attention_norm", "convolution.", {&part, 1});
    const std::string output = "convolution.output";
    const ValueId convolved = activation(
        "convolved", kind_for(layer.name + output + ".weight", arch_.dim, is.dim), is.dim);
    const LayerCache& pools = memory_.layers[layer.index];
    emit(Operation::short_convolution, layer.label + "convolution",
         {input, vector(layer.name + "convolution.kernel.weight", uint64_t{is.dim} * is.width),
          bound(layer.label + "inputs", pools.keys, pools.format), convolved},
         ShortConvolutionParams{is.dim, is.width, memory_.page_table_stride,
                                memory_.page_table_bases[pools.group]});
    return project(layer, "convolution output", convolved, output, is.dim);
  }

  // Its norm, too, has the name of attention's.
  ValueId scan(const Layer& layer, const Scan& is) {
    const ValueId projected = rows("scan projected", is.projected_dim());
    const Part part{"in", is.projected_dim(), projected};
    project_normed(layer, "scan norm", "attention_norm", "scan.", {&part, 1});
    const LayerCache& inputs = memory_.layers[layer.index];
    const LayerCache& states = memory_.states[layer.index];
    const ValueId scanned =
        emit_scan(*this, {.is = is,
                          .name = layer.name + "scan.",
                          .label = layer.label,
                          .projected = projected,
                          .norm_epsilon = arch_.norm_epsilon,
                          .inputs = bound(layer.label + "inputs", inputs.keys, inputs.format),
                          .states = bound(layer.label + "states", states.keys, states.format),
                          .page_table_stride = memory_.page_table_stride,
                          .inputs_base = memory_.page_table_bases[inputs.group],
                          .states_base = memory_.page_table_bases[states.group]});
    return project(layer, "scan output", scanned, "scan.output", is.inner_dim());
  }

  // Likewise. A gate comes last, of the input, too.
  ValueId delta_rule(const Layer& layer, const DeltaRule& is) {
    const ValueId input = rows("delta input", is.convolved());
    const ValueId gate = rows("delta gate", is.values());
    const ValueId a = rows("delta a", is.n_value_heads), b = rows("delta b", is.n_value_heads);
    const Part parts[] = {{"qkv", is.convolved(), input},
                          {"gate", is.values(), gate},
                          {"a", is.n_value_heads, a},
                          {"b", is.n_value_heads, b}};
    project_normed(layer, "delta norm", "attention_norm", "delta.", parts);
    const LayerCache& inputs = memory_.layers[layer.index];
    const LayerCache& states = memory_.states[layer.index];
    const ValueId recalled =
        emit_delta_rule(*this, {.is = is,
                                .name = layer.name + "delta.",
                                .label = layer.label,
                                .input = input,
                                .gate = gate,
                                .a = a,
                                .b = b,
                                .norm_epsilon = arch_.norm_epsilon,
                                .inputs = bound(layer.label + "inputs", inputs.keys, inputs.format),
                                .states = bound(layer.label + "states", states.keys, states.format),
                                .page_table_stride = memory_.page_table_stride,
                                .inputs_base = memory_.page_table_bases[inputs.group],
                                .states_base = memory_.page_table_bases[states.group]});
    return project(layer, "delta output", recalled, "delta.output", is.values());
  }

  // Attention to what an encoder made.
  ValueId cross_attention(const Layer& layer) {
    const LayerDescriptor& is = layer.is;
    const uint32_t q_dim = is.n_heads * is.head_dim;
    const ValueId query = rows("query", q_dim);
    const Part part{"q", q_dim, query};
    project_normed(layer, "cross norm", "cross_norm", "cross.", {&part, 1});
    const ValueId attended = activation(
        "attended", kind_for(layer.name + "cross.output.weight", arch_.dim, q_dim), q_dim);
    const LayerCache& pools = memory_.cross[layer.index];
    if (is_aligned_) cross_weights(layer, query);
    emit(Operation::cross_attention, layer.label + "cross attention",
         {query, bound(layer.label + "cross keys", pools.keys, pools.format),
          bound(layer.label + "cross values", pools.values, pools.format), attended},
         CrossAttentionParams{is.n_heads, is.n_kv_heads, is.head_dim, arch_.audio->n_positions,
                              is.attention_scale, 0, memory_.page_table_stride,
                              memory_.page_table_bases[pools.group]});
    return project(layer, "cross output", attended, "cross.output", q_dim);
  }

  void cross_weights(const Layer& layer, ValueId query) {
    const AudioEncoder& audio = *arch_.audio;
    const uint32_t heads = audio.alignment_heads[layer.index];
    if (heads == 0) return;
    uint32_t first = 0;
    for (uint32_t i = 0; i < layer.index; ++i)
      first += static_cast<uint32_t>(std::popcount(audio.alignment_heads[i]));
    const LayerDescriptor& is = layer.is;
    const LayerCache& pools = memory_.cross[layer.index];
    emit(Operation::cross_weights, layer.label + "cross weights",
         {query, bound(layer.label + "cross keys", pools.keys, pools.format),
          bound("alignment", memory_.alignment)},
         CrossWeightsParams{is.n_heads,
                            is.n_kv_heads,
                            is.head_dim,
                            audio.n_positions,
                            is.attention_scale,
                            heads,
                            first,
                            audio.n_alignment_heads(),
                            memory_.page_table_stride,
                            memory_.page_table_bases[pools.group],
                            {}});
  }

  static SpanAttentionParams span_attention(const LayerDescriptor& is, bool causal) {
    SpanAttentionParams params{is.n_heads,         is.n_kv_heads, is.head_dim, is.window,
                               is.attention_scale, causal,        0,           0};
    // A causal window counts the row itself.
    if (causal && is.window > 0) params.window = is.window - 1;
    if (is.alibi_bias > 0) {
      const auto n = static_cast<float>(std::bit_floor(is.n_heads));
      params.alibi_first = std::exp2(-is.alibi_bias / n);
      params.alibi_second = std::exp2(-is.alibi_bias / 2 / n);
    }
    return params;
  }

  ValueId feed_forward(const Layer& layer) {
    if (!layer.is.experts) return dense(layer);
    if (!layer.is.experts->beside_dense) return mixture(layer);
    const ValueId of_all = rows("dense normed", arch_.dim);
    norm(layer.label + "dense norm", dense(layer), layer.name + "ffn_dense_post_norm", of_all);
    const ValueId of_experts = rows("experts normed", arch_.dim);
    norm(layer.label + "experts post norm", mixture(layer), layer.name + "experts_post_norm",
         of_experts);
    emit(Operation::add, layer.label + "dense add", {of_all, of_experts},
         AddParams{arch_.dim, 0, {}});
    return of_all;
  }

  ValueId dense(const Layer& layer) {
    const uint32_t dim = layer.is.ffn_dim;
    const bool is_gated = layer.is.feed_forward == FeedForward::gated;
    const ValueId gate = rows("gate", dim);
    const ValueId up = rows("up", dim);
    std::vector<Part> parts;
    if (is_gated) parts.push_back({"gate", dim, gate});
    parts.push_back({"up", dim, up});
    // A parallel layer's reads what attention reads, and alone it has the layer's only norm.
    const bool has_norm = !arch_.parallel && layer.is.mixer != Mixer::none;
    project_normed(layer, "ffn norm", has_norm ? "ffn_norm" : "attention_norm", "ffn.", parts);

    const ValueId hidden =
        activation("hidden", kind_for(layer.name + "ffn.down.weight", arch_.dim, dim), dim);
    const uint32_t function = number_of(layer.is.activation);
    if (is_gated && layer.is.gate_cut)
      emit(Operation::sparsify, layer.label + "gate cut", {gate},
           SparsifyParams{dim, *layer.is.gate_cut, {}});
    if (is_gated)
      emit(Operation::gated_activation, layer.label + "activation", {gate, up, hidden},
           GatedActivationParams{dim, function, 0, 0});
    else
      emit(Operation::activate, layer.label + "activation", {up, hidden},
           ActivateParams{dim, function, 0, 0});
    return project(layer, "down", hidden, "ffn.down", dim);
  }

  // A row's experts, and the one that all rows go through where there is one.
  ValueId mixture(const Layer& layer) {
    ExpertLayer of{layer.is, layer.name + "ffn.", layer.label};
    if (layer.is.experts->beside_dense) {
      of.router_input = activation(
          "router normed", kind_for(of.name + "router.weight", layer.is.experts->n, arch_.dim),
          arch_.dim);
      norm(layer.label + "router norm", residual_, of.name + "router_norm", of.router_input);
      norm_inputs(layer, "experts norm", "experts_norm", "ffn.", expert_input_kinds(*this, of));
      return emit_experts(*this, of, inputs_);
    }
    const bool has_norm = !arch_.parallel;  // else it reads what attention reads
    norm_inputs(layer, "ffn norm", has_norm ? "ffn_norm" : "attention_norm", "ffn.",
                expert_input_kinds(*this, of));
    return emit_experts(*this, of, inputs_);
  }

  // One of several projections of one input.
  struct Part {
    const char* name;
    uint32_t n;
    ValueId out;
  };

  // Emits the norm of the residual and each part's projection of it. In post-norm models
  // (NormPlace::after_sum, as in BERT) the residual is the output of a norm already.
  void project_normed(const Layer& layer, const char* norm_label, const std::string& norm_name,
                      const std::string& prefix, std::span<const Part> parts) {
    std::vector<ActivationKind> kinds;
    for (const Part& part : parts)
      kinds.push_back(kind_for(layer.name + prefix + part.name + ".weight", part.n, arch_.dim));
    norm_inputs(layer, norm_label, norm_name, prefix, kinds);
    project_parts(layer, prefix, parts);
  }

  // inputs_: the norm of the residual in these kinds.
  void norm_inputs(const Layer& layer, const char* norm_label, const std::string& norm_name,
                   const std::string& prefix, std::span<const ActivationKind> kinds) {
    // ModernBERT's first layer has no norm of its own: the embedding's is right before it.
    const bool begins_normed = layer.index == 0 && norm_name == "attention_norm" &&
                               sum_.value != kNoValue &&
                               find(layer.name + norm_name + ".weight") == nullptr;
    // The norm is written once per activation kind that the weights want: usually one. In a parallel
    // layer it is attention's, for the feed-forward network too.
    if (!arch_.parallel || prefix == "attention.") inputs_.clear();
    for (const ActivationKind kind : kinds) {
      if (inputs_.contains(kind)) continue;
      inputs_[kind] = arch_.norm_place == NormPlace::before && !begins_normed
                          ? norm_of_residual(layer, norm_label, norm_name, kind)
                          : residual_as(kind);
    }
  }

  void project_parts(const Layer& layer, const std::string& prefix, std::span<const Part> parts) {
    const auto name = [&](const Part& part) { return layer.name + prefix + part.name; };
    const auto kind = [&](const Part& part) {
      return kind_for(name(part) + ".weight", part.n, arch_.dim);
    };
    for (const Part& part : parts)
      matmul(layer.label + part.name, inputs_.at(kind(part)), name(part) + ".weight", part.n,
             arch_.dim, part.out);
    for (const Part& part : parts)
      bias_if_present(layer.label + part.name + " bias", part.out, name(part) + ".bias", part.n);
    for (const Part& part : parts)
      adapt_if_wanted(layer.label + part.name, inputs_.at(kind(part)), name(part), part.n,
                      arch_.dim, part.out);
  }

  ValueId norm_of_residual(const Layer& layer, const char* label, const std::string& name,
                           ActivationKind kind) {
    const ValueId normed = activation("normed", kind, arch_.dim);
    norm(layer.label + label, residual_, layer.name + name, normed);
    return normed;
  }

  // The residual, a normed sum or without a norm, in the kind that a weight wants.
  ValueId residual_as(ActivationKind kind) {
    if (kind == ActivationKind::f32) return residual_;
    const ValueId normed = activation("normed", kind, arch_.dim);
    if (arch_.norm_place == NormPlace::none) return plain_residual_as(kind, "residual");
    norm(sum_.label, sum_.value, sum_.norm, normed);
    return normed;
  }

  // The residual without a norm, in the kind that a weight wants.
  ValueId plain_residual_as(ActivationKind kind, const std::string& label) {
    if (kind == ActivationKind::f32) return residual_;
    const ValueId plain = activation("normed", kind, arch_.dim);
    emit(Operation::activate, label, {residual_, plain},
         ActivateParams{arch_.dim, kActivationNone, 0, 0});
    return plain;
  }

  // weight * input (+ bias), as wide as the residual
  ValueId project(const Layer& layer, const char* label, ValueId input, const std::string& name,
                  uint32_t k) {
    // In a parallel layer two of them wait to be added.
    const ValueId projected =
        rows(arch_.parallel ? std::string(label) + " projected" : "projected", arch_.dim);
    matmul(layer.label + label, input, layer.name + name + ".weight", arch_.dim, k, projected);
    bias_if_present(layer.label + label + " bias", projected, layer.name + name + ".bias",
                    arch_.dim);
    adapt_if_wanted(layer.label + label, input, layer.name + name, arch_.dim, k, projected);
    return projected;
  }

  // residual += made, the result of attention or feed-forward, after a norm of its own where the model
  // has one (Gemma 2 and 3). Or, with norms behind the sums: residual = norm(residual + made).
  void add_to_residual(const Layer& layer, const std::string& label, ValueId made,
                       const std::string& norm_name, const std::string& sum_norm_name) {
    if (arch_.norm_place == NormPlace::after_sum) {
      emit(Operation::add, layer.label + label + " add", {made, residual_},
           AddParams{arch_.dim, 0, {}});
      norm_sum(layer.label + label + " norm", made, layer.name + sum_norm_name);
      return;
    }
    if (layer.is.post_norms || find(layer.name + norm_name + ".weight") != nullptr) {
      const ValueId normed = rows("post-normed", arch_.dim);
      norm(layer.label + label + " norm", made, layer.name + norm_name, normed);
      made = normed;
    }
    if (arch_.residual_scale != 1)
      emit(Operation::scale, layer.label + label + " scale", {made},
           ScaleParams{arch_.dim, arch_.residual_scale, {}});
    emit(Operation::add, layer.label + label + " add", {residual_, made},
         AddParams{arch_.dim, 0, {}});
  }

  // The normed heads: `data` itself, or where one norm is of all of them another value.
  ValueId head_norm(const Layer& layer, const std::string& letter, ValueId data, uint32_t n_heads) {
    const LayerDescriptor& is = layer.is;
    const std::string name = layer.name + "attention." + letter + "_norm.weight";
    if (!is.head_norms && find(name) == nullptr) return data;
    const std::string label = layer.label + letter + " norm";
    if (is.norms_all_heads) {
      const uint32_t n = n_heads * is.head_dim;
      const ValueId normed = rows(letter + " normed", n);
      emit(Operation::rms_norm, label, {data, vector(name, n), normed},
           NormParams{n, arch_.norm_epsilon, {}});
      return normed;
    }
    emit(Operation::head_norm, label, {data, vector(name, is.head_dim)},
         HeadNormParams{n_heads, is.head_dim, arch_.norm_epsilon, 0});
    return data;
  }

  ValueId hadamard(const Layer& layer, const std::string& letter, ValueId data, uint32_t n,
                   uint32_t width) {
    const ValueId rotated = rows(letter + " rotated", n);
    emit(Operation::hadamard, layer.label + letter + " rotation", {data, rotated},
         HadamardParams{n, width, {}});
    return rotated;
  }

  void rope(const Layer& layer, const std::string& letter, ValueId data, uint32_t n_heads,
            const std::vector<ValueId>& angles) {
    if (layer.is.rope_style == RopeStyle::none) return;
    const uint32_t style =
        layer.is.rope_style == RopeStyle::halves ? kRopeHalves : kRopeInterleaved;
    emit(Operation::rope, layer.label + letter + " rope", {data, angles[layer.index]},
         RopeParams{n_heads, layer.is.head_dim, layer.is.rope_dim / 2, style});
  }

  void head() {
    const bool tied = find("output.weight") == nullptr;
    const std::string name = tied ? "token_embedding.weight" : "output.weight";
    // Few rows want logits, also in a prompt: so the head is that of RowClass::few for every class.
    const ActivationKind kind = kind_for(name, arch_.vocab_size, arch_.dim, RowClass::few);
    const ValueId gathered = arch_.streams ? emit_mean_of_streams(*this, streams_)
                                           : rows("head residual", arch_.dim, Extent::head_rows);
    const ValueId normed = activation("head normed", kind, arch_.dim, Extent::head_rows);
    forward_.logits_value = rows("logits", arch_.vocab_size, Extent::head_rows);
    if (!arch_.streams)
      emit(Operation::gather_head, "head gather", {residual_, gathered},
           GatherParams{arch_.dim, {}});
    norm("head norm", gathered, "output_norm", normed, Extent::head_rows);
    matmul("logits", normed, name, arch_.vocab_size, arch_.dim, forward_.logits_value,
           Extent::head_rows);
    if (arch_.logit_scale != 1)
      emit(Operation::scale, "logit scale", {forward_.logits_value},
           ScaleParams{arch_.vocab_size, arch_.logit_scale, {}}, Extent::head_rows);
    if (arch_.logit_soft_cap > 0)
      emit(Operation::soft_cap, "soft cap", {forward_.logits_value},
           SoftCapParams{arch_.vocab_size, arch_.logit_soft_cap, {}}, Extent::head_rows);
  }

  void choose(bool scores) {
    const ValueId picked = bound("picked", memory_.picked);
    if (arch_.audio)
      emit(Operation::transcription_rules, "transcription rules",
           {forward_.logits_value, tokens_, bound("options", memory_.options)},
           TranscriptionRulesParams{arch_.vocab_size, memory_.log_stride, {}});
    emit(Operation::sample, "sample",
         {forward_.logits_value, tokens_, picked, bound("masks", memory_.masks),
          bound("options", memory_.options)},
         SampleParams{arch_.vocab_size, memory_.log_stride, {}});
    if (scores)
      emit(Operation::logprobs, "logprobs",
           {forward_.logits_value, tokens_, picked, bound("logprobs", memory_.logprobs)},
           LogprobsParams{arch_.vocab_size, memory_.log_stride, {}});
    emit(Operation::advance, "advance", {picked, tokens_}, AdvanceParams{memory_.log_stride, {}});
  }

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

}  // namespace

ValueId Values::add(Value value) {
  if (const auto found = ids_.find(value.name); found != ids_.end()) return found->second;
  if (list_.size() >= kNoValue) throw UnsupportedModelError("the model has too many tensors");
  const auto id = static_cast<ValueId>(list_.size());
  ids_.emplace(value.name, id);
  list_.push_back(std::move(value));
  return id;
}

Forward build_forward(const ArchDescriptor& arch, const TensorMap& tensors,
                      const std::vector<Binding>& inverse_frequencies, const ForwardMemory& memory,
                      const Device& device, RowClass row_class, Values& values,
                      const AdapterTargets* adapters) {
  return Builder(arch, tensors, inverse_frequencies, memory, device, row_class, values, adapters)
      .build();
}

}  // namespace akunu
