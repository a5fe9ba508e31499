#include "files/adapters/config.h"

#include <array>
#include <cmath>

#include "core/error.h"
#include "files/json.h"
#include "files/mapped_file.h"
#include "files/printable.h"

namespace akunu {
namespace {

// Keys that say how an adapter was trained or found its layers: what it computes is in its tensors.
constexpr std::array<std::string_view, 24> kOfTraining{
    "auto_mapping",      "base_model_name_or_path",
    "revision",          "task_type",
    "inference_mode",    "target_modules",
    "exclude_modules",   "lora_dropout",
    "fan_in_fan_out",    "layers_to_transform",
    "layers_pattern",    "megatron_config",
    "megatron_core",     "loftq_config",
    "eva_config",        "corda_config",
    "runtime_config",    "peft_version",
    "qalora_group_size", "ensure_weight_tying",
    "lora_ga_config",    "monteclora_config",
    "arrow_config",      "bdlora_config"};

// What an adapter must not have, with the reason.
struct Refused {
  std::string_view key, why;
};
constexpr std::array kRefused{
    Refused{"use_dora", "akunu does not compute DoRA, which scales the rows of a weight"},
    Refused{"modules_to_save", "akunu does not take whole modules from an adapter"},
    Refused{"trainable_token_indices", "akunu does not take embeddings of tokens from an adapter"},
    Refused{"layer_replication", "akunu does not repeat layers for an adapter"},
    Refused{"lora_bias", "akunu does not compute biases of an adapter"},
    Refused{"use_qalora", "akunu does not compute QALoRA"},
    Refused{"alora_invocation_tokens", "akunu does not switch an adapter on by tokens (aLoRA)"},
    Refused{"target_parameters", "akunu adapts modules, not single parameters"},
    Refused{"use_bdlora", "akunu does not compute BD-LoRA"},
};

// Whether a key stands for "no", however it is written.
bool is_unset(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::null:
      return true;
    case JsonValue::Kind::boolean:
      return !value.boolean;
    case JsonValue::Kind::number:
      return value.number() == 0.0;
    case JsonValue::Kind::string:
      return value.text.empty();
    case JsonValue::Kind::array:
    case JsonValue::Kind::object:
      return value.items.empty();
  }
  __builtin_unreachable();
}

std::string text_of(const std::string& path) {
  const auto file = MappedFile::open(path);
  const auto* const begin = reinterpret_cast<const char*>(file->bytes().data());
  return {begin, file->bytes().size()};
}

}  // namespace

PeftConfig::PeftConfig(const std::filesystem::path& path)
    : where_(printable(path.string(), kPathLimit)) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw ModelFormatError(where_ +
                           " is missing: an adapter is a GGUF file, or a directory that "
                           "peft has saved");
  const JsonValue json = parse_json(text_of(path.string()), where_);
  ConfigObject config(json, where_);
  const std::string kind = config.text("peft_type").value_or("");
  if (kind.empty()) config.refuse_missing("peft_type");
  if (kind != "LORA") config.refuse_support("peft_type", "akunu has \"LORA\"");
  rank_ = config.needed_count("r");
  alpha_ = static_cast<double>(config.needed_number("lora_alpha"));
  by_root_ = config.flag("use_rslora").value_or(false);
  ranks_ = pattern_of(config, "rank_pattern");
  alphas_ = pattern_of(config, "alpha_pattern");
  for (const Refused& each : kRefused)
    if (const JsonValue* value = config.find(each.key); value != nullptr && !is_unset(*value))
      config.refuse_support(each.key, std::string(each.why));
  if (const JsonValue* bias = config.find("bias"); bias != nullptr && bias->text != "none")
    config.refuse_support("bias", "akunu does not compute biases of an adapter");
  // These take a part of the base's weights into the adapter, and so need a base without it.
  if (const JsonValue* start = config.find("init_lora_weights"))
    for (const char* moving : {"pissa", "olora", "corda", "loftq", "lora_ga"})
      if (start->text.starts_with(moving))
        config.refuse_support("init_lora_weights",
                              "the adapter belongs to a base whose weights its training changed; "
                              "have peft save it as one of the model as it was "
                              "(path_initial_model_for_weight_conversion)");
  for (const std::string_view key : kOfTraining) config.find(key);
  for (const std::string& key : config.unused())
    if (const JsonValue* value = json.find(key); value != nullptr && !is_unset(*value))
      config.refuse_support(key, "akunu does not know this key");
}

PeftConfig::Pattern PeftConfig::pattern_of(ConfigObject& config, std::string_view key) const {
  Pattern pattern;
  const JsonValue* const object = config.find(key);
  if (object == nullptr) return pattern;
  if (object->kind != JsonValue::Kind::object)
    config.refuse_value(key, "an object of modules is needed");
  for (size_t i = 0; i < object->keys.size(); ++i) {
    const std::string& module = object->keys[i];
    const std::string named = std::string(key) + " of " + printable(module);
    // peft takes names as regular expressions; of these, akunu has the plain ones.
    const std::string_view name = std::string_view(module).substr(module.starts_with('^') ? 1 : 0);
    if (name.empty() || name.find_first_of("\\^$*+?()[]{}|") != std::string_view::npos)
      throw UnsupportedModelError(where_ + ": " + named +
                                  " is a regular expression; akunu has names of modules, or how "
                                  "they end");
    const std::optional<double> value = object->items[i].number();
    if (!value || *value <= 0)
      throw ModelFormatError(where_ + ": " + named + " is " + object->items[i].shown() +
                             "; a positive number is needed");
    pattern[module] = *value;
  }
  return pattern;
}

// The first key that is the module's name, or how it ends behind a dot.
double PeftConfig::value_of(const Pattern& pattern, const std::string& module, double usual) const {
  const double* found = nullptr;
  for (const auto& [key, value] : pattern) {
    const bool whole = key.starts_with('^');
    const std::string_view name = std::string_view(key).substr(whole ? 1 : 0);
    if (module != name && (whole || !module.ends_with("." + std::string(name)))) continue;
    if (found != nullptr && *found != value)
      throw UnsupportedModelError(where_ + ": two patterns are of module " + printable(module) +
                                  " and say different numbers");
    found = &value;
  }
  return found == nullptr ? usual : *found;
}

double PeftConfig::scale_of(const std::string& module, uint64_t rank) const {
  const double said = value_of(ranks_, module, rank_);
  if (said != static_cast<double>(rank))
    throw ModelFormatError(where_ + ": the rank of " + printable(module) + " is " +
                           std::to_string(static_cast<uint64_t>(said)) +
                           ", and its matrices have " + std::to_string(rank));
  const double alpha = value_of(alphas_, module, alpha_);
  return alpha / (by_root_ ? std::sqrt(said) : said);
}

}  // namespace akunu
