// Reads a `config.json` of Hugging Face. hf_config.h says what comes out.
//
// 1. What it does. Finds the family by `model_type` and turns its keys into a ModelConfig, as a GGUF
//    file's metadata would be. What the file leaves out is what transformers takes.
// 2. What bounds it. Nothing: it runs once, at load. What it must not do is misread: a key that changes
//    what is computed is honoured or refused (UnsupportedModelError), and one that it does not know
//    becomes a note.
// 3. Where to change it. A new family: a row of kHfFamilies. Families with other keys, the encoders:
//    hf_encoder_config.cpp. A key without effect: kWithoutEffect. One with harmless values: kNeutral.
#include "weight/hf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "weight/config_object.h"
#include "weight/hf_encoder_config.h"
#include "weight/printable.h"
#include "weight/rope_scaling.h"

namespace akunu {
namespace {

// A model_type, and the architecture of ours that computes it. The numbers are the defaults of
// transformers, for keys that the file leaves out; 0: the file must have the key (n_kv_heads and head_dim
// then follow from others).
struct HfFamily {
  std::string_view model_type;
  std::string_view architecture;
  HfNaming naming = HfNaming::usual;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t vocab_size = 0;
  uint32_t context_length = 0;
  bool has_windows = false;
  uint32_t window = 0;         // 0: none unless the file says so
  uint32_t window_period = 0;  // 6: layers 6, 12, ... see everything, the others a window
  uint32_t window_first = 0;  // layers before it see everything (`max_window_layers`); 0: none does
  bool window_asked = false;  // only `use_sliding_window` switches windows on
  uint32_t original_context = 0;  // before it was stretched
  uint32_t scale_dim = 0;  // attention is scaled by 1 / sqrt of it; 0: by the head's dimension
  float rope_theta = 10000;
  float norm_epsilon = 1e-6f;
  float rope_theta_windowed = 0;

