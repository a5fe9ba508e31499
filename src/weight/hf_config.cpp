// Reads a `config.json` of Hugging Face. hf_config.h says what comes out.
//
// 1. What it does. Finds the family by `model_type` and turns its keys into a ModelConfig, as a GGUF
//    file's metadata would be. What the file leaves out is what transformers takes.
// 2. What bounds it. Nothing: it runs once, at load. What it must not do is misread: a key that changes
//    what is computed is honoured or refused (UnsupportedModelError), and one that it does not know
//    becomes a note.
// 3. Where to change it. A new family: a row of kHfFamilies. Families with other keys, the encoders:
//    hf_encoder_config.cpp. A key without effect: hf_unread_keys.cpp. One with harmless
//    values: kNeutral.
#include "weight/hf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "weight/config_object.h"
#include "weight/hf_convolution_config.h"
#include "weight/hf_encoder_config.h"
#include "weight/hf_expert_config.h"
#include "weight/hf_latent_config.h"
#include "weight/hf_layer_shapes.h"
#include "weight/hf_unread_keys.h"
#include "weight/hf_whisper_config.h"
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
  bool window_needed = false;     // its model is another one without a window, or with a long one
  uint32_t original_context = 0;  // before it was stretched
  uint32_t scale_dim = 0;  // attention is scaled by 1 / sqrt of it; 0: by the head's dimension
  float rope_theta = 10000;
  float norm_epsilon = 1e-6f;
  float rope_theta_windowed = 0;
  float rotating_part = 1;  // of a head
  std::string_view epsilon_key = "rms_norm_eps";
  std::string_view ffn_key = "intermediate_size";
  std::string_view activation = "silu";
  bool has_multipliers = false;       // Granite's four
  bool has_unrotated_layers = false;  // `no_rope_layers`
  bool names_positions = false;       // `position_embedding_type`: "rope", or there are none
  bool has_alpha = false;             // of NTK
  bool has_query_growth = false;      // `llama_4_scaling_beta`
  bool rotates_windows = false;       // where there are windows, other layers have no positions
  float logit_scale = 0;              // 0: there is none
  std::optional<HfLatents> latents = {};
  StackOrder stacks = StackOrder::rows_first;
  std::optional<HfLayerShapes> shapes = {};  // Gemma 4's keys of heads and of layers
  bool convolves = false;                    // LFM2's keys
  bool names_factors = false;  // MiniCPM3's `scale_emb`, `scale_depth` and `dim_model_base`
  // Keys that begin so have no effect in this family.
  std::string_view without_effect = {};

  // Whether its config.json is read by hf_encoder_config.h.
  constexpr bool has_own_keys() const {
    return naming == HfNaming::bert || naming == HfNaming::nomic_bert ||
           naming == HfNaming::modern_bert || naming == HfNaming::whisper;
  }
};

constexpr HfLatents kDeepseek{};
constexpr HfLatents kMiniCpm3{
    .rank = 256, .query_rank = 768, .plain_dim = 64, .rotated_dim = 32, .value_dim = 0};

