// Instruction set levels: which there are, which this CPU and this operating system allow, and
// which one a device uses. Text is reproducible within a level, not across levels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace akunu::cpu {

enum class IsaLevel : uint8_t { generic, avx2 };

struct IsaLevelInfo {
  IsaLevel level;
  std::string_view name;
  std::string_view needs;  // "AVX2, FMA and F16C"
  bool (*is_available)();  // asks CPU and operating system
};

// Every level of this build, the best last.
std::span<const IsaLevelInfo> isa_levels();

struct IsaChoice {
  IsaLevel level;
  std::string_view name;
  std::string reason;  // one sentence
};

// `forced` empty: the environment variable AKUNU_CPU_ISA, and without it the best that is
// available. Throws ArgumentError for a level that is unknown or that this CPU does not have.
IsaChoice choose_isa_level(std::string_view forced);

// "Intel(R) Xeon(R) Processor", or the architecture where the CPU doesn't say.
std::string cpu_name();

}  // namespace akunu::cpu
