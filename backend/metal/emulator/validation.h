// What is wrong with a launch before any lane runs.
#pragma once

#include "metal/emulator/executor.h"
#include "metal/emulator/library.h"

namespace akunu::metal::emulator {

// Sizes, function constants and memory. Throws EmulatorError.
void check_grid(const Launch& launch, const FunctionCode& code);
void check_constants(const Launch& launch, const FunctionCode& code);
// After the function constants are set, which say what arguments there are.
void check_arguments(const Launch& launch, const FunctionCode& code);

// Throws EmulatorError that names kernel and label.
[[noreturn]] void fail(const Launch& launch, const FunctionCode& code, const std::string& problem);

// False for an argument that its [[function_constant(condition)]] leaves out.
bool is_present(const FunctionCode& code, size_t argument);

}  // namespace akunu::metal::emulator
