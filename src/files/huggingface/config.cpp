// Reads a `config.json` of Hugging Face. config.h says what comes out.
//
// 1. What it does. Finds the family by `model_type` and turns its keys into a ModelConfig, as a GGUF
//    file's metadata would be. What the file leaves out is what transformers takes.
// 2. What bounds it. Nothing: it runs once, at load. What it must not do is misread: a key that changes
//    what is computed is honoured or refused (UnsupportedModelError), and one that it does not know
//    becomes a note.
// 3. Where to change it. What a family's keys mean stands in its file (models/hf_model.h). Families with
//    other keys, the encoders: hf_encoder_config.cpp. A key without effect: hf_unread_keys.cpp. One with
//    harmless values: kNeutral.
#include "files/huggingface/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "files/huggingface/config_object.h"
#include "files/huggingface/convolution_config.h"
#include "files/huggingface/expert_config.h"
#include "files/huggingface/images.h"
#include "files/huggingface/latent_config.h"
#include "files/huggingface/layer_shapes.h"
#include "files/huggingface/rope_scaling.h"
#include "files/huggingface/streams_config.h"
#include "files/huggingface/unread_keys.h"
#include "files/printable.h"
#include "models/registry.h"

namespace akunu {
namespace {

// Keys of computations that these families do not have. A file may have them with a value that changes
// nothing; any other is refused.
struct NeutralRule {
  std::string_view key;
  std::initializer_list<double> neutral;
};
constexpr std::array kNeutral{
    NeutralRule{"logits_scaling", {1}},
    NeutralRule{"logit_scale", {1}},
    NeutralRule{"residual_multiplier", {1}},
    NeutralRule{"embedding_multiplier", {1}},
    NeutralRule{"attention_multiplier", {1}},
    NeutralRule{"num_experts", {0, 1}},
    NeutralRule{"num_local_experts", {0, 1}},
    NeutralRule{"n_routed_experts", {0}},
    NeutralRule{"num_nextn_predict_layers", {0}},
    NeutralRule{"clip_qkv", {}},
    NeutralRule{"rotary_pct", {1}},
};

class HfConfigReader {
 public:
  HfConfigReader(const FoundHfModel& found, ConfigObject& config)
      : family_(*found.family), model_(*found.model), config_(config) {}

  HfConfig read(uint32_t n_layers) {
    HfConfig result;
    ModelConfig& model = result.model;
    refuse_what_is_not_here();
    result.names = model_.names;
    result.stacks = model_.stacks;
    result.tied = config_.flag("tie_word_embeddings");
    if (family_.traits.convolves && !result.tied) result.tied = config_.flag("tie_embedding");
    model.architecture = family_.architecture;
    if (is_later_gemma() && config_.flag("use_bidirectional_attention").value_or(false))
      model.architecture = "gemma-embedding";
    model.dim = config_.needed_count("hidden_size");
    model.vocab_size = config_.needed_count("vocab_size", model_.vocab_size);
    model.context_length = config_.needed_count(model_.context_key, model_.context_length);
    model.norm_epsilon = config_.number(model_.epsilon_key).value_or(model_.norm_epsilon);
    if (!(model.norm_epsilon > 0)) config_.refuse_value(model_.epsilon_key, "it must be above 0");
    read_layers(model, n_layers);
    if (model_.experts) read_hf_experts(config_, *model_.experts, model_.model_type, model);
    if (model_.read_layers != nullptr) model_.read_layers(config_, result);
    read_unrotated(model);
    read_windows(model);
    read_multipliers(model);
    if (model_.shapes) {
      read_hf_layer_shapes(config_, *model_.shapes, model);
      model.logit_soft_cap = soft_cap("final_logit_softcapping").value_or(0);
      model.rope_style = RopeStyle::halves;
      result.rope_divisors = read_hf_rope_of_shapes(config_, model);
      return result;
    }
    if (family_.traits.streams) {
      read_hf_streams(config_, model);
      model.logit_soft_cap = soft_cap("final_logit_softcapping");
    }
    if (is_later_gemma()) {
      const float scale_dim =
          config_.number("query_pre_attn_scalar").value_or(static_cast<float>(model_.scale_dim));
      if (!(scale_dim > 0)) config_.refuse_value("query_pre_attn_scalar", "it must be above 0");
      model.attention_scale = 1.0f / std::sqrt(scale_dim);
      model.attention_soft_cap = soft_cap("attn_logit_softcapping");
      model.logit_soft_cap = soft_cap("final_logit_softcapping");
    }
    read_rope(result);
    return result;
  }

