#include "files/adapters/source.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "core/error.h"
#include "files/adapters/config.h"
#include "files/gguf/gguf.h"
#include "files/gguf/source.h"
#include "files/huggingface/tensors.h"
#include "files/names.h"
#include "files/printable.h"
#include "files/safetensors/safetensors.h"
#include "models/common/describe.h"
#include "models/registry.h"

namespace akunu {
namespace {

constexpr std::string_view kAdapted =
    "akunu adapts the projections of layers: of attention q, k, v and output, of latent attention "
    "also q_a, q_b and kv_a, of short convolutions in_proj and out_proj, of the feed-forward "
    "network gate, up and down, of layers with embeddings of their own per_layer_input_gate and "
    "per_layer_projection, of branches beside attention linear_left and linear_right";

// The two matrices of one weight, by the name that the adapter's file has for it.
struct Pair {
  std::optional<SourceTensor> down, up;
};
using Pairs = std::map<std::string, Pair, std::less<>>;

void add_to_pair(std::optional<SourceTensor>& place, SourceTensor tensor) {
  if (tensor.n_dims != 2)
    throw ModelFormatError(tensor.label() + " has " + std::to_string(tensor.n_dims) +
                           " dimensions; a matrix is needed");
  if (format_info(tensor.format).block_size > 1)
    throw UnsupportedModelError(tensor.label() + " has the number format " +
                                std::string(format_info(tensor.format).name) +
                                "; akunu has F32, F16 and BF16 for adapters");
  if (place) throw ModelFormatError(tensor.label() + " is there twice");
  refuse_no_numbers(tensor);
  place = std::move(tensor);
}

const LayerConfig* layer_of(std::string_view canonical, const ModelConfig& config) {
  constexpr std::string_view kLayers = "layers.";
  if (!canonical.starts_with(kLayers)) return nullptr;
  const size_t layer = std::strtoull(canonical.data() + kLayers.size(), nullptr, 10);
  return layer < n_own_layers(config) ? &config.layers[layer] : nullptr;
}

// Whether the rows of such a projection rotate.
bool rotates(std::string_view target) {
  return target.ends_with(".attention.q") || target.ends_with(".attention.k");
}

bool is_projection(std::string_view target) {
  for (const char* ending : {".attention.q",    ".attention.k",
                             ".attention.v",    ".attention.output",
                             ".attention.q_a",  ".attention.q_b",
                             ".attention.kv_a", ".ffn.gate",
                             ".ffn.up",         ".ffn.down",
                             ".per_layer.gate", ".per_layer.output",
                             ".convolution.in", ".convolution.output",
                             ".branch.left",    ".branch.right",
                             ".scan.in",        ".scan.output",
                             ".delta.qkv",      ".delta.gate",
                             ".delta.a",        ".delta.b",
                             ".delta.a_low",    ".delta.gate_low",
                             ".delta.output"})
    if (target.ends_with(ending)) return true;
  return false;
}

class AdapterReader {
 public:
  AdapterReader(const AdapterPath& adapter, const ModelConfig& config, const ArchDescriptor& arch)
      : config_(config), arch_(arch) {
    source_.name = adapter.name;
    source_.path = printable(adapter.path, kPathLimit);
  }

  AdapterSource read_gguf(const GgufFile& file) {
    check_gguf(file);
    const double alpha = file.get_float("adapter.lora.alpha").value_or(0);
    for (const GgufPart& part : file.parts())
      if (part.mapping) source_.files.push_back(part.mapping);
    Pairs pairs;
    for (const GgufTensor& tensor : file.tensors()) {
      const std::string name(tensor.name);
      const bool is_down = name.ends_with(".lora_a");
      if (!is_down && !name.ends_with(".lora_b"))
        throw UnsupportedModelError(source_.path + ": tensor " + printable(name) +
                                    " is not one of an adapter that akunu knows what to do with");
      Pair& pair = pairs[name.substr(0, name.size() - 7)];
      add_to_pair(is_down ? pair.down : pair.up, gguf_tensor(file, tensor));
    }
    // As llama.cpp takes a file without it.
    const auto scale_of = [&](const std::string&, uint64_t rank) {
      return alpha == 0 ? 1.0 : alpha / static_cast<double>(rank);
    };
    // The rows lie as in a GGUF file of the base.
    ModelConfig of_gguf = config_;
    of_gguf.rope_style.reset();
    tiles_values_ = find_family(config_.architecture)->traits.tiles_values;
    add_pairs(pairs, gguf_names(of_gguf.architecture), describe(of_gguf).row_style, scale_of,
              [](const std::string& name) { return name; });
    return std::move(source_);
  }

