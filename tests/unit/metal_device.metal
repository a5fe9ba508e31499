// Kernels to test the Metal device with: each shows one thing that the device must do for a kernel.
#include <metal_stdlib>

#include "core/rows.h"

using namespace metal;
using namespace akunu;

struct ToyParams {
  uint n;
  uint value;
  uint first;
  uint wanted;
};

constant uint kBoundSlots [[function_constant(0)]];
constant bool kTwice [[function_constant(1)]];

// Words 0 to n grow by `value`, or twice as much.
[[kernel]] void toy_add(device uint* data [[buffer(0)]],
                        constant ToyParams& params [[buffer(25)]],
                        uint i [[thread_position_in_grid]]) {
  if (i < params.n) data[params.first + i] += kTwice ? 2 * params.value : params.value;
}

// Word 1000 + i becomes the sum of the first `value` words.
[[kernel]] void toy_sum(device uint* data [[buffer(0)]],
                        constant ToyParams& params [[buffer(25)]],
                        uint i [[thread_position_in_grid]]) {
  if (i >= params.n) return;
  uint sum = 0;
  for (uint j = 0; j < params.value; ++j) sum += data[j];
  data[1000 + i] = sum;
}

// Appends word 0 and the row's position to the list that begins at word 101 and has the length in
// word 100, then moves the row on.
[[kernel]] void toy_append(device uint* data [[buffer(0)]],
                           constant ToyParams& params [[buffer(25)]],
                           device Row* rows [[buffer(26)]],
                           uint i [[thread_position_in_grid]]) {
  if (i > 0) return;
  const uint n = data[100];
  data[101 + n] = data[0] * 100 + rows[0].position;
  data[100] = n + 1;
  rows[0].position += params.value;
}

// If data[0] equals params.wanted, sets an error status for params.n rows, starting with row params.value.
[[kernel]] void toy_complain(device uint* data [[buffer(0)]],
                             constant ToyParams& params [[buffer(25)]],
                             device Status* statuses [[buffer(29)]],
                             uint i [[thread_position_in_grid]]) {
  if (data[0] != params.wanted || i >= params.n) return;
  statuses[params.value + i] = Status{kStatusNotANumber, i, 0, 0};
}

// Writes its pass range and the slots that are bound.
[[kernel]] void toy_note(device uint* data [[buffer(0)]], constant PassRange& range [[buffer(23)]],
                         constant ToyParams& params [[buffer(25)]],
                         uint i [[thread_position_in_grid]]) {
  if (i > 0) return;
  device uint* words = data + params.first;
  words[0] = range.first_row;
  words[1] = range.n_rows;
  words[2] = range.first_span;
  words[3] = range.n_spans;
  words[4] = kBoundSlots;
}

// The two launches of a command with workspace: the second sees what all of the first wrote.
[[kernel]] void toy_scatter(device uint* workspace [[buffer(24)]],
                            constant ToyParams& params [[buffer(25)]],
                            uint i [[thread_position_in_grid]]) {
  if (i < params.n) workspace[params.n - 1 - i] = i * params.value;
}

[[kernel]] void toy_gather(device uint* data [[buffer(0)]], device const uint* workspace [[buffer(24)]],
                           constant ToyParams& params [[buffer(25)]],
                           uint i [[thread_position_in_grid]]) {
  if (i < params.n) data[params.first + i] += workspace[i];
}

// A threadgroup turns its 64 words around in threadgroup memory.
[[kernel]] void toy_turn(device uint* data [[buffer(0)]], threadgroup uint* shared [[threadgroup(0)]],
                         uint i [[thread_index_in_threadgroup]],
                         uint n [[threads_per_threadgroup]]) {
  shared[i] = data[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  data[i] = shared[n - 1 - i];
}

// Half of the lanes miss a barrier.
[[kernel]] void toy_stumble(device uint* data [[buffer(0)]],
                            constant ToyParams& params [[buffer(25)]],
                            uint i [[thread_index_in_threadgroup]]) {
  if (data[0] != params.wanted) return;
  if (i < 16) threadgroup_barrier(mem_flags::mem_device);
  data[1] = 1;
}
