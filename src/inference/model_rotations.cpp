// What positions do to keys: the rotary frequencies of a model's layers, and the programs that turn keys in the cache
// when a text is shifted. A part of Model (model.h).
#include <cmath>
#include <map>
#include <tuple>

#include "core/error.h"
#include "core/key_rotation.h"
#include "core/table.h"
#include "inference/model.h"
#include "inference/rope_factors.h"

namespace akunu {
namespace {

// Dynamic NTK: a longer context turns slow frequencies slower still, by a larger base.
double stretched_theta(const LayerDescriptor& layer, uint32_t trained, uint32_t context) {
  const double theta = static_cast<double>(layer.rope_theta);
  const double factor = static_cast<double>(layer.rope_dynamic_factor);
  if (factor == 1 || context <= trained || layer.rope_dim <= 2) return theta;
  const double stretch = factor * context / trained - (factor - 1);
  return theta * std::pow(stretch, layer.rope_dim / (layer.rope_dim - 2.0));
}

}  // namespace

// One buffer for layers that rotate alike. write_frequencies fills them once the context is known.
std::vector<Binding> Model::place_frequencies() {
  std::map<std::tuple<uint32_t, float, float, float, bool>, Binding> made;
  std::vector<Binding> bindings;
  for (const LayerDescriptor& layer : arch_.layers) {
    Binding& binding = made[{layer.rope_dim, layer.rope_theta, layer.rope_linear_factor,
                             layer.rope_dynamic_factor, layer.rope_factors}];
    if (!binding && layer.rope_style != RopeStyle::none) {
      frequencies_.emplace_back(device_, layer.rope_dim / 2 * sizeof(float), "constants");
      binding = frequencies_.back().binding();
    }
    bindings.push_back(binding);
  }
  return bindings;
}

// The tensor of factors that holds for this context, if the file has any: the one there is, or of two
// the long one where the context goes beyond what the model was first trained on. It is chosen by the
// context and not by a text's length: rows of texts of all lengths share steps and prefixes.
std::optional<std::string_view> Model::rope_factors() {
  const TensorMap& tensors = weights_->tensors();
  const bool has_long = tensors.contains(kLongRopeFactors);
  if (has_long != tensors.contains(kShortRopeFactors))
    throw ModelFormatError(
        "tensor " + weights_->name_in_file(has_long ? kLongRopeFactors : kShortRopeFactors) +
        " is there, its twin for " + (has_long ? "short" : "long") + " contexts is not");
  if (tensors.contains(kRopeFactors)) {
    if (has_long)
      throw ModelFormatError("tensor " + weights_->name_in_file(kRopeFactors) +
                             " is there, and long and short ones besides");
    return kRopeFactors;
  }
  if (!has_long) return std::nullopt;
  const uint32_t original =
      config_.rope_original_context != 0 ? config_.rope_original_context : config_.context_length;
  if (context_ <= original) return kShortRopeFactors;
  notes_.push_back("positions turn by the factors for contexts beyond " + std::to_string(original) +
                   " (long-RoPE), in short texts too: context is " + std::to_string(context_));
  return kLongRopeFactors;
}

// inverse_frequency[i] = theta^(-2i / rope_dim) / factor[i] / linear factor (Su et al., 2021; the
// factors are Llama 3.1's, computed by whoever made the file, or long-RoPE's).
void Model::write_frequencies() {
  std::vector<float> factors;
  const std::optional<std::string_view> name = rope_factors();
  if (name) {
    const Weight& found = weights_->tensors().find(*name)->second;
    if (found.format != Format::f32 || found.rows != 1)
      throw UnsupportedModelError("tensor " + weights_->name_in_file(*name) +
                                  " is a matrix; akunu has a vector there");
    factors.resize(found.k);
    device_->read(found.planes[0], std::as_writable_bytes(std::span(factors)));
  }
  for (size_t n = 0; n < arch_.layers.size(); ++n) {  // layers that rotate alike share a buffer
    const LayerDescriptor& layer = arch_.layers[n];
    if (layer.rope_style == RopeStyle::none) continue;
    const uint32_t n_pairs = layer.rope_dim / 2;
    if (name && layer.rope_factors && factors.size() != n_pairs)
      throw ModelFormatError("tensor " + weights_->name_in_file(*name) + " has " +
                             std::to_string(factors.size()) + " factors; the rotary dimension " +
                             std::to_string(layer.rope_dim) + " asks for " +
                             std::to_string(n_pairs));
    const double theta = stretched_theta(layer, config_.context_length, context_);
    std::vector<float> inverse(n_pairs);
    for (uint32_t i = 0; i < n_pairs; ++i) {
      const double factor =
          factors.empty() || !layer.rope_factors ? 1.0 : static_cast<double>(factors[i]);
      if (!(factor > 0) || !std::isfinite(factor))
        throw ModelFormatError("tensor " + weights_->name_in_file(*name) + " holds " +
                               std::to_string(factor) + " at " + std::to_string(i) +
                               "; factors must be positive");
      inverse[i] = static_cast<float>(std::pow(theta, -2.0 * i / layer.rope_dim) / factor /
                                      static_cast<double>(layer.rope_linear_factor));
    }
    device_->write(layer_frequencies_[n], std::as_bytes(std::span(inverse)));
  }
}

std::vector<std::byte> Model::frequencies() const {
  std::vector<std::byte> all;
  for (const OwnedBuffer& each : frequencies_) {
    const size_t n = all.size();
    all.resize(n + each.get().size);
    device_->read(each.binding(), std::span(all).subspan(n));
  }
  return all;
}

// What positions do to keys must be a rotation, and only to keys: not so where
// they have a vector, and where a text's cache is a state or belongs to audio.
// Rows of a convolution would have inputs before them that are not theirs.
void Model::compile_rotations(const ForwardMemory& memory, const StepMemory& step) {
  const auto must_read = [](const GroupShape& group) {
    return group.has_states() || std::holds_alternative<InputCache>(group.kind);
  };
  if (arch_.audio || weights_->tensors().contains("position_embedding.weight") ||
      std::ranges::any_of(groups_, must_read))
    return;
  for (const OwnedBuffer& frequencies : frequencies_)
    turns_.emplace_back(device_, 2 * frequencies.get().size, "constants");
  std::vector<Binding> turns(arch_.layers.size());
  for (size_t i = 0; i < turns.size(); ++i)
    for (size_t j = 0; j < frequencies_.size(); ++j)
      if (layer_frequencies_[i].buffer.handle == frequencies_[j].get().handle)
        turns[i] = turns_[j].binding();
  std::vector<Program> programs;
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    Values values;
    const auto nodes = rotation_nodes(arch_, memory, group, turns, *device_, values);
    if (!nodes) return turns_.clear();
    programs.emplace_back();
    if (nodes->empty()) continue;
    compiled_.push_back(device_->compile(
        build_table(*nodes, values, ScratchBindings(values.size()), *device_, RowClass::many),
        step));
    programs.back() = compiled_.back();
  }
  rotations_ = std::move(programs);
}

void Model::write_turns(double positions) {
  for (size_t i = 0; i < turns_.size(); ++i) {
    std::vector<float> frequencies(frequencies_[i].get().size / sizeof(float));
    device_->read(frequencies_[i].binding(), std::as_writable_bytes(std::span(frequencies)));
    std::vector<float> turn;
    for (const float frequency : frequencies) {
      const double angle = positions * static_cast<double>(frequency);
      turn.push_back(static_cast<float>(std::cos(angle)));
      turn.push_back(static_cast<float>(std::sin(angle)));
    }
    device_->write(turns_[i].binding(), std::as_bytes(std::span(turn)));
  }
}

}  // namespace akunu
