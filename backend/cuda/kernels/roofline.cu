// What a GPU can do at most (cuda/roofline.cpp): how fast it reads memory, multiplies floats, and
// multiplies bfloat16 numbers in tensor cores. Results are used in a way that never happens, so that the
// compiler leaves nothing out.
#include "cuda/kernels/launch.cuh"

namespace gpu {

// Pieces of 16 bytes, all of them once: a thread takes eight that lie a grid apart, then the next eight.
__device__ void probe_read(const uint4* from, uint* out, const uint& n_pieces, uint3 position,
                           uint3 groups, uint3 threads) {
  const ulong n_threads = ulong(groups.x) * threads.x;
  uint4 seen = uint4(0);
  for (ulong i = position.x; i + 7 * n_threads < n_pieces; i += 8 * n_threads) {
    uint4 pieces[8];
#pragma unroll
    for (uint j = 0; j < 8; ++j) pieces[j] = from[i + j * n_threads];
#pragma unroll
    for (uint j = 0; j < 8; ++j) seen = seen | pieces[j];
  }
  if ((seen.x & seen.y & seen.z & seen.w) == 0x12345678u) out[0] = seen.x;
}

// `repeats` times eight products, each with a sum of its own.
__device__ void probe_floats(float* out, const uint& repeats, uint3 position) {
  float sums[8];
#pragma unroll
  for (uint j = 0; j < 8; ++j) sums[j] = float(position.x + j);
  const float x = float(position.x) * 1e-9f, y = x + 0.5f;
  for (uint i = 0; i < repeats; ++i)
#pragma unroll
    for (uint j = 0; j < 8; ++j) sums[j] = fma(sums[j], y, x);
  float sum = 0.0f;
#pragma unroll
  for (uint j = 0; j < 8; ++j) sum += sums[j];
  if (sum == -1.0f) out[0] = sum;
}

// The same of 16 x 8 x 16 numbers of a SIMD-group.
__device__ void probe_tiles(float* out, const uint& repeats, uint3 position) {
  uint a[4];
  float sums[8][4];
#pragma unroll
  for (uint j = 0; j < 4; ++j) a[j] = (position.x + j) * 0x00010001u & 0x3f803f80u;
#pragma unroll
  for (uint j = 0; j < 8; ++j)
#pragma unroll
    for (uint e = 0; e < 4; ++e) sums[j][e] = float(j);
  for (uint i = 0; i < repeats; ++i)
#pragma unroll
    for (uint j = 0; j < 8; ++j) multiply_bfloat16(sums[j], a, a[j % 4], a[(j + 1) % 4]);
  float sum = 0.0f;
#pragma unroll
  for (uint j = 0; j < 8; ++j)
#pragma unroll
    for (uint e = 0; e < 4; ++e) sum += sums[j][e];
  if (sum == -1.0f) out[0] = sum;
}

AKUNU_KERNEL(probe_read, ) {
  inputs_ready();
  probe_read(launch.slot(0), launch.slot(1), launch.parameters(), thread_position(), grid_size(),
             uint3(blockDim.x, 1u, 1u));
}

AKUNU_KERNEL(probe_floats, ) {
  inputs_ready();
  probe_floats(launch.slot(1), launch.parameters(), thread_position());
}

AKUNU_KERNEL(probe_tiles, ) {
  inputs_ready();
  probe_tiles(launch.slot(1), launch.parameters(), thread_position());
}

}  // namespace gpu
