// What a GGUF file says of recurrent layers. They throw as GgufKeys.
#pragma once

#include "files/gguf/keys.h"
#include "models/family.h"

namespace akunu {

// Of Mamba-2.
void read_gguf_scan(const GgufKeys& keys, Scan& scan);

// Of the gated delta rule, and which layers have it.
void read_gguf_delta_rule(const GgufKeys& keys, const FamilyTraits& family, ModelConfig& config);

// Of a delta rule with a decay for each channel (Kimi-Linear).
void read_gguf_channels(const GgufKeys& keys, ModelConfig& config);

}  // namespace akunu
