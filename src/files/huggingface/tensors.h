// Tensors of a directory as the engine takes them: plain numbers and MLX's groups where they lie, FP8
// expanded.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "files/huggingface/model_directory.h"
#include "files/huggingface/quantization.h"
#include "files/model_source.h"
#include "files/safetensors/safetensors.h"

namespace akunu {

struct HfTensor {
  const SafetensorsFile* file = nullptr;
  const SafetensorsTensor* tensor = nullptr;

  std::string label() const;  // "model.safetensors: tensor x", for messages
};
// By name, without what stands before those of the text model.
using HfTensors = std::map<std::string, HfTensor, std::less<>>;

// How much FP8 there was.
struct Fp8Expanded {
  uint64_t n_tensors = 0;
  uint64_t bytes = 0;  // that the expanded ones take
};

// Whether the tensor is a part of another: scales or biases of a weight in MLX's groups, scales of one in
// FP8.
bool is_companion(const HfTensors& tensors, std::string_view name);

// An unquantised tensor (F32, F16, BF16) under the name that the file gives it. Throws
// UnsupportedModelError for other dtypes.
SourceTensor plain_hf_tensor(const HfTensor& located);

// The tensor `name` with its companions; it has no canonical name yet. Throws ModelFormatError where parts
// are missing or do not fit, and UnsupportedModelError for a format that akunu does not have.
SourceTensor hf_tensor(const HfTensors& tensors, std::string_view name,
                       const HfQuantization& quantization, Fp8Expanded& expanded);

// A tensor as a listing shows it: its companions are a part of it.
struct ListedTensor {
  std::string name;
  std::string type;             // safetensors' name, or that of an engine's format: "mlx4_64_bf16"
  std::vector<uint64_t> shape;  // of the numbers that it stands for
  const SafetensorsFile* file = nullptr;
  uint64_t offset = 0;  // in the file
  uint64_t size = 0;    // bytes, with those of its companions
};

// All tensors, in the order of the files. Throws what HfQuantization throws.
std::vector<ListedTensor> list_tensors(const ModelDirectory& directory);

// What config.json says of quantisation, for all of it or for the text model in it.
HfQuantization quantization_of(const ModelDirectory& directory);

}  // namespace akunu
