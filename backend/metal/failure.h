// What a command buffer that failed says about it.
#pragma once

#include <Metal/Metal.hpp>
#include <string>

namespace akunu::metal {

// "the GPU failed in layer 3 attention: ...; what to do". The label is there where the system
// knows it: not in recorded passes, and not on every system.
std::string describe_failure(const MTL::CommandBuffer* commands);

}  // namespace akunu::metal
