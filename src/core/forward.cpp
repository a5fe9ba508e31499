// Builds the forward pass. forward.h says what it is.
//
// 1. What it does. Builder::build emits the operations of one row class in order: embedding, the
//    angles of RoPE, every layer (`layer`), the head, the choice of a token; of a model that hears also
//    its encoder (`encode_audio`), whose layers are `layer` too. It runs at load, never while generating.
// 2. What bounds it. Nothing: some hundred operations per row class. What it emits bounds all else:
//    each operation is a kernel that runs at every step.
// 3. Where to change it. What a layer does: `layer`, by facts of LayerDescriptor (core/arch.h). How
//    operations are joined: fusion_rules.cpp. Where values lie in memory: table.cpp.
#include "core/forward.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/error.h"
#include "core/kernel_params.h"

namespace akunu {
namespace {

// The layers behind the pool, in order; each is there where its weight is. Dense ones of
// sentence-transformers, and those of a classifier, between which a norm may be.
constexpr const char* kHeadDense = "head.dense";
constexpr const char* kHeadOutput = "head.output";
constexpr std::array kHeadLayers{"dense.0", "dense.1", kHeadDense, kHeadOutput};

class Builder {
 public:
  Builder(const ArchDescriptor& arch, const TensorMap& tensors,
          const std::vector<Binding>& inverse_frequencies, const ForwardMemory& memory,
          const Device& device, RowClass row_class, Values& values, const AdapterTargets* adapters)
      : arch_(arch),
        tensors_(tensors),
        inverse_frequencies_(inverse_frequencies),
        memory_(memory),
        device_(device),
        row_class_(row_class),
        values_(values),
        adapters_(adapters) {}

  Forward build() {
    if (arch_.audio && row_class_ == RowClass::many) encode_audio(*arch_.audio);
    if (arch_.audio && row_class_ == RowClass::many && arch_.audio->n_alignment_heads() > 0) {
      nodes_ = &forward_.aligned;
      is_aligned_ = true;
      body();
      is_aligned_ = false;
    }
    nodes_ = &forward_.body;
    body();

    nodes_ = &forward_.logits;
    if (arch_.embeds) {
      pool();
      return std::move(forward_);
    }
    head();

    nodes_ = &forward_.choose;
    choose(false);
    nodes_ = &forward_.choose_scored;
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
    angles();
    for (uint32_t i = 0; i < arch_.layers.size(); ++i)
      layer({i, arch_.layers[i], "layers." + std::to_string(i) + ".",
             "layer " + std::to_string(i) + " "});
  }

  // --- values -------------------------------------------------------------------------------

  ValueId bound(const std::string& name, const Binding& binding, Format format = Format::f32) {
    return values_.add({.name = name, .binding = binding, .format = format});
  }

  // A scratch value, found by its name: all layers use the same "query". The name includes the width, so
  // that layers of another width get a value of their own.
  ValueId scratch(const std::string& name, uint64_t bytes, Extent per, ActivationKind kind) {
    return values_.add({.name = name + ":" + std::to_string(bytes),
                        .binding = {},
                        .bytes_per_row = bytes,
                        .per = per,
                        .activation = kind});
  }
  ValueId rows(const std::string& name, uint64_t n, Extent per = Extent::rows) {
    return scratch(name, n * sizeof(float), per, ActivationKind::f32);
  }
  ValueId activation(const std::string& name, ActivationKind kind, uint64_t k,
                     Extent per = Extent::rows) {
    return scratch(name + " " + std::string(name_of(kind)), device_.activation_row_bytes(kind, k),
                   per, kind);
  }

  const Weight* find(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second;
  }

  const Weight& tensor(const std::string& name, uint64_t n_rows, uint64_t k) const {
    const Weight* weight = find(name);
    if (weight == nullptr) throw ModelFormatError("tensor " + name + " is missing");
    if (weight->rows != n_rows || weight->k != k)
      throw ModelFormatError("tensor " + name + " is [" + std::to_string(weight->rows) + ", " +
                             std::to_string(weight->k) + "]; the model's numbers ask for [" +
                             std::to_string(n_rows) + ", " + std::to_string(k) + "]");
    return *weight;
  }

