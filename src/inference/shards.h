// How a model is divided among devices that compute it together: a layer's heads and the columns of its feed-forward
// network, and with them the rows and columns of its weights. docs/decisions/kernels-on-gpus.md.
#pragma once

#include <cstdint>

#include "core/arch.h"
#include "files/model_source.h"

namespace akunu {

// What one of `n_ranks` devices computes. Throws UnsupportedModelError for what does not divide, or is not divided yet.
ArchDescriptor share_of(const ArchDescriptor& arch, uint32_t n_ranks);

// Says of each tensor how it is split among `n_ranks` devices. Throws as above.
void split_tensors(ModelSource& source, uint32_t n_ranks);

}  // namespace akunu
