// Memory of the process itself: what it is limited to, whatever the machine has, and what it gives back.
#pragma once

#include <cstdint>
#include <optional>

namespace akunu {

// Bytes of address space that this process may still take (`ulimit -v`, `ulimit -d`); nothing where there is no limit.
std::optional<uint64_t> address_space_left();

// What a new thread takes of it for its stack.
uint64_t thread_stack_bytes();

// Gives pages that were freed back to the system. glibc keeps those between others that are in use: a server that loads
// and unloads models grew by half in 50 loads.
void give_back_freed_memory();

}  // namespace akunu