constexpr std::array kHfFamilies{
    HfFamily{.model_type = "llama", .architecture = "llama"},
    HfFamily{.model_type = "mistral", .architecture = "llama", .has_windows = true, .window = 4096},
    HfFamily{
        .model_type = "ministral", .architecture = "llama", .has_windows = true, .window = 4096},
    HfFamily{.model_type = "ministral3",
             .architecture = "mistral3",
             .head_dim = 128,
             .has_windows = true,
             .norm_epsilon = 1e-5f,
             .has_query_growth = true},
    HfFamily{.model_type = "granite", .architecture = "granite", .has_multipliers = true},
    HfFamily{.model_type = "granitemoehybrid",
             .architecture = "granite",
             .ffn_key = "shared_intermediate_size",
             .has_multipliers = true,
             .names_positions = true,
             .without_effect = "mamba_"},
    HfFamily{.model_type = "smollm3",
             .architecture = "smollm3",
             .has_windows = true,
             .window_asked = true,
             .rope_theta = 2000000,
             .has_unrotated_layers = true},
    HfFamily{.model_type = "olmo2",
             .architecture = "olmo2",
             .naming = HfNaming::norms_behind,
             .norm_epsilon = 1e-5f},
    HfFamily{.model_type = "olmo3",
             .architecture = "olmo2",
             .naming = HfNaming::norms_behind,
             .has_windows = true,
             .window = 4096,
             .window_period = 4,
             .rope_theta = 500000,
             .norm_epsilon = 1e-5f},
    HfFamily{.model_type = "glm4",
             .architecture = "glm4",
             .head_dim = 128,
             .norm_epsilon = 1.5625e-7f,
             .rotating_part = 0.5f},
    HfFamily{.model_type = "glm4v_text", .architecture = "glm4", .norm_epsilon = 1e-5f},
    HfFamily{.model_type = "seed_oss", .architecture = "seed_oss", .head_dim = 128},
    HfFamily{.model_type = "ernie4_5",
             .architecture = "ernie4_5",
             .head_dim = 128,
             .rope_theta = 500000,
             .norm_epsilon = 1e-5f},
    HfFamily{.model_type = "hunyuan_v1_dense",
             .architecture = "hunyuan-dense",
             .norm_epsilon = 1e-5f,
             .has_alpha = true},
    HfFamily{.model_type = "exaone4",
             .architecture = "exaone4",
             .naming = HfNaming::norms_behind,
             .has_windows = true,
             .window = 4096,
             .window_period = 4,
             .norm_epsilon = 1e-5f,
             .rotates_windows = true},
    HfFamily{.model_type = "starcoder2",
             .architecture = "starcoder2",
             .has_windows = true,
             .norm_epsilon = 1e-5f,
             .epsilon_key = "norm_epsilon",
             .activation = "gelu_pytorch_tanh"},
    HfFamily{.model_type = "cohere",
             .architecture = "command-r",
             .rope_theta = 500000,
             .norm_epsilon = 1e-5f,
             .epsilon_key = "layer_norm_eps",
             .logit_scale = 0.0625f},
    HfFamily{.model_type = "cohere2",
             .architecture = "cohere2",
             .has_windows = true,
             .window = 4096,
             .window_period = 4,
             .window_needed = true,
             .norm_epsilon = 1e-5f,
             .epsilon_key = "layer_norm_eps",
             .rotates_windows = true,
             .logit_scale = 0.0625f},
    HfFamily{.model_type = "qwen2",
             .architecture = "qwen2",
             .has_windows = true,
             .window = 4096,
             .window_first = 28,
             .window_asked = true},
    HfFamily{.model_type = "qwen2_vl_text",
             .architecture = "qwen2",
             .has_windows = true,
             .window = 4096,
             .window_first = 80,
             .window_asked = true,
             .norm_epsilon = 1e-5f},
    HfFamily{.model_type = "qwen2_5_vl_text",
             .architecture = "qwen2",
             .has_windows = true,
             .window = 4096,
             .window_first = 80,
             .window_asked = true,
             .norm_epsilon = 1e-5f},
    HfFamily{.model_type = "qwen3",
             .architecture = "qwen3",
             .head_dim = 128,
             .has_windows = true,
             .window = 4096,
             .window_first = 28,
             .window_asked = true},
    HfFamily{.model_type = "qwen3_moe",
             .architecture = "qwen3moe",
             .has_windows = true,
             .window = 4096,
             .window_first = 28,
             .window_asked = true},
    HfFamily{.model_type = "qwen3_vl_text",
             .architecture = "qwen3",
             .head_dim = 128,
             .rope_theta = 500000},
    HfFamily{.model_type = "qwen3_vl_moe_text",
             .architecture = "qwen3moe",
             .rope_theta = 500000,
             .stacks = StackOrder::either},
    HfFamily{.model_type = "qwen2_moe",
             .architecture = "qwen2moe",
             .has_windows = true,
             .window = 4096,
             .window_first = 28,
             .window_asked = true},
    HfFamily{.model_type = "mixtral",
             .architecture = "llama",
             .has_windows = true,
             .rope_theta = 1000000,
             .norm_epsilon = 1e-5f},
    HfFamily{.model_type = "olmoe", .architecture = "olmoe", .norm_epsilon = 1e-5f},
    HfFamily{.model_type = "granitemoe", .architecture = "granitemoe", .has_multipliers = true},
    HfFamily{.model_type = "granitemoeshared",
             .architecture = "granitemoe",
             .naming = HfNaming::shared_mlp,
             .has_multipliers = true},
    HfFamily{.model_type = "hunyuan_v1_moe",
             .architecture = "hunyuan-moe",
             .norm_epsilon = 1e-5f,
             .has_alpha = true},
    HfFamily{.model_type = "glm4_moe",
             .architecture = "glm4moe",
             .norm_epsilon = 1e-5f,
             .rotating_part = 0.5f},
    HfFamily{.model_type = "glm4v_moe_text",
             .architecture = "glm4moe",
             .norm_epsilon = 1e-5f,
             .rotating_part = 0.5f},
    HfFamily{.model_type = "gpt_oss",
             .architecture = "gpt-oss",
             .naming = HfNaming::gpt_oss,
             .head_dim = 64,
             .has_windows = true,
             .window = 128,
             .window_period = 2,
             .rope_theta = 150000,
             .norm_epsilon = 1e-5f,
             .stacks = StackOrder::columns_first},
    HfFamily{.model_type = "ernie4_5_moe",
             .architecture = "ernie4_5-moe",
             .rope_theta = 500000,
             .norm_epsilon = 1e-5f},
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
    HfFamily{.model_type = "gemma4_text",
             .architecture = "gemma4",
             .naming = HfNaming::gemma4,
             .n_heads = 8,
             .n_kv_heads = 4,
             .head_dim = 256,
             .vocab_size = 262144,
             .context_length = 131072,
             .has_windows = true,
             .window = 512,
             .window_period = 6,
             .window_needed = true,
             .activation = "gelu_pytorch_tanh",
             .shapes = HfLayerShapes{.per_layer_dim = 256, .has_experts = true}},
    HfFamily{.model_type = "gemma4_unified_text",
             .architecture = "gemma4",
             .naming = HfNaming::gemma4,
             .n_heads = 8,
             .n_kv_heads = 4,
             .head_dim = 256,
             .vocab_size = 262144,
             .context_length = 262144,
             .has_windows = true,
             .window = 1024,
             .window_period = 6,
             .window_needed = true,
             .activation = "gelu_pytorch_tanh",
             .shapes = HfLayerShapes{}},
    HfFamily{.model_type = "deepseek_v2", .architecture = "deepseek2", .latents = kDeepseek},
    HfFamily{.model_type = "deepseek_v3", .architecture = "deepseek2", .latents = kDeepseek},
    HfFamily{.model_type = "kimi_k2", .architecture = "deepseek2", .latents = kDeepseek},
    HfFamily{.model_type = "minicpm3",
             .architecture = "minicpm3",
             .norm_epsilon = 1e-5f,
             .latents = kMiniCpm3,
             .names_factors = true},
    HfFamily{.model_type = "lfm2",
             .architecture = "lfm2",
             .n_heads = 32,
             .n_kv_heads = 8,
             .vocab_size = 65536,
             .context_length = 128000,
             .rope_theta = 1000000,
             .norm_epsilon = 1e-5f,
             .epsilon_key = "norm_eps",
             .convolves = true,
             .without_effect = "block_"},
    HfFamily{.model_type = "eurobert", .architecture = "eurobert"},
    HfFamily{.model_type = "bert", .architecture = "bert", .naming = HfNaming::bert},
    HfFamily{.model_type = "roberta", .architecture = "bert", .naming = HfNaming::bert},
    HfFamily{.model_type = "xlm-roberta", .architecture = "bert", .naming = HfNaming::bert},
    HfFamily{.model_type = "camembert", .architecture = "bert", .naming = HfNaming::bert},
    HfFamily{
        .model_type = "nomic_bert", .architecture = "nomic-bert", .naming = HfNaming::nomic_bert},
    HfFamily{
        .model_type = "modernbert", .architecture = "modern-bert", .naming = HfNaming::modern_bert},
    HfFamily{.model_type = "whisper", .architecture = "whisper", .naming = HfNaming::whisper},
};

