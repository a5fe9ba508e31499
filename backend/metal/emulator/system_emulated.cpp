// The emulator as the system: the level says how much of what kernels do is checked, environment
// variables which GPU it plays.
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "metal/emulator/metal_cpp/settings.h"
#include "metal/system.h"

namespace akunu::metal {
namespace {

constexpr const char* kLevelVariable = "AKUNU_METAL_LEVEL";
constexpr const char* kCoresVariable = "AKUNU_METAL_EMULATED_CORES";
constexpr const char* kFamilyVariable = "AKUNU_METAL_EMULATED_FAMILY";
constexpr const char* kMemoryVariable = "AKUNU_METAL_EMULATED_MEMORY";         // bytes
constexpr const char* kBufferVariable = "AKUNU_METAL_EMULATED_BUFFER_LENGTH";  // bytes, at most
constexpr const char* kSeedVariable = "AKUNU_METAL_SEED";

constexpr uint64_t kUsualCores = 10;

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  uint64_t number = 0;
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, number);
  if (error != std::errc() || rest != end)
    throw ArgumentError(std::string(variable) + " must be a number, not \"" + text + "\"");
  return number;
}

uint64_t physical_memory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string choose_level(std::string_view asked) {
  std::string level(asked);
  const char* variable = std::getenv(kLevelVariable);
  if (level.empty() && variable != nullptr) level = variable;
  if (level.empty()) level = "plain";
  if (level != "plain" && level != "checked")
    throw ArgumentError("level \"" + level + "\" is not one of plain, checked");
  return level;
}

}  // namespace

std::string_view backend_name() { return "metal-emulated"; }

std::vector<Level> levels() {
  return {{"plain", "nothing: kernels run as C++ on this processor", true},
          {"checked", "nothing, and patience: every access is looked at", true}};
}

System open_system(std::string_view level) {
  System system;
  system.level = choose_level(level);
  emulator::Settings settings;
  settings.level = system.level == "checked" ? emulator::Level::checked : emulator::Level::plain;
  settings.seed = number_from(kSeedVariable, settings.seed);
  settings.family = static_cast<uint32_t>(number_from(kFamilyVariable, settings.family));
  // As Metal does: three quarters of the memory, and the half of that in one buffer.
  settings.working_set_bytes = number_from(kMemoryVariable, physical_memory() / 4 * 3);
  settings.max_buffer_bytes = number_from(kBufferVariable, settings.working_set_bytes / 2);
  system.device = NS::TransferPtr(MTL::emulator_device(settings));
  system.gpu_cores = static_cast<uint32_t>(number_from(kCoresVariable, kUsualCores));
  return system;
}

}  // namespace akunu::metal
