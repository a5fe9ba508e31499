// Qwen3-Next's projections in front of the delta rule, which have the rows of each key head together: its query,
// its key, its values and their gates in one tensor, b and a in another. Cut into what Qwen3.5 has a tensor
// for each.
#pragma once

#include <string_view>
#include <vector>

#include "core/blocks/delta_rule.h"
#include "files/model_source.h"

namespace akunu {

// Those of the tensors that are such ones as two each, copies of their rows; others as they are. Throws
// ModelFormatError where their rows are not those of the heads.
std::vector<SourceTensor> cut_by_key_heads(std::vector<SourceTensor> tensors,
                                           const DeltaRule& rule);

}  // namespace akunu
