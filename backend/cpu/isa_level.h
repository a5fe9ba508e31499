// Instruction set levels: which there are, which this CPU and this operating system allow, and
// which one a device uses. Text is reproducible within a level, not across levels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/device.h"
#include "cpu/kernels/probes.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {

struct IsaLevel {
  std::string_view name;
  std::string_view needs;  // "AVX2, FMA and F16C"
  bool (*is_available)();  // asks CPU and operating system
  // What the inputs of prompts are rounded to, beside weights in blocks and those of 16 bits each. A
  // matrix unit would have to scale whole numbers every 32 products, which takes it longer than
  // multiplying them: bf16, which is nearer to what the file says than those. For halves it would not
  // be: two of them. Vectors multiply int16 twice as fast as floats, and can scale them; then queries,
  // beside a cache of halves, are rounded so too.
  ActivationKind prompts_with_blocks = ActivationKind::q8_32;
  ActivationKind prompts_with_halves = ActivationKind::f32;
  bool is_emulated = false;  // for tests: only used by who asks for it
  // Null where the build has no kernels of this level (AKUNU_CPU_LEVELS).
  bool (*find)(const KernelKey& key, Kernel& kernel) = nullptr;
  Probes (*probes)() = nullptr;

  bool is_built() const { return find != nullptr; }
  bool can_run() const { return is_built() && is_available(); }
};

// Every level of this architecture, also those that this build leaves out; the best last.
std::span<const IsaLevel> isa_levels();

struct IsaChoice {
  const IsaLevel* level;  // lives as long as the program
  std::string reason;     // one sentence
};

// `forced` empty: the environment variable AKUNU_CPU_ISA, and without it the best that is
// available. Throws ArgumentError for a level that is unknown or that this CPU does not have.
IsaChoice choose_isa_level(std::string_view forced);

// The level's kernel for a request, nothing where it has none.
std::optional<Kernel> find_kernel(const IsaLevel& level, const KernelRequest& request);

// "Intel(R) Xeon(R) Processor", or the architecture where the CPU doesn't say.
std::string cpu_name();

}  // namespace akunu::cpu
