// What the pass of a text encoder ends with: the pool, dense layers of sentence-transformers, and a
// classifier's head.
#pragma once

#include "core/emitter.h"

namespace akunu {

// Emits it behind the last layer's `residual` and returns its float32 numbers, a row per head row.
ValueId emit_pooled_output(Emitter& emitter, ValueId residual);

}  // namespace akunu
