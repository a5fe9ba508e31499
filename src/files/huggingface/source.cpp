#include "files/huggingface/source.h"

#include <algorithm>

#include "core/error.h"
#include "core/memory_left.h"
#include "files/huggingface/config.h"
#include "files/huggingface/config_object.h"
#include "files/huggingface/experts.h"
#include "files/huggingface/images.h"
#include "files/huggingface/sentence_modules.h"
#include "files/huggingface/tensors.h"
#include "files/left_out_notes.h"
#include "files/names.h"
#include "files/printable.h"
#include "files/unknown_parts.h"
#include "models/registry.h"

namespace akunu {
namespace {

// What stands before the names of the text model: "model." of most, "language_model.model." of those
// with images, nothing of a model without an output of its own.
std::string find_prefix(const ModelDirectory& directory, std::string_view embedding) {
  for (const SafetensorsFile& file : directory.files())
    for (const SafetensorsTensor& tensor : file.tensors())
      if (tensor.name.ends_with(embedding) &&
          (tensor.name.size() == embedding.size() ||
           tensor.name[tensor.name.size() - embedding.size() - 1] == '.'))
        return tensor.name.substr(0, tensor.name.size() - embedding.size());
  throw ModelFormatError(printable(directory.path(), kPathLimit) + ": tensor " +
                         (embedding == "embed_tokens.weight" ? "model." : "") +
                         std::string(embedding) + " is missing");
}

// What stands before the names of a prediction head.
constexpr std::string_view kAhead = "mtp.";

class HfSourceReader {
 public:
  HfSourceReader(const ModelDirectory& directory, bool with_head)
      : directory_(directory),
        config_(config_of(directory)),
        quantization_(quantization_of(directory)),
        classifies_(has_classifier(directory)),
        modules_(read_sentence_modules(directory.path())) {
    if (config_.names->of_mlx != nullptr &&
        has_mlx_convolutions(directory, "linear_attn.conv1d.weight"))
      config_.names = config_.names->of_mlx;
    if (find_family(config_.model.architecture)->traits.scans_beside &&
        has_mlx_convolutions(directory, "mamba.conv1d.weight"))
      throw UnsupportedModelError(
          printable(directory.path(), kPathLimit) +
          ": mlx_lm has multiplied weights of this model by factors of config.json, which ones "
          "depends on its version; use the directory that it was made from, or a GGUF file");
    if (config_.model.images && has_image_tensors(directory) && !modules_.are_there)
      config_.names = config_.names_with_images;
    else
      config_.model.images.reset();
    has_head_ = has_head();
    if (!with_head || !has_head_) return;
    check_head();
    add_layer_ahead(config_.model);
  }

  ModelSource read() {
    ModelSource source;
    source.path = directory_.path();
    source.config = config_.model;
    read_how_it_embeds(source.config);
    for (const SafetensorsFile& file : directory_.files())
      if (file.mapping()) source.files.push_back(file.mapping());
    for (const DenseModule& dense : modules_.dense) source.files.push_back(dense.file.mapping());
    find_tensors();
    add_tensors(source);
    add_dense(source);
    check_output(source);
    check_vocabulary(source);
    const bool two = !config_.rope_long_divisors.empty();
    add_rope_divisors(source, two ? "rope_factors_short" : "rope_factors", config_.rope_divisors);
    add_rope_divisors(source, "rope_factors_long", config_.rope_long_divisors);
    left_out_.write(source.config.notes);
    return source;
  }

 private:
  const NameRules& rules() const {
    const NameRules* const of_classifier = classifies_ ? config_.names->of_classifier : nullptr;
    return of_classifier != nullptr ? *of_classifier : *config_.names->rules;
  }

  // Of a family that is not here, the message says what of its files is unknown, too.
  static HfConfig config_of(const ModelDirectory& directory) {
    try {
      return read_hf_config(directory.config(), directory.config_path());
    } catch (const UnsupportedModelTypeError& error) {
      throw UnsupportedModelError(error.what() + unknown_parts(directory));
    }
  }

  // MLX's converter has turned convolutions, [n, taps, 1] instead of [n, 1, taps]; then it has changed more of these
  // models: of the delta rule it has added the 1 to their norms.
  static bool has_mlx_convolutions(const ModelDirectory& directory, std::string_view name) {
    for (const SafetensorsFile& file : directory.files())
      for (const SafetensorsTensor& tensor : file.tensors())
        if (tensor.name.ends_with(name)) return tensor.shape.size() == 3 && tensor.shape[2] == 1;
    return false;
  }

