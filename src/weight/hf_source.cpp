#include "weight/hf_source.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "weight/hf_config.h"
#include "weight/left_out_notes.h"
#include "weight/names.h"
#include "weight/printable.h"

namespace akunu {
namespace {

struct Located {
  const SafetensorsFile* file;
  const SafetensorsTensor* tensor;
};
using Tensors = std::map<std::string, Located, std::less<>>;  // by name without the prefix

constexpr std::string_view kEmbedding = "embed_tokens.weight";

// What stands before the names of the text model: "model." of most, "language_model.model." of those
// with images, nothing of a model without an output of its own.
std::string find_prefix(const ModelDirectory& directory) {
  for (const SafetensorsFile& file : directory.files())
    for (const SafetensorsTensor& tensor : file.tensors())
      if (tensor.name.ends_with(kEmbedding) &&
          (tensor.name.size() == kEmbedding.size() ||
           tensor.name[tensor.name.size() - kEmbedding.size() - 1] == '.'))
        return tensor.name.substr(0, tensor.name.size() - kEmbedding.size());
  throw ModelFormatError(printable(directory.path(), kPathLimit) +
                         ": tensor model.embed_tokens.weight is missing");
}

class HfSourceReader {
 public:
  explicit HfSourceReader(const ModelDirectory& directory)
      : directory_(directory),
        config_(read_hf_config(directory.config(), directory.config_path())) {}

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
    add_rope_divisors(source);
    left_out_.write(source.config.notes);
    return source;
  }

 private:
  const NameRules& rules() const { return hf_names(config_.naming); }

  void find_tensors() {
    const std::string prefix = find_prefix(directory_);
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
        if (!tensors_.emplace(name, Located{&file, &tensor}).second)
          throw ModelFormatError(label({&file, &tensor}) + " is there twice, as " +
                                 printable(tensor.name) + " and " + printable(name));
      }
  }

  static std::string label(const Located& located) {
    return printable(located.file->path(), kPathLimit) + ": tensor " +
           printable(located.tensor->name);
  }

  void add_tensors(ModelSource& source) const {
    for (const auto& [name, located] : tensors_) {
      const SourceTensor whole = plain(located);
      std::vector<SourceTensor> named = give_names(rules(), name, whole, source.config);
      if (named.empty())
        throw UnsupportedModelError(whole.label() + " is not one that akunu knows what to do with");
      for (SourceTensor& each : named) source.tensors.push_back(std::move(each));
    }
  }

  static std::optional<Format> format_of(std::string_view type) {
    if (type == "F32") return Format::f32;
    if (type == "F16") return Format::f16;
    if (type == "BF16") return Format::bf16;
    return std::nullopt;
  }

  static SourceTensor plain(const Located& located) {
    const SafetensorsTensor& tensor = *located.tensor;
    SourceTensor result;
    result.name_in_file = printable(tensor.name);
    result.path = printable(located.file->path(), kPathLimit);
    const std::optional<Format> format = format_of(tensor.type->name);
    if (!format)
      throw UnsupportedModelError(result.label() + " has the number format " +
                                  std::string(tensor.type->name) + "; akunu has F32, F16 and BF16");
    if (tensor.shape.empty() || tensor.shape.size() > 3)
      throw UnsupportedModelError(result.label() + " has " + std::to_string(tensor.shape.size()) +
                                  " dimensions; akunu has one to three");
    if (tensor.size == 0) throw ModelFormatError(result.label() + " is empty");
    result.format = *format;
    result.n_dims = static_cast<uint32_t>(tensor.shape.size());
    std::ranges::copy(tensor.shape, result.shape.end() - result.n_dims);
    result.parts[0] = {.bytes = located.file->bytes_of(tensor),
                       .owner = located.file->mapping(),
                       .mapping = located.file->mapping() ? located.file->mapping()->bytes()
                                                          : std::span<const std::byte>()};
    return result;
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
  void add_rope_divisors(ModelSource& source) const {
    if (config_.rope_divisors.empty()) return;
    const auto values = std::make_shared<const std::vector<float>>(config_.rope_divisors);
    SourceTensor tensor;
    tensor.name = "rope_factors.weight";
    tensor.name_in_file = "of rope_scaling";
    tensor.path = directory_.config_path();
    tensor.n_dims = 1;
    tensor.shape[2] = values->size();
    tensor.parts[0] = {.bytes = std::as_bytes(std::span(*values)), .owner = values};
    source.tensors.push_back(std::move(tensor));
  }

  const ModelDirectory& directory_;
  HfConfig config_;
  Tensors tensors_;
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