  ValueId weight(const std::string& name, uint64_t n, uint64_t k) {
    const Weight& weight = tensor(name, n, k);
    Value value{.name = name, .binding = weight.planes[0], .format = weight.format};
    std::copy(weight.planes.begin() + 1, weight.planes.end(), value.more_planes.begin());
    return values_.add(std::move(value));
  }
  ValueId vector(const std::string& name, uint64_t n) {
    const Weight& numbers = tensor(name, 1, n);
    // Tensors of one dimension are loaded as F32, whatever the file has; a matrix [1, n] is not.
    if (numbers.format != Format::f32)
      throw UnsupportedModelError("tensor " + name + " is a matrix of one row in " +
                                  std::string(format_info(numbers.format).name) +
                                  "; akunu has F32 there, or a vector");
    return bound(name, numbers.planes[0]);
  }

  ActivationKind kind_for(const std::string& weight_name, uint64_t n, uint64_t k) const {
    return device_.activation_kind(tensor(weight_name, n, k).format, row_class_);
  }

  // --- an encoder of audio ------------------------------------------------------------------

  void encode_audio(const AudioEncoder& audio) {
    const uint32_t dim = arch_.dim;
    nodes_ = &forward_.listen;
    const ValueId heard =
        convolve("encoder.conv1", bound("frames", memory_.frames), audio.n_mels, 1);

    nodes_ = &forward_.encode;
    residual_ = rows("residual", dim);
    const ValueId positions = convolve("encoder.conv2", heard, dim, audio.kFramesPerPosition);
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

  // gelu(a convolution of three rows), as a matmul of the rows that each result sees.
  ValueId convolve(const std::string& name, ValueId input, uint32_t n_channels, uint32_t stride) {
    constexpr uint32_t kWidth = 3, kPadding = 1;
    const uint32_t k = n_channels * kWidth;
    const ValueId unfolded =
        activation(name + " input", kind_for(name + ".weight", arch_.dim, k), k);
    const ValueId out = rows(name, arch_.dim), activated = rows(name + " activated", arch_.dim);
    emit(Operation::unfold, name + " unfold", {input, unfolded},
         UnfoldParams{n_channels, kWidth, stride, kPadding});
    matmul(name, unfolded, name + ".weight", arch_.dim, k, out);
    bias_if_present(name + " bias", out, name + ".bias", arch_.dim);
    emit(Operation::activate, name + " activation", {out, activated},
         ActivateParams{arch_.dim, kActivationGelu, {}});
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
           ActivateParams{arch_.dim, kActivationNone, {}});
    }
    return found->second;
  }

  // --- operations ---------------------------------------------------------------------------

  template <class Struct>
  void emit(Operation operation, const std::string& label, std::initializer_list<ValueId> operands,
            const Struct& params, Extent extent = Extent::rows) {
    Node node;
    node.operation = operation;
    node.extent = extent;
    std::copy(operands.begin(), operands.end(), node.operands.begin());
    node.set(params);
    node.label = label;
    nodes_->push_back(std::move(node));
  }

  // `name`: of its tensors, without ".weight".
  void norm(const std::string& label, ValueId input, const std::string& name, ValueId out,
            Extent extent = Extent::rows) {
    const NormParams params{arch_.dim, arch_.norm_epsilon, {}};
    const ValueId weight = vector(name + ".weight", arch_.dim);
    if (arch_.norm == NormKind::rms) {
      emit(Operation::rms_norm, label, {input, weight, out}, params, extent);
      return;
    }
    const bool has_bias = find(name + ".bias") != nullptr;
    const ValueId bias = has_bias ? vector(name + ".bias", arch_.dim) : kNoValue;
    emit(Operation::layer_norm, label, {input, weight, bias, out}, params, extent);
  }

