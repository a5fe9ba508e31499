// The matrices that latent attention absorbs, as its kernels read them.
#pragma once

#include "files/model_source.h"

namespace akunu {

// The source, with attention.{kv_b,k_b,v_b} in float32 where they are quantised: exactly the numbers
// that the blocks stand for. Kernels of latent attention read floats, one head at a time. A note says
// how much memory that takes. Throws UnsupportedModelError for a format that cannot be read here.
ModelSource with_latent_floats(ModelSource source);

}  // namespace akunu
