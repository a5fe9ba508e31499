#include "core/pooled_output.h"

#include <array>

#include "core/kernel_params.h"

namespace akunu {
namespace {

// The layers behind the pool, in order; each is there where its weight is. Dense ones of
// sentence-transformers, and those of a classifier, between which a norm may be.
constexpr const char* kHeadDense = "head.dense";
constexpr const char* kHeadOutput = "head.output";
constexpr std::array kHeadLayers{"dense.0", "dense.1", kHeadDense, kHeadOutput};

// What a layer leaves: numbers of each head row, whose activation is still to come.
struct Output {
  ValueId value = kNoValue;
  uint32_t width = 0;
  Activation activation = Activation::none;
  std::string label = "pooled";
};

ValueId with_activation(Emitter& emitter, const Output& output, ActivationKind kind) {
  if (output.activation == Activation::none && kind == ActivationKind::f32) return output.value;
  const ValueId result =
      emitter.activation(output.label + " activated", kind, output.width, Extent::head_rows);
  emitter.emit(Operation::activate, output.label + " activation", {output.value, result},
               ActivateParams{output.width, number_of(output.activation), 0, 0}, Extent::head_rows);
  return result;
}

Activation activation_of(const ArchDescriptor& arch, const std::string& name) {
  if (name == kHeadDense) return arch.head_activation;
  if (name == kHeadLayers[0]) return arch.dense_activations[0];
  if (name == kHeadLayers[1]) return arch.dense_activations[1];
  return Activation::none;
}

void emit_layer(Emitter& emitter, const std::string& name, Output& output) {
  const std::string weight_name = name + ".weight";
  const auto n = static_cast<uint32_t>(emitter.find(weight_name)->rows);
  // Few rows want an output, so they are computed as generated rows are, in every class.
  const ActivationKind kind = emitter.kind_for(weight_name, n, output.width, RowClass::few);
  ValueId input = kNoValue;
  if (name == kHeadOutput && emitter.find("head.norm.weight") != nullptr) {
    const ValueId before = with_activation(emitter, output, ActivationKind::f32);
    input = emitter.activation("head normed", kind, output.width, Extent::head_rows);
    emitter.norm("head norm", before, "head.norm", input, Extent::head_rows);
  } else {
    input = with_activation(emitter, output, kind);
  }
  output.value = emitter.rows(name, n, Extent::head_rows);
  emitter.matmul(name, input, weight_name, n, output.width, output.value, Extent::head_rows);
  emitter.bias_if_present(name + " bias", output.value, name + ".bias", n, Extent::head_rows);
  output.width = n;
  output.activation = activation_of(emitter.arch(), name);
  output.label = name;
}

}  // namespace

ValueId emit_pooled_output(Emitter& emitter, ValueId residual) {
  const uint32_t dim = emitter.arch().dim;
  ValueId last = residual;
  if (emitter.find("output_norm.weight") != nullptr) {
    last = emitter.rows("output", dim);
    emitter.norm("output norm", residual, "output_norm", last);
  }
  Output output{emitter.rows("pooled", dim, Extent::head_rows), dim};
  emitter.emit(Operation::pool, "pool", {last, output.value}, PoolParams{dim, {}});
  for (const std::string name : kHeadLayers)
    if (emitter.find(name + ".weight") != nullptr) emit_layer(emitter, name, output);
  return with_activation(emitter, output, ActivationKind::f32);
}

uint32_t output_width(const ArchDescriptor& arch, const TensorMap& tensors) {
  if (!arch.embeds) return arch.vocab_size;
  uint32_t width = arch.dim;
  for (const std::string name : kHeadLayers)
    if (const auto found = tensors.find(name + ".weight"); found != tensors.end())
      width = static_cast<uint32_t>(found->second.rows);
  return width;
}

}  // namespace akunu