  // Whether its config.json is read by hf_encoder_config.h.
  constexpr bool has_own_keys() const {
    return naming == HfNaming::bert || naming == HfNaming::nomic_bert ||
           naming == HfNaming::modern_bert;
  }
};

constexpr std::array kHfFamilies{
    HfFamily{.model_type = "llama", .architecture = "llama"},
    HfFamily{.model_type = "mistral", .architecture = "llama", .has_windows = true, .window = 4096},
    HfFamily{.model_type = "qwen2",
             .architecture = "qwen2",
             .has_windows = true,
             .window = 4096,
             .window_first = 28,
             .window_asked = true},
    HfFamily{.model_type = "qwen3",
             .architecture = "qwen3",
             .head_dim = 128,
             .has_windows = true,
             .window = 4096,
             .window_first = 28,
             .window_asked = true},
    HfFamily{.model_type = "phi3",
             .architecture = "phi3",
             .has_windows = true,
             .original_context = 4096,
             .norm_epsilon = 1e-5f},
    HfFamily{
        .model_type = "gemma", .architecture = "gemma", .naming = HfNaming::gemma, .head_dim = 256},
    HfFamily{.model_type = "gemma2",
             .architecture = "gemma2",
             .naming = HfNaming::later_gemma,
             .head_dim = 256,
             .has_windows = true,
             .window = 4096,
             .window_period = 2,
             .scale_dim = 256},
    HfFamily{.model_type = "gemma3_text",
             .architecture = "gemma3",
             .naming = HfNaming::later_gemma,
             .n_heads = 8,
             .n_kv_heads = 4,
             .head_dim = 256,
             .vocab_size = 262208,
             .context_length = 131072,
             .has_windows = true,
             .window = 4096,
             .window_period = 6,
             .scale_dim = 256,
             .rope_theta = 1000000,
             .rope_theta_windowed = 10000},
    HfFamily{.model_type = "eurobert", .architecture = "eurobert"},
    HfFamily{.model_type = "bert", .architecture = "bert", .naming = HfNaming::bert},
    HfFamily{.model_type = "roberta", .architecture = "bert", .naming = HfNaming::bert},
    HfFamily{.model_type = "xlm-roberta", .architecture = "bert", .naming = HfNaming::bert},
    HfFamily{.model_type = "camembert", .architecture = "bert", .naming = HfNaming::bert},
    HfFamily{
        .model_type = "nomic_bert", .architecture = "nomic-bert", .naming = HfNaming::nomic_bert},
    HfFamily{
        .model_type = "modernbert", .architecture = "modern-bert", .naming = HfNaming::modern_bert},
};

// A model of text and images: the text model's keys are in the object `text_config`.
constexpr std::string_view kGemma3WithImages = "gemma3";

const HfFamily* find_hf_family(std::string_view model_type) {
  for (const HfFamily& family : kHfFamilies)
    if (family.model_type == model_type) return &family;
  return nullptr;
}

// Keys that change nothing of what is computed, or that are read elsewhere (token ids: the tokenizer).
constexpr std::array<std::string_view, 76> kWithoutEffect{"_model_name_or_path",
                                                          "_name_or_path",
                                                          "_attn_implementation",
                                                          "_attn_implementation_autoset",
                                                          "architectures",
                                                          "attention_bias",
                                                          "attention_dropout",
                                                          "attention_probs_dropout_prob",
                                                          "classifier_dropout",
                                                          "attn_pdrop",
                                                          "clf_pooling",
                                                          "classifier_bias",
                                                          "cls_token_id",
                                                          "compile_model",
                                                          "decoder_bias",
                                                          "deterministic_flash_attn",
                                                          "embedding_dropout",
                                                          "fused_bias_fc",
                                                          "fused_dropout_add_ln",
                                                          "initializer_cutoff_factor",
                                                          "is_causal",
                                                          "mask_token",
                                                          "mask_token_id",
                                                          "max_trained_positions",
                                                          "mlp_dropout",
                                                          "pad_token",
                                                          "pad_vocab_size_multiple",
                                                          "reference_compile",
                                                          "repad_logits_with_grad",
                                                          "sentence_transformers",
                                                          "sparse_pred_ignore_index",
                                                          "sparse_prediction",
                                                          "summary_activation",
                                                          "summary_first_dropout",
                                                          "summary_proj_to_labels",
                                                          "summary_type",
                                                          "summary_use_proj",
                                                          "gradient_checkpointing",
                                                          "hidden_dropout_prob",
                                                          "type_vocab_size",
                                                          "auto_map",
                                                          "boi_token_index",
                                                          "bos_token_id",
                                                          "chunk_size_feed_forward",
                                                          "decoder_start_token_id",
                                                          "dtype",
                                                          "embd_pdrop",
                                                          "eoi_token_index",
                                                          "eos_token_id",
                                                          "finetuning_task",
                                                          "hidden_dropout",
                                                          "id2label",
                                                          "image_token_index",
                                                          "initializer_range",
                                                          "is_decoder",
                                                          "label2id",
                                                          "mlp_bias",
                                                          "mm_tokens_per_image",
                                                          "model_type",
                                                          "num_hidden_layers",
                                                          "output_attentions",
                                                          "output_hidden_states",
                                                          "pad_token_id",
                                                          "pretraining_tp",
                                                          "problem_type",
                                                          "resid_pdrop",
                                                          "return_dict",
                                                          "sep_token_id",
                                                          "task_specific_params",
                                                          "tokenizer_class",
                                                          "torch_dtype",
                                                          "torchscript",
                                                          "transformers_version",
                                                          "unk_token_id",
                                                          "use_cache",
                                                          "vision_config"};

// Keys of computations that these families do not have. A file may have them with a value that changes
// nothing; any other is refused.
struct NeutralRule {
  std::string_view key;
  std::initializer_list<double> neutral;
};
constexpr std::array kNeutral{
    NeutralRule{"logits_scaling", {1}},           NeutralRule{"logit_scale", {1}},
    NeutralRule{"residual_multiplier", {1}},      NeutralRule{"embedding_multiplier", {1}},
    NeutralRule{"attention_multiplier", {1}},     NeutralRule{"num_experts", {0}},
    NeutralRule{"num_local_experts", {0, 1}},     NeutralRule{"n_routed_experts", {0}},
    NeutralRule{"num_nextn_predict_layers", {0}}, NeutralRule{"clip_qkv", {}},
};

class HfConfigReader {
 public:
  HfConfigReader(const HfFamily& family, ConfigObject& config) : family_(family), config_(config) {}

