// For the tests of the emulated metal-cpp.
#include <metal_stdlib>

using namespace metal;

[[kernel]] void toy_copy(device uint* to [[buffer(0)]], device const uint* from [[buffer(1)]],
                         uint i [[thread_position_in_grid]]) {
  to[i] = from[i];
}