  AdapterSource read_peft(const PeftConfig& config, const SafetensorsFile& file) {
    if (file.mapping()) source_.files.push_back(file.mapping());
    constexpr std::string_view kFrame = "base_model.model.";
    Pairs pairs;
    for (const SafetensorsTensor& tensor : file.tensors()) {
      std::string_view name = tensor.name;
      if (name.starts_with(kFrame)) name.remove_prefix(kFrame.size());
      const bool is_down = name.ends_with(".lora_A.weight");
      if (!is_down && !name.ends_with(".lora_B.weight"))
        throw UnsupportedModelError(source_.path + ": tensor " + printable(tensor.name) +
                                    " is not one of an adapter that akunu knows what to do with; " +
                                    std::string(kAdapted));
      Pair& pair = pairs[std::string(name.substr(0, name.size() - 14))];
      add_to_pair(is_down ? pair.down : pair.up, plain_hf_tensor({&file, &tensor}));
    }
    const RopeStyle style = find_family(config_.architecture)->traits.interleaves
                                ? RopeStyle::interleaved
                                : RopeStyle::halves;
    add_pairs(
        pairs, *names_of(*find_family(config_.architecture)).rules, style,
        [&](const std::string& module, uint64_t rank) { return config.scale_of(module, rank); },
        [](const std::string& module) {
          // What stands before the layers of the text model: "model.", "language_model.model.".
          for (const std::string_view frame :
               {"model.language_model.layers.", "language_model.model.layers.", "model.layers.",
                "backbone.layers."})
            if (module.starts_with(frame))
              return module.substr(frame.size() - std::string_view("layers.").size()) + ".weight";
          return module + ".weight";
        });
    return std::move(source_);
  }

 private:
  void check_gguf(const GgufFile& file) const {
    const auto text = [&](const char* key) { return printable(file.get_string(key).value_or("")); };
    if (text("general.type") != "adapter")
      throw UnsupportedModelError(source_.path + " is no adapter: its general.type is \"" +
                                  text("general.type") + "\"");
    if (text("adapter.type") != "lora")
      throw UnsupportedModelError(source_.path + ": adapter.type is \"" + text("adapter.type") +
                                  "\"; akunu has \"lora\"");
    if (const std::string made_for = text("general.architecture"); made_for != config_.architecture)
      throw UnsupportedModelError(source_.path + ": the adapter is for a model of architecture " +
                                  made_for + ", and this one is of " + config_.architecture);
    if (file.find("adapter.alora.invocation_tokens") != nullptr)
      throw UnsupportedModelError(
          source_.path +
          ": adapter.alora.invocation_tokens: the adapter is switched on by "
          "tokens of a prompt (aLoRA), which akunu does not do");
  }

  // `scale_of(name, rank)`; `base_name(name)`: of the weight in the base's files.
  template <class ScaleOf, class BaseName>
  void add_pairs(Pairs& pairs, const NameRules& rules, RopeStyle rows_as_adapted,
                 const ScaleOf& scale_of, const BaseName& base_name) {
    if (pairs.empty()) throw ModelFormatError(source_.path + ": the adapter has no tensors");
    for (auto& [name, pair] : pairs) {
      if (!pair.down || !pair.up)
        throw ModelFormatError((pair.down ? *pair.down : *pair.up).label() + " is there without " +
                               (pair.down ? "B" : "A") + ", its other half");
      const uint64_t rank = pair.down->rows();
      if (pair.up->k() != rank)
        throw ModelFormatError(pair.up->label() + " has " + std::to_string(pair.up->k()) +
                               " columns, and its other half " + std::to_string(rank) + " rows");
      const auto scale = static_cast<float>(scale_of(name, rank));
      const std::vector<SourceTensor> pieces =
          give_names(rules, base_name(name), *pair.up, config_);
      if (pieces.empty()) refuse_target(*pair.up, name);
      for (const SourceTensor& piece : pieces) add(name, *pair.down, piece, scale, rows_as_adapted);
    }
  }