  void matmul(const std::string& label, ValueId input, const std::string& weight_name, uint32_t n,
              uint32_t k, ValueId out, Extent extent = Extent::rows) {
    emit(Operation::matmul, label, {input, weight(weight_name, n, k), out}, MatmulParams{n, k, {}},
         extent);
  }

  void bias_if_present(const std::string& label, ValueId data, const std::string& name, uint32_t n,
                       Extent extent = Extent::rows) {
    if (find(name) == nullptr) return;
    emit(Operation::add_bias, label, {data, vector(name, n)}, BiasParams{n, {}}, extent);
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
    emit(Operation::embed, "embedding",
         {tokens_, weight("token_embedding.weight", arch_.vocab_size, arch_.dim), embedded},
         EmbedParams{arch_.dim, arch_.vocab_size, memory_.log_stride, arch_.embedding_scale});
    add_embedding_if_present("position embedding", embedded, "position_embedding.weight",
                             kIndexPosition, arch_.context_length + arch_.position_offset);
    add_embedding_if_present("token types", embedded, "token_types.weight", kIndexTokenType, 1);
    if (has_norm) norm_sum("embedding norm", embedded, "embedding_norm");
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
             RopeAnglesParams{layer.rope_dim / 2, 0, 0, 0});
        if (layer.query_growth != 0) {
          of_queries = rows("query angles of " + name, layer.rope_dim);
          emit(Operation::rope_angles, "query rope angles", {bound(name, frequencies), of_queries},
               RopeAnglesParams{layer.rope_dim / 2, layer.query_growth, layer.query_growth_length,
                                0});
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
    add_to_residual(layer, "attention output", attention(layer), "attention_post_norm",
                    "attention_output_norm");
    if (arch_.audio && !layer.is_of_encoder)
      add_to_residual(layer, "cross output", cross_attention(layer), "cross_post_norm",
                      "cross_output_norm");
    add_to_residual(layer, "down", feed_forward(layer), "ffn_post_norm", "layer_output_norm");
  }

  ValueId attention(const Layer& layer) {
    const LayerDescriptor& is = layer.is;
    const uint32_t q_dim = is.n_heads * is.head_dim;
    const uint32_t kv_dim = is.n_kv_heads * is.head_dim;
    const bool has_own = !is.kv_from;  // keys and values
    ValueId query = rows("query", q_dim);
    ValueId key = rows("key", kv_dim);
    const ValueId value = rows("value", kv_dim);

    std::vector<Part> parts{{"q", q_dim, query}};
    if (has_own) parts.insert(parts.end(), {{"k", kv_dim, key}, {"v", kv_dim, value}});
    project_normed(layer, "attention norm", "attention_norm", "attention.", parts);
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
    const std::string cache = "layer " + std::to_string(is.kv_from.value_or(layer.index)) + " ";
    const ValueId keys = bound(cache + "keys", pools.keys, pools.format);
    const ValueId values = bound(cache + "values", pools.values, pools.format);
    const uint32_t stride = memory_.page_table_stride;
    const uint32_t base = memory_.page_table_bases[pools.group];
    if (has_own)
      emit(Operation::kv_write, layer.label + "kv write", {key, value, keys, values},
           KvWriteParams{is.n_kv_heads, is.head_dim, stride, base});

    emit(Operation::attention, layer.label + "attention", {query, keys, values, attended},
         AttentionParams{is.n_heads, is.n_kv_heads, is.head_dim, is.window, is.attention_scale,
                         is.attention_soft_cap, stride, base});
    return project(layer, "attention output", attended, "attention.output", q_dim);
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
    const uint32_t dim = layer.is.ffn_dim;
    const bool is_gated = layer.is.feed_forward == FeedForward::gated;
    const ValueId gate = rows("gate", dim);
    const ValueId up = rows("up", dim);
    std::vector<Part> parts;
    if (is_gated) parts.push_back({"gate", dim, gate});
    parts.push_back({"up", dim, up});
    const bool has_norm = !arch_.parallel;  // else it reads what attention reads
    project_normed(layer, "ffn norm", has_norm ? "ffn_norm" : "attention_norm", "ffn.", parts);

    const ValueId hidden =
        activation("hidden", kind_for(layer.name + "ffn.down.weight", arch_.dim, dim), dim);
    const uint32_t function = number_of(layer.is.activation);
    if (is_gated)
      emit(Operation::gated_activation, layer.label + "activation", {gate, up, hidden},
           GatedActivationParams{dim, function, {}});
    else
      emit(Operation::activate, layer.label + "activation", {up, hidden},
           ActivateParams{dim, function, {}});
    return project(layer, "down", hidden, "ffn.down", dim);
  }

