// Experts of a directory that has a tensor for each of them: put together into stacks, as the engine
// multiplies them, and as GGUF has them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/model_source.h"

namespace akunu {

// Names that end in no ".weight" or ".bias", with it: "mlp.experts.down_proj.weight".
std::string with_suffix(std::string_view name);

// A stack of matrices in floats, each transposed.
SourceTensor transposed(const SourceTensor& tensor);

class ExpertStacks {
 public:
  // `n_experts` of each layer; 0: the model has none.
  explicit ExpertStacks(uint32_t n_experts) : n_experts_(n_experts) {}

  // Takes "layers.0.mlp.experts.7.up_proj.weight"; false for a name without an expert's number. Throws
  // ModelFormatError for a number that there is none of.
  bool take(std::string_view name, const SourceTensor& tensor);

  // Each stack under the name of its experts' tensors without the number. Throws ModelFormatError
  // where an expert is missing, or another one's shape or format is not the first one's.
  std::vector<std::pair<std::string, SourceTensor>> put_together();

 private:
  const uint32_t n_experts_;
  std::map<std::string, std::map<uint32_t, SourceTensor>, std::less<>> found_;
};

// A line on the memory that stacks of experts take which are no part of a file: put together of a tensor
// for each expert, or cut out of one that holds gate and up.
void note_copied_stacks(ModelSource& source);

}  // namespace akunu