  void add(const std::string& name, const SourceTensor& down, const SourceTensor& up, float scale,
           RopeStyle rows_as_adapted) {
    constexpr std::string_view kWeight = ".weight";
    AdapterMatrices matrices{.target = up.name, .down = down, .up = up, .scale = scale};
    if (matrices.target.ends_with(kWeight))
      matrices.target.resize(matrices.target.size() - kWeight.size());
    const LayerConfig* const layer = layer_of(matrices.target, config_);
    if (layer == nullptr || !is_projection(matrices.target)) refuse_target(up, name);
    matrices.head_dim = layer->head_dim;
    // Of latent attention rows lie alike in files of all kinds.
    if (rotates(matrices.target) && config_.latent.rank == 0 && rows_as_adapted != arch_.row_style)
      matrices.head_rows =
          arch_.row_style == RopeStyle::halves ? HeadRows::halve : HeadRows::interleave;
    if (layer->recurs && tiles_values_ != config_.delta_rule.is_tiled) order_values(matrices);
    if (std::ranges::find(source_.matrices, matrices.target, &AdapterMatrices::target) !=
        source_.matrices.end())
      throw ModelFormatError(up.label() + " is for " + matrices.target +
                             ", which the adapter has under another name too");
    source_.matrices.push_back(std::move(matrices));
  }

  // The base's value heads lie in another order than the adapter's: see DeltaRule::is_tiled.
  void order_values(AdapterMatrices& matrices) const {
    const DeltaRule& rule = config_.delta_rule;
    const std::string_view target = matrices.target;
    const bool is_of_output = target.ends_with(".delta.output");
    const bool is_of_heads = target.ends_with(".delta.a") || target.ends_with(".delta.b");
    const uint32_t first = target.ends_with(".delta.qkv") ? 2 * rule.keys() : 0;
    const uint32_t length = is_of_heads ? 1 : rule.value_dim;
    std::vector<uint32_t>& order = is_of_output ? matrices.columns : matrices.rows;
    const uint32_t n = first + rule.n_value_heads * length;
    if (n != (is_of_output ? matrices.down.k() : matrices.up.rows()))
      return;  // refused by its shape
    const uint32_t per_key = rule.n_value_heads / rule.n_key_heads;
    for (uint32_t i = 0; i < first; ++i) order.push_back(i);
    for (uint32_t head = 0; head < rule.n_value_heads; ++head) {
      const uint32_t from = rule.is_tiled
                                ? head % rule.n_key_heads * per_key + head / rule.n_key_heads
                                : head % per_key * rule.n_key_heads + head / per_key;
      for (uint32_t i = 0; i < length; ++i) order.push_back(first + from * length + i);
    }
  }

  [[noreturn]] static void refuse_target(const SourceTensor& tensor, const std::string& name) {
    throw UnsupportedModelError(tensor.label() + " adapts " + printable(name) +
                                ", which is none of this model's projections; " +
                                std::string(kAdapted));
  }

  const ModelConfig& config_;
  const ArchDescriptor& arch_;
  bool tiles_values_ = false;  // as DeltaRule::is_tiled, of the adapter
  AdapterSource source_;
};

AdapterSource read(const AdapterPath& adapter, const ModelConfig& config,
                   const ArchDescriptor& arch) {
  if (arch.embeds)
    throw UnsupportedModelError("the model is an encoder, and akunu adapts models that generate");
  // Only directories say how the rows of Q and K lie.
  const bool is_of_directory = config.rope_style.has_value();
  if (find_family(config.architecture)->traits.scans_beside &&
      std::filesystem::is_directory(adapter.path) != is_of_directory)
    throw UnsupportedModelError(
        "weights of this model are multiplied by its factors in GGUF files and not in directories, "
        "and those of an adapter may be: load the model from a " +
        std::string(is_of_directory ? "GGUF file" : "directory"));
  AdapterReader reader(adapter, config, arch);
  std::error_code error;
  const std::filesystem::path path(adapter.path);
  if (!std::filesystem::is_directory(path, error))
    return reader.read_gguf(GgufFile::open(adapter.path));
  const std::filesystem::path weights = path / "adapter_model.safetensors";
  const PeftConfig peft(path / "adapter_config.json");
  if (!std::filesystem::exists(weights, error))
    throw ModelFormatError(printable(adapter.path, kPathLimit) +
                           ": there is no adapter_model.safetensors; akunu reads no other file of "
                           "an adapter's weights");
  return reader.read_peft(peft, SafetensorsFile::open(weights.string()));
}

}  // namespace

AdapterSource open_adapter(const AdapterPath& adapter, const ModelConfig& config,
                           const ArchDescriptor& arch) {
  const std::string begin = "adapter \"" + printable(adapter.name) + "\": ";
  try {
    return read(adapter, config, arch);
  } catch (const ModelFormatError& error) {
    throw ModelFormatError(begin + error.what());
  } catch (const UnsupportedModelError& error) {
    throw UnsupportedModelError(begin + error.what());
  } catch (const ArgumentError& error) {
    throw ArgumentError(begin + error.what());
  }
}

}  // namespace akunu