// Models that read images: the text model's keys are in the object `text_config`, whose model_type is
// this one where it does not say. Positions in three dimensions (`mrope_section`) are plain ones for text.
struct ImageFamily {
  std::string_view model_type, of_text;
  bool may_be_flat = false;  // the first files had all keys side by side
};
constexpr ImageFamily kWithImages[] = {
    {"aya_vision", "cohere2"},
    {"cohere2_vision", "cohere2"},
    {"gemma3", "gemma3_text"},
    {"gemma4", "gemma4_text"},
    {"gemma4_unified", "gemma4_unified_text"},
    {"glm46v", "glm4v_text"},
    {"glm4v", "glm4v_text"},
    {"glm4v_moe", "glm4v_moe_text"},
    {"idefics3", "llama"},
    {"internvl", "qwen2"},
    {"llava", "llama"},
    {"llava_next", "llama"},
    {"llava_onevision", "qwen2"},
    {"mistral3", "mistral"},
    {"qwen2_5_vl", "qwen2_5_vl_text", true},
    {"qwen2_vl", "qwen2_vl_text", true},
    {"qwen3_vl", "qwen3_vl_text"},
    {"qwen3_vl_moe", "qwen3_vl_moe_text"},
    {"smolvlm", "llama"},
};

const HfFamily* find_hf_family(std::string_view model_type) {
  for (const HfFamily& family : kHfFamilies)
    if (family.model_type == model_type) return &family;
  return nullptr;
}

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