  // Whether there is a prediction head, in a family whose heads akunu computes.
  bool has_head() const {
    const Family* const family = find_family(config_.model.architecture);
    if (family == nullptr || !family->traits.predicts) return false;
    for (const SafetensorsFile& file : directory_.files())
      for (const SafetensorsTensor& tensor : file.tensors())
        if (tensor.name.starts_with(std::string(kAhead) + "fc.")) return true;
    return false;
  }

  void check_head() const {
    ConfigObject whole(directory_.config(), directory_.config_path());
    std::optional<ConfigObject> text = whole.object("text_config");
    ConfigObject& config = text ? *text : whole;
    if (config.count("mtp_num_hidden_layers").value_or(1) != 1)
      config.refuse_support("mtp_num_hidden_layers", "akunu has prediction heads of one layer");
    if (config.flag("mtp_use_dedicated_embeddings").value_or(false))
      config.refuse_support("mtp_use_dedicated_embeddings",
                            "akunu has prediction heads with the embeddings of the model");
  }

  // The name of a head's tensor as one of a layer, behind those that all rows go through.
  std::string name_ahead(std::string_view name) const {
    constexpr std::string_view kLayer = "mtp.layers.0.";
    if (name.starts_with(kLayer)) name.remove_prefix(kLayer.size());
    return "layers." + std::to_string(n_own_layers(config_.model)) + "." + std::string(name);
  }

  std::string_view why_left_out(const LeftOut& left_out, std::string_view name) const {
    return has_head_ && name.starts_with(kAhead) ? kWhyHeadNotWanted : left_out.why;
  }

  static bool has_classifier(const ModelDirectory& directory) {
    for (const SafetensorsFile& file : directory.files())
      for (const SafetensorsTensor& tensor : file.tensors())
        if (tensor.name == "classifier.weight" || tensor.name == "classifier.out_proj.weight")
          return true;
    return false;
  }

  void find_tensors() {
    const std::string prefix = find_prefix(directory_, config_.names->embedding);
    // "language_model.lm_head" beside "language_model.model.layers".
    const std::string outer = prefix.ends_with("model.") ? prefix.substr(0, prefix.size() - 6) : "";
    for (const SafetensorsFile& file : directory_.files())
      for (const SafetensorsTensor& tensor : file.tensors()) {
        std::string_view name = tensor.name;
        std::string of_head;
        if (config_.model.n_ahead > 0 && name.starts_with(kAhead))
          name = of_head = name_ahead(name);
        const std::optional<std::string> of_image =
            config_.model.images ? name_of_image_tensor(name) : std::nullopt;
        if (of_image) name = *of_image;
        if (const LeftOut* left_out = find_left_out(rules(), name)) {
          left_out_.add(why_left_out(*left_out, name), printable(name));
          continue;
        }
        if (name.starts_with(prefix))
          name.remove_prefix(prefix.size());
        else if (!outer.empty() && name.starts_with(outer))
          name.remove_prefix(outer.size());
        if (const LeftOut* left_out = find_left_out(rules(), name)) {
          left_out_.add(left_out->why, printable(tensor.name));
          continue;
        }
        if (config_.model.experts.n_layers_ahead > 0 &&
            is_of_layer_behind(rules(), name, config_.model.layers.size())) {
          left_out_.add(kWhyLayerBehind, printable(tensor.name));
          continue;
        }
        if (!tensors_.emplace(with_suffix(name), HfTensor{&file, &tensor}).second)
          throw ModelFormatError(HfTensor{&file, &tensor}.label() + " is there twice, as " +
                                 printable(tensor.name) + " and " + printable(name));
      }
  }

  // Whether a tensor is a stack of matrices that are to be transposed.
  bool has_columns_first(std::string_view name, const SourceTensor& stack) const {
    if (config_.stacks == StackOrder::rows_first || stack.n_dims != 3 ||
        format_info(stack.format).block_size != 1)
      return false;
    const bool is_down = name.find("down_proj") != std::string_view::npos;
    const uint64_t n_inputs = is_down ? config_.model.experts.dim : config_.model.dim;
    return config_.stacks == StackOrder::columns_first || stack.k() != n_inputs;
  }

