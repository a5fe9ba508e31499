// Runs the kernels of backend/metal/kernels, compiled as C++, lane by lane on this processor.
//
// There are two builds of every kernel. `plain` runs as fast as it can. `checked` reports every
// access outside the bound buffers and the threadgroup memory, every write through what the
// signature reads only, and races: two lanes of a threadgroup, two threadgroups of a launch, or two
// launches of one stage that touch the same bytes without a barrier between, one of them writing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace akunu::metal::emulator {

enum class Level : uint8_t { plain, checked };

// What went wrong in a kernel or its launch: kernel, threadgroup and lane, argument, bytes.
class EmulatorError : public std::runtime_error {
  using runtime_error::runtime_error;
};

// One argument of a signature that the host binds.
struct Argument {
  enum class Kind : uint8_t { buffer, threadgroup };
  std::string_view name;
  Kind kind = Kind::buffer;
  uint32_t index = 0;          // of [[buffer(n)]] or [[threadgroup(n)]]
  bool is_read_only = false;   // `constant`, or `device const`
  uint32_t element_bytes = 0;  // of what it points or refers to; a reference needs them all
  uint32_t alignment = 0;
};

struct FunctionConstantInfo {
  std::string_view name;
  uint32_t index = 0;
  uint32_t bytes = 0;  // of its type
  bool is_bool = false;
};

struct Function;  // one function of the library, at both levels

std::span<const Function* const> functions();
const Function* find_function(std::string_view host_name);  // null: there is none
std::string_view name_of(const Function& function);
std::span<const Argument> arguments_of(const Function& function);
std::span<const FunctionConstantInfo> constants_of(const Function& function);

struct BoundBuffer {
  std::byte* contents = nullptr;  // of the whole buffer; null: nothing is bound
  uint64_t size = 0;              // of the whole buffer
  uint64_t offset = 0;
  std::string_view label;
};

struct ConstantValue {
  uint32_t index = 0;
  uint32_t value = 0;  // bool: 0 or 1
};

constexpr uint32_t kBufferSlots = 31;
constexpr uint32_t kThreadgroupSlots = 8;
constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMaxThreadgroupBytes = 32 * 1024;

struct Launch {
  const Function* function = nullptr;
  std::string_view label;  // of the command; part of every error
  std::array<BoundBuffer, kBufferSlots> buffers = {};
  std::array<uint32_t, kThreadgroupSlots> threadgroup_bytes = {};
  std::array<uint32_t, 3> threadgroups = {1, 1, 1};
  std::array<uint32_t, 3> threads = {1, 1, 1};  // per threadgroup
  std::span<const ConstantValue> constants;     // every constant of the function that is set
};

// Launches of one stage are those between two memory barriers of an encoder: nothing orders them.
class Executor {
 public:
  // `seed` shuffles the order of threadgroups.
  explicit Executor(Level level, uint64_t seed = 1);
  ~Executor();

  // Runs the launch to its end. Throws EmulatorError.
  void run(const Launch& launch);
  // A memory barrier: what was launched before is ordered before what comes.
  void end_stage();

  // Bytes that the launches so far loaded from the buffer at `slot`, each counted once per
  // threadgroup: what a GPU reads whose only cache is a core's own. At level `checked`; else 0.
  uint64_t bytes_read(uint32_t slot) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace akunu::metal::emulator