  static uint32_t number_of(Activation activation) {
    switch (activation) {
      case Activation::silu:
        return kActivationSilu;
      case Activation::gelu_tanh:
        return kActivationGeluTanh;
      case Activation::gelu:
        return kActivationGelu;
      case Activation::tanh:
        return kActivationTanh;
      case Activation::none:
        return kActivationNone;
    }
    __builtin_unreachable();
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
    const auto name = [&](const Part& part) { return layer.name + prefix + part.name; };
    const auto kind = [&](const Part& part) {
      return kind_for(name(part) + ".weight", part.n, arch_.dim);
    };
    // ModernBERT's first layer has no norm of its own: the embedding's is right before it.
    const bool begins_normed = layer.index == 0 && norm_name == "attention_norm" &&
                               sum_.value != kNoValue &&
                               find(layer.name + norm_name + ".weight") == nullptr;
    // The norm is written once per activation kind that the weights want: usually one. In a parallel
    // layer it is attention's, for the feed-forward network too.
    if (!arch_.parallel || prefix == "attention.") inputs_.clear();
    for (const Part& part : parts) {
      if (inputs_.contains(kind(part))) continue;
      inputs_[kind(part)] = arch_.norm_place == NormPlace::before && !begins_normed
                                ? norm_of_residual(layer, norm_label, norm_name, kind(part))
                                : residual_as(kind(part));
    }
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
    if (arch_.norm_place == NormPlace::none) {
      emit(Operation::activate, "residual", {residual_, normed},
           ActivateParams{arch_.dim, kActivationNone, {}});
      return normed;
    }
    norm(sum_.label, sum_.value, sum_.norm, normed);
    return normed;
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
           AddParams{arch_.dim, {}});
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
    emit(Operation::add, layer.label + label + " add", {residual_, made}, AddParams{arch_.dim, {}});
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

  void rope(const Layer& layer, const std::string& letter, ValueId data, uint32_t n_heads,
            const std::vector<ValueId>& angles) {
    if (layer.is.rope_style == RopeStyle::none) return;
    const uint32_t style =
        layer.is.rope_style == RopeStyle::halves ? kRopeHalves : kRopeInterleaved;
    emit(Operation::rope, layer.label + letter + " rope", {data, angles[layer.index]},
         RopeParams{n_heads, layer.is.head_dim, layer.is.rope_dim / 2, style});
  }

  void pool() {
    ValueId last = residual_;
    if (find("output_norm.weight") != nullptr) {
      last = rows("output", arch_.dim);
      norm("output norm", residual_, "output_norm", last);
    }
    Output output{rows("pooled", arch_.dim, Extent::head_rows), arch_.dim};
    emit(Operation::pool, "pool", {last, output.value}, PoolParams{arch_.dim, {}});
    for (const std::string name : kHeadLayers)
      if (find(name + ".weight") != nullptr) head_layer(name, output);
    forward_.logits_value = with_activation(output, ActivationKind::f32);
  }

  // What a layer of the head leaves: numbers of each head row, whose activation is still to come.
  struct Output {
    ValueId value = kNoValue;
    uint32_t width = 0;
    Activation activation = Activation::none;
    std::string label = "pooled";
  };

