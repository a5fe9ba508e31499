#include "cpu/chip.h"

#include <unistd.h>

#include <algorithm>

#include "cpu/memory.h"
#include "cpu/processors.h"

namespace akunu::cpu {
namespace {

// Where the system doesn't say: what nearly every CPU of the last ten years has at least.
constexpr uint64_t kUsualLastCache = 4 * 1024 * 1024;

}  // namespace

uint64_t last_cache_bytes() {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  for (int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (const long bytes = sysconf(level); bytes > 0) return static_cast<uint64_t>(bytes);
#endif
  return kUsualLastCache;
}

ChipConfig describe_chip(const IsaChoice& isa, uint32_t workers) {
  ChipConfig chip;
  chip.name = cpu_name();
  chip.level = isa.level->name;
  chip.reason = isa.reason;
  chip.workers = workers;
  chip.processors = usable_processors();
  chip.memory_bytes = total_memory().value_or(0);
  // Each prompt step reads every weight once, so more rows mean less memory traffic per row, until
  // the rows themselves fall out of the last cache: 16 KiB per row is the float32 residual of a
  // model of 4096 dimensions. 64 rows already hide the weights behind arithmetic; 512 bound
  // scratch.
  constexpr uint64_t kRowBytes = 16 * 1024;
  chip.max_prompt_rows = static_cast<uint32_t>(
      std::clamp<uint64_t>(last_cache_bytes() / kRowBytes / 64 * 64, 64, 512));
  // Rows that generate wait for the prompt rows beside them. Reading a weight of 4 bits costs about
  // as much as multiplying it with a handful of rows per core, so this keeps such a step within a
  // few times the length of one without a prompt.
  chip.max_mixed_rows = std::clamp(16 * workers, 16u, 64u);
  // Logits are large (150,000 floats per row) and mostly wanted for few rows.
  chip.max_head_rows = 32;
  // Between two steps the host costs microseconds, and a step already lasts milliseconds.
  chip.chain_steps = 1;
  return chip;
}

}  // namespace akunu::cpu
