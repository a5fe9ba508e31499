#include "inference/adapted_programs.h"

#include <algorithm>
#include <utility>

#include "core/table.h"
#include "inference/fused_forwards.h"

namespace akunu {

AdaptedPrograms::AdaptedPrograms(const Context& context, const CompiledPasses& others,
                                 const Adapters& adapters)
    : generated_rows_per_pass_(others.generated_rows_per_pass) {
  const FusedForwards fused(context.weights->arch, context.weights->tensors->map(),
                            context.frequencies.of_layers(), context.forward_memory(),
                            *context.device, false, adapters.targets());
  scratch_ = Scratch(context.device, fused.values, fused.used, context.sizes.max_scratch_rows,
                     context.sizes.max_head_rows, &others.scratch);
  for (const RowClass row_class : kRowClasses) {
    const auto index = static_cast<size_t>(row_class);
    DispatchTable table = build_table(fused.adapted[index].body, fused.values, scratch_.bindings(),
                                      *context.device, row_class);
    if (row_class == RowClass::few)
      for (const Command& command : table.commands)
        generated_rows_per_pass_ = std::min(generated_rows_per_pass_, command.pipeline.most_rows);
    bodies_[index] = OwnedProgram(context.device, std::move(table), context.step_memory());
  }
  for (const std::vector<Node>& part :
       fused.adapted[static_cast<size_t>(RowClass::many)].image_rows)
    image_rows_.emplace_back(
        context.device,
        build_table(part, fused.values, scratch_.bindings(), *context.device, RowClass::many),
        context.step_memory());
}

std::unique_ptr<const AdaptedPrograms> adapted_programs(const Context& context,
                                                        const CompiledPasses& others,
                                                        const Adapters& adapters) {
  if (adapters.targets().empty()) return nullptr;
  return std::make_unique<const AdaptedPrograms>(context, others, adapters);
}

}  // namespace akunu
