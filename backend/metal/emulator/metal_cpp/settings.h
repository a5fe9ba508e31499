// The GPU that the emulator plays, and a gate for tests that need its queues to stand still.
#pragma once

#include <cstdint>

#include "metal/emulator/executor.h"

namespace akunu::metal::emulator {

struct Settings {
  Level level = Level::plain;
  uint64_t seed = 1;  // of the order of threadgroups
  uint32_t family = 9;
  uint64_t working_set_bytes = 0;
  uint64_t max_buffer_bytes = 0;
};

// Closed: command buffers are committed, but none starts. Open at first.
void open_gate(bool open);

}  // namespace akunu::metal::emulator
