// What the process itself is limited to, whatever memory the machine has.
#pragma once

#include <cstdint>
#include <optional>

namespace akunu {

// Bytes of address space that this process may still take (`ulimit -v`, `ulimit -d`); nothing where there is no limit.
std::optional<uint64_t> address_space_left();

// What a new thread takes of it for its stack.
uint64_t thread_stack_bytes();

}  // namespace akunu
