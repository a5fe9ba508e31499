// The tuning numbers of a CPU, derived from what it reports.
#pragma once

#include "core/chip.h"
#include "cpu/isa_level.h"

namespace akunu::cpu {

// Bytes of the last cache of data, or what is usual where the system doesn't say.
uint64_t last_cache_bytes();

ChipConfig describe_chip(const IsaChoice& isa, uint32_t workers);

}  // namespace akunu::cpu
