#include "weight/gguf_model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.h"
#include "weight/printable.h"

namespace akunu {
namespace {

class Reader {
 public:
  explicit Reader(const GgufFile& file) : file_(file) {
    const std::optional<std::string_view> architecture = file.get_string("general.architecture");
    if (!architecture) throw ModelFormatError(path() + ": the key general.architecture is missing");
    architecture_ = *architecture;
  }

  ModelConfig read() const {
    if (!is_known_architecture(architecture_))
      refuse("general.architecture is '" + printable(architecture_) + "'; akunu has " +
             known_architectures());
    refuse_what_is_not_here();

    ModelConfig config;
    config.architecture = architecture_;
    config.name = name(config.notes);
    config.dim = required("embedding_length");
    config.n_layers = required("block_count");
    if (!file_.tensors().empty() && config.n_layers > file_.tensors().size())
      throw ModelFormatError(path() + ": " + key("block_count") + " is " +
                             std::to_string(config.n_layers) + "; the file has " +
                             std::to_string(file_.tensors().size()) + " tensors");
    config.n_heads = required("attention.head_count");
    config.n_kv_heads = optional("attention.head_count_kv").value_or(config.n_heads);
    config.ffn_dim = required("feed_forward_length");
    config.context_length = context_length(config.notes);
    config.head_dim = head_dim();
    if (const auto value_length = optional("attention.value_length");
        value_length && *value_length != config.head_dim)
      throw UnsupportedModelError(path() + ": " + key("attention.value_length") + " is " +
                                  std::to_string(*value_length) + ", the keys' length " +
                                  std::to_string(config.head_dim) + "; akunu needs them equal");
    config.rope_dim = optional("rope.dimension_count").value_or(config.head_dim);
    config.rope_theta = number("rope.freq_base").value_or(10000.0f);
    config.rope_linear_factor = rope_linear_factor();
    const std::optional<float> epsilon = number("attention.layer_norm_rms_epsilon");
    if (!epsilon)
      throw ModelFormatError(path() + ": the key " + key("attention.layer_norm_rms_epsilon") +
                             " is missing");
    config.norm_epsilon = *epsilon;

    const GgufTensor* embedding = file_.find_tensor("token_embd.weight");
    if (embedding == nullptr)
      throw ModelFormatError(
          path() + ": tensor token_embd.weight is missing" +
          (file_.tensors().empty() ? "; this file holds a vocabulary only" : ""));
    if (embedding->n_dims != 2 || embedding->dims[1] > std::numeric_limits<uint32_t>::max())
      throw ModelFormatError(path() +
                             ": tensor token_embd.weight is not [vocabulary, embedding length]");
    config.vocab_size = static_cast<uint32_t>(embedding->dims[1]);
    if (const auto tokens = file_.array_length("tokenizer.ggml.tokens");
        tokens && *tokens != config.vocab_size)
      throw ModelFormatError(path() + ": the vocabulary has " + std::to_string(*tokens) +
                             " tokens, tensor token_embd.weight has " +
                             std::to_string(config.vocab_size) + " rows");
    return config;
  }

 private:
  std::string path() const { return printable(file_.path(), kPathLimit); }
  std::string key(std::string_view name) const { return architecture_ + "." + std::string(name); }

  std::optional<uint32_t> optional(std::string_view name) const {
    const std::optional<uint64_t> value = file_.get_uint(key(name));
    if (value && *value > std::numeric_limits<int32_t>::max())
      throw ModelFormatError(path() + ": " + key(name) + " is " + std::to_string(*value) +
                             ", which is out of any sensible range");
    if (!value) return std::nullopt;
    return static_cast<uint32_t>(*value);
  }
  uint32_t required(std::string_view name) const {
    const std::optional<uint32_t> value = optional(name);
    if (!value) throw ModelFormatError(path() + ": the key " + key(name) + " is missing");
    return *value;
  }
  std::optional<float> number(std::string_view name) const {
    const std::optional<double> value = file_.get_float(key(name));
    if (!value) return std::nullopt;
    return static_cast<float>(*value);
  }

  // For people: what is wrong with it must not stop a load, and must not steer a terminal.
  std::string name(std::vector<std::string>& notes) const {
    const GgufValue* value = file_.find("general.name");
    if (value == nullptr) return "";
    if (value->is_array || value->type != GgufValueType::string) {
      notes.push_back("general.name is ignored: it is no text");
      return "";
    }
    constexpr size_t kLongest = 256;
    return printable(file_.get_string("general.name").value(), kLongest);
  }

