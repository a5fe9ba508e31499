#include "files/huggingface/sentence_modules.h"

#include <filesystem>
#include <memory>

#include "core/error.h"
#include "files/huggingface/config_object.h"
#include "files/json.h"
#include "files/mapped_file.h"
#include "files/printable.h"

namespace akunu {
namespace {

namespace fs = std::filesystem;

std::string shown(const fs::path& path) { return printable(path.string(), kPathLimit); }

JsonValue read_json(const fs::path& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path.string());
  const std::string text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  return parse_json(text, shown(path));
}

Activation activation_of(ConfigObject& config) {
  constexpr const char* kKey = "activation_function";
  const std::string name = config.text(kKey).value_or("torch.nn.modules.activation.Tanh");
  if (name.ends_with(".Tanh")) return Activation::tanh;
  if (name.ends_with(".Identity")) return Activation::none;
  config.refuse_support(kKey, "akunu has Tanh and Identity for dense layers");
}

DenseModule read_dense(const fs::path& directory, const std::string& name) {
  const fs::path folder = directory / name;
  for (const char* file : {"config.json", "model.safetensors"})
    if (!fs::is_regular_file(folder / file))
      throw ModelFormatError(shown(folder / file) +
                             " is missing; modules.json names its directory");
  const JsonValue json = read_json(folder / "config.json");
  ConfigObject config(json, shown(folder / "config.json"));
  return {name, SafetensorsFile::open((folder / "model.safetensors").string()),
          activation_of(config)};
}

std::string text_of(const JsonValue& module, std::string_view key) {
  const JsonValue* const value = module.find(key);
  return value != nullptr && value->kind == JsonValue::Kind::string ? value->text : "";
}

}  // namespace

SentenceModules read_sentence_modules(const std::string& directory) {
  SentenceModules result;
  const fs::path path = fs::path(directory) / "modules.json";
  if (!fs::is_regular_file(path)) return result;
  result.are_there = true;
  const JsonValue modules = read_json(path);
  if (modules.kind != JsonValue::Kind::array)
    throw ModelFormatError(shown(path) + ": a list of modules is needed");
  for (const JsonValue& module : modules.items) {
    if (!text_of(module, "type").ends_with(".Dense")) continue;
    const std::string name = text_of(module, "path");
    if (name.empty() || name.starts_with('.') || name.find_first_of("/\\") != std::string::npos)
      throw ModelFormatError(shown(path) + ": \"" + printable(name) +
                             "\" is no name of a directory beside it");
    result.dense.push_back(read_dense(directory, name));
  }
  constexpr size_t kMost = 2;
  if (result.dense.size() > kMost)
    throw UnsupportedModelError(shown(path) + " has " + std::to_string(result.dense.size()) +
                                " dense layers; akunu has two");
  return result;
}

}  // namespace akunu