 private:
  bool is_later_gemma() const { return model_.scale_dim != 0; }

  void refuse_what_is_not_here() {
    for (const NeutralRule& rule : kNeutral)
      if (const std::optional<float> value =
              is_taken(rule.key) ? std::nullopt : config_.number(rule.key);
          value &&
          std::ranges::find(rule.neutral, static_cast<double>(*value)) == rule.neutral.end())
        config_.refuse_support(rule.key, "it is not supported for " + type());
    for (const std::string_view key : {"use_bidirectional_attention", "add_cross_attention",
                                       "use_qk_norm", "use_cla", "use_mla"}) {
      config_.find(key);
      if (!is_taken(key) && config_.flag(key).value_or(false))
        config_.refuse_support(key, "it is not supported for " + type());
    }
    if (!config_.flag("is_causal").value_or(true) && !family_.traits.encoder)
      config_.refuse_support("is_causal", "encoders are not supported");
    check_activation();
  }

  std::string type() const { return std::string(model_.model_type); }

  void check_activation() {
    const std::optional<std::string> named = config_.text("hidden_activation");
    const std::optional<std::string> usual = config_.text("hidden_act");
    const char* const key = named ? "hidden_activation" : "hidden_act";
    const std::optional<std::string>& activation = named ? named : usual;
    if (!activation) return;
    const std::string_view has = model_.activation;
    const bool known =
        *activation == has || (has == "silu" && *activation == "swish") ||
        (model_.means_gelu_tanh && (*activation == "gelu" || *activation == "gelu_new"));
    if (!known) config_.refuse_support(key, "akunu has " + std::string(has) + " for " + type());
  }

  void read_layers(ModelConfig& model, uint32_t n_layers) {
    if (!model_.has_attention) {
      model.layers.resize(n_layers);
      return;
    }
    LayerConfig layer;
    layer.n_heads = config_.needed_count("num_attention_heads", model_.n_heads);
    layer.n_kv_heads = config_.needed_count(
        "num_key_value_heads", model_.n_kv_heads != 0 ? model_.n_kv_heads : layer.n_heads);
    if (layer.n_heads % layer.n_kv_heads != 0)
      config_.refuse_value(
          "num_key_value_heads",
          "num_attention_heads is " + std::to_string(layer.n_heads) + ", which it does not divide");
    if (model_.latents)
      layer.head_dim = read_hf_latents(config_, *model_.latents, layer.n_heads, model);
    else
      layer.head_dim = config_.needed_count(
          "head_dim", model_.head_dim != 0 ? model_.head_dim : model.dim / layer.n_heads);
    config_.find("intermediate_size");  // of experts, where ffn_key is another
    if (!family_.traits.streams)        // whose layers may differ
      layer.ffn_dim = family_.traits.convolves ? read_hf_adjusted_ffn_dim(config_)
                                               : config_.needed_count(model_.ffn_key);
    model.layers.assign(n_layers, layer);
  }

  // nullopt: the file says nothing, and the family decides; 0: none.
  std::optional<float> soft_cap(std::string_view key) {
    if (config_.has_null(key)) return 0.0f;
    return config_.number(key);
  }

  // Whether this family computes with a key that others may have with neutral values only.
  bool is_taken(std::string_view key) const {
    return std::ranges::find(model_.own_keys, key) != model_.own_keys.end() ||
           (model_.experts && is_expert_key(*model_.experts, key));
  }

  float factor(std::string_view key, float usual) {
    const float value = config_.number(key).value_or(usual);
    if (!(value > 0) || !std::isfinite(value)) config_.refuse_value(key, "it must be above 0");
    return value;
  }

  void read_multipliers(ModelConfig& model) {
    if (family_.traits.multipliers) {
      model.embedding_scale = factor("embedding_multiplier", 1);
      model.residual_scale = factor("residual_multiplier", 1);
      model.attention_scale = factor("attention_multiplier", 1);
      model.logit_scale = factor("logits_scaling", 1);
    }
    if (model_.names_factors) {
      const auto n_layers = static_cast<float>(model.layers.size());
      const auto dim = static_cast<float>(model.dim);
      model.embedding_scale = factor("scale_emb", 12);
      model.residual_scale =
          config_.has_null("scale_depth") ? 1 : factor("scale_depth", 1.4f) / std::sqrt(n_layers);
      model.logit_scale =
          config_.has_null("dim_model_base") ? 1 : dim / factor("dim_model_base", 256);
    }
    if (model_.logit_scale != 0) model.logit_scale = factor("logit_scale", model_.logit_scale);
  }

