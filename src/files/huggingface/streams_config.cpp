#include "files/huggingface/streams_config.h"

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

namespace akunu {
namespace {

// What the part `below` of a standard normal distribution is below of: bisection, to the last place of
// what a float holds.
float quantile(double below) {
  double low = -40, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    const double part = std::erfc(-middle * std::numbers::sqrt2 / 2) / 2;
    (part < below ? low : high) = middle;
  }
  return static_cast<float>(high);
}

// A number for all layers, or a list of one each.
std::vector<float> of_layers(ConfigObject& config, const char* key, size_t n_layers) {
  const JsonValue* const value = config.find(key);
  if (value == nullptr) return {};
  if (value->kind != JsonValue::Kind::array)
    return std::vector<float>(n_layers, config.number(key).value());
  std::vector<float> listed = config.numbers(key).value();
  if (listed.size() != n_layers)
    config.refuse_value(key, "there are " + std::to_string(listed.size()) + " numbers for " +
                                 std::to_string(n_layers) + " layers");
  return listed;
}

void read_feed_forward(ConfigObject& config, ModelConfig& model) {
  constexpr const char* kLength = "intermediate_size";
  constexpr const char* kSparsity = "activation_sparsity_pattern";
  const size_t n_layers = model.layers.size();
  const std::vector<float> lengths = of_layers(config, kLength, n_layers);
  if (lengths.empty()) config.refuse_missing(kLength);
  std::vector<float> sparsity = of_layers(config, kSparsity, n_layers);
  if (sparsity.empty()) {
    // As transformers has it.
    constexpr size_t kUsual = 10;
    sparsity.assign(n_layers, 0.0f);
    for (size_t i = 0; n_layers > kUsual && i < kUsual; ++i) sparsity[i] = 0.95f;
  }
  for (size_t i = 0; i < n_layers; ++i) {
    constexpr float kMost = 1u << 24;  // whole numbers in a float
    if (!(lengths[i] > 0 && lengths[i] <= kMost && lengths[i] == std::floor(lengths[i])))
      config.refuse_value(kLength, "whole numbers above 0 are needed");
    if (!(sparsity[i] >= 0 && sparsity[i] < 1))
      config.refuse_value(kSparsity, "parts from 0 on and below 1 are needed");
    model.layers[i].ffn_dim = static_cast<uint32_t>(lengths[i]);
    if (sparsity[i] > 0) model.layers[i].gate_cut = quantile(static_cast<double>(sparsity[i]));
  }
}

}  // namespace

void read_hf_streams(ConfigObject& config, ModelConfig& model) {
  read_feed_forward(config, model);
  model.streams = ResidualStreams{.n = config.needed_count("altup_num_inputs", 4),
                                  .active = config.count("altup_active_idx").value_or(0),
                                  .is_scaled = config.flag("altup_correct_scale").value_or(true)};
  config.number("altup_coef_clip");  // of training: transformers clips nothing where a text is made
  config.needed_count("laurel_rank", 64);  // as long as its tensors are
  model.per_layer_dim = config.needed_count("hidden_size_per_layer_input", 256);
  const uint32_t n_tokens = config.needed_count("vocab_size_per_layer_input", 262144);
  if (n_tokens > model.vocab_size)
    config.refuse_support("vocab_size_per_layer_input",
                          "akunu has embeddings for each layer of tokens of the vocabulary");
  model.n_shared_kv_layers = config.count("num_kv_shared_layers").value_or(15);
  if (model.n_shared_kv_layers >= model.layers.size())
    config.refuse_value("num_kv_shared_layers",
                        "a layer at least needs keys and values of its own");
}

}  // namespace akunu
