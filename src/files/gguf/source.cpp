#include "files/gguf/source.h"

#include <set>

#include "core/error.h"
#include "files/gguf/model.h"
#include "files/left_out_notes.h"
#include "files/names.h"
#include "files/printable.h"
#include "models/registry.h"

namespace akunu {
namespace {

ModelSource read(const GgufFile& file, bool with_head) {
  ModelSource source;
  source.path = file.path();
  source.config = read_config(file);
  const Family* const family = find_family(source.config.architecture);
  const bool has_head = family != nullptr && family->traits.predicts &&
                        source.config.experts.n_layers_ahead == 1 && !source.config.layers.empty();
  if (with_head && has_head) add_layer_ahead(source.config);
  for (const GgufPart& part : file.parts())
    if (part.mapping) source.files.push_back(part.mapping);
  const NameRules& rules = gguf_names(source.config.architecture);
  std::set<std::string> names;
  LeftOutNotes notes;
  for (const GgufTensor& tensor : file.tensors()) {
    if (const LeftOut* left_out = find_left_out(rules, tensor.name)) {
      notes.add(left_out->why, printable(tensor.name));
      continue;
    }
    if (source.config.experts.n_layers_ahead > 0 &&
        is_of_layer_behind(rules, tensor.name, source.config.layers.size())) {
      notes.add(has_head ? kWhyHeadNotWanted : kWhyLayerBehind, printable(tensor.name));
      continue;
    }
    const SourceTensor whole = gguf_tensor(file, tensor);
    std::vector<SourceTensor> named =
        give_names(rules, std::string(tensor.name), whole, source.config);
    if (named.empty())
      throw UnsupportedModelError(whole.label() + " is not one that akunu knows what to do with");
    for (SourceTensor& each : named) {
      if (const std::string_view why = why_unused(each.name, source.config); !why.empty()) {
        notes.add(why, printable(tensor.name));
        continue;
      }
      if (!names.insert(each.name).second)
        throw ModelFormatError(each.label() + " is " + each.name +
                               ", which the file has under another name too");
      source.tensors.push_back(std::move(each));
    }
  }
  if (std::vector<float> divisors = read_rope_divisors(file); !divisors.empty()) {
    if (names.contains("rope_factors.weight"))
      throw UnsupportedModelError(printable(file.path(), kPathLimit) +
                                  ": it has YaRN's keys and the tensor rope_freqs");
    source.tensors.push_back(
        rope_factors("rope_factors", std::move(divisors), printable(file.path(), kPathLimit)));
  }
  notes.write(source.config.notes);
  return source;
}

// Which of the formats there are comes nearest, where that helps.
std::string instead_of(std::string_view format) {
  if (format.starts_with("IQ1_") || format.starts_with("TQ")) return ": IQ2_XXS is the smallest";
  if (format == "Q8_1" || format == "Q8_K") return ": Q8_0 is the same size";
  return "";
}

}  // namespace

ModelSource gguf_source(const GgufFile& file, bool with_head) {
  try {
    return read(file, with_head);
  } catch (const Error&) {
    if (const std::optional<std::string> damage = file.damage()) throw ModelFormatError(*damage);
    throw;
  }
}

SourceTensor gguf_tensor(const GgufFile& file, const GgufTensor& tensor) {
  const GgufPart& part = file.part_of(tensor);
  SourceTensor result;
  result.name_in_file = printable(tensor.name);
  result.path = printable(part.path, kPathLimit);
  const std::optional<Format> format = format_from_gguf(tensor.type);
  if (!format) {
    std::string name(gguf_type_name(tensor.type));
    if (name.empty()) name = "type " + std::to_string(tensor.type);
    throw UnsupportedModelError(result.label() + " has the number format " + name + "; akunu has " +
                                gguf_types_with_a_format() +
                                ". Take a file of this model in one of those" + instead_of(name));
  }
  uint32_t n_dims = tensor.n_dims;
  while (n_dims > 3 && tensor.dims[n_dims - 1] == 1) --n_dims;
  if (n_dims == 0 || n_dims > 3)
    throw UnsupportedModelError(result.label() + " has " + std::to_string(tensor.n_dims) +
                                " dimensions; akunu has one to three");
  result.format = *format;
  result.n_dims = n_dims;
  result.shape = {tensor.dims[2], tensor.dims[1], tensor.dims[0]};
  result.parts[0] = {
      .bytes = file.tensor_bytes(tensor),
      .owner = part.mapping,
      .mapping = part.mapping ? part.mapping->bytes() : std::span<const std::byte>()};
  return result;
}

}  // namespace akunu