  // Layers without rotary positions, where the file says which.
  void read_unrotated(ModelConfig& model) {
    if (model_.names_positions) {
      const std::optional<std::string> named = config_.text("position_embedding_type");
      if (named && *named != "rope" && *named != "nope")
        config_.refuse_support("position_embedding_type", R"(akunu has "rope" and "nope")");
      for (LayerConfig& layer : model.layers) layer.rotates = named.value_or("nope") == "rope";
    }
    if (!model_.has_unrotated_layers) return;
    const uint32_t period = config_.needed_count("no_rope_layer_interval", 4);
    const std::optional<std::vector<float>> listed = config_.numbers("no_rope_layers");
    if (listed && listed->size() != model.layers.size())
      throw ModelFormatError(config_.named("no_rope_layers") + " has " +
                             std::to_string(listed->size()) + " entries for " +
                             std::to_string(model.layers.size()) + " layers");
    for (size_t i = 0; i < model.layers.size(); ++i)
      model.layers[i].rotates = listed ? (*listed)[i] != 0 : (i + 1) % period != 0;
  }

  // Every so many layers one sees everything: a number, or of EXAONE 4 a text ("LLLG").
  uint32_t window_period(uint32_t usual) {
    constexpr std::string_view kKey = "sliding_window_pattern";
    const JsonValue* const value = config_.find(kKey);
    // transformers writes 0 where there are no windows.
    if (value != nullptr && value->number() == 0.0 && config_.has_null("sliding_window")) return 1;
    if (value == nullptr || value->kind != JsonValue::Kind::string)
      return config_.needed_count(kKey, std::max(usual, 1u));
    const std::string text = config_.text(kKey).value_or("");
    const size_t period = text.find('G') + 1;
    if (period == 0 || period != text.size() || text.find_first_not_of('L') + 1 != period)
      config_.refuse_support(kKey, R"(akunu has a number, or "L" of local layers and a last "G")");
    return static_cast<uint32_t>(period);
  }

  void read_windows(ModelConfig& model) {
    const HfWindows usual = model_.windows.value_or(HfWindows());
    const bool asked = config_.flag("use_sliding_window").value_or(!usual.asked);
    const bool has_null = config_.has_null("sliding_window");
    const uint32_t said = config_.count("sliding_window").value_or(usual.length);
    const uint32_t window = !asked || has_null ? 0 : said;
    const uint32_t said_first = config_.count("max_window_layers").value_or(usual.first);
    const uint32_t first = usual.first != 0 ? said_first : 0;
    const uint32_t period = window_period(usual.period);
    config_.count("_sliding_window_pattern");
    const std::vector<bool> listed = layer_types(model.layers.size());
    if (!model_.windows) {
      // transformers looks at no window there; a file that asks for one means another model.
      if (config_.flag("use_sliding_window").value_or(false) && window != 0 &&
          window < model.context_length)
        config_.refuse_support("sliding_window", "sliding windows are not supported for " + type());
      if (std::ranges::find(listed, true) != listed.end())
        config_.refuse_support("layer_types", "sliding windows are not supported for " + type());
      return;
    }
    if (window == 0 && std::ranges::find(listed, true) != listed.end())
      config_.refuse_value("layer_types", "there is no sliding_window for them");
    if (window == 0 && usual.needed)
      config_.refuse_value("sliding_window", type() + " is known with windows only");
    // Of EXAONE 4 and Cohere 2 windows say which layers have rotary positions, too.
    // Of Gemma 4, how long a head is.
    // Of Gemma 3n, whose keys a layer reads.
    const bool say_more = usual.rotate_alone || model_.shapes || family_.traits.streams;
    const bool none = window == 0 || (window >= model.context_length && !say_more);
    if (!none) model.window = window;
    for (size_t i = 0; i < model.layers.size(); ++i) {
      const bool unlisted = model_.has_unrotated_layers ? !model.layers[i].rotates.value_or(true)
                            : usual.period != 0         ? (i + 1) % period != 0
                                                        : i >= first;
      model.layers[i].windowed = !none && (listed.empty() ? unlisted : listed[i]);
    }
  }

