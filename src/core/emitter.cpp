#include "core/emitter.h"

#include <algorithm>

#include "core/error.h"
#include "core/kernel_params.h"

namespace akunu {

uint32_t number_of(Activation activation) {
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
    case Activation::sigmoid:
      return kActivationSigmoid;
    case Activation::relu_squared:
      return kActivationReluSquared;
    case Activation::quick_gelu:
      return kActivationQuickGelu;
  }
  __builtin_unreachable();
}

uint32_t number_of(Scoring scoring) {
  switch (scoring) {
    case Scoring::softmax:
      return kScoreSoftmax;
    case Scoring::chosen:
      return kScoreChosen;
    case Scoring::sigmoid:
      return kScoreSigmoid;
  }
  __builtin_unreachable();
}

const Weight* Emitter::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const Weight& Emitter::tensor(const std::string& name, uint64_t n_rows, uint64_t k) const {
  const Weight* weight = find(name);
  if (weight == nullptr) throw ModelFormatError("tensor " + name + " is missing");
  if (weight->rows != n_rows || weight->k != k)
    throw ModelFormatError("tensor " + name + " is [" + std::to_string(weight->rows) + ", " +
                           std::to_string(weight->k) + "]; the model's numbers ask for [" +
                           std::to_string(n_rows) + ", " + std::to_string(k) + "]");
  return *weight;
}

ValueId Emitter::bound(const std::string& name, const Binding& binding, Format format) {
  return values_.add({.name = name, .binding = binding, .format = format});
}

ValueId Emitter::scratch(const std::string& name, uint64_t bytes, Extent per, ActivationKind kind) {
  return values_.add({.name = owner_ + name + ":" + std::to_string(bytes),
                      .binding = {},
                      .bytes_per_row = bytes,
                      .per = per,
                      .most_rows = per == Extent::rows ? most_rows_ : 0,
                      .activation = kind});
}

ValueId Emitter::rows(const std::string& name, uint64_t n, Extent per) {
  return scratch(name, n * sizeof(float), per, ActivationKind::f32);
}

ValueId Emitter::activation(const std::string& name, ActivationKind kind, uint64_t k, Extent per,
                            uint64_t n_each) {
  return scratch(name + " " + std::string(name_of(kind)),
                 n_each * device_.activation_row_bytes(kind, k), per, kind);
}

ValueId Emitter::weight(const std::string& name, uint64_t n, uint64_t k) {
  const Weight& weight = tensor(name, n, k);
  Value value{.name = name, .binding = weight.planes[0], .format = weight.format};
  std::copy(weight.planes.begin() + 1, weight.planes.end(), value.more_planes.begin());
  return values_.add(std::move(value));
}

ValueId Emitter::vector(const std::string& name, uint64_t n) {
  const Weight& numbers = tensor(name, 1, n);
  // Tensors of one dimension are loaded as F32, whatever the file has; a matrix [1, n] is not.
  if (numbers.format != Format::f32)
    throw UnsupportedModelError("tensor " + name + " is a matrix of one row in " +
                                std::string(format_info(numbers.format).name) +
                                "; akunu has F32 there, or a vector");
  return bound(name, numbers.planes[0]);
}

void Emitter::norm(const std::string& label, ValueId input, const std::string& name, ValueId out,
                   Extent extent) {
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

void Emitter::matmul(const std::string& label, ValueId input, const std::string& weight_name,
                     uint32_t n, uint32_t k, ValueId out, Extent extent) {
  emit(Operation::matmul, label, {input, weight(weight_name, n, k), out}, MatmulParams{n, k, {}},
       extent);
}

void Emitter::reduce(const std::string& label, ValueId& made, uint32_t n) {
  if (device_.n_ranks() == 1) return;
  const ValueId sum = rows("sum of ranks", n);
  emit(Operation::all_reduce, label + " sum", {made, sum, bound("exchange", device_.exchange())},
       AllReduceParams{n, 0, device_.n_ranks(), 0});
  made = sum;
}

void Emitter::bias_if_present(const std::string& label, ValueId data, const std::string& name,
                              uint32_t n, Extent extent) {
  if (find(name) == nullptr) return;
  emit(Operation::add_bias, label, {data, vector(name, n)}, BiasParams{n, {}}, extent);
}

}  // namespace akunu
