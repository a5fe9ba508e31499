#pragma once

#include "core/arch.h"
#include "core/model_config.h"

namespace akunu {

// Throws UnsupportedModelError for an architecture that is not here (naming those that are) and
// ModelFormatError where the numbers contradict each other.
ArchDescriptor describe(const ModelConfig& config);

}  // namespace akunu
