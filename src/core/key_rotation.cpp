#include "core/key_rotation.h"

#include <string>

#include "core/fuse.h"
#include "core/kernel_params.h"

namespace akunu {

std::optional<std::vector<Node>> rotation_nodes(const ArchDescriptor& arch,
                                                const ForwardMemory& memory, uint32_t group,
                                                std::span<const Binding> turns,
                                                const Device& device, Values& values) {
  std::vector<Node> nodes;
  for (size_t i = 0; i < arch.layers.size(); ++i) {
    const LayerDescriptor& layer = arch.layers[i];
    if (layer.kv_from() || memory.layers[i].group != group || !layer.rotates()) continue;
    if (layer.attention() != nullptr && layer.attention()->norms_behind_rope) return std::nullopt;
    const auto* const latent = layer.find<LatentAttention>();
    const CachedRow keys = *layer.cached();
    const Rope& rope = *layer.rope();
    const std::string name = std::to_string(i);
    Node node;
    node.operation = Operation::kv_rotate;
    node.label = "layer " + name + " key rotation";
    node.operands[0] = values.add({.name = "turn " + name, .binding = turns[i]});
    node.operands[1] = values.add({.name = "keys " + name,
                                   .binding = memory.layers[i].keys,
                                   .format = format_of_keys(memory.layers[i].format)});
    node.set(KvRotateParams{keys.n_heads, keys.dim, latent != nullptr ? latent->rank : 0,
                            rope.dim / 2,
                            rope.style == RopeStyle::halves ? kRopeHalves : kRopeInterleaved,
                            memory.page_table_stride, memory.page_table_bases[group], 0});
    if (!device.find_kernel(kernel_request(node, values, RowClass::many))) return std::nullopt;
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace akunu
