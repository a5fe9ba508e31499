// The short convolutions of queries, keys and values in front of a delta rule, which files have in three tensors.
#pragma once

#include "files/model_source.h"

namespace akunu {

// The source, with delta.kernel_{q,k,v} of each layer as one vector, delta.kernel: one convolution runs over all three.
// Some hundred KiB of a layer.
ModelSource with_joined_kernels(ModelSource source);

}  // namespace akunu