  // How far a model was trained is its own estimate; what fits is decided later.
  uint32_t context_length(std::vector<std::string>& notes) const {
    constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
    const std::optional<uint64_t> value = file_.get_uint(key("context_length"));
    if (!value)
      throw ModelFormatError(path() + ": the key " + key("context_length") + " is missing");
    if (*value > kMost)
      notes.push_back(key("context_length") + " is " + std::to_string(*value) +
                      ", which is out of any sensible range; it is taken as " +
                      std::to_string(kMost));
    return static_cast<uint32_t>(std::min(*value, kMost));
  }

  // As llama.cpp has it: a factor without a type is a linear one, and 0 is none.
  float rope_linear_factor() const {
    const std::string type(file_.get_string(key("rope.scaling.type")).value_or("linear"));
    if (type == "none") return 1.0f;
    if (type != "linear")
      throw UnsupportedModelError(path() + ": " + key("rope.scaling.type") + " is '" +
                                  printable(type) +
                                  "'; akunu has none and linear, and RoPE factors as a tensor");
    std::optional<float> factor = number("rope.scaling.factor");
    if (!factor) factor = number("rope.scale_linear");  // the key's old name
    return factor.value_or(0.0f) == 0.0f ? 1.0f : *factor;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw UnsupportedModelError(path() + ": " + what);
  }
  [[noreturn]] void refuse_value(std::string_view name, const std::string& value) const {
    refuse(key(name) + " is " + value + "; it is not supported for " + architecture_);
  }

  void refuse_what_is_not_here() const {
    if (const auto type = file_.get_string("general.type"); type && *type != "model")
      refuse("general.type is '" + printable(*type) + "'; akunu loads models");
    if (const auto experts = optional("expert_count"); experts && *experts > 0)
      refuse(key("expert_count") + " is " + std::to_string(*experts) +
             "; mixtures of experts are not supported");
    if (const auto causal = file_.get_bool(key("attention.causal")); causal && !*causal)
      refuse(key("attention.causal") + " is false; encoders are not supported");
    const auto window = optional("attention.sliding_window");
    if (window && *window > 0 && *window < file_.get_uint(key("context_length")).value_or(0))
      refuse(key("attention.sliding_window") + " is " + std::to_string(*window) +
             "; sliding windows are not supported for " + architecture_);
    for (const char* name : {"use_parallel_residual", "swin_norm"})
      if (const auto value = file_.get_bool(key(name)); value && *value) refuse_value(name, "true");
    refuse_numbers_with_an_effect();
  }

  // What other architectures compute with, and these do not: each key may have the values that change nothing.
  void refuse_numbers_with_an_effect() const {
    struct Rule {
      const char* name;
      std::initializer_list<float> neutral;
    };
    const Rule rules[] = {
        // Factors, where 0 means that there is none.
        {"logit_scale", {0, 1}},
        {"residual_scale", {0, 1}},
        {"embedding_scale", {0, 1}},
        {"attention.output_scale", {0, 1}},
        {"attention.value_scale", {0, 1}},
        // Factors that are taken as they are.
        {"rope.scaling.attn_factor", {1}},
        {"rope.scaling.yarn_attn_factor", {1}},
        // Limits, slopes and lengths: only 0 switches them off.
        {"attn_logit_softcapping", {0}},
        {"final_logit_softcapping", {0}},
        {"attention.clamp_kqv", {0}},
        {"attention.max_alibi_bias", {0}},
        {"attention.temperature_scale", {0}},
        {"attention.temperature_length", {0}},
        {"rope.scaling.yarn_ext_factor", {0, -1}},  // -1: not set
    };
    for (const Rule& rule : rules)
      if (const auto value = number(rule.name);
          value &&
          std::find(rule.neutral.begin(), rule.neutral.end(), *value) == rule.neutral.end())
        refuse_value(rule.name, shown(*value));
    if (const auto scale = number("attention.scale"); scale && *scale != 0.0f) {
      const auto usual = static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim())));
      constexpr float kRounding = 1e-6f;  // of whoever computed it in half as many digits, or twice
      if (!(std::abs(*scale - usual) <= kRounding * usual))
        refuse_value("attention.scale", shown(*scale));
    }
  }

  // The shortest digits that give the number back, without a locale.
  static std::string shown(float value) {
    std::array<char, 64> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    return {digits.data(), end};
  }

  uint32_t head_dim() const {
    const uint32_t n_heads = required("attention.head_count");
    if (n_heads == 0) throw ModelFormatError(path() + ": " + key("attention.head_count") + " is 0");
    return optional("attention.key_length").value_or(required("embedding_length") / n_heads);
  }

  const GgufFile& file_;
  std::string architecture_;
};

}  // namespace

ModelConfig read_config(const GgufFile& file) { return Reader(file).read(); }

}  // namespace akunu
