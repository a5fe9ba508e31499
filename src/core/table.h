// Turns the nodes of a forward pass into a DispatchTable: scratch memory for the values, pipelines
// for the operations, dependencies from the in/out marks.
#pragma once

#include <vector>

#include "core/forward.h"

namespace akunu {

// Memory of the scratch values, indexed like Forward::values; empty bindings elsewhere.
using ScratchBindings = std::vector<Binding>;

// Throws UnsupportedModelError naming operation, formats, row class, device and, where it is the
// reason, the shape, if a kernel is missing.
void require_kernels(const std::vector<Node>& nodes, const Values& values, const Device& device,
                     RowClass row_class);

// Likewise.
DispatchTable build_table(const std::vector<Node>& nodes, const Values& values,
                          const ScratchBindings& scratch, const Device& device, RowClass row_class);

}  // namespace akunu
