// The adapter_config.json of the `peft` library.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "files/huggingface/config_object.h"

namespace akunu {

class PeftConfig {
 public:
  // Throws ModelFormatError, with the key, for values that make no sense, and UnsupportedModelError
  // for what akunu does not compute: other kinds of adapters, DoRA, biases, trained embeddings,
  // `modules_to_save`, and unknown keys that have a value.
  explicit PeftConfig(const std::filesystem::path& path);

  // By what the product of a module's matrices is multiplied. Throws ModelFormatError where the
  // matrices have another rank than the file says.
  double scale_of(const std::string& module, uint64_t rank) const;

 private:
  using Pattern = std::map<std::string, double>;
  Pattern pattern_of(ConfigObject& config, std::string_view key) const;
  double value_of(const Pattern& pattern, const std::string& module, double usual) const;

  std::string where_;  // printable
  uint32_t rank_ = 0;
  double alpha_ = 0;
  bool by_root_ = false;  // alpha / sqrt(rank)
  Pattern ranks_, alphas_;
};

}  // namespace akunu
