// The config.json of a Hugging Face or MLX directory as a ModelConfig.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/model_config.h"
#include "files/huggingface/rope_scaling.h"
#include "files/json.h"
#include "models/hf_model.h"

namespace akunu {

struct HfConfig {
  // Of a ModelConfig all but the name; notes are those on the config.
  ModelConfig model;
  const HfNames* names = &hf::kUsualNames;
  const HfNames* names_with_images = nullptr;  // where `model` has images
  StackOrder stacks = StackOrder::rows_first;
  std::optional<bool> tied;               // whether the file says that output and embedding are one
  std::vector<float> rope_divisors;       // of the rotary frequencies; empty: all 1
  std::vector<float> rope_long_divisors;  // long-RoPE's for longer contexts; empty: the same
  std::optional<Yarn> yarn;               // what the divisors are of, where it is that
};

// A model_type that is not here.
struct UnsupportedModelTypeError : UnsupportedModelError {
  using UnsupportedModelError::UnsupportedModelError;
};

// `where` names the file in messages. Throws ModelFormatError where a number is missing or makes no
// sense and UnsupportedModelError for what the file asks for and akunu does not have: both name the key
// and its value.
HfConfig read_hf_config(const JsonValue& config, const std::string& where);

}  // namespace akunu
