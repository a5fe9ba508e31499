// What generated code says of the functions it holds. One file of kernels is compiled once per level
// and then describes the same functions twice; `link` makes one table of them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "metal/emulator/executor.h"
#include "metal/emulator/runtime.h"

namespace akunu::metal::emulator {

constexpr uint32_t kMaxFunctionConstants = 64;

// What Argument does not tell the host.
struct ArgumentDetail {
  bool is_reference = false;
  bool (*is_present)() = nullptr;  // null: always; else its [[function_constant(name)]]
};

struct FunctionCode {
  std::string_view name;
  const char* file = nullptr;
  uint32_t line = 0;
  std::span<const Argument> arguments;
  std::span<const ArgumentDetail> details;
  std::span<const FunctionConstantInfo> constants;
  void (*run)(const Bound& bound, const Lane& lane) = nullptr;
  // Sets the variables of the file, those derived from function constants included. By index.
  void (*set_constants)(const uint32_t* values) = nullptr;
};

struct FileCode {
  std::span<const FunctionCode> plain;
  std::span<const FunctionCode> checked;
};

struct Function {
  FunctionCode plain;
  FunctionCode checked;

  const FunctionCode& at(Level level) const { return level == Level::plain ? plain : checked; }
};

// Sorted by name. Throws EmulatorError where two functions have one name.
std::vector<Function> link(std::span<const FileCode> files);

// Defined by the generated table of a library; a program links one library.
std::span<const FileCode> library_files();

}  // namespace akunu::metal::emulator
