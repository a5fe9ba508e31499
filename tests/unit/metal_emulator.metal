// Kernels for metal_emulator.cpp: first right ones, then each wrong in one way.
#include <metal_atomic>
#include <metal_simdgroup_matrix>
#include <metal_stdlib>

using namespace metal;

constant uint kFactor [[function_constant(1)]];
constant bool kHasBias [[function_constant(2)]];
constant uint kTwice = 2 * kFactor;
constant float kTable[3] = {1.0f, 2.0f, 4.0f};

struct Params {
  uint n;
  uint stride;
  float scale;
  uint padding;
};

struct Plus {
  static float apply(float a, float b) { return a + b; }
};
struct Times {
  static float apply(float a, float b) { return a * b; }
};

// out[i] = sum of the lane's SIMD-group, by way of threadgroup memory.
template <typename Operation, uint kRounds>
[[kernel]] void combine(device const float* input [[buffer(0)]], device float* out [[buffer(1)]],
                        constant Params& params [[buffer(25)]],
                        threadgroup float* tile [[threadgroup(0)]],
                        uint3 group [[threadgroup_position_in_grid]],
                        uint index [[thread_index_in_threadgroup]],
                        uint threads [[threads_per_threadgroup]]) {
  const uint i = group.x * threads + index;
  tile[index] = input[i];
  for (uint round = 0; round < kRounds; ++round) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float other = tile[(index + 1) % threads];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    tile[index] = Operation::apply(tile[index], other);
  }
  out[i] = simd_sum(tile[index]) * params.scale;
}
#define INSTANTIATE(name, Operation, rounds)                                             \
  template [[host_name("combine_" name "_" #rounds)]] [[kernel]] decltype(combine<Operation, rounds>) \
      combine<Operation, rounds>;
INSTANTIATE("plus", Plus, 1)
INSTANTIATE("times", Times, 2)

kernel void simd_speed(device float* out [[buffer(0)]], constant uint& rounds [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
  float value = float(i % 32);
  for (uint round = 0; round < rounds; ++round) value = simd_shuffle_xor(value, ushort(1));
  out[i] = value;
}

kernel void barrier_speed(device float* out [[buffer(0)]], constant uint& rounds [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
  float value = float(i % 32);
  for (uint round = 0; round < rounds; ++round) { threadgroup_barrier(mem_flags::mem_none); value += 1.0f; }
  out[i] = value;
}

kernel void lane_speed(device float* out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = 1.0f; }

kernel void dot_speed(device const float* a [[buffer(1)]], device float* out [[buffer(0)]], constant uint& rounds [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float4 sum = 0.0f;
  for (uint round = 0; round < rounds; ++round) sum = fma(*(device const float4*)(a + 4 * round), float4(2.0f), sum);
  out[i] = sum.x + sum.y + sum.z + sum.w;
}

kernel void matrix_speed(device float* out [[buffer(0)]], constant uint& rounds [[buffer(1)]]) {
  simdgroup_float8x8 a = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
  simdgroup_float8x8 c = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (uint round = 0; round < rounds; ++round) simdgroup_multiply_accumulate(c, a, a, c);
  simdgroup_store(c, out, 8);
}
