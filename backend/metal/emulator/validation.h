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

// False for an argument that the function constants leave out: by its own [[function_constant(x)]],
// or by constant 0, whose bit n says that slot n is bound.
bool is_present(const Launch& launch, const FunctionCode& code, size_t argument);

}  // namespace akunu::metal::emulator
