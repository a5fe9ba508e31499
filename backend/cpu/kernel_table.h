// Which kernel serves a request at an ISA level.
#pragma once

#include "core/device.h"
#include "cpu/isa_level.h"
#include "cpu/kernel.h"

namespace akunu::cpu {

// Null where the level does not have it. Kernels live as long as the program.
const Kernel* find_kernel(IsaLevel level, const KernelRequest& request);

}  // namespace akunu::cpu