  void head_layer(const std::string& name, Output& output) {
    const std::string weight_name = name + ".weight";
    const auto n = static_cast<uint32_t>(find(weight_name)->rows);
    // Head rows are computed as generated rows are; see head().
    const ActivationKind kind =
        device_.activation_kind(tensor(weight_name, n, output.width).format, RowClass::few);
    ValueId input = kNoValue;
    if (name == kHeadOutput && find("head.norm.weight") != nullptr) {
      const ValueId before = with_activation(output, ActivationKind::f32);
      input = activation("head normed", kind, output.width, Extent::head_rows);
      norm("head norm", before, "head.norm", input, Extent::head_rows);
    } else {
      input = with_activation(output, kind);
    }
    output.value = rows(name, n, Extent::head_rows);
    matmul(name, input, weight_name, n, output.width, output.value, Extent::head_rows);
    bias_if_present(name + " bias", output.value, name + ".bias", n, Extent::head_rows);
    output.width = n;
    output.activation = name == kHeadDense       ? arch_.head_activation
                        : name == kHeadLayers[0] ? arch_.dense_activations[0]
                        : name == kHeadLayers[1] ? arch_.dense_activations[1]
                                                 : Activation::none;
    output.label = name;
  }

  ValueId with_activation(const Output& output, ActivationKind kind) {
    if (output.activation == Activation::none && kind == ActivationKind::f32) return output.value;
    const ValueId result =
        activation(output.label + " activated", kind, output.width, Extent::head_rows);
    emit(Operation::activate, output.label + " activation", {output.value, result},
         ActivateParams{output.width, number_of(output.activation), {}}, Extent::head_rows);
    return result;
  }

  void head() {
    const bool tied = find("output.weight") == nullptr;
    const std::string name = tied ? "token_embedding.weight" : "output.weight";
    // Few rows want logits, also in a prompt: so the head is that of RowClass::few for every class.
    const Weight& weight = tensor(name, arch_.vocab_size, arch_.dim);
    const ActivationKind kind = device_.activation_kind(weight.format, RowClass::few);
    const ValueId gathered = rows("head residual", arch_.dim, Extent::head_rows);
    const ValueId normed = activation("head normed", kind, arch_.dim, Extent::head_rows);
    forward_.logits_value = rows("logits", arch_.vocab_size, Extent::head_rows);
    emit(Operation::gather_head, "head gather", {residual_, gathered}, GatherParams{arch_.dim, {}});
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
  const TensorMap& tensors_;
  const std::vector<Binding>& inverse_frequencies_;
  const ForwardMemory& memory_;
  const Device& device_;
  const RowClass row_class_;
  Values& values_;
  const AdapterTargets* const adapters_;

  Forward forward_;
  std::vector<Node>* nodes_ = nullptr;
  std::vector<ValueId> angles_;        // per layer
  std::vector<ValueId> query_angles_;  // the same, unless queries grow
  ValueId tokens_ = kNoValue;
  ValueId residual_ = kNoValue;
  std::map<ActivationKind, ValueId> inputs_;  // of the matmuls that read the residual
  std::map<ActivationKind, ValueId> encoded_;
  bool is_aligned_ = false;  // the body at hand says where rows listen
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

uint32_t output_width(const ArchDescriptor& arch, const TensorMap& tensors) {
  if (!arch.embeds) return arch.vocab_size;
  uint32_t width = arch.dim;
  for (const std::string name : kHeadLayers)
    if (const auto found = tensors.find(name + ".weight"); found != tensors.end())
      width = static_cast<uint32_t>(found->second.rows);
  return width;
}

Forward build_forward(const ArchDescriptor& arch, const TensorMap& tensors,
                      const std::vector<Binding>& inverse_frequencies, const ForwardMemory& memory,
                      const Device& device, RowClass row_class, Values& values,
                      const AdapterTargets* adapters) {
  return Builder(arch, tensors, inverse_frequencies, memory, device, row_class, values, adapters)
      .build();
}

}  // namespace akunu
