// A kernel to test the memory of the Metal device with.
#include <metal_stdlib>

using namespace metal;

struct ToyParams {
  uint n;
  uint value;
  uint first;
  uint wanted;
};

// Reads a weight: word `first` of it becomes word 0.
[[kernel]] void toy_read_weight(device uint* data [[buffer(0)]],
                                device const uint* weight [[buffer(1)]],
                                constant ToyParams& params [[buffer(25)]],
                                uint i [[thread_position_in_grid]]) {
  if (i == 0) data[0] = weight[params.first];
}
