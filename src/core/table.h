// Turns the nodes of a forward pass into a DispatchTable: scratch memory for the values, pipelines
// for the operations, dependencies from the in/out marks.
#pragma once

#include <vector>

#include "core/forward.h"

namespace akunu {

// Memory of the scratch values, indexed like Forward::values; empty bindings elsewhere.
using ScratchBindings = std::vector<Binding>;

// Throws UnsupportedModelError naming operation, formats, row class and device where a kernel is
// missing.
DispatchTable build_table(const std::vector<Node>& nodes, const Values& values,
                          const ScratchBindings& scratch, const Device& device, RowClass row_class);

}  // namespace akunu
