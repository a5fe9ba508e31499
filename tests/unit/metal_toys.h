// Toy kernels of the Metal device over the emulator, which a driver has in a .metal of its own; see
// toy_machine.h.
#pragma once

#include <cstdlib>
#include <string>

#include "metal/kernel.h"
#include "metal/metal_device.h"
#include "unit/toy_machine.h"

namespace akunu::test {

using metal::Grid;
using metal::Kernel;
using metal::Scope;

// A variable of the environment, for as long as it lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Environment() { unsetenv(name_); }

 private:
  const char* name_;
};

struct ToyParams {
  uint32_t n = 1;
  uint32_t value = 0;
  uint32_t first = 0;
  uint32_t wanted = 0;
};

inline Grid one_thread_each(const Scope& scope) {
  const auto n = scope.get<ToyParams>().n;
  return {.threadgroups = {(n + 31) / 32, 1, 1}, .threads = {32, 1, 1}};
}
inline Grid one_simdgroup(const Scope&) { return {}; }
inline Kernel toy(const char* function, Grid (*grid)(const Scope&) = one_thread_each) {
  Kernel kernel;
  kernel.launches.push_back({.function = function, .constants = {}, .grid = grid});
  return kernel;
}

struct ToyMachine : ToyMachineOf<Kernel, ToyParams> {
  explicit ToyMachine(const std::string& level = "checked")
      : ToyMachineOf(create_metal_device({.isa = level})) {}
};

}  // namespace akunu::test
