#include "weight/gguf_model.h"

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
    config.name = std::string(file_.get_string("general.name").value_or(""));
    config.dim = required("embedding_length");
    config.n_layers = required("block_count");
    if (!file_.tensors().empty() && config.n_layers > file_.tensors().size())
      throw ModelFormatError(path() + ": " + key("block_count") + " is " +
                             std::to_string(config.n_layers) + "; the file has " +
                             std::to_string(file_.tensors().size()) + " tensors");
    config.n_heads = required("attention.head_count");
    config.n_kv_heads = optional("attention.head_count_kv").value_or(config.n_heads);
    config.ffn_dim = required("feed_forward_length");
    config.context_length = required("context_length");
    if (config.n_heads == 0)
      throw ModelFormatError(path() + ": " + key("attention.head_count") + " is 0");
    config.head_dim = optional("attention.key_length").value_or(config.dim / config.n_heads);
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

  float rope_linear_factor() const {
    const std::string type(file_.get_string(key("rope.scaling.type")).value_or("none"));
    const float factor = number("rope.scaling.factor").value_or(1.0f);
    if (type == "linear") return factor;
    if (type != "none")
      throw UnsupportedModelError(path() + ": " + key("rope.scaling.type") + " is '" +
                                  printable(type) +
                                  "'; akunu has none and linear, and RoPE factors as a tensor");
    return number("rope.scale_linear").value_or(1.0f);
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw UnsupportedModelError(path() + ": " + what);
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
    if (window && *window > 0 && *window < optional("context_length").value_or(0))
      refuse(key("attention.sliding_window") + " is " + std::to_string(*window) +
             "; sliding windows are not supported for " + architecture_);
    for (const char* name : {"logit_scale", "residual_scale", "embedding_scale", "attention.scale",
                             "attn_logit_softcapping", "final_logit_softcapping",
                             "attention.clamp_kqv", "attention.max_alibi_bias"})
      if (const auto value = number(name); value && *value != 0.0f && *value != 1.0f)
        refuse(key(name) + " is " + std::to_string(*value) + "; it is not supported for " +
               architecture_);
  }

  const GgufFile& file_;
  std::string architecture_;
};

}  // namespace

ModelConfig read_config(const GgufFile& file) { return Reader(file).read(); }

WeightSource weight_source(const GgufFile& file, const GgufTensor& tensor) {
  const std::string who =
      printable(file.part_of(tensor).path, kPathLimit) + ": tensor " + printable(tensor.name);
  const std::optional<Format> format = format_from_gguf(tensor.type);
  if (!format) {
    std::string name(gguf_type_name(tensor.type));
    if (name.empty()) name = "type " + std::to_string(tensor.type);
    throw UnsupportedModelError(who + " has the number format " + name + "; akunu has " +
                                known_formats());
  }
  if (tensor.n_dims == 0 || tensor.n_dims > 2)
    throw UnsupportedModelError(who + " has " + std::to_string(tensor.n_dims) +
                                " dimensions; akunu has one and two");
  const std::shared_ptr<const MappedFile>& mapping = file.part_of(tensor).mapping;
  return {.name = tensor.name,
          .bytes = file.tensor_bytes(tensor),
          .format = *format,
          .rows = tensor.n_dims == 2 ? tensor.dims[1] : 1,
          .k = tensor.dims[0],
          .owner = mapping,
          .mapping = mapping ? mapping->bytes() : std::span<const std::byte>()};
}

}  // namespace akunu
