// The tuning numbers of a CPU, derived from what it reports.
#pragma once

#include "core/chip.h"
#include "cpu/isa_level.h"

namespace akunu::cpu {

ChipConfig describe_chip(const IsaChoice& isa, uint32_t workers);

}  // namespace akunu::cpu