  HfConfig read(uint32_t n_layers) {
    HfConfig result;
    ModelConfig& model = result.model;
    refuse_what_is_not_here();
    result.naming = family_.naming;
    result.tied = config_.flag("tie_word_embeddings");
    model.architecture = family_.architecture;
    if (is_later_gemma() && config_.flag("use_bidirectional_attention").value_or(false))
      model.architecture = "gemma-embedding";
    model.dim = config_.needed_count("hidden_size");
    model.vocab_size = config_.needed_count("vocab_size", family_.vocab_size);
    model.context_length = config_.needed_count("max_position_embeddings", family_.context_length);
    model.norm_epsilon = config_.number("rms_norm_eps").value_or(family_.norm_epsilon);
    if (!(model.norm_epsilon > 0)) config_.refuse_value("rms_norm_eps", "it must be above 0");
    read_layers(model, n_layers);
    read_windows(model);
    if (is_later_gemma()) {
      const float scale_dim =
          config_.number("query_pre_attn_scalar").value_or(static_cast<float>(family_.scale_dim));
      if (!(scale_dim > 0)) config_.refuse_value("query_pre_attn_scalar", "it must be above 0");
      model.attention_scale = 1.0f / std::sqrt(scale_dim);
      model.attention_soft_cap = soft_cap("attn_logit_softcapping");
      model.logit_soft_cap = soft_cap("final_logit_softcapping");
    }
    read_rope(result);
    return result;
  }

 private:
  bool is_gemma() const { return family_.naming != HfNaming::usual; }
  bool is_later_gemma() const { return family_.naming == HfNaming::later_gemma; }

  void refuse_what_is_not_here() {
    for (const NeutralRule& rule : kNeutral)
      if (const std::optional<float> value = config_.number(rule.key);
          value &&
          std::ranges::find(rule.neutral, static_cast<double>(*value)) == rule.neutral.end())
        config_.refuse_support(rule.key, "it is not supported for " + type());
    for (const std::string_view key : {"use_bidirectional_attention", "add_cross_attention"})
      if (config_.flag(key).value_or(false) &&
          !(type() == "gemma3_text" && key == "use_bidirectional_attention"))
        config_.refuse_support(key, "it is not supported for " + type());
    if (!config_.flag("is_causal").value_or(true) && type() != "eurobert")
      config_.refuse_support("is_causal", "encoders are not supported");
    check_activation();
  }

  std::string type() const { return std::string(family_.model_type); }

  void check_activation() {
    const std::optional<std::string> named = config_.text("hidden_activation");
    const std::optional<std::string> usual = config_.text("hidden_act");
    const char* const key = named ? "hidden_activation" : "hidden_act";
    const std::optional<std::string>& activation = named ? named : usual;
    if (!activation) return;
    // Old files of gemma say "gelu" and mean the approximation, as its code did.
    const bool known = is_gemma() ? *activation == "gelu_pytorch_tanh" || *activation == "gelu" ||
                                        *activation == "gelu_new"
                                  : *activation == "silu" || *activation == "swish";
    if (!known)
      config_.refuse_support(
          key,
          "akunu has " + std::string(is_gemma() ? "gelu_pytorch_tanh" : "silu") + " for " + type());
  }

