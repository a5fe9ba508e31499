// Toy kernels of the CPU; see toy_machine.h.
#pragma once

#include "cpu/cpu_device.h"
#include "cpu/kernel.h"
#include "unit/toy_machine.h"

namespace akunu::test {

struct ToyParams {
  uint32_t n_slices = 1;
  uint32_t value = 0;
  uint32_t scratch_bytes = 0;
  uint32_t milliseconds = 0;
};

inline const ToyParams& toy(const cpu::Call& call) {
  return *static_cast<const ToyParams*>(call.params);
}
inline uint64_t toy_slices(const cpu::Call& call) { return toy(call).n_slices; }
inline uint64_t toy_scratch(const cpu::Call& call) { return toy(call).scratch_bytes; }

struct ToyMachine : ToyMachineOf<cpu::Kernel, ToyParams> {
  explicit ToyMachine(uint32_t threads)
      : ToyMachineOf(create_cpu_device({.threads = threads, .isa = "generic"})) {}
};

}  // namespace akunu::test
