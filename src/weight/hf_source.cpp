#include "weight/hf_source.h"

#include <algorithm>

#include "core/error.h"
#include "core/memory_left.h"
#include "weight/hf_config.h"
#include "weight/hf_tensors.h"
#include "weight/left_out_notes.h"
#include "weight/names.h"
#include "weight/printable.h"

namespace akunu {
namespace {

// What stands before the names of the text model: "model." of most, "language_model.model." of those
// with images, nothing of a model without an output of its own.
std::string find_prefix(const ModelDirectory& directory, HfNaming naming) {
  const std::string_view embedding = hf_embedding(naming);
  for (const SafetensorsFile& file : directory.files())
    for (const SafetensorsTensor& tensor : file.tensors())
      if (tensor.name.ends_with(embedding) &&
          (tensor.name.size() == embedding.size() ||
           tensor.name[tensor.name.size() - embedding.size() - 1] == '.'))
        return tensor.name.substr(0, tensor.name.size() - embedding.size());
  throw ModelFormatError(printable(directory.path(), kPathLimit) + ": tensor " +
                         (naming == HfNaming::bert ? "" : "model.") + std::string(embedding) +
                         " is missing");
}

class HfSourceReader {
 public:
  explicit HfSourceReader(const ModelDirectory& directory)
      : directory_(directory),
        config_(read_hf_config(directory.config(), directory.config_path())),
        quantization_(quantization_of(directory)) {}

  ModelSource read() {
    ModelSource source;
    source.path = directory_.path();
    source.config = config_.model;
    for (const SafetensorsFile& file : directory_.files())
      if (file.mapping()) source.files.push_back(file.mapping());
    find_tensors();
    add_tensors(source);
    check_output(source);
    check_vocabulary(source);
    const bool two = !config_.rope_long_divisors.empty();
    add_rope_divisors(source, two ? "rope_factors_short" : "rope_factors", config_.rope_divisors);
    add_rope_divisors(source, "rope_factors_long", config_.rope_long_divisors);
    left_out_.write(source.config.notes);
    return source;
  }

 private:
  const NameRules& rules() const { return hf_names(config_.naming); }

  void find_tensors() {
    const std::string prefix = find_prefix(directory_, config_.naming);
    // "language_model.lm_head" beside "language_model.model.layers".
    const std::string outer = prefix.ends_with("model.") ? prefix.substr(0, prefix.size() - 6) : "";
    for (const SafetensorsFile& file : directory_.files())
      for (const SafetensorsTensor& tensor : file.tensors()) {
        std::string_view name = tensor.name;
        if (const LeftOut* left_out = find_left_out(rules(), name)) {
          left_out_.add(left_out->why, printable(name));
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
        if (!tensors_.emplace(name, HfTensor{&file, &tensor}).second)
          throw ModelFormatError(HfTensor{&file, &tensor}.label() + " is there twice, as " +
                                 printable(tensor.name) + " and " + printable(name));
      }
  }

  void add_tensors(ModelSource& source) const {
    Fp8Expanded expanded;
    for (const auto& [name, located] : tensors_) {
      if (is_companion(tensors_, name)) continue;
      const SourceTensor whole = hf_tensor(tensors_, name, quantization_, expanded);
      std::vector<SourceTensor> named = give_names(rules(), name, whole, source.config);
      if (named.empty())
        throw UnsupportedModelError(whole.label() + " is not one that akunu knows what to do with");
      for (SourceTensor& each : named) source.tensors.push_back(std::move(each));
    }
    if (expanded.n_tensors > 0)
      source.config.notes.push_back(std::to_string(expanded.n_tensors) +
                                    " tensors in FP8 were expanded to BF16 and take " +
                                    mebibytes(expanded.bytes));
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
  HfTensors tensors_;
  LeftOutNotes left_out_;
};

}  // namespace

ModelSource hf_source(const ModelDirectory& directory) {
  try {
    return HfSourceReader(directory).read();
  } catch (const Error&) {
    if (const std::optional<std::string> damage = directory.damage())
      throw ModelFormatError(*damage);
    throw;
  }
}

}  // namespace akunu