  void add_tensors(ModelSource& source) {
    Fp8Expanded expanded;
    ExpertStacks stacks(config_.model.experts.n);
    const auto add = [&](std::string_view name, const SourceTensor& whole) {
      std::vector<SourceTensor> named = give_names(rules(), name, whole, source.config);
      if (named.empty())
        throw UnsupportedModelError(whole.label() + " is not one that akunu knows what to do with");
      for (SourceTensor& each : named)
        if (const std::string_view why = why_unused(each.name, source.config); !why.empty())
          left_out_.add(why, each.name_in_file);
        else
          source.tensors.push_back(std::move(each));
    };
    for (const auto& [name, located] : tensors_) {
      if (is_companion(tensors_, name)) continue;
      if (config_.model.images && is_patch_embedding(name)) {
        add(name, patch_embedding(located));
        continue;
      }
      const SourceTensor whole = hf_tensor(tensors_, name, quantization_, expanded);
      if (config_.model.images && is_image_projection(name) && whole.n_dims == 2 &&
          format_info(whole.format).block_size == 1) {
        add(name, transposed(whole));
        continue;
      }
      if (stacks.take(name, whole)) continue;
      add(name, has_columns_first(name, whole) ? transposed(whole) : whole);
    }
    for (const auto& [name, stack] : stacks.put_together()) add(name, stack);
    note_copied_stacks(source);
    if (expanded.n_tensors > 0)
      source.config.notes.push_back(std::to_string(expanded.n_tensors) +
                                    " tensors in FP8 were expanded to BF16 and take " +
                                    mebibytes(expanded.bytes));
  }

  // A directory with files of sentence-transformers is made to embed, whatever its family. They say
  // the pooling, too: whoever loads it reads that.
  void read_how_it_embeds(ModelConfig& config) const {
    const Family* const family = find_family(config.architecture);
    config.embeds = (family != nullptr && family->traits.encoder) || modules_.are_there;
    for (size_t at = 0; at < modules_.dense.size(); ++at)
      config.dense_activations[at] = modules_.dense[at].activation;
    if (classifies_ && !config.pooling) config.pooling = Pooling::first;
  }

  // linear.weight and linear.bias of each dense layer.
  void add_dense(ModelSource& source) const {
    for (size_t i = 0; i < modules_.dense.size(); ++i) {
      HfTensors tensors;
      for (const SafetensorsTensor& tensor : modules_.dense[i].file.tensors())
        tensors.emplace(tensor.name, HfTensor{&modules_.dense[i].file, &tensor});
      for (const auto& [name, located] : tensors) {
        Fp8Expanded expanded;
        SourceTensor tensor = hf_tensor(tensors, name, quantization_, expanded);
        if (name != "linear.weight" && name != "linear.bias")
          throw UnsupportedModelError(tensor.label() +
                                      " is not one that akunu knows what to do with");
        if (format_info(tensor.format).block_size == 1) refuse_no_numbers(tensor);
        tensor.name = "dense." + std::to_string(i) + name.substr(name.find('.'));
        source.tensors.push_back(std::move(tensor));
      }
    }
  }

  static const SourceTensor* find(const ModelSource& source, std::string_view name) {
    const auto found = std::ranges::find(source.tensors, name, &SourceTensor::name);
    return found == source.tensors.end() ? nullptr : &*found;
  }

  // Whether output and embedding are one is said by what is stored.
  void check_output(const ModelSource& source) const {
    if (config_.tied.has_value() && !*config_.tied && find(source, "output.weight") == nullptr)
      throw ModelFormatError(directory_.config_path() +
                             ": tie_word_embeddings is false, and there is no tensor " +
                             "lm_head.weight; a file of the model is missing");
  }

  void check_vocabulary(const ModelSource& source) const {
    for (const char* name : {"token_embedding.weight", "output.weight"})
      if (const SourceTensor* tensor = find(source, name);
          tensor != nullptr && tensor->rows() != source.config.vocab_size)
        throw ModelFormatError(directory_.config_path() + ": vocab_size is " +
                               std::to_string(source.config.vocab_size) + ", and tensor " +
                               tensor->name_in_file + " has " + std::to_string(tensor->rows()) +
                               " rows");
  }

  // As a tensor, which is how GGUF has them.
  void add_rope_divisors(ModelSource& source, const std::string& name,
                         const std::vector<float>& divisors) const {
    if (divisors.empty()) return;
    source.tensors.push_back(rope_factors(name, divisors, directory_.config_path()));
  }

  const ModelDirectory& directory_;
  HfConfig config_;
  HfQuantization quantization_;
  const bool classifies_;
  const SentenceModules modules_;
  bool has_head_ = false;
  HfTensors tensors_;
  LeftOutNotes left_out_;
};

}  // namespace

ModelSource hf_source(const ModelDirectory& directory, bool with_head) {
  try {
    return HfSourceReader(directory, with_head).read();
  } catch (const Error&) {
    if (const std::optional<std::string> damage = directory.damage())
      throw ModelFormatError(*damage);
    throw;
  }
}

}  // namespace akunu
