#include "files/gguf/model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.h"
#include "files/gguf/keys.h"
#include "files/gguf/recurrent.h"
#include "files/huggingface/rope_scaling.h"
#include "files/printable.h"
#include "files/unknown_parts.h"
#include "models/registry.h"

namespace akunu {
namespace {

class Reader : GgufKeys {
 public:
  explicit Reader(const GgufFile& file) : GgufKeys(file) {}

  ModelConfig read() const {
    if (architecture_ == "clip")
      refuse(
          "this is the encoder of images (mmproj) of a model; load the model, and give this file "
          "as "
          "mmproj");
    const Family* const found = find_family(architecture_);
    if (found == nullptr)
      refuse("general.architecture is '" + printable(architecture_) + "'; akunu has " +
             known_architectures() + unknown_parts(file_, architecture_));
    const FamilyTraits* const family = &found->traits;
    refuse_what_is_not_here(*family);

    ModelConfig config;
    config.architecture = architecture_;
    config.name = name(config.notes);
    config.dim = required("embedding_length");
    config.context_length = context_length(config.notes);
    if (family->experts) config.experts = experts();
    if (family->recurs)
      config.experts.n_layers_ahead = optional("nextn_predict_layers").value_or(0);
    config.layers = layers(*family);
    if (family->layer_shapes) read_layer_shapes(config);
    if (family->streams) read_streams(config);
    if (family->has_audio_encoder && !file_.tensors().empty()) read_audio_encoder(config);
    const uint32_t head_dim = config.layers.empty() ? 0 : config.layers[0].head_dim;
    config.rope.dim = optional("rope.dimension_count").value_or(head_dim);
    config.rope.theta = number("rope.freq_base").value_or(10000.0f);
    config.rope.linear_factor = rope_linear_factor();
    config.rope_attention_factor = number("rope.scaling.attn_factor").value_or(1.0f);
    const std::optional<Yarn> stretched = yarn(config);
    if (stretched && !family->latent) config.rope_attention_factor *= yarn_factor(*stretched);
    config.rope_original_context = optional("rope.scaling.original_context_length").value_or(0);
    if (family->windows) {
      config.window = optional("attention.sliding_window").value_or(0);
      config.rope_theta_windowed = number("rope.freq_base_swa").value_or(0.0f);
    }
    if (family->soft_caps) {
      config.attention_soft_cap = number("attn_logit_softcapping");
      config.logit_soft_cap = number("final_logit_softcapping");
    }
    if (family->attention_scale) config.attention_scale = number("attention.scale").value_or(0.0f);
    if (family->latent) read_latents(stretched, config);
    if (family->convolves) config.convolution.width = required("shortconv.l_cache");
    if (family->scans || family->scans_beside) read_gguf_scan(*this, config.scan);
    if (family->scans_beside)  // no key says it
      config.scan.is_normed = file_.find_tensor("blk.0.ssm_norm.weight") != nullptr;
    if (family->channels_decay)
      read_gguf_channels(*this, config);
    else if (family->recurs)
      read_gguf_delta_rule(*this, *family, config);
    if (family->query_growth) {
      config.rope.query_growth = number("attention.temperature_scale").value_or(0.0f);
      config.rope.query_growth_length = config.rope_original_context;
    }
    if (family->multipliers) {
      config.embedding_scale = number("embedding_scale").value_or(0.0f);
      config.residual_scale = number("residual_scale").value_or(0.0f);
    }
    if (family->logit_scale) {
      if (file_.find(key("logit_scale")) == nullptr)
        throw ModelFormatError(path() + ": the key " + key("logit_scale") + " is missing");
      config.logit_scale = number("logit_scale").value();
    }
    // Of Granite, llama.cpp takes this for a switch.
    if (family->may_not_rotate && !file_.get_bool(key("rope.scaling.finetuned")).value_or(true))
      for (LayerConfig& layer : config.layers) layer.rotates = false;
    const char* const epsilon_key =
        family->layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
    const std::optional<float> epsilon = number(epsilon_key);
    if (!epsilon) throw ModelFormatError(path() + ": the key " + key(epsilon_key) + " is missing");
    config.norm_epsilon = *epsilon;
    read_pooling(*family, config);

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

  std::vector<float> rope_divisors() const {
    const ModelConfig config = read();
    const std::optional<Yarn> stretched = yarn(config);
    if (!stretched) return {};
    if (!(config.rope.theta > 1))  // positions are told apart by its powers
      throw ModelFormatError(path() + ": " + key("rope.freq_base") + " is " +
                             std::to_string(config.rope.theta) + "; YaRN needs one above 1");
    return yarn_divisors(*stretched, {.theta = config.rope.theta,
                                      .rope_dim = config.rope.dim,
                                      .context_length = config.context_length});
  }

 private:
  ExpertConfig experts() const {
    ExpertConfig experts{
        .n = optional("expert_count").value_or(0),
        .n_chosen = optional("expert_used_count").value_or(0),
        .dim = optional("expert_feed_forward_length").value_or(0),
        .shared_dim = optional("expert_shared_feed_forward_length").value_or(0),
        .n_leading_dense = optional("leading_dense_block_count").value_or(0),
        .scoring = {},
        .normalised = file_.get_bool(key("expert_weights_norm")),
        .scale = number("expert_weights_scale").value_or(0.0f),
        .n_groups = optional("expert_group_count").value_or(0),
        .n_groups_chosen = optional("expert_group_used_count").value_or(0),
    };
    experts.n_layers_ahead = optional("nextn_predict_layers").value_or(0);
    if (experts.n > 0 && experts.n_chosen == 0)
      throw ModelFormatError(path() + ": the key " + key("expert_used_count") + " is missing or 0");
    if (experts.shared_dim == 0)
      experts.shared_dim = optional("expert_shared_count").value_or(0) * experts.dim;
    const uint32_t scoring = optional("expert_gating_func").value_or(0);  // 0: the family decides
    constexpr Scoring kScorings[] = {Scoring::softmax, Scoring::sigmoid, Scoring::chosen};
    if (scoring > std::size(kScorings))
      refuse(key("expert_gating_func") + " is " + std::to_string(scoring) +
             "; akunu has 1 (softmax), 2 (sigmoid) and 3 (softmax of the chosen)");
    if (scoring > 0) experts.scoring = kScorings[scoring - 1];
    return experts;
  }

  // Pooling types as llama.cpp numbers them. A generative family whose file names one is an embedding model.
  void read_pooling(const FamilyTraits& family, ModelConfig& config) const {
    const std::optional<uint32_t> type = optional("pooling_type");
    config.embeds = family.encoder || type.value_or(0) != 0;
    if (!type) return;
    switch (*type) {
      case 0:
        config.pooling = Pooling::none;
        return;
      case 1:
        config.pooling = Pooling::mean;
        return;
      case 2:
        config.pooling = Pooling::first;
        return;
      case 3:
        config.pooling = Pooling::last;
        return;
      case 4:  // a classifier reads the first row; where that sees nothing, the last one
        config.pooling = family.encoder ? Pooling::first : Pooling::last;
        return;
      default:
        refuse(key("pooling_type") + " is " + std::to_string(*type) +
               "; akunu has 0 (none), 1 (mean), 2 (cls), 3 (last) and 4 (rank)");
    }
  }

  // What the file says of every layer: one number for all, or a list of one each.
  std::vector<uint32_t> per_layer(std::string_view name, size_t n_layers) const {
    const GgufValue* const value = file_.find(key(name));
    if (value == nullptr || !value->is_array)
      return std::vector<uint32_t>(n_layers, optional(name).value_or(0));
    std::vector<uint32_t> numbers;
    const std::vector<int64_t> said = file_.get_int_array(key(name)).value();
    for (const int64_t number : said) {
      if (number < 0 || number > std::numeric_limits<int32_t>::max())
        throw ModelFormatError(path() + ": " + key(name) + " holds " + std::to_string(number) +
                               ", which is out of any sensible range");
      numbers.push_back(static_cast<uint32_t>(number));
    }
    check_length(name, numbers.size(), n_layers);
    return numbers;
  }

  void check_block_count(std::string_view name, uint32_t n_layers) const {
    if (n_layers > file_.tensors().size())
      throw ModelFormatError(path() + ": " + key(name) + " is " + std::to_string(n_layers) +
                             "; the file has " + std::to_string(file_.tensors().size()) +
                             " tensors");
  }

  // The keys "encoder.*" of a model of speech; its layers are alike.
  void read_audio_encoder(ModelConfig& config) const {
    config.n_mels = required("encoder.mel_count");
    config.audio_positions = required("encoder.context_length");
    const uint32_t n_layers = required("encoder.block_count");
    check_block_count("encoder.block_count", n_layers);
    const uint32_t n_heads = required("encoder.attention.head_count");
    if (n_heads == 0 || config.dim % n_heads != 0)
      throw ModelFormatError(path() + ": " + key("encoder.attention.head_count") + " is " +
                             std::to_string(n_heads) + ", which does not divide " +
                             key("embedding_length") + ", " + std::to_string(config.dim));
    config.audio_layers.assign(n_layers, {.n_heads = n_heads,
                                          .n_kv_heads = n_heads,
                                          .head_dim = config.dim / n_heads,
                                          .ffn_dim = required("encoder.feed_forward_length"),
                                          .windowed = {},
                                          .rotates = {}});
  }

  void check_length(std::string_view name, size_t n, size_t n_layers) const {
    if (n != n_layers)
      throw ModelFormatError(path() + ": " + key(name) + " has " + std::to_string(n) +
                             " entries for " + std::to_string(n_layers) + " layers");
  }

  std::vector<LayerConfig> layers(const FamilyTraits& family) const {
    const uint32_t n_blocks = required("block_count");
    if (file_.tensors().empty()) return {};  // a vocabulary only
    const bool may_have_ahead = family.experts || family.recurs;
    const uint32_t ahead = may_have_ahead ? optional("nextn_predict_layers").value_or(0) : 0;
    if (ahead > n_blocks)
      throw ModelFormatError(path() + ": " + key("nextn_predict_layers") + " is " +
                             std::to_string(ahead) + ", and there are " + std::to_string(n_blocks) +
                             " layers");
    const uint32_t n_layers = n_blocks - ahead;
    check_block_count("block_count", n_layers);
    // Where all layers have experts, their length is enough.
    const bool needs_length =
        !family.experts || file_.find(key("expert_feed_forward_length")) == nullptr;
    for (const std::string_view name : {"attention.head_count", "feed_forward_length"})
      if (file_.find(key(name)) == nullptr && (needs_length || name != "feed_forward_length"))
        throw ModelFormatError(path() + ": the key " + key(name) + " is missing");
    const std::vector<uint32_t> n_heads = per_layer("attention.head_count", n_layers);
    const std::vector<uint32_t> n_kv_heads = file_.find(key("attention.head_count_kv")) == nullptr
                                                 ? n_heads
                                                 : per_layer("attention.head_count_kv", n_layers);
    const std::vector<uint32_t> ffn_dim = per_layer("feed_forward_length", n_layers);
    const std::vector<std::optional<bool>> windowed = windowed_layers(n_layers, family);
    std::vector<LayerConfig> layers;
    for (uint32_t i = 0; i < n_layers; ++i)
      layers.push_back({.n_heads = n_heads[i],
                        .n_kv_heads = n_kv_heads[i],
                        // Where all layers scan, there are no heads.
                        .head_dim = family.alternates && n_heads[i] == 0 ? 0 : head_dim(n_heads[i]),
                        .ffn_dim = ffn_dim[i],
                        .windowed = windowed[i],
                        .rotates = {},
                        .convolves = family.convolves && n_kv_heads[i] == 0,
                        .recurs = family.channels_decay && n_kv_heads[i] == 0,
                        .scans = family.scans_beside || (family.scans && n_kv_heads[i] == 0 &&
                                                         !(family.alternates && ffn_dim[i] != 0))});
    return layers;
  }

  // The pattern is a list of one entry per layer, or a period: every so many layers, one sees all.
  std::vector<std::optional<bool>> windowed_layers(uint32_t n_layers,
                                                   const FamilyTraits& family) const {
    constexpr std::string_view kPattern = "attention.sliding_window_pattern";
    std::vector<std::optional<bool>> windowed(n_layers);
    const GgufValue* const value = file_.find(key(kPattern));
    if (value == nullptr) return windowed;
    if (value->is_array) {
      if (value->type == GgufValueType::boolean) {
        const std::vector<bool> said = file_.get_bool_array(key(kPattern)).value();
        check_length(kPattern, said.size(), n_layers);
        windowed.assign(said.begin(), said.end());
      } else {
        const std::vector<uint32_t> said = per_layer(kPattern, n_layers);
        for (uint32_t i = 0; i < n_layers; ++i) windowed[i] = said[i] != 0;
      }
      return windowed;
    }
    const uint32_t period = required(kPattern);
    const uint32_t at = family.full_layer_first ? 0 : 1;
    for (uint32_t i = 0; i < n_layers; ++i) windowed[i] = period == 0 || (i + at) % period != 0;
    return windowed;
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

  // Latent attention. Newer files say what attention sees in `key_length` and `value_length`, a cached row,
  // and of a head what older ones say there in keys of their own.
  void read_latents(const std::optional<Yarn>& stretched, ModelConfig& config) const {
    config.latent.rank = required("attention.kv_lora_rank");
    config.latent.query_rank = optional("attention.q_lora_rank").value_or(0);
    const uint32_t n_heads = config.layers.empty() ? 0 : config.layers[0].n_heads;
    const uint32_t head_dim = config.layers.empty() ? 0 : config.layers[0].head_dim;
    const auto of_head = optional("attention.value_length_mla");
    config.latent.value_dim =
        of_head
            ? *of_head
            : optional("attention.value_length").value_or(n_heads == 0 ? 0 : config.dim / n_heads);
    if (optional("attention.key_length_mla").has_value() != of_head.has_value())
      throw ModelFormatError(path() + ": of the keys " + key("attention.key_length_mla") + " and " +
                             key("attention.value_length_mla") + " one is missing");
    if (of_head) {
      check_cached("attention.key_length", config.latent.rank + config.rope.dim);
      // Where layers recur, llama.cpp's converter writes no such number, or another one.
      if (!find_family(architecture_)->traits.recurs)
        check_cached("attention.value_length", config.latent.rank);
    }
    for (LayerConfig& layer : config.layers) {
      if (layer.recurs) continue;
      if (layer.n_kv_heads != 1 && layer.n_kv_heads != layer.n_heads)
        throw ModelFormatError(path() + ": " + key("attention.head_count_kv") + " is " +
                               std::to_string(layer.n_kv_heads) + "; latent attention has 1, or " +
                               std::to_string(layer.n_heads) + " as there are heads");
      layer.n_kv_heads = layer.n_heads;
    }
    if (!stretched || head_dim == 0) return;
    // As llama.cpp has it: a tenth of `mscale_all_dim`, and `mscale` is the same.
    const std::optional<float> by = number("rope.scaling.yarn_log_multiplier");
    if (!by || *by == 0)
      refuse(key("rope.scaling.type") + " is 'yarn' and " +
             key("rope.scaling.yarn_log_multiplier") +
             " is not there; it is needed for latent attention");
    const double magnitude = static_cast<double>(config.rope_attention_factor) *
                             yarn_magnitude(stretched->factor, 10 * static_cast<double>(*by));
    if (config.attention_scale == 0)
      config.attention_scale =
          static_cast<float>(magnitude * magnitude / std::sqrt(static_cast<double>(head_dim)));
  }

  void check_cached(std::string_view name, uint32_t wanted) const {
    if (const auto said = optional(name); said && *said != wanted)
      throw ModelFormatError(path() + ": " + key(name) + " is " + std::to_string(*said) +
                             "; what latent attention caches has " + std::to_string(wanted) +
                             " numbers there");
  }

  std::string scaling_type() const {
    return std::string(file_.get_string(key("rope.scaling.type")).value_or("linear"));
  }

  // As llama.cpp has it: a factor without a type is a linear one, and 0 is none.
  float scaling_factor() const {
    std::optional<float> factor = number("rope.scaling.factor");
    if (!factor) factor = number("rope.scale_linear");  // the key's old name
    return factor.value_or(0.0f) == 0.0f ? 1.0f : *factor;
  }

  float rope_linear_factor() const {
    const std::string type = scaling_type();
    if (type == "none" || type == "yarn") return 1.0f;
    if (type != "linear" && type != "longrope")
      throw UnsupportedModelError(
          path() + ": " + key("rope.scaling.type") + " is '" + printable(type) +
          "'; akunu has none, linear, yarn and longrope, and RoPE factors as tensors");
    return scaling_factor();
  }

  std::optional<Yarn> yarn(const ModelConfig& config) const {
    if (scaling_type() != "yarn") return std::nullopt;
    if (find_family(architecture_)->traits.soft_caps)  // whose windowed layers would need others
      refuse_value("rope.scaling.type", "'yarn'");
    Yarn yarn{.factor = static_cast<double>(scaling_factor()),
              .original_context = optional("rope.scaling.original_context_length").value_or(0)};
    if (yarn.original_context == 0) yarn.original_context = config.context_length;
    yarn.beta_fast = static_cast<double>(number("rope.scaling.yarn_beta_fast").value_or(32.0f));
    yarn.beta_slow = static_cast<double>(number("rope.scaling.yarn_beta_slow").value_or(1.0f));
    if (!(yarn.factor > 0) || !(yarn.beta_slow > 0) || !(yarn.beta_fast > yarn.beta_slow))
      throw ModelFormatError(path() + ": " + key("rope.scaling") + ".* makes no sense: factor is " +
                             std::to_string(yarn.factor) + ", yarn_beta_fast " +
                             std::to_string(yarn.beta_fast) + ", yarn_beta_slow " +
                             std::to_string(yarn.beta_slow));
    return yarn;
  }

  // A file may have the numerator of its factor only, or both.
  float yarn_factor(const Yarn& yarn) const {
    const auto factor = static_cast<float>(yarn_attention_factor(yarn));
    const float by = number("rope.scaling.yarn_log_multiplier").value_or(0.0f);
    if (by == 0 || yarn.factor <= 1) return factor;
    return factor / (0.1f * by * std::log(static_cast<float>(yarn.factor)) + 1);
  }

  [[noreturn]] void refuse_value(std::string_view name, const std::string& value) const {
    refuse(key(name) + " is " + value + "; it is not supported for " + architecture_);
  }

  void refuse_what_is_not_here(const FamilyTraits& family) const {
    if (const auto type = file_.get_string("general.type"); type && *type != "model")
      refuse("general.type is '" + printable(*type) + "'; akunu loads models");
    if (const auto experts = optional("expert_count"); experts && *experts > 0 && !family.experts)
      refuse(key("expert_count") + " is " + std::to_string(*experts) +
             "; experts are not supported for " + architecture_);
    if (const auto causal = file_.get_bool(key("attention.causal"));
        causal && *causal == family.encoder)
      refuse(key("attention.causal") + " is " + (*causal ? "true" : "false") +
             "; it is not supported for " + architecture_);
    const auto window = optional("attention.sliding_window");
    if (!family.windows && window && *window > 0 &&
        *window < file_.get_uint(key("context_length")).value_or(0))
      refuse(key("attention.sliding_window") + " is " + std::to_string(*window) +
             "; sliding windows are not supported for " + architecture_);
    for (const char* name : {"use_parallel_residual", "swin_norm"})
      if (const auto value = file_.get_bool(key(name)); value && *value) refuse_value(name, "true");
    refuse_numbers_with_an_effect(family);
  }

  // What other architectures compute with, and these do not: each key may have the values that change nothing.
  void refuse_numbers_with_an_effect(const FamilyTraits& family) const {
    struct Rule {
      const char* name;
      std::initializer_list<float> neutral;
      bool taken = false;  // by this family
    };
    const Rule rules[] = {
        // Factors, where 0 means that there is none.
        {"logit_scale", {0, 1}, family.logit_scale},
        {"residual_scale", {0, 1}, family.multipliers},
        {"embedding_scale", {0, 1}, family.multipliers},
        {"attention.output_scale", {0, 1}},
        {"attention.value_scale", {0, 1}},
        // Layers without experts among those that have some.
        {"interleave_moe_layer_step", {0, 1}},
        // Factors that are taken as they are.
        {"rope.scaling.yarn_attn_factor", {1}},
        // Limits, slopes and lengths: only 0 switches them off.
        {"attn_logit_softcapping", {0}, family.soft_caps},
        {"final_logit_softcapping", {0}, family.soft_caps},
        {"attention.clamp_kqv", {0}},
        {"attention.max_alibi_bias", {0}},
        {"attention.temperature_scale", {0}, family.query_growth},
        {"attention.temperature_length", {0}},
        {"rope.scaling.yarn_ext_factor",
         {scaling_type() == "yarn" ? 1.0f : 0.0f, -1}},  // -1: unset
    };
    for (const Rule& rule : rules)
      if (const auto value = number(rule.name);
          value && !rule.taken &&
          std::find(rule.neutral.begin(), rule.neutral.end(), *value) == rule.neutral.end())
        refuse_value(rule.name, shown(*value));
    if (const auto scale = number("attention.scale");
        !family.attention_scale && scale && *scale != 0.0f) {
      const uint32_t length = head_dim(required("attention.head_count"));
      const auto usual = static_cast<float>(1 / std::sqrt(static_cast<double>(length)));
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

  uint32_t head_dim(uint32_t n_heads) const {
    if (n_heads == 0) throw ModelFormatError(path() + ": " + key("attention.head_count") + " is 0");
    const bool is_latent = find_family(architecture_)->traits.latent;
    const auto of_head =
        is_latent ? optional("attention.key_length_mla") : std::optional<uint32_t>();
    const auto length = of_head ? of_head : optional("attention.key_length");
    const uint32_t head_dim = length.value_or(required("embedding_length") / n_heads);
    if (is_latent) return head_dim;
    check_values("attention.value_length", head_dim);
    return head_dim;
  }

  void check_values(std::string_view name, uint32_t head_dim) const {
    if (const auto length = optional(name); length && *length != head_dim)
      throw UnsupportedModelError(path() + ": " + key(name) + " is " + std::to_string(*length) +
                                  ", the keys' length " + std::to_string(head_dim) +
                                  "; akunu needs them equal");
  }

  // Windowed layers have keys of their own. A layer without a tensor of values has those of its keys.
  void read_layer_shapes(ModelConfig& config) const {
    config.per_layer_dim = optional("embedding_length_per_layer_input").value_or(0);
    config.n_shared_kv_layers = optional("attention.shared_kv_layers").value_or(0);
    const std::optional<uint32_t> windowed_dim = optional("attention.key_length_swa");
    const std::optional<uint32_t> windowed_rope_dim = optional("rope.dimension_count_swa");
    for (size_t i = 0; i < config.layers.size(); ++i) {
      LayerConfig& layer = config.layers[i];
      if (!layer.windowed)
        throw ModelFormatError(path() + ": the key " + key("attention.sliding_window_pattern") +
                               " is missing");
      if (*layer.windowed && windowed_dim) {
        layer.head_dim = *windowed_dim;
        check_values("attention.value_length_swa", layer.head_dim);
      }
      if (*layer.windowed) layer.rope_dim = windowed_rope_dim.value_or(layer.head_dim);
      layer.values_are_keys =
          i + config.n_shared_kv_layers < config.layers.size() &&
          file_.find_tensor("blk." + std::to_string(i) + ".attn_v.weight") == nullptr;
    }
  }

  // Gemma 3n's. Minus infinity stands for gates that are not cut.
  void read_streams(ModelConfig& config) const {
    constexpr std::string_view kCuts = "activation_sparsity_scale";
    const uint32_t n = required("altup.num_inputs");
    config.streams = ResidualStreams{.n = n, .active = required("altup.active_idx")};
    if (n != 4)
      refuse(key("altup.num_inputs") + " is " + std::to_string(n) + "; akunu has 4 in GGUF");
    const std::optional<std::vector<double>> cuts = file_.get_float_array(key(kCuts));
    if (!cuts) throw ModelFormatError(path() + ": the key " + key(kCuts) + " is missing");
    check_length(kCuts, cuts->size(), config.layers.size());
    for (size_t i = 0; i < cuts->size(); ++i)
      if ((*cuts)[i] != -std::numeric_limits<double>::infinity())
        config.layers[i].gate_cut = static_cast<float>((*cuts)[i]);
  }
};

}  // namespace

ModelConfig read_config(const GgufFile& file) { return Reader(file).read(); }

std::vector<float> read_rope_divisors(const GgufFile& file) { return Reader(file).rope_divisors(); }

}  // namespace akunu