  void read_layers(ModelConfig& model, uint32_t n_layers) {
    LayerConfig layer;
    layer.n_heads = config_.needed_count("num_attention_heads", family_.n_heads);
    layer.n_kv_heads = config_.needed_count(
        "num_key_value_heads", family_.n_kv_heads != 0 ? family_.n_kv_heads : layer.n_heads);
    if (layer.n_heads % layer.n_kv_heads != 0)
      config_.refuse_value(
          "num_key_value_heads",
          "num_attention_heads is " + std::to_string(layer.n_heads) + ", which it does not divide");
    layer.head_dim = config_.needed_count(
        "head_dim", family_.head_dim != 0 ? family_.head_dim : model.dim / layer.n_heads);
    layer.ffn_dim = config_.needed_count("intermediate_size");
    model.layers.assign(n_layers, layer);
  }

  // nullopt: the file says nothing, and the family decides; 0: none.
  std::optional<float> soft_cap(std::string_view key) {
    if (config_.has_null(key)) return 0.0f;
    return config_.number(key);
  }

  void read_windows(ModelConfig& model) {
    const bool asked = config_.flag("use_sliding_window").value_or(!family_.window_asked);
    const bool has_null = config_.has_null("sliding_window");
    const uint32_t said = config_.count("sliding_window").value_or(family_.window);
    const uint32_t window = !asked || has_null ? 0 : said;
    const uint32_t said_first = config_.count("max_window_layers").value_or(family_.window_first);
    const uint32_t first = family_.window_first != 0 ? said_first : 0;
    const uint32_t period =
        config_.needed_count("sliding_window_pattern", std::max(family_.window_period, 1u));
    config_.count("_sliding_window_pattern");
    const std::vector<bool> listed = layer_types(model.layers.size());
    if (!family_.has_windows) {
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
    const bool none = window == 0 || window >= model.context_length;
    if (!none) model.window = window;
    for (size_t i = 0; i < model.layers.size(); ++i) {
      const bool usual = family_.window_period != 0 ? (i + 1) % period != 0 : i >= first;
      model.layers[i].windowed = !none && (listed.empty() ? usual : listed[i]);
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
      if (item.text != "sliding_attention" && item.text != "full_attention")
        throw UnsupportedModelError(config_.named("layer_types") + " holds " + item.shown() +
                                    "; akunu has \"full_attention\" and \"sliding_attention\"");
      windowed.push_back(item.text == "sliding_attention");
    }
    return windowed;
  }

  void read_rope(HfConfig& result) {
    ModelConfig& model = result.model;
    // In no family here does Hugging Face pair neighbouring dimensions.
    model.rope_style = RopeStyle::halves;
    std::optional<ConfigObject> parameters = config_.object("rope_parameters");
    // Newer files have one object for each kind of layer.
    std::optional<ConfigObject> windowed;
    if (parameters && parameters->find("full_attention") != nullptr) {
      windowed = parameters->object("sliding_attention");
      parameters = parameters->object("full_attention");
    }
    model.rope_theta = theta(config_, "rope_theta", family_.rope_theta);
    model.rope_theta_windowed = theta(config_, "rope_local_base_freq", family_.rope_theta_windowed);
    if (parameters) model.rope_theta = theta(*parameters, "rope_theta", model.rope_theta);
    if (windowed)
      model.rope_theta_windowed = theta(*windowed, "rope_theta", model.rope_theta_windowed);

    const uint32_t head_dim = model.layers.empty() ? 0 : model.layers[0].head_dim;
    float part = config_.number("partial_rotary_factor").value_or(1.0f);
    if (parameters) part = parameters->number("partial_rotary_factor").value_or(part);
    if (!(part > 0 && part <= 1))
      config_.refuse_value("partial_rotary_factor", "it must be above 0 and at most 1");
    model.rope_dim = static_cast<uint32_t>(static_cast<float>(head_dim) * part);

    const uint32_t original =
        config_.count("original_max_position_embeddings").value_or(family_.original_context);
    std::optional<ConfigObject> scaling = config_.object("rope_scaling");
    if (parameters) scaling = parameters;
    if (!scaling) return;
    const RopeScaling read = read_rope_scaling(*scaling, {.theta = model.rope_theta,
                                                          .rope_dim = model.rope_dim,
                                                          .context_length = model.context_length,
                                                          .original_context = original,
                                                          .is_phi3 = type() == "phi3"});
    if (windowed) {
      const RopeScaling of_windows =
          read_rope_scaling(*windowed, {.theta = model.rope_theta_windowed,
                                        .rope_dim = model.rope_dim,
                                        .context_length = model.context_length});
      if (of_windows.linear_factor != 1 || of_windows.dynamic_factor != 1 ||
          !of_windows.divisors.empty())
        windowed->refuse_support("rope_type", "akunu scales positions of full layers only");
    }
    if (is_later_gemma() && model.window != 0 && !read.divisors.empty())
      scaling->refuse_support("rope_type", "with windows akunu has linear scaling only");
    model.rope_linear_factor = read.linear_factor;
    model.rope_attention_factor = read.attention_factor;
    model.rope_dynamic_factor = read.dynamic_factor;
    model.rope_original_context = read.original_context;
    result.rope_divisors = read.divisors;
    result.rope_long_divisors = read.long_divisors;
    result.yarn = read.yarn;
    add_unused(*scaling, model.notes);
  }

  static float theta(ConfigObject& config, std::string_view key, float usual) {
    const float value = config.number(key).value_or(usual);
    if (value != usual && !(value > 0)) config.refuse_value(key, "it must be above 0");
    return value;
  }

 public:
  static void add_unused(const ConfigObject& config, std::vector<std::string>& notes) {
    std::string keys;
    size_t n = 0;
    for (const std::string& key : config.unused()) {
      if (std::ranges::find(kWithoutEffect, key) != kWithoutEffect.end()) continue;
      constexpr size_t kMost = 8;
      if (++n <= kMost) keys += (keys.empty() ? "" : ", ") + config.prefix() + key;
    }
    if (n == 0) return;
    if (n > 8) keys += " and " + std::to_string(n - 8) + " more";
    notes.push_back("config.json: akunu does not know " + keys +
                    (n == 1 ? " and ignores it" : " and ignores them"));
  }

 private:
  const HfFamily& family_;
  ConfigObject& config_;
};

// More is refused at once: memory for absurd counts would run out before the first missing tensor is noticed.
constexpr uint32_t kMostLayers = 10000;

}  // namespace

std::string known_model_types() {
  std::string names;
  for (const HfFamily& family : kHfFamilies)
    names += (names.empty() ? "" : ", ") + std::string(family.model_type);
  return names + ", " + std::string(kGemma3WithImages);
}

HfConfig read_hf_config(const JsonValue& json, const std::string& where) {
  ConfigObject whole(json, where);
  const std::optional<std::string> whole_type = whole.text("model_type");
  if (!whole_type) whole.refuse_missing("model_type");
  std::optional<ConfigObject> text;
  std::string model_type = *whole_type;
  if (model_type == kGemma3WithImages) {
    text = whole.object("text_config");
    if (!text) whole.refuse_missing("text_config");
    model_type = text->text("model_type").value_or("gemma3_text");
  }
  ConfigObject& config = text ? *text : whole;
  const HfFamily* const family = find_hf_family(model_type);
  if (family == nullptr) config.refuse_support("model_type", "akunu has " + known_model_types());
  const char* const layers_key =
      config.find("n_layer") != nullptr ? "n_layer" : "num_hidden_layers";
  const uint32_t n_layers =
      config.needed_count(layers_key, family->model_type == "modernbert" ? 22 : 0);
  if (n_layers > kMostLayers) config.refuse_value(layers_key, "that is out of any sensible range");
  HfConfig result = family->has_own_keys() ? read_hf_encoder(config, n_layers, family->model_type)
                                           : HfConfigReader(*family, config).read(n_layers);
  if (text && !result.tied) result.tied = whole.flag("tie_word_embeddings");
  whole.find("quantization");  // read with the tensors
  whole.find("quantization_config");
  if (text) text->find("quantization_config");
  HfConfigReader::add_unused(config, result.model.notes);
  return result;
}

}  // namespace akunu
