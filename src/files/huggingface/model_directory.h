// The files of a Hugging Face or MLX model: config.json, and its safetensors files, checked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "files/json.h"
#include "files/safetensors/safetensors.h"

namespace akunu {

// Immutable after opening: any thread may read it.
class ModelDirectory {
 public:
  // `path`: the directory, or a safetensors file with its config.json beside it (one that an index
  // names stands for all of them). Throws ModelFormatError where files are missing or contradict each
  // other, UnsupportedModelError where the weights are in another format, and what MappedFile::open
  // and SafetensorsFile::open throw.
  static ModelDirectory open(const std::string& path);

  // Whether a directory holds a config.json or safetensors files: what `open` would at least explain.
  static bool is_one(const std::string& path);

  const std::string& path() const { return path_; }                // of the directory
  const JsonValue& config() const { return config_; }              // of config.json
  const std::string& config_text() const { return config_text_; }  // the same, as it is written
  std::string config_path() const;                                 // printable
  const std::vector<SafetensorsFile>& files() const { return files_; }  // no tensor is in two

  // What became of a file meanwhile (see MappedFile::damage); nothing if all is well.
  std::optional<std::string> damage() const;

 private:
  ModelDirectory() = default;
  void refuse_double_tensors() const;
  void open_indexed(const std::string& index_path);

  std::string path_;
  JsonValue config_;
  std::string config_text_;
  std::vector<SafetensorsFile> files_;
};

}  // namespace akunu