// Granite's factors.
constexpr std::string_view kMultipliers[] = {"embedding_multiplier", "residual_multiplier",
                                             "attention_multiplier", "logits_scaling"};

class HfConfigReader {
 public:
  HfConfigReader(const HfFamily& family, ConfigObject& config) : family_(family), config_(config) {}

  HfConfig read(uint32_t n_layers) {
    HfConfig result;
    ModelConfig& model = result.model;
    refuse_what_is_not_here();
    result.naming = family_.naming;
    result.stacks = family_.stacks;
    result.tied = config_.flag("tie_word_embeddings");
    if (family_.convolves && !result.tied) result.tied = config_.flag("tie_embedding");
    model.architecture = family_.architecture;
    if (is_later_gemma() && config_.flag("use_bidirectional_attention").value_or(false))
      model.architecture = "gemma-embedding";
    model.dim = config_.needed_count("hidden_size");
    model.vocab_size = config_.needed_count("vocab_size", family_.vocab_size);
    model.context_length = config_.needed_count("max_position_embeddings", family_.context_length);
    model.norm_epsilon = config_.number(family_.epsilon_key).value_or(family_.norm_epsilon);
    if (!(model.norm_epsilon > 0)) config_.refuse_value(family_.epsilon_key, "it must be above 0");
    read_layers(model, n_layers);
    if (family_.convolves) read_hf_convolutions(config_, model);
    read_hf_experts(config_, family_.model_type, model);
    read_unrotated(model);
    read_windows(model);
    read_multipliers(model);
    if (family_.shapes) {
      read_hf_layer_shapes(config_, *family_.shapes, model);
      model.logit_soft_cap = soft_cap("final_logit_softcapping").value_or(0);
      model.rope_style = RopeStyle::halves;
      result.rope_divisors = read_hf_rope_of_shapes(config_, model);
      return result;
    }
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
  bool is_gemma() const { return family_.naming == HfNaming::gemma || is_later_gemma(); }
  bool is_later_gemma() const { return family_.naming == HfNaming::later_gemma; }

  void refuse_what_is_not_here() {
    for (const NeutralRule& rule : kNeutral)
      if (const std::optional<float> value =
              is_taken(rule.key) ? std::nullopt : config_.number(rule.key);
          value &&
          std::ranges::find(rule.neutral, static_cast<double>(*value)) == rule.neutral.end())
        config_.refuse_support(rule.key, "it is not supported for " + type());
    for (const std::string_view key : {"use_bidirectional_attention", "add_cross_attention",
                                       "use_qk_norm", "use_cla", "use_mla"})
      if (!(family_.shapes && key == "use_bidirectional_attention") &&
          config_.flag(key).value_or(false) &&
          !(type() == "gemma3_text" && key == "use_bidirectional_attention") &&
          !(key == "use_qk_norm" &&  // seen by their tensors
            (type() == "hunyuan_v1_dense" || type() == "hunyuan_v1_moe" || type() == "glm4_moe")))
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
    const std::string_view has = is_gemma() ? "gelu_pytorch_tanh" : family_.activation;
    const bool known = *activation == has || (has == "silu" && *activation == "swish") ||
                       (is_gemma() && (*activation == "gelu" || *activation == "gelu_new"));
    if (!known) config_.refuse_support(key, "akunu has " + std::string(has) + " for " + type());
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
    if (family_.latents)
      layer.head_dim = read_hf_latents(config_, *family_.latents, layer.n_heads, model);
    else
      layer.head_dim = config_.needed_count(
          "head_dim", family_.head_dim != 0 ? family_.head_dim : model.dim / layer.n_heads);
    config_.find("intermediate_size");  // of experts, where ffn_key is another
    layer.ffn_dim = family_.convolves ? read_hf_adjusted_ffn_dim(config_)
                                      : config_.needed_count(family_.ffn_key);
    model.layers.assign(n_layers, layer);
  }

  // nullopt: the file says nothing, and the family decides; 0: none.
  std::optional<float> soft_cap(std::string_view key) {
    if (config_.has_null(key)) return 0.0f;
    return config_.number(key);
  }

  // Whether this family computes with a key that others may have with neutral values only.
  bool is_taken(std::string_view key) const {
    return (family_.has_multipliers &&
            std::ranges::find(kMultipliers, key) != std::end(kMultipliers)) ||
           (family_.logit_scale != 0 && key == "logit_scale") ||
           (family_.shapes && key == "num_experts") || is_expert_key(family_.model_type, key);
  }

  float factor(std::string_view key, float usual) {
    const float value = config_.number(key).value_or(usual);
    if (!(value > 0) || !std::isfinite(value)) config_.refuse_value(key, "it must be above 0");
    return value;
  }

  void read_multipliers(ModelConfig& model) {
    if (family_.has_multipliers) {
      model.embedding_scale = factor("embedding_multiplier", 1);
      model.residual_scale = factor("residual_multiplier", 1);
      model.attention_scale = factor("attention_multiplier", 1);
      model.logit_scale = factor("logits_scaling", 1);
    }
    if (family_.names_factors) {
      const auto n_layers = static_cast<float>(model.layers.size());
      const auto dim = static_cast<float>(model.dim);
      model.embedding_scale = factor("scale_emb", 12);
      model.residual_scale =
          config_.has_null("scale_depth") ? 1 : factor("scale_depth", 1.4f) / std::sqrt(n_layers);
      model.logit_scale =
          config_.has_null("dim_model_base") ? 1 : dim / factor("dim_model_base", 256);
    }
    if (family_.logit_scale != 0) model.logit_scale = factor("logit_scale", family_.logit_scale);
  }

  // Layers without rotary positions, where the file says which.
  void read_unrotated(ModelConfig& model) {
    if (family_.names_positions) {
      const std::optional<std::string> named = config_.text("position_embedding_type");
      if (named && *named != "rope" && *named != "nope")
        config_.refuse_support("position_embedding_type", R"(akunu has "rope" and "nope")");
      for (LayerConfig& layer : model.layers) layer.rotates = named.value_or("nope") == "rope";
    }
    if (!family_.has_unrotated_layers) return;
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
  uint32_t window_period() {
    constexpr std::string_view kKey = "sliding_window_pattern";
    const JsonValue* const value = config_.find(kKey);
    // transformers writes 0 where there are no windows.
    if (value != nullptr && value->number() == 0.0 && config_.has_null("sliding_window")) return 1;
    if (value == nullptr || value->kind != JsonValue::Kind::string)
      return config_.needed_count(kKey, std::max(family_.window_period, 1u));
    const std::string text = config_.text(kKey).value_or("");
    const size_t period = text.find('G') + 1;
    if (period == 0 || period != text.size() || text.find_first_not_of('L') + 1 != period)
      config_.refuse_support(kKey, R"(akunu has a number, or "L" of local layers and a last "G")");
    return static_cast<uint32_t>(period);
  }

  void read_windows(ModelConfig& model) {
    const bool asked = config_.flag("use_sliding_window").value_or(!family_.window_asked);
    const bool has_null = config_.has_null("sliding_window");
    const uint32_t said = config_.count("sliding_window").value_or(family_.window);
    const uint32_t window = !asked || has_null ? 0 : said;
    const uint32_t said_first = config_.count("max_window_layers").value_or(family_.window_first);
    const uint32_t first = family_.window_first != 0 ? said_first : 0;
    const uint32_t period = window_period();
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
    if (window == 0 && family_.window_needed)
      config_.refuse_value("sliding_window", type() + " is known with windows only");
    // Of EXAONE 4 and Cohere 2 windows say which layers have rotary positions, too.
    // Of Gemma 4, how long a head is.
    const bool say_more = family_.rotates_windows || family_.shapes;
    const bool none = window == 0 || (window >= model.context_length && !say_more);
    if (!none) model.window = window;
    for (size_t i = 0; i < model.layers.size(); ++i) {
      const bool usual = family_.has_unrotated_layers ? !model.layers[i].rotates.value_or(true)
                         : family_.window_period != 0 ? (i + 1) % period != 0
                                                      : i >= first;
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
      // Granite 4's: the others are Mamba's.
      if (item.text == "attention" && family_.names_positions) {
        windowed.push_back(false);
        continue;
      }
      if (item.text == "conv" && family_.convolves) {
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
    model.rope_style =
        find_family(family_.architecture)->interleaves ? RopeStyle::interleaved : RopeStyle::halves;
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
    float part = config_.number("partial_rotary_factor").value_or(family_.rotating_part);
    if (parameters) part = parameters->number("partial_rotary_factor").value_or(part);
    if (!(part > 0 && part <= 1))
      config_.refuse_value("partial_rotary_factor", "it must be above 0 and at most 1");
    if (!family_.latents)
      model.rope_dim = static_cast<uint32_t>(static_cast<float>(head_dim) * part);
    else if (part != 1)
      config_.refuse_support("partial_rotary_factor", "akunu has 1 for " + type());
    if (family_.latents && !config_.flag("rope_interleave").value_or(true) &&
        type() != "deepseek_v2")  // of which transformers does not look at it
      model.rope_style = RopeStyle::halves;
    const auto scale_attention = [&](float by) {
      if (family_.latents) model.attention_scale = by / std::sqrt(static_cast<float>(head_dim));
    };
    scale_attention(1);

    const uint32_t original =
        config_.count("original_max_position_embeddings").value_or(family_.original_context);
    std::optional<ConfigObject> scaling = config_.object("rope_scaling");
    if (parameters) scaling = parameters;
    if (!scaling) return;
    const RopeScaling read = read_rope_scaling(*scaling, {.theta = model.rope_theta,
                                                          .rope_dim = model.rope_dim,
                                                          .context_length = model.context_length,
                                                          .original_context = original,
                                                          .is_phi3 = type() == "phi3",
                                                          .has_alpha = family_.has_alpha});
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
    scale_attention(read.scale_factor);
    model.rope_linear_factor = read.linear_factor;
    model.rope_attention_factor = read.attention_factor;
    model.rope_dynamic_factor = read.dynamic_factor;
    model.rope_theta *= read.theta_factor;
    if (family_.has_query_growth) read_query_growth(*scaling, model);
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
    model.query_growth = *growth;
    model.query_growth_length = scaling.needed_count("original_max_position_embeddings");
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
  for (const ImageFamily& family : kWithImages) names += ", " + std::string(family.model_type);
  return names;
}

HfConfig read_hf_config(const JsonValue& json, const std::string& where) {
  ConfigObject whole(json, where);
  const std::optional<std::string> whole_type = whole.text("model_type");
  if (!whole_type) whole.refuse_missing("model_type");
  std::optional<ConfigObject> text;
  std::string model_type = *whole_type;
  for (const ImageFamily& with_images : kWithImages) {
    if (*whole_type != with_images.model_type) continue;
    model_type = with_images.of_text;
    text = whole.object("text_config");
    if (text)
      model_type = text->text("model_type").value_or(model_type);
    else if (!with_images.may_be_flat)
      whole.refuse_missing("text_config");
  }
  ConfigObject& config = text ? *text : whole;
  const HfFamily* const family = find_hf_family(model_type);
  if (family == nullptr) {
    try {
      config.refuse_support("model_type", "akunu has " + known_model_types());
    } catch (const UnsupportedModelError& error) {
      throw UnsupportedModelTypeError(error.what());
    }
  }
  const char* const layers_key = family->naming == HfNaming::whisper ? "decoder_layers"
                                 : config.find("n_layer") != nullptr ? "n_layer"
                                                                     : "num_hidden_layers";
  const uint32_t n_layers =
      config.needed_count(layers_key, family->model_type == "modernbert" ? 22 : 0);
  if (n_layers > kMostLayers) config.refuse_value(layers_key, "that is out of any sensible range");
  HfConfig result = family->naming == HfNaming::whisper ? read_hf_whisper(config, n_layers)
                    : family->has_own_keys() ? read_hf_encoder(config, n_layers, family->model_type)
                                             : HfConfigReader(*family, config).read(n_layers);
  if (const std::optional<bool> tied = whole.flag("tie_word_embeddings"); text && tied)
    result.tied = tied;        // transformers does not look at the text model's own
  whole.find("quantization");  // read with the tensors
  whole.find("quantization_config");
  if (text) text->find("quantization_config");
  HfConfigReader::add_unused(config, result.model.notes, family->without_effect);
  return result;
}

}  // namespace akunu
