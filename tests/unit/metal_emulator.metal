// Kernels for metal_emulator.cpp: right ones first, then each wrong in one way.
#include <metal_atomic>
#include <metal_simdgroup_matrix>
#include <metal_stdlib>

#include "core/kernel_params.h"

using namespace metal;

constant uint kFactor [[function_constant(1)]];
constant bool kHasBias [[function_constant(2)]];
constant uint kTwice = 2 * kFactor;
constant float kTable[3] = {1.0f, 2.0f, 4.0f};

struct Scale {
  float factor;
  uint padding[3];
};

// --- what a library holds -------------------------------------------------------------------------

struct Plus {
  static float apply(float a, float b) { return a + b; }
};
struct Times {
  static float apply(float a, float b) { return a * b; }
};

// Each lane combines its number with its neighbours', kRounds times; then the sum of its SIMD-group.
template <typename Operation, uint kRounds>
[[kernel]] void combine(device const float* input [[buffer(0)]], device float* out [[buffer(1)]],
                        constant Scale& scale [[buffer(25)]],
                        threadgroup float* tile [[threadgroup(0)]],
                        uint group [[threadgroup_position_in_grid]],
                        uint index [[thread_index_in_threadgroup]],
                        uint threads [[threads_per_threadgroup]]) {
  const uint i = group * threads + index;
  tile[index] = input[i];
  for (uint round = 0; round < kRounds; ++round) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float other = tile[(index + 1) % threads];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    tile[index] = Operation::apply(tile[index], other);
  }
  out[i] = simd_sum(tile[index]) * scale.factor;
}
#define INSTANTIATE(name, Operation, rounds)                              \
  template [[host_name("combine_" name "_" #rounds)]] [[kernel]] decltype( \
      combine<Operation, rounds>) combine<Operation, rounds>;
INSTANTIATE("plus", Plus, 1)
INSTANTIATE("times", Times, 2)

namespace inner {
template <typename T>
[[kernel]] void widen(device const T* input [[buffer(0)]], device float* out [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
  out[i] = float(input[i]);
}
template [[host_name("widen_half")]] [[kernel]] decltype(widen<half>) widen<half>;
template [[host_name("widen_char")]] [[kernel]] decltype(widen<char>) widen<char>;
}  // namespace inner

[[host_name("narrow_to_half")]] kernel void narrow(device const float* input [[buffer(0)]],
                                                   device half* out [[buffer(1)]],
                                                   uint i [[thread_position_in_grid]]) {
  out[i] = half(input[i]);
}

kernel void constants(device uint* out [[buffer(0)]],
                      device const uint* bias [[buffer(1), function_constant(kHasBias)]],
                      uint i [[thread_position_in_grid]]) {
  out[i] = kTwice + uint(kTable[2]);
  if (kHasBias) out[i] += bias[i];
}

// --- built-ins and vocabulary ---------------------------------------------------------------------

kernel void built_ins(device uint* out [[buffer(0)]], uint3 in_grid [[thread_position_in_grid]],
                      uint3 grid [[threads_per_grid]], uint3 group [[threadgroup_position_in_grid]],
                      uint3 groups [[threadgroups_per_grid]],
                      uint3 thread_in [[thread_position_in_threadgroup]],
                      ushort3 threads [[threads_per_threadgroup]],
                      uint index [[thread_index_in_threadgroup]],
                      uint simdgroup [[simdgroup_index_in_threadgroup]],
                      ushort lane [[thread_index_in_simdgroup]],
                      uint simdgroups [[simdgroups_per_threadgroup]],
                      uint width [[threads_per_simdgroup]]) {
  device uint* own = out + 8 * ((in_grid.z * grid.y + in_grid.y) * grid.x + in_grid.x);
  own[0] = (group.z * groups.y + group.y) * groups.x + group.x;
  own[1] = (thread_in.z * threads.y + thread_in.y) * threads.x + thread_in.x;
  own[2] = index;
  own[3] = simdgroup;
  own[4] = lane;
  own[5] = simdgroups;
  own[6] = width;
  own[7] = grid.x * 10000 + grid.y * 100 + grid.z;
}

kernel void vectors(device const float* input [[buffer(0)]], device float* out [[buffer(1)]]) {
  const float4 v = *reinterpret_cast<device const float4*>(input);  // 1 2 3 4
  const float3 packed = packed_float3(5.0f, 6.0f, 7.0f);
  out[0] = dot(v, float4(1.0f));
  out[1] = (v.xy + v.zw).y;
  out[2] = float3(v.xyz).z;
  out[3] = v.hi.x - v.lo.y;
  float4 w = 2.0f * v - 1;
  w.zw = float2(10.0f, 20.0f);
  w[0] += 0.5f;
  out[4] = w.x;
  out[5] = w.y;
  out[6] = w.w;
  out[7] = packed.z;
  out[8] = any(v > 3.5f) && !all(v > 3.5f) ? 1.0f : 0.0f;
  out[9] = select(v, w, v == 2.0f).y;
  const uint4 bits = as_type<uint4>(v);
  out[10] = as_type<float>(bits.z);
  const uchar4 bytes = as_type<uchar4>(0x04030201u);
  out[11] = float4(bytes).w;
  out[12] = float((uint4(bytes) << 4u).z >> 1);
  out[13] = clamp(v, 1.5f, 3.0f).x + clamp(9.0f, 1.0f, 3.0f) + max(v, w).w + min(2u, 3u);
  const half4 h = half4(v) * half(0.5f) + 1.0h;
  out[14] = h.w;
  out[15] = float(h.x + h.y * 2.0f);
}

kernel void numbers(device uint* out [[buffer(0)]], device float* floats [[buffer(1)]]) {
  out[0] = popcount(0xf0f0u);
  out[1] = clz(1u);
  out[2] = uint(clz(ushort(1)));
  out[3] = mulhi(0x80000000u, 6u);
  out[4] = uint(abs(-5));
  out[5] = uint(isnan(as_type<float>(0x7fc00000u))) + 2 * uint(isinf(1.0f / 0.0f));
  out[6] = clz(0u);
  out[7] = as_type<uint>(precise::exp(1.0f));
  floats[0] = precise::exp(1.0f);
  floats[1] = fast::exp2(-3.0f);
  floats[2] = precise::log(2.0f);
  floats[3] = log2(8.0f);
  floats[4] = precise::tanh(0.5f);
  floats[5] = precise::sin(1.0f);
  floats[6] = precise::cos(1.0f);
  floats[7] = precise::divide(1.0f, 3.0f);
  floats[8] = precise::powr(2.0f, 0.5f);
  floats[9] = rsqrt(4.0f);
  floats[10] = sqrt(2.0f);
  floats[11] = fma(0x1.000002p0f, 0x1.000002p0f, -0x1.000004p0f);
  floats[12] = max(as_type<float>(0x7fc00000u), 3.0f);
  floats[13] = select(1.0f, 2.0f, true);
}

// out[32 * n + lane]: what SIMD function n gives to each lane that brings lane * lane + 1.
kernel void simd_functions(device uint* out [[buffer(0)]],
                           uint lane [[thread_index_in_simdgroup]]) {
  const uint own = lane * lane + 1;
  out[lane] = simd_sum(own);
  out[32 + lane] = simd_max(own);
  out[64 + lane] = simd_min(own);
  out[96 + lane] = simd_shuffle(own, ushort(31 - lane));
  out[128 + lane] = simd_shuffle_xor(own, ushort(5));
  out[160 + lane] = simd_shuffle_up(own, ushort(3));
  out[192 + lane] = simd_shuffle_down(own, ushort(3));
  out[224 + lane] = simd_broadcast(own, ushort(7));
  out[256 + lane] = simd_broadcast_first(own);
  out[288 + lane] = simd_prefix_inclusive_sum(own);
  out[320 + lane] = simd_prefix_exclusive_sum(own);
  out[352 + lane] = uint(simd_any(lane == 9)) + 2 * uint(simd_all(lane == 9));
  out[384 + lane] = uint(static_cast<simd_vote::vote_t>(simd_ballot(lane % 3 == 0)));
  out[416 + lane] = uint(simd_product(lane < 3 ? 2.0f : 1.0f));
  out[448 + lane] = uint(simd_sum(float4(float(lane))).w);
}

// out = a * b + a, and the transpose of b behind it.
template <typename T, typename Matrix>
[[kernel]] void matrices(device const T* a [[buffer(0)]], device const T* b [[buffer(1)]],
                         device T* out [[buffer(2)]], threadgroup T* tile [[threadgroup(0)]],
                         uint lane [[thread_index_in_simdgroup]]) {
  for (uint i = lane; i < 128; i += 32) tile[i] = b[i];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  Matrix left, right, turned, product;
  simdgroup_load(left, a, 8);
  simdgroup_load(right, tile, 16, ulong2(8, 0));
  simdgroup_load(turned, tile, 16, ulong2(8, 0), true);
  product = make_filled_simdgroup_matrix<T, 8, 8>(T(0));
  simdgroup_multiply_accumulate(product, left, right, left);
  simdgroup_store(product, out, 8);
  simdgroup_store(turned, out + 64, 8);
  simdgroup_multiply(product, left, right);
  simdgroup_store(product, out + 128, 8);
}
template [[host_name("matrices_float")]] [[kernel]] decltype(matrices<float, simdgroup_float8x8>)
    matrices<float, simdgroup_float8x8>;
template [[host_name("matrices_half")]] [[kernel]] decltype(matrices<half, simdgroup_half8x8>)
    matrices<half, simdgroup_half8x8>;

kernel void atomics(device atomic_uint* sums [[buffer(0)]], device atomic_int* bounds [[buffer(1)]],
                    threadgroup atomic_uint* count [[threadgroup(0)]],
                    uint i [[thread_position_in_grid]],
                    uint index [[thread_index_in_threadgroup]]) {
  if (index == 0) atomic_store_explicit(count, 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (index == 0) {
    const uint lanes = atomic_load_explicit(count, memory_order_relaxed);
    atomic_fetch_add_explicit(&sums[0], lanes, memory_order_relaxed);
  }
  atomic_fetch_or_explicit(&sums[1], 1u << (i % 32), memory_order_relaxed);
  atomic_fetch_max_explicit(&bounds[0], int(i) - 40, memory_order_relaxed);
  atomic_fetch_min_explicit(&bounds[1], int(i) - 40, memory_order_relaxed);
  uint expected = 0;  // every lane but one finds it taken
  while (!atomic_compare_exchange_weak_explicit(&sums[2], &expected, i + 1, memory_order_relaxed,
                                                memory_order_relaxed)) {
    if (expected != 0) {
      atomic_fetch_add_explicit(&sums[3], 1u, memory_order_relaxed);
      break;
    }
  }
}

// Writes down the order in which lanes come to it.
kernel void order(device atomic_uint* next [[buffer(0)]], device uint* out [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  out[atomic_fetch_add_explicit(next, 1u, memory_order_relaxed)] = i;
}

// --- wrong: where lanes meet -----------------------------------------------------------------------

kernel void half_a_barrier(device uint* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  if (i % 32 < 16) threadgroup_barrier(mem_flags::mem_none);
  out[i] = i;
}

kernel void early_return(device uint* out [[buffer(0)]], constant uint& n [[buffer(1)]],
                         uint i [[thread_position_in_grid]]) {
  if (i >= n) return;
  threadgroup_barrier(mem_flags::mem_none);
  out[i] = i;
}

kernel void two_barriers(device uint* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  if (i < 32) {
    threadgroup_barrier(mem_flags::mem_none);
  } else {
    threadgroup_barrier(mem_flags::mem_none);
  }
  out[i] = i;
}

kernel void divergent_sum(device uint* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  out[i] = i % 2 == 0 ? simd_sum(i) : simd_max(i);
}

kernel void missing_round(device uint* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  for (uint round = 0; round < (i == 7 ? 2u : 3u); ++round) simdgroup_barrier(mem_flags::mem_none);
  out[i] = i;
}

kernel void divergent_matrix(device float* out [[buffer(0)]],
                             uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_float8x8 matrix = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
  if (lane != 11) simdgroup_store(matrix, out, 8);
}

kernel void shuffle_outside(device uint* out [[buffer(0)]],
                            uint lane [[thread_index_in_simdgroup]]) {
  out[lane] = simd_shuffle(lane, ushort(lane + 1));
}

// --- wrong: memory, which only `checked` sees ------------------------------------------------------

kernel void read_at(device const uint* input [[buffer(0)]], device uint* out [[buffer(1)]],
                    constant int& at [[buffer(2)]]) {
  out[0] = input[at];
}

kernel void write_at(device uint* out [[buffer(0)]], constant int& at [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
  if (i == 3) out[at] = 1;
}

kernel void wide_read(device const uchar* input [[buffer(0)]], device uint* out [[buffer(1)]],
                      constant int& at [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if (i == 0) *reinterpret_cast<device uint4*>(out) = *reinterpret_cast<device const uint4*>(input + at);
}

kernel void behind_reference(constant Scale& scale [[buffer(0)]], device float* out [[buffer(1)]],
                             constant uint& at [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if (i == 0) out[0] = (&scale + at)->factor;
}

kernel void tile_at(threadgroup float* tile [[threadgroup(0)]],
                    threadgroup float* other [[threadgroup(1)]], constant uint& at [[buffer(0)]],
                    uint i [[thread_position_in_grid]]) {
  if (i == 0) tile[at] = 1.0f;
  if (i == 1) other[at] = 1.0f;
}

kernel void write_const(device const uint* input [[buffer(0)]],
                        uint i [[thread_position_in_grid]]) {
  if (i == 5) const_cast<device uint*>(input)[1] = 2;
}

kernel void copy_struct(device const Scale* input [[buffer(0)]], device Scale* out [[buffer(1)]],
                        constant uint& at [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if (i == 0) out[0] = input[at];
}

// Lane i writes, lane i + `distance` reads; what is between them is the kernel's.
template <uint kKind>
[[kernel]] void hand_over(device uint* buffer [[buffer(0)]], device uint* out [[buffer(1)]],
                          constant uint& distance [[buffer(2)]],
                          threadgroup uint* tile [[threadgroup(0)]],
                          uint index [[thread_index_in_threadgroup]],
                          uint threads [[threads_per_threadgroup]]) {
  const uint from = (index + distance) % threads;
  if (kKind < 4) {
    tile[index] = index;
    if (kKind == 1) threadgroup_barrier(mem_flags::mem_threadgroup);
    if (kKind == 2) simdgroup_barrier(mem_flags::mem_threadgroup);
    if (kKind == 3) threadgroup_barrier(mem_flags::mem_device);
    out[index] = tile[from];
  } else {
    buffer[index] = index;
    if (kKind == 5) threadgroup_barrier(mem_flags::mem_device);
    if (kKind == 6) simdgroup_barrier(mem_flags::mem_device);
    if (kKind == 7) threadgroup_barrier(mem_flags::mem_threadgroup);
    out[index] = buffer[from];
  }
}
template [[host_name("hand_over_tile")]] [[kernel]] decltype(hand_over<0>) hand_over<0>;
template [[host_name("hand_over_tile_barrier")]] [[kernel]] decltype(hand_over<1>) hand_over<1>;
template [[host_name("hand_over_tile_simd")]] [[kernel]] decltype(hand_over<2>) hand_over<2>;
template [[host_name("hand_over_tile_wrong")]] [[kernel]] decltype(hand_over<3>) hand_over<3>;
template [[host_name("hand_over_buffer")]] [[kernel]] decltype(hand_over<4>) hand_over<4>;
template [[host_name("hand_over_buffer_barrier")]] [[kernel]] decltype(hand_over<5>) hand_over<5>;
template [[host_name("hand_over_buffer_simd")]] [[kernel]] decltype(hand_over<6>) hand_over<6>;
template [[host_name("hand_over_buffer_wrong")]] [[kernel]] decltype(hand_over<7>) hand_over<7>;

// Everybody reads a number that one lane then overwrites.
kernel void overwrite_after_read(device uint* out [[buffer(0)]],
                                 threadgroup uint* tile [[threadgroup(0)]],
                                 constant uint& safe [[buffer(1)]],
                                 uint index [[thread_index_in_threadgroup]]) {
  if (index == 0) tile[0] = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[index] = tile[0];
  if (safe != 0) threadgroup_barrier(mem_flags::mem_threadgroup);
  if (index == 40) tile[0] = 2;
}

kernel void bytes_of_a_word(device uchar* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  out[i] = uchar(i);
}

kernel void write_all(device uint* out [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  out[i] = i;
}

kernel void read_all(device const uint* input [[buffer(0)]], device uint* out [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
  out[i] = input[i];
}

kernel void atomic_and_plain(device atomic_uint* count [[buffer(0)]], device uint* out [[buffer(1)]],
                             uint i [[thread_position_in_grid]]) {
  if (i != 3) atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
  if (i == 3) out[0] = *reinterpret_cast<device uint*>(count);
}

// --- how fast --------------------------------------------------------------------------------------

kernel void switches(device float* out [[buffer(0)]], constant uint& rounds [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
  float value = float(i);
  for (uint round = 0; round < rounds; ++round) value = simd_shuffle_xor(value, ushort(1));
  out[i] = value;
}