  // Of each layer, whether it sees a window; empty where the file has no list.
  std::vector<bool> layer_types(size_t n_layers) {
    const JsonValue* const list = config_.find("layer_types");
    if (list == nullptr) return {};
    if (list->kind != JsonValue::Kind::array)
      config_.refuse_value("layer_types", "a list is needed");
    if (list->items.size() != n_layers)
      throw ModelFormatError(config_.named("layer_types") + " has " +
                             std::to_string(list->items.size()) + " entries for " +
                             std::to_string(n_layers) + " layers");
    std::vector<bool> windowed;
    for (const JsonValue& item : list->items) {
      if (std::ranges::find(model_.mixer_words, item.text) != model_.mixer_words.end()) {
        windowed.push_back(false);
        continue;
      }
      if (item.text != "sliding_attention" && item.text != "full_attention")
        throw UnsupportedModelError(config_.named("layer_types") + " holds " + item.shown() +
                                    "; akunu has \"full_attention\" and \"sliding_attention\"");
      windowed.push_back(item.text == "sliding_attention");
    }
    return windowed;
  }

  void read_rope(HfConfig& result) {
    ModelConfig& model = result.model;
    model.rope_style = family_.traits.interleaves ? RopeStyle::interleaved : RopeStyle::halves;
    std::optional<ConfigObject> parameters = config_.object("rope_parameters");
    // Newer files have one object for each kind of layer.
    std::optional<ConfigObject> windowed;
    if (parameters && parameters->find("full_attention") != nullptr) {
      windowed = parameters->object("sliding_attention");
      parameters = parameters->object("full_attention");
    }
    model.rope.theta = theta(config_, "rope_theta", model_.rope_theta);
    model.rope_theta_windowed = theta(config_, "rope_local_base_freq", model_.rope_theta_windowed);
    if (parameters) model.rope.theta = theta(*parameters, "rope_theta", model.rope.theta);
    if (windowed)
      model.rope_theta_windowed = theta(*windowed, "rope_theta", model.rope_theta_windowed);

    const uint32_t head_dim = model.layers.empty() ? 0 : model.layers[0].head_dim;
    float part = config_.number("partial_rotary_factor").value_or(model_.rotating_part);
    if (parameters) part = parameters->number("partial_rotary_factor").value_or(part);
    if (!(part > 0 && part <= 1))
      config_.refuse_value("partial_rotary_factor", "it must be above 0 and at most 1");
    if (!model_.latents)
      model.rope.dim = static_cast<uint32_t>(static_cast<float>(head_dim) * part);
    else if (part != 1)
      config_.refuse_support("partial_rotary_factor", "akunu has 1 for " + type());
    if (model_.latents && !config_.flag("rope_interleave").value_or(true) &&
        model_.reads_interleave)
      model.rope_style = RopeStyle::halves;
    const auto scale_attention = [&](float by) {
      if (model_.latents) model.attention_scale = by / std::sqrt(static_cast<float>(head_dim));
    };
    scale_attention(1);

    const uint32_t original =
        config_.count("original_max_position_embeddings").value_or(model_.original_context);
    std::optional<ConfigObject> scaling = config_.object("rope_scaling");
    if (parameters) scaling = parameters;
    if (!scaling) return;
    model.rope.axes = read_rope_axes(*scaling, model.rope.dim / 2);
    const RopeScaling read = read_rope_scaling(*scaling, {.theta = model.rope.theta,
                                                          .rope_dim = model.rope.dim,
                                                          .context_length = model.context_length,
                                                          .original_context = original,
                                                          .is_phi3 = model_.has_long_rope,
                                                          .has_alpha = model_.has_alpha});
    if (windowed) {
      const RopeScaling of_windows =
          read_rope_scaling(*windowed, {.theta = model.rope_theta_windowed,
                                        .rope_dim = model.rope.dim,
                                        .context_length = model.context_length});
      if (of_windows.linear_factor != 1 || of_windows.dynamic_factor != 1 ||
          !of_windows.divisors.empty())
        windowed->refuse_support("rope_type", "akunu scales positions of full layers only");
    }
    if (is_later_gemma() && model.window != 0 && !read.divisors.empty())
      scaling->refuse_support("rope_type", "with windows akunu has linear scaling only");
    scale_attention(read.scale_factor);
    model.rope.linear_factor = read.linear_factor;
    model.rope_attention_factor = read.attention_factor;
    model.rope.dynamic_factor = read.dynamic_factor;
    model.rope.theta *= read.theta_factor;
    if (family_.traits.query_growth) read_query_growth(*scaling, model);
    model.rope_original_context = read.original_context;
    result.rope_divisors = read.divisors;
    result.rope_long_divisors = read.long_divisors;
    result.yarn = read.yarn;
    add_unused(*scaling, model.notes);
  }

