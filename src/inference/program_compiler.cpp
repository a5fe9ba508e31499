#include "inference/program_compiler.h"

#include <algorithm>
#include <utility>

#include "core/table.h"

namespace akunu {

ProgramCompiler::ProgramCompiler(const Context& context, bool is_observed)
    : context_(context),
      fused_(context.weights->arch, context.weights->tensors->map(),
             context.frequencies.of_layers(), context.forward_memory(), *context.device,
             is_observed, {}),
      passes_{.scratch = Scratch(context.device, fused_.values, fused_.used,
                                 context.sizes.max_scratch_rows, context.sizes.max_head_rows),
              .programs = {},
              .generated_rows_per_pass = context.device->chip().generated_rows_per_pass} {}

Program ProgramCompiler::compile(const std::vector<Node>& nodes, RowClass row_class) {
  return compile(nodes, row_class, true);
}

Program ProgramCompiler::compile_another(const std::vector<Node>& nodes, RowClass row_class) {
  return compile(nodes, row_class, false);
}

Program ProgramCompiler::compile(const std::vector<Node>& nodes, RowClass row_class,
                                 bool has_labels) {
  DispatchTable table =
      build_table(nodes, fused_.values, passes_.scratch.bindings(), *context_.device, row_class);
  if (row_class == RowClass::few)
    for (const Command& command : table.commands)
      passes_.generated_rows_per_pass =
          std::min(passes_.generated_rows_per_pass, command.pipeline.most_rows);
  if (has_labels) {
    std::vector<std::string>& labels = passes_.labels[static_cast<size_t>(row_class)];
    labels.insert(labels.end(), table.labels.begin(), table.labels.end());
  }
  return passes_.programs.emplace_back(context_.device, std::move(table), context_.step_memory())
      .get();
}

}  // namespace akunu
