#include "metal/emulator/validation.h"

#include <algorithm>
#include <string>

#include "metal/emulator/runtime.h"

namespace akunu::metal::emulator {
namespace {

std::string name_of(const Argument& argument) {
  const bool is_buffer = argument.kind == Argument::Kind::buffer;
  return (is_buffer ? "buffer " : "threadgroup memory ") + std::to_string(argument.index) + " (" +
         std::string(argument.name) + ")";
}

auto find(const auto& list, uint32_t index) {
  return std::ranges::find_if(list, [&](const auto& each) { return each.index == index; });
}

void check_buffer(const Launch& launch, const FunctionCode& code, const Argument& argument,
                  bool is_reference) {
  const BoundBuffer& buffer = launch.buffers[argument.index];
  const std::string name = name_of(argument);
  if (buffer.contents == nullptr) fail(launch, code, name + " is not bound");
  if (buffer.offset > buffer.size) {
    fail(launch, code,
         name + " is bound at byte " + std::to_string(buffer.offset) + ", but has " +
             std::to_string(buffer.size));
  }
  const uint64_t size = buffer.size - buffer.offset;
  if (is_reference && size < argument.element_bytes) {
    fail(launch, code,
         name + " needs " + std::to_string(argument.element_bytes) + " bytes, " +
             std::to_string(size) + " are bound");
  }
  if (reinterpret_cast<uintptr_t>(buffer.contents + buffer.offset) % argument.alignment != 0) {
    fail(launch, code,
         name + " is bound at byte " + std::to_string(buffer.offset) + ", no multiple of " +
             std::to_string(argument.alignment));
  }
}

}  // namespace

void fail(const Launch& launch, const FunctionCode& code, const std::string& problem) {
  std::string text = "kernel " + std::string(code.name);
  if (!launch.label.empty()) text += " (" + std::string(launch.label) + ")";
  throw EmulatorError(text + ": " + problem);
}

bool is_present(const FunctionCode& code, size_t argument) {
  const auto condition = code.details[argument].is_present;
  return condition == nullptr || condition();
}

void check_grid(const Launch& launch, const FunctionCode& code) {
  uint64_t n_threads = 1;
  for (const uint32_t n : launch.threads) n_threads *= n;
  for (const uint32_t n : launch.threads) {
    if (n > kMaxThreads) n_threads = n;  // the product may have wrapped
  }
  if (n_threads == 0 || n_threads > kMaxThreads || n_threads % kSimdWidth != 0) {
    fail(launch, code,
         std::to_string(n_threads) + " threads per threadgroup: a multiple of " +
             std::to_string(kSimdWidth) + " up to " + std::to_string(kMaxThreads) + " is needed");
  }
  if (std::ranges::find(launch.threadgroups, 0u) != launch.threadgroups.end()) {
    fail(launch, code, "the grid has no threadgroups");
  }
}

void check_constants(const Launch& launch, const FunctionCode& code) {
  for (const FunctionConstantInfo& constant : code.constants) {
    if (find(launch.constants, constant.index) == launch.constants.end()) {
      fail(launch, code,
           "function constant " + std::to_string(constant.index) + " (" +
               std::string(constant.name) + ") is not set");
    }
  }
  for (const ConstantValue& value : launch.constants) {
    const auto constant = find(code.constants, value.index);
    if (constant == code.constants.end()) {
      fail(launch, code,
           "function constant " + std::to_string(value.index) + " is set, but not used");
    }
    if (constant->is_bool && value.value > 1) {
      fail(launch, code,
           "function constant " + std::to_string(value.index) + " (" + std::string(constant->name) +
               ") is a bool, not " + std::to_string(value.value));
    }
  }
}

void check_arguments(const Launch& launch, const FunctionCode& code) {
  std::array<bool, kThreadgroupSlots> has_threadgroup = {};
  uint64_t together = 0;
  for (size_t i = 0; i < code.arguments.size(); ++i) {
    const Argument& argument = code.arguments[i];
    if (!is_present(code, i)) continue;
    if (argument.kind == Argument::Kind::buffer) {
      check_buffer(launch, code, argument, code.details[i].is_reference);
      continue;
    }
    const uint32_t bytes = launch.threadgroup_bytes[argument.index];
    has_threadgroup[argument.index] = true;
    together += bytes;
    if (bytes == 0) fail(launch, code, name_of(argument) + " has no bytes");
    if (bytes % 16 != 0) {
      fail(launch, code,
           name_of(argument) + " has " + std::to_string(bytes) + " bytes, no multiple of 16");
    }
  }
  for (uint32_t i = 0; i < kThreadgroupSlots; ++i) {
    if (launch.threadgroup_bytes[i] != 0 && !has_threadgroup[i]) {
      fail(launch, code, "threadgroup memory " + std::to_string(i) + " is no argument");
    }
  }
  if (together > kMaxThreadgroupBytes) {
    fail(launch, code,
         std::to_string(together) + " bytes of threadgroup memory, " +
             std::to_string(kMaxThreadgroupBytes) + " is all there is");
  }
}

}  // namespace akunu::metal::emulator
