// The program that turns keys in the cache to other positions, where a model's
// keys are such that it can.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/arch.h"
#include "core/forward.h"

namespace akunu {

// One kv_rotate for each of `group`'s layers whose keys have positions;
// `values` gets their operands. `turns[l]`: float32 [rope_dim], cosine and sine
// of each pair of layer l. Nothing where keys are not a rotation of what has no
// position (a norm behind it), and where the device has no kernel for the
// cache's format.
std::optional<std::vector<Node>> rotation_nodes(const ArchDescriptor& arch,
                                                const ForwardMemory& memory, uint32_t group,
                                                std::span<const Binding> turns,
                                                const Device& device, Values& values);

}  // namespace akunu