  static void read_query_growth(ConfigObject& scaling, ModelConfig& model) {
    scaling.find("max_position_embeddings");  // said outside, too
    const std::optional<float> growth = scaling.number("llama_4_scaling_beta");
    if (growth.value_or(0.0f) == 0) return;
    if (!(*growth > 0)) scaling.refuse_value("llama_4_scaling_beta", "it must be 0 or more");
    model.rope.query_growth = *growth;
    model.rope.query_growth_length = scaling.needed_count("original_max_position_embeddings");
  }

  static float theta(ConfigObject& config, std::string_view key, float usual) {
    const float value = config.number(key).value_or(usual);
    if (value != usual && !(value > 0)) config.refuse_value(key, "it must be above 0");
    return value;
  }

 public:
  // `prefix`: of more keys without an effect; empty: there are none.
  static void add_unused(const ConfigObject& config, std::vector<std::string>& notes,
                         std::string_view prefix = "") {
    std::string keys;
    size_t n = 0;
    for (const std::string& key : config.unused()) {
      if (has_no_effect(key)) continue;
      if (!prefix.empty() && key.starts_with(prefix)) continue;
      constexpr size_t kMost = 8;
      if (++n <= kMost) keys += (keys.empty() ? "" : ", ") + config.prefix() + key;
    }
    if (n == 0) return;
    if (n > 8) keys += " and " + std::to_string(n - 8) + " more";
    notes.push_back("config.json: akunu does not know " + keys +
                    (n == 1 ? " and ignores it" : " and ignores them"));
  }

 private:
  const Family& family_;
  const HfModel& model_;
  ConfigObject& config_;
};

}  // namespace

HfConfig read_hf_config(const JsonValue& json, const std::string& where) {
  ConfigObject whole(json, where);
  const std::optional<std::string> whole_type = whole.text("model_type");
  if (!whole_type) whole.refuse_missing("model_type");
  std::optional<ConfigObject> text;
  std::string model_type = *whole_type;
  const ImageModel* const with_images = find_image_model(model_type);
  if (with_images != nullptr) {
    model_type = with_images->of_text;
    text = whole.object("text_config");
    if (text)
      model_type = text->text("model_type").value_or(model_type);
    else if (!with_images->may_be_flat)
      whole.refuse_missing("text_config");
  }
  ConfigObject& config = text ? *text : whole;
  const FoundHfModel found = find_hf_model(model_type);
  if (found.model == nullptr) {
    try {
      config.refuse_support("model_type", "akunu has " + known_model_types());
    } catch (const UnsupportedModelError& error) {
      throw UnsupportedModelTypeError(error.what());
    }
  }
  const HfModel& model = *found.model;
  // nomic-bert's authors have a key of their own.
  const bool has_other_key =
      model.layers_key != "decoder_layers" && config.find("n_layer") != nullptr;
  const std::string_view layers_key = has_other_key ? "n_layer" : model.layers_key;
  const uint32_t usual_layers =
      model.count_layers != nullptr ? model.count_layers(config).value_or(0) : model.n_layers;
  const uint32_t n_layers = config.needed_count(layers_key, usual_layers);
  if (n_layers > kMostLayers) config.refuse_value(layers_key, "that is out of any sensible range");
  HfConfig result;
  if (model.read != nullptr) {
    result = model.read(config, n_layers, model.model_type);
    result.names = model.names;
  } else {
    result = HfConfigReader(found, config).read(n_layers);
  }
  if (with_images != nullptr && with_images->images != nullptr)
    if (std::optional<ConfigObject> vision = whole.object("vision_config")) {
      result.model.images = with_images->images->read(whole, *vision);
      result.names_with_images = with_images->images->names;
    }
  if (const std::optional<bool> tied = whole.flag("tie_word_embeddings"); text && tied)
    result.tied = tied;        // transformers does not look at the text model's own
  whole.find("quantization");  // read with the tensors
  whole.find("quantization_config");
  if (text) text->find("quantization_config");
  HfConfigReader::add_unused(config, result.model.notes, model.without_effect);
  return result;
}

}  // namespace akunu
