#include "files/huggingface/model_directory.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/error.h"
#include "files/foreign.h"
#include "files/printable.h"

namespace akunu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigName = "config.json";
constexpr const char* kSingleName = "model.safetensors";
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr std::string_view kEnding = ".safetensors";

std::string path_in(const std::string& directory, std::string_view name) {
  return (fs::path(directory) / name).string();
}

bool is_regular(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string shown_path(const std::string& path) { return printable(path, kPathLimit); }

std::string read_small_file(const std::string& path) {
  constexpr size_t kLargest = size_t{1} << 26;
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  if (file->bytes().size() > kLargest)
    throw ModelFormatError(shown_path(path) + ": the file has " +
                           std::to_string(file->bytes().size()) +
                           " bytes; real ones have a thousandth of that");
  std::string text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  if (const std::optional<std::string> damage = file->damage()) throw ModelFormatError(*damage);
  return text;
}

std::vector<std::string> safetensors_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    if (const std::string name = entry->path().filename().string(); name.ends_with(kEnding))
      names.push_back(name);
  std::ranges::sort(names);
  return names;
}

// What an index calls a file must be a file of its directory.
void check_shard_name(const std::string& index_path, const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
      name.find('\\') != std::string::npos || name.find('\0') != std::string::npos)
    throw ModelFormatError(shown_path(index_path) + ": \"" + printable(name) +
                           "\" is no name of a file beside it");
}

// The file of each tensor, as an index says.
std::map<std::string, std::string> read_index(const std::string& index_path) {
  const std::string text = read_small_file(index_path);
  const JsonValue index = parse_json(text, shown_path(index_path));
  const JsonValue* const map = index.find("weight_map");
  if (map == nullptr || map->kind != JsonValue::Kind::object || map->keys.empty())
    throw ModelFormatError(shown_path(index_path) + ": weight_map " +
                           (map == nullptr ? "is missing" : "is no object with tensors in it"));
  std::map<std::string, std::string> files;
  for (size_t i = 0; i < map->keys.size(); ++i) {
    if (map->items[i].kind != JsonValue::Kind::string)
      throw ModelFormatError(shown_path(index_path) + ": weight_map has " + map->items[i].shown() +
                             " for tensor " + printable(map->keys[i]) +
                             ", expected the name of a file");
    check_shard_name(index_path, map->items[i].text);
    files.emplace(map->keys[i], map->items[i].text);
  }
  return files;
}

}  // namespace

bool ModelDirectory::is_one(const std::string& path) {
  return fs::exists(path_in(path, kConfigName)) || is_regular(path_in(path, kIndexName)) ||
         !safetensors_in(path).empty();
}

ModelDirectory ModelDirectory::open(const std::string& path) {
  ModelDirectory result;
  const bool is_directory = fs::is_directory(path);
  result.path_ = is_directory ? path : fs::path(path).parent_path().string();
  if (result.path_.empty()) result.path_ = ".";
  const std::string config_path = path_in(result.path_, kConfigName),
                    index_path = path_in(result.path_, kIndexName);
  if (!fs::exists(config_path)) {  // what is there and no regular file is refused where it is read
    if (!is_directory)
      throw ModelFormatError(shown_path(path) +
                             ": there is no config.json beside it; without one, " +
                             "nobody knows what model its tensors are");
    throw ModelFormatError(shown_path(path) +
                           ": there is no config.json beside the safetensors files; " +
                           "without one, nobody knows what model they are");
  }
  result.config_text_ = read_small_file(config_path);
  result.config_ = parse_python_json(result.config_text_, shown_path(config_path));

  const std::string name = is_directory ? kSingleName : fs::path(path).filename().string();
  if (is_directory && !is_regular(path_in(path, kSingleName)) && !is_regular(index_path)) {
    const std::vector<std::string> names = safetensors_in(path);
    if (names.empty()) refuse_directory(shown_path(path), path);
    if (names.size() > 1)
      throw ModelFormatError(shown_path(path) + ": there are " + std::to_string(names.size()) +
                             " safetensors files, and neither " + kSingleName + " nor " +
                             kIndexName +
                             " that says which of them are the model; name one of them, " +
                             "for example " + printable(names.front()));
    result.files_.push_back(SafetensorsFile::open(path_in(path, names.front())));
  } else if (is_regular(path_in(result.path_, name)) &&
             (is_directory || !is_regular(index_path) ||
              std::ranges::none_of(read_index(index_path),
                                   [&](const auto& entry) { return entry.second == name; }))) {
    result.files_.push_back(SafetensorsFile::open(path_in(result.path_, name)));
  } else {
    result.open_indexed(index_path);
  }
  return result;
}

void ModelDirectory::open_indexed(const std::string& index_path) {
  const std::map<std::string, std::string> wanted = read_index(index_path);
  std::set<std::string> names, missing;
  for (const auto& [tensor, name] : wanted) names.insert(name);
  for (const std::string& name : names)
    if (!is_regular(path_in(path_, name))) missing.insert(name);
  if (!missing.empty())
    throw ModelFormatError(shown_path(index_path) + ": of " + std::to_string(names.size()) +
                           " files that it names, " + printable(*missing.begin()) +
                           (missing.size() > 1
                                ? " and " + std::to_string(missing.size() - 1) + " more are missing"
                                : " is missing") +
                           "; download the model again");
  std::set<std::pair<std::string, std::string_view>> found;
  for (const std::string& name : names)
    files_.push_back(SafetensorsFile::open(path_in(path_, name)));
  size_t i = 0;
  for (const std::string& name : names)
    for (const SafetensorsTensor& tensor : files_[i++].tensors()) found.emplace(name, tensor.name);
  for (const auto& [tensor, name] : wanted)
    if (!found.contains({name, tensor}))
      throw ModelFormatError(shown_path(index_path) + ": tensor " + printable(tensor) +
                             " should be in " + printable(name) + ", and is not");
  refuse_double_tensors();
}

void ModelDirectory::refuse_double_tensors() const {
  std::map<std::string_view, const SafetensorsFile*> seen;
  for (const SafetensorsFile& file : files_)
    for (const SafetensorsTensor& tensor : file.tensors())
      if (const auto [other, is_new] = seen.emplace(tensor.name, &file); !is_new)
        throw ModelFormatError(shown_path(file.path()) + ": tensor " + printable(tensor.name) +
                               " is in " + shown_path(other->second->path()) + " too");
}

std::string ModelDirectory::config_path() const { return shown_path(path_in(path_, kConfigName)); }

std::optional<std::string> ModelDirectory::damage() const {
  for (const SafetensorsFile& file : files_)
    if (std::optional<std::string> damage = file.mapping()->damage()) return damage;
  return std::nullopt;
}

}  // namespace akunu
