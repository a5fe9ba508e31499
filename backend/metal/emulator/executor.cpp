#include "metal/emulator/executor.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>

#include "metal/emulator/checks.h"
#include "metal/emulator/threadgroup.h"
#include "metal/emulator/validation.h"

namespace akunu::metal::emulator {
namespace {

// Between two arguments in threadgroup memory, so that a step over the end of one is outside.
constexpr size_t kGapBytes = 256;
constexpr size_t kMemoryBytes = kMaxThreadgroupBytes + (kThreadgroupSlots + 1) * kGapBytes;
// What threadgroup memory holds when a threadgroup begins: as a float, not a number.
constexpr int kFreshByte = 0xff;

struct alignas(256) ThreadgroupMemory {
  std::byte bytes[kMemoryBytes];
};

// One launch runs at a time: function constants are variables of the program.
std::mutex& launch_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

struct Executor::State {
  State(Level the_level, uint64_t seed)
      : level(the_level),
        random(seed),
        memory(std::make_unique<ThreadgroupMemory>()),
        checks(level == Level::checked ? std::make_unique<Checks>() : nullptr),
        runner(checks.get()) {
    if (checks != nullptr) checks->set_own_memory(runner.own_memory(), runner.own_bytes());
  }

  Bound bind(const Launch& launch, const FunctionCode& code);

  Level level;
  std::mt19937_64 random;
  std::unique_ptr<ThreadgroupMemory> memory;
  std::unique_ptr<Checks> checks;
  ThreadgroupRunner runner;
  std::vector<uint32_t> order;  // of threadgroups
};

Bound Executor::State::bind(const Launch& launch, const FunctionCode& code) {
  Bound bound;
  size_t used = kGapBytes;
  for (size_t i = 0; i < code.arguments.size(); ++i) {
    const Argument& argument = code.arguments[i];
    if (!is_present(code, i)) continue;
    if (argument.kind == Argument::Kind::buffer) {
      const BoundBuffer& buffer = launch.buffers[argument.index];
      bound.buffers[argument.index] = buffer.contents + buffer.offset;
    } else {
      bound.threadgroup[argument.index] = memory->bytes + used;
      used += launch.threadgroup_bytes[argument.index] + kGapBytes;
    }
  }
  return bound;
}

Executor::Executor(Level level, uint64_t seed) : state_(std::make_unique<State>(level, seed)) {}
Executor::~Executor() = default;

void Executor::run(const Launch& launch) {
  if (launch.function == nullptr) throw EmulatorError("a launch without a function");
  const FunctionCode& code = launch.function->at(state_->level);
  const std::lock_guard lock(launch_mutex());
  check_grid(launch, code);
  check_constants(launch, code);
  uint32_t values[kMaxFunctionConstants] = {};
  for (const ConstantValue& constant : launch.constants) values[constant.index] = constant.value;
  code.set_constants(values);
  check_arguments(launch, code);
  const Bound bound = state_->bind(launch, code);
  const uint64_t n_threadgroups = static_cast<uint64_t>(launch.threadgroups[0]) *
                                  launch.threadgroups[1] * launch.threadgroups[2];
  if (n_threadgroups > UINT32_MAX) fail(launch, code, "more than 2^32 threadgroups");

  state_->order.resize(n_threadgroups);
  std::iota(state_->order.begin(), state_->order.end(), 0u);
  std::shuffle(state_->order.begin(), state_->order.end(), state_->random);
  state_->runner.set_size(launch.threadgroups, launch.threads);
  if (state_->checks != nullptr) state_->checks->begin_launch(launch, code, bound);

  for (const uint32_t index : state_->order) {
    const uint32_t row = index / launch.threadgroups[0];
    const std::array<uint32_t, 3> position = {
        index % launch.threadgroups[0], row % launch.threadgroups[1], row / launch.threadgroups[1]};
    for (uint32_t i = 0; i < kThreadgroupSlots; ++i) {
      if (bound.threadgroup[i] == nullptr) continue;
      std::memset(bound.threadgroup[i], kFreshByte, launch.threadgroup_bytes[i]);
    }
    if (state_->checks != nullptr) state_->checks->begin_threadgroup(position);
    const std::string problem = state_->runner.run(code, bound, position, state_->random());
    if (!problem.empty()) {
      fail(launch, code,
           "threadgroup (" + std::to_string(position[0]) + ", " + std::to_string(position[1]) +
               ", " + std::to_string(position[2]) + "): " + problem);
    }
  }
}

uint64_t Executor::bytes_read(uint32_t slot) const {
  return state_->checks == nullptr ? 0 : state_->checks->bytes_read()[slot];
}

void Executor::end_stage() {
  if (state_->checks != nullptr) state_->checks->end_stage();
}

}  // namespace akunu::metal::emulator
