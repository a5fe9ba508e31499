#include "inference/frequencies.h"

#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>

#include "core/error.h"
#include "inference/rope_factors.h"

namespace akunu {
namespace {

// Dynamic NTK: a longer context turns slow frequencies slower still, by a larger base.
double stretched_theta(const Rope& rope, uint32_t trained, uint32_t context) {
  const double theta = static_cast<double>(rope.theta);
  const double factor = static_cast<double>(rope.dynamic_factor);
  if (factor == 1 || context <= trained || rope.dim <= 2) return theta;
  const double stretch = factor * context / trained - (factor - 1);
  return theta * std::pow(stretch, rope.dim / (rope.dim - 2.0));
}

// The tensor of factors that holds for this context, if the file has any: the one there is, or of two
// the long one where the context goes beyond what the model was first trained on. It is chosen by the
// context and not by a text's length: rows of texts of all lengths share steps and prefixes.
std::optional<std::string_view> rope_factors(const Weights& weights, uint32_t context,
                                             std::vector<std::string>& notes) {
  const TensorMap& tensors = weights.tensors->map();
  const bool has_long = tensors.contains(kLongRopeFactors);
  if (has_long != tensors.contains(kShortRopeFactors))
    throw ModelFormatError(
        "tensor " + weights.tensors->name_in_file(has_long ? kLongRopeFactors : kShortRopeFactors) +
        " is there, its twin for " + (has_long ? "short" : "long") + " contexts is not");
  if (tensors.contains(kRopeFactors)) {
    if (has_long)
      throw ModelFormatError("tensor " + weights.tensors->name_in_file(kRopeFactors) +
                             " is there, and long and short ones besides");
    return kRopeFactors;
  }
  if (!has_long) return std::nullopt;
  const ModelConfig& config = weights.config;
  const uint32_t original =
      config.rope_original_context != 0 ? config.rope_original_context : config.context_length;
  if (context <= original) return kShortRopeFactors;
  notes.push_back("positions turn by the factors for contexts beyond " + std::to_string(original) +
                  " (long-RoPE), in short texts too: context is " + std::to_string(context));
  return kLongRopeFactors;
}

// theta^(-2i / rope_dim) / linear factor (Su et al., 2021). For each axis of an image they begin again.
std::vector<float> inverse_frequencies(const Rope& rope, double theta,
                                       std::span<const double> factors = {}) {
  const uint32_t n = rope.n_frequencies();
  std::vector<float> inverse(rope.dim / 2);
  for (uint32_t i = 0; i < inverse.size(); ++i)
    inverse[i] = static_cast<float>(std::pow(theta, -2.0 * (i % n) / (2.0 * n)) /
                                    (factors.empty() ? 1.0 : factors[i]) /
                                    static_cast<double>(rope.linear_factor));
  return inverse;
}

}  // namespace

Frequencies::Frequencies(const Weights& weights, const std::shared_ptr<Device>& device)
    : device_(device) {
  std::map<std::tuple<uint32_t, float, float, float, bool>, Binding> made;
  for (const LayerDescriptor& layer : weights.arch.layers) {
    if (!layer.rotates()) {
      of_layers_.emplace_back();
      continue;
    }
    const Rope& rope = *layer.rope();
    Binding& binding = made[{rope.dim, rope.theta, rope.linear_factor, rope.dynamic_factor,
                             rope.has_model_factors}];
    if (!binding) {
      buffers_.emplace_back(device_, rope.dim / 2 * sizeof(float), "constants");
      binding = buffers_.back().binding();
    }
    of_layers_.push_back(binding);
  }
  if (!weights.arch.images || !weights.arch.images->layers.at(0).rotates()) return;
  const Rope& rope = *weights.arch.images->layers[0].rope();
  const std::vector<float> inverse = inverse_frequencies(rope, static_cast<double>(rope.theta));
  of_images_.emplace(device_, inverse.size() * sizeof(float), "constants");
  device_->write(of_images_->binding(), std::as_bytes(std::span(inverse)));
}

// Those of Llama 3.1 or of LongRoPE are divided by factors that the file has.
std::vector<std::string> Frequencies::write(const Weights& weights, uint32_t context) {
  std::vector<std::string> notes;
  std::vector<float> factors;
  const DeviceTensors& tensors = *weights.tensors;
  const std::optional<std::string_view> name = rope_factors(weights, context, notes);
  if (name) {
    const Weight& found = tensors.map().find(*name)->second;
    if (found.format != Format::f32 || found.rows != 1)
      throw UnsupportedModelError("tensor " + tensors.name_in_file(*name) +
                                  " is a matrix; akunu has a vector there");
    factors.resize(found.k);
    device_->read(found.planes[0], std::as_writable_bytes(std::span(factors)));
  }
  for (size_t n = 0; n < of_layers_.size(); ++n) {  // layers that rotate alike share a buffer
    if (!weights.arch.layers[n].rotates()) continue;
    const Rope& rope = *weights.arch.layers[n].rope();
    const uint32_t n_pairs = rope.dim / 2;
    if (name && rope.has_model_factors && factors.size() != n_pairs)
      throw ModelFormatError("tensor " + tensors.name_in_file(*name) + " has " +
                             std::to_string(factors.size()) + " factors; the rotary dimension " +
                             std::to_string(rope.dim) + " asks for " + std::to_string(n_pairs));
    std::vector<double> divisors;
    if (rope.has_model_factors) divisors.assign(factors.begin(), factors.end());
    for (size_t i = 0; i < divisors.size(); ++i)
      if (!(divisors[i] > 0) || !std::isfinite(divisors[i]))
        throw ModelFormatError("tensor " + tensors.name_in_file(*name) + " holds " +
                               std::to_string(divisors[i]) + " at " + std::to_string(i) +
                               "; factors must be positive");
    const std::vector<float> inverse = inverse_frequencies(
        rope, stretched_theta(rope, weights.config.context_length, context), divisors);
    device_->write(of_layers_[n], std::as_bytes(std::span(inverse)));
  }
  return notes;
}

std::vector<std::byte> Frequencies::bytes() const {
  std::vector<std::byte> all;
  for (const OwnedBuffer& each : buffers_) {
    const size_t n = all.size();
    all.resize(n + each.get().size);
    device_->read(each.binding(), std::span(all).subspan(n));
  }
  return all;
}

}  // namespace akunu
