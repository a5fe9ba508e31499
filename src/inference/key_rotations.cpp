#include "inference/key_rotations.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/key_rotation.h"
#include "core/table.h"

namespace akunu {
namespace {

// What positions do to keys must be a rotation, and only to keys: not so where
// they have a vector, and where a text's cache is a state or belongs to audio.
// Rows of a convolution would have inputs before them that are not theirs.
bool may_turn(const Context& context) {
  const Weights& weights = *context.weights;
  return !weights.arch.embeds && !weights.arch.audio &&
         !weights.tensors->map().contains("position_embedding.weight") &&
         std::ranges::none_of(context.groups, [](const GroupShape& group) {
           return group.has_states() || std::holds_alternative<InputCache>(group.kind);
         });
}

}  // namespace

KeyRotations::KeyRotations(const Context& context) : context_(context) {
  if (!may_turn(context)) return;
  const ArchDescriptor& arch = context.weights->arch;
  const std::vector<OwnedBuffer>& frequencies = context.frequencies.buffers();
  for (const OwnedBuffer& each : frequencies)
    turns_.emplace_back(context.device, 2 * each.get().size, "constants");
  std::vector<Binding> turns(arch.layers.size());
  for (size_t i = 0; i < turns.size(); ++i)
    for (size_t j = 0; j < frequencies.size(); ++j)
      if (context.frequencies.of_layers()[i].buffer.handle == frequencies[j].get().handle)
        turns[i] = turns_[j].binding();
  const Device& device = *context.device;
  const ForwardMemory memory = context.forward_memory();
  std::vector<OwnedProgram> programs(context.groups.size());
  for (uint32_t group = 0; group < programs.size(); ++group) {
    Values values;
    const auto nodes = rotation_nodes(arch, memory, group, turns, device, values);
    if (!nodes) {
      turns_.clear();
      return;
    }
    if (nodes->empty()) continue;
    programs[group] = OwnedProgram(
        context.device,
        build_table(*nodes, values, ScratchBindings(values.size()), device, RowClass::many),
        context.step_memory());
  }
  programs_ = std::move(programs);
}

void KeyRotations::write_turns(double positions) {
  Device& device = *context_.device;
  for (size_t i = 0; i < turns_.size(); ++i) {
    const OwnedBuffer& of = context_.frequencies.buffers()[i];
    std::vector<float> frequencies(of.get().size / sizeof(float));
    device.read(of.binding(), std::as_writable_bytes(std::span(frequencies)));
    std::vector<float> turn;
    for (const float frequency : frequencies) {
      const double angle = positions * static_cast<double>(frequency);
      turn.push_back(static_cast<float>(std::cos(angle)));
      turn.push_back(static_cast<float>(std::sin(angle)));
    }
    device.write(turns_[i].binding(), std::as_bytes(std::span(turn)));
  }
}

}  // namespace akunu
