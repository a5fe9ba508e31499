// Builds the forward pass. forward.h says what it is.
//
// 1. What it does. ForwardBuilder::build emits the operations of one row class in order: embedding, the
//    angles of RoPE, every layer (`layer`), the head, the choice of a token; of speech models also
//    the encoder (`encode_audio`), whose layers are `layer` too. It runs at load, never while generating.
// 2. What bounds it. Nothing: some hundred operations per row class. What it emits bounds all else:
//    each operation is a kernel that runs at every step.
// 3. Where to change it. What a layer does: `layer`, and for each of its blocks (core/blocks/layer.h) a function. How
//    operations are joined: fusion_rules.cpp. Where values lie in memory: table.cpp.
#include "core/forward.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "core/error.h"
#include "core/forward_builder.h"
#include "core/kernel_params.h"
#include "core/pooled_output.h"

namespace akunu {
namespace {

static_assert(RopeAxes::kMostPairs == kMostPairsWithAxes);

RopeAnglesParams rope_angles(const Rope& rope) {
  RopeAnglesParams params{rope.dim / 2, 0, 0, rope.factor, {}};
  std::ranges::copy(rope.axes.words, params.axes);
  return params;
}

}  // namespace

Forward ForwardBuilder::build() {
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
  head({residual_, "output_norm", ""});

  emit_to(forward_.choose);
  choose(false);
  emit_to(forward_.choose_scored);
  choose(true);
  if (arch_.n_ahead > 0) predict_ahead();
  return std::move(forward_);
}

void ForwardBuilder::body() {
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
  for (uint32_t i = 0; i < n_own_layers(arch_); ++i)
    layer({i, arch_.layers[i], "layers." + std::to_string(i) + ".",
           "layer " + std::to_string(i) + " "});
}

// gelu(a convolution of three rows), as a matmul of the rows that each result sees. Scratch has rows
// for positions; where it runs over frames, each of those holds the rows of `n_frames` frames.
ValueId ForwardBuilder::convolve(const std::string& name, ValueId input, uint32_t n_channels,
                                 uint32_t stride, uint32_t n_frames) {
  constexpr uint32_t kWidth = 3, kPadding = 1;
  const uint32_t k = n_channels * kWidth;
  const ValueId unfolded = activation(name + " input", kind_for(name + ".weight", arch_.dim, k), k,
                                      Extent::rows, n_frames);
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

// Adds to `data`, the product of `input` and weight `name`, what low-rank adapters of that weight add:
// B (A input).
void ForwardBuilder::adapt_if_wanted(const std::string& label, ValueId input,
                                     const std::string& name, uint32_t n, uint32_t k,
                                     ValueId data) {
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

void ForwardBuilder::embed() {
  const bool has_norm = find("embedding_norm.weight") != nullptr;
  const ValueId embedded = has_norm ? rows("sum", arch_.dim) : residual_;
  const bool has_vectors = arch_.images && row_class() == RowClass::many;
  const ValueId vectors = has_vectors ? bound("vectors", memory_.vectors) : kNoValue;
  emit(Operation::embed, "embedding",
       {tokens_, weight("token_embedding.weight", arch_.vocab_size, arch_.dim), embedded, vectors},
       EmbedParams{arch_.dim, arch_.vocab_size, memory_.log_stride, arch_.embedding_scale, 0, {}});
  add_embedding_if_present("position embedding", embedded, "position_embedding.weight",
                           kIndexPosition, arch_.context_length + arch_.position_offset);
  add_embedding_if_present("token types", embedded, "token_types.weight", kIndexTokenType, 1);
  if (has_norm) norm_sum("embedding norm", embedded, "embedding_norm");
}

// What each layer has of its own of a token (per-layer embeddings, Gemma 3n and 4): half of it a row
// of a table, half made of the embedding.
void ForwardBuilder::embed_per_layer() {
  const auto n_layers = static_cast<uint32_t>(arch_.layers.size());
  const uint32_t dim = arch_.per_layer_dim, n = n_layers * dim;
  const float growth = std::sqrt(static_cast<float>(dim));
  const ValueId of_token = rows("per-layer embedding", n);
  // A vocabulary may end with tokens that stand for parts of images and sounds, and have no row.
  const std::string table = "per_layer_embedding.weight";
  const Weight* const stored = find(table);
  const uint32_t n_rows = stored == nullptr || stored->rows > arch_.vocab_size || stored->rows == 0
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
void ForwardBuilder::add_embedding_if_present(const std::string& label, ValueId data,
                                              const std::string& name, uint32_t index,
                                              uint32_t n_least) {
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
void ForwardBuilder::norm_sum(const std::string& label, ValueId sum, const std::string& name) {
  norm(label, sum, name, residual_);
  sum_ = {label, sum, name};
}

// Layers with the same frequencies share their angles, computed once per step.
void ForwardBuilder::angles() {
  for (uint32_t i = 0; i < arch_.layers.size(); ++i) {
    if (!arch_.layers[i].rotates()) {
      angles_.push_back(kNoValue);
      query_angles_.push_back(kNoValue);
      continue;
    }
    const Rope& rope = *arch_.layers[i].rope();
    const Binding& frequencies = inverse_frequencies_[i];
    const std::string name = owner() + "inverse frequencies " + std::to_string(i);
    ValueId out = kNoValue, of_queries = kNoValue;
    for (uint32_t earlier = 0; earlier < i && out == kNoValue; ++earlier)
      if (inverse_frequencies_[earlier].buffer.handle == frequencies.buffer.handle &&
          inverse_frequencies_[earlier].offset == frequencies.offset) {
        out = angles_[earlier];
        of_queries = query_angles_[earlier];
      }
    if (out == kNoValue) {
      out = of_queries = rows("angles of " + name, rope.dim);
      emit(Operation::rope_angles, "rope angles", {bound(name, frequencies), out},
           rope_angles(rope));
      if (rope.query_growth != 0) {
        of_queries = rows("query angles of " + name, rope.dim);
        RopeAnglesParams params = rope_angles(rope);
        params.growth = rope.query_growth;
        params.growth_length = rope.query_growth_length;
        emit(Operation::rope_angles, "query rope angles", {bound(name, frequencies), of_queries},
             params);
      }
    }
    angles_.push_back(out);
    query_angles_.push_back(of_queries);
  }
}

void ForwardBuilder::layer(const Layer& layer) {
  if (arch_.parallel) return parallel_layer(layer);
  const StreamsOfLayer of_streams{layer.name + "streams.", layer.label};
  if (arch_.streams) emit_prediction(*this, streams_, of_streams, residual_);
  std::visit([&](const auto& block) { mix(layer, block); }, layer.is.mixer);
  if (arch_.audio && !layer.is_of_encoder)
    add_to_residual(layer, "cross output", cross_attention(layer, *layer.is.attention()),
                    "cross_post_norm", "cross_output_norm");
  if (layer.is.feed_forward) add_feed_forward(layer, feed_forward(layer, *layer.is.feed_forward));
  if (arch_.streams) emit_correction(*this, streams_, of_streams, residual_);
  if (arch_.per_layer_dim > 0) add_per_layer(layer);
  if (layer.is.output_scale != 1)
    emit(Operation::scale, layer.label + "output scale", {residual_},
         ScaleParams{arch_.dim, layer.is.output_scale, {}});
}

// Attention and the network read the same input.
void ForwardBuilder::parallel_layer(const Layer& layer) {
  const Attention& is = *layer.is.attention();
  const ValueId attended = attention(layer, is);
  const ValueId fed = feed_forward(layer, *layer.is.feed_forward);
  add_mixed(layer, "attention output", attended, is.factor);
  add_feed_forward(layer, fed);
}

void ForwardBuilder::add_mixed(const Layer& layer, const std::string& label, ValueId made,
                               float factor) {
  add_to_residual(layer, label, made, "attention_post_norm", "attention_output_norm", factor);
}

void ForwardBuilder::add_feed_forward(const Layer& layer, ValueId made) {
  add_to_residual(layer, "down", made, "ffn_post_norm", "layer_output_norm",
                  layer.is.feed_forward->factor);
}

void ForwardBuilder::mix(const Layer& layer, const Attention& is) {
  const ValueId attended = attention(layer, is);
  const ValueId beside = is.has_branch ? branch(layer) : kNoValue;
  add_mixed(layer, "attention output", attended, is.factor);
  if (is.has_branch) add_branch(layer, beside);
}

void ForwardBuilder::mix(const Layer& layer, const LatentAttention& is) {
  add_mixed(layer, "attention output", latent_attention(layer, is));
}

void ForwardBuilder::mix(const Layer& layer, const ShortConvolution& is) {
  add_mixed(layer, "convolution output", convolution(layer, is));
}

void ForwardBuilder::mix(const Layer& layer, const DeltaRule& is) {
  add_mixed(layer, "delta output", delta_rule(layer, is));
}

void ForwardBuilder::mix(const Layer& layer, const Scan& is) {
  add_mixed(layer, "scan output", scan(layer, is), is.factor);
}

void ForwardBuilder::mix(const Layer& layer, const AttentionAndScan& is) {
  const ValueId attended = attention(layer, is.attention);
  const ValueId scanned = scan(layer, is.scan);
  add_mixed(layer, "attention output", attended, is.attention.factor);
  add_to_residual(layer, "scan output", scanned, "scan_post_norm", "scan_output_norm",
                  is.scan.factor);
}

// To the residual; where that is several streams, to all but the first.
void ForwardBuilder::add_per_layer(const Layer& layer) {
  const char* const norm_name = "per_layer_post_norm";
  if (!arch_.streams)
    return add_to_residual(layer, "per-layer output", per_layer(layer), norm_name, "");
  const ValueId normed = rows("post-normed", arch_.dim);
  norm(layer.label + "per-layer output norm", per_layer(layer), layer.name + norm_name, normed);
  emit(Operation::add, layer.label + "per-layer output add", {streams_.others, normed},
       AddParams{arch_.dim, arch_.streams->n - 1, {}});
}

// The residual, through a gate, times what this layer has of the token.
ValueId ForwardBuilder::per_layer(const Layer& layer) {
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
       GatedActivationParams{dim, number_of(layer.is.feed_forward->activation), layer.index * dim,
                             static_cast<uint32_t>(arch_.layers.size()) * dim});
  return project(layer, "per-layer output", hidden, "per_layer.output", dim);
}

// right(left(x)) of x, which attention reads, too; x itself stays in inputs_ as floats.
ValueId ForwardBuilder::branch(const Layer& layer) {
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
  widen(label + "right", low, rank, name + "right", arch_.dim, high);
  return high;
}

// out = the weight `name` times few numbers, which another matmul made.
void ForwardBuilder::widen(const std::string& label, ValueId low, uint32_t rank,
                           const std::string& name, uint32_t n, ValueId out) {
  const ActivationKind kind = kind_for(name + ".weight", n, rank);
  const ValueId input = kind == ActivationKind::f32 ? low : activation("low", kind, rank);
  if (input != low)
    emit(Operation::activate, label + " input", {low, input},
         ActivateParams{rank, kActivationNone, 0, 0});
  matmul(label, input, name + ".weight", n, rank, out);
  adapt_if_wanted(label, input, name, n, rank, out);
}

// residual = (residual + x + norm(what the branch made of x)) / the root of 2
void ForwardBuilder::add_branch(const Layer& layer, ValueId made) {
  const ValueId normed = rows("post-normed", arch_.dim);
  emit(Operation::add, layer.label + "branch input add",
       {residual_, inputs_.at(ActivationKind::f32)}, AddParams{arch_.dim, 0, {}});
  norm(layer.label + "branch norm", made, layer.name + "branch.post_norm", normed);
  emit(Operation::add, layer.label + "branch add", {residual_, normed},
       AddParams{arch_.dim, 0, {}});
  emit(Operation::scale, layer.label + "branch scale", {residual_},
       ScaleParams{arch_.dim, std::sqrt(0.5f), {}});
}

// Of the head rows: the norm of the residual, and logits of it.
void ForwardBuilder::head(const Head& of) {
  const bool tied = find("output.weight") == nullptr;
  const std::string name = tied ? "token_embedding.weight" : "output.weight";
  // Few rows want logits, also in a prompt: so the head is that of RowClass::few for every class.
  const ActivationKind kind = kind_for(name, arch_.vocab_size, arch_.dim, RowClass::few);
  const ValueId gathered = arch_.streams ? emit_mean_of_streams(*this, streams_)
                                         : rows("head residual", arch_.dim, Extent::head_rows);
  const ValueId normed = activation("head normed", kind, arch_.dim, Extent::head_rows);
  forward_.logits_value = rows("logits", arch_.vocab_size, Extent::head_rows);
  if (!arch_.streams)
    emit(Operation::gather_head, of.label + "head gather", {of.residual, gathered},
         GatherParams{arch_.dim, {}});
  norm(of.label + "head norm", gathered, of.norm, normed, Extent::head_rows);
  matmul(of.label + "logits", normed, name, arch_.vocab_size, arch_.dim, forward_.logits_value,
         Extent::head_rows);
  if (arch_.logit_scale != 1)
    emit(Operation::scale, of.label + "logit scale", {forward_.logits_value},
         ScaleParams{arch_.vocab_size, arch_.logit_scale, {}}, Extent::head_rows);
  if (arch_.logit_soft_cap > 0)
    emit(Operation::soft_cap, of.label + "soft cap", {forward_.logits_value},
         SoftCapParams{arch_.vocab_size, arch_.logit_soft_cap, {}}, Extent::head_rows);
}

void ForwardBuilder::choose(bool scores) {
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
  Forward forward = ForwardBuilder(arch, tensors, inverse_frequencies, memory, device, row_class,
                                   values, adapters)
                        .build();
  if (arch.images && row_class == RowClass::many) {
    const ArchDescriptor tower = tower_of(*arch.images);
    const std::vector<Binding> frequencies(tower.layers.size(), memory.image_frequencies);
    Forward of_images =
        ForwardBuilder(tower, tensors, frequencies, memory, device, row_class, values, nullptr)
            .encode_image(*arch.images, arch.dim);
    forward.encode = std::move(of_images.encode);
    forward.project_image = std::move(of_images.project_image);
    forward.image_vectors = of_images.image_vectors;
  }
  return forward;
}

namespace {

template <class Nodes, class Whole>
std::vector<Nodes*> programs_of(Whole& forward) {
  std::vector<Nodes*> programs{&forward.first_convolution};
  for (Nodes& part : forward.encode) programs.push_back(&part);
  programs.push_back(&forward.project_image);
  for (Nodes& part : forward.image_rows) programs.push_back(&part);
  programs.insert(programs.end(), {&forward.aligned, &forward.body, &forward.logits,
                                   &forward.choose, &forward.choose_scored, &forward.ahead,
                                   &forward.ahead_logits, &forward.ahead_choose});
  return programs;
}

}  // namespace

std::vector<std::vector<Node>*> Forward::programs() {
  return programs_of<std::vector<Node>>(*this);
}

std::vector<const std::vector<Node>*> Forward::programs() const {
  return programs_of<const std::vector<Node>>(*this);
}

}  // namespace akunu
