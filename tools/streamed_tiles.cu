// Times the tiles of generated rows (backend/cuda/kernels/streamed_tile.cuh) by themselves on an sm_90a GPU, with the shapes of
// Llama-3.1-8B in Q4_0, over weights that the L2 cache does not hold. Folders: KERNELS is the build folder's
// backend/cuda/kernels/translated, made by `ninja akunu_cuda_headers`; ROWS is 16, 32 or 64 input rows.
//
//   nvcc -std=c++17 -O3 -fmad=false -arch=sm_90a -IKERNELS -Ibackend -DROWS=64 -o tiles tools/streamed_tiles.cu && ./tiles
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "cuda/kernels/streamed_tile_matmul.cuh"

#ifndef ROWS
#define ROWS 64
#endif

namespace gpu {

constexpr uint kQuads = ROWS / 4;
using Format = Q4_0Streamed;
using Memory = TileMemory<Format, kQuads>;
constexpr uint kAllThreads = Memory::kThreads + kCopyThreads;

__global__ void round_rows(const float* input, uchar* group, uint k) {
  round_row_of_several<kQuads>(input + ulong(blockIdx.x) * k, input, false, k, group, blockIdx.x,
                               true, threadIdx.x);
}

__global__ void __launch_bounds__(kAllThreads, 1)
    multiply(const uchar* weight, uchar* group, float* out, uint n, uint k, float* sums) {
  extern __shared__ __align__(16) uchar shared[];
  const uint first = kTileRows<Format> * blockIdx.y;
  const StreamInput from{nullptr, nullptr, false, group, ROWS};
  const TilePart part{blockIdx.z, gridDim.z, blockIdx.y,
                      sums + ulong(blockIdx.y) * kStreamWarps * kTileRows<Format> * ROWS};
  stream_tile<Format, kQuads>(
      shared, from, part, k, threadIdx.x, TileWeights<Format>::of(weight, first, n, k),
      [](uint, uint) { return 0.0f; },
      [&](uint output, uint row, float, const auto& sum_at, const float*) {
        if (first + output < n) out[ulong(row) * n + first + output] = sum_at(output);
      });
}

}  // namespace gpu

int main() {
  struct Shape {
    unsigned n, k, blocks;
  };
  constexpr int kLaunches = 40, kRounds = 7;
  constexpr unsigned kMostClusterBlocks = 4;
  cudaFuncSetAttribute(gpu::multiply, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       gpu::Memory::kBytes);
  for (const Shape shape :
       {Shape{28672, 4096, 1}, {4096, 14336, 8}, {6144, 4096, 4}, {4096, 4096, 8}}) {
    const auto [n, k, blocks] = shape;
    const size_t bytes = size_t{n} * k / 32 * 18;
    const int copies = static_cast<int>(300000000 / bytes) + 1;
    unsigned seed = 1;
    const auto random = [&] { return (seed = seed * 1664525u + 1013904223u) >> 8; };
    std::vector<unsigned char> weight(bytes);
    for (size_t i = 0; i < bytes; i += 18) {
      const unsigned short scale = 0x2000 + random() % 1024;  // of F16: 2^-7 to 2^-6
      std::memcpy(&weight[i], &scale, 2);
      for (size_t j = 2; j < 18; ++j) weight[i + j] = static_cast<unsigned char>(random());
    }
    std::vector<float> rows(size_t{ROWS} * k);
    for (float& x : rows) x = static_cast<float>(random()) / 8388608.0f - 1.0f;
    unsigned char *weights = nullptr, *group = nullptr;
    float *input = nullptr, *out = nullptr, *sums = nullptr;
    cudaMalloc(&weights, bytes * copies);
    cudaMalloc(&group, size_t{k} * 2 * ROWS + ROWS * 64);
    cudaMalloc(&input, rows.size() * sizeof(float));
    cudaMalloc(&out, size_t{ROWS} * n * sizeof(float));
    cudaMalloc(&sums, size_t{n} * 8 * ROWS * sizeof(float));
    for (int copy = 0; copy < copies; ++copy)
      cudaMemcpy(weights + bytes * copy, weight.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(input, rows.data(), rows.size() * sizeof(float), cudaMemcpyHostToDevice);
    gpu::round_rows<<<ROWS, 256>>>(input, group, k);

    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    cudaDeviceSynchronize();
    constexpr unsigned kTile = gpu::kTileRows<gpu::Format>;
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = cluster.val.clusterDim.y = 1;
    cluster.val.clusterDim.z = blocks;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1, (n + kTile - 1) / kTile, blocks);
    config.blockDim = dim3(gpu::kAllThreads);
    config.dynamicSmemBytes = gpu::Memory::kBytes;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = blocks > 1 && blocks <= kMostClusterBlocks ? 1 : 0;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    for (int i = 0; i < kLaunches; ++i)
      cudaLaunchKernelEx(&config, gpu::multiply,
                         static_cast<const unsigned char*>(weights + bytes * (i % copies)), group,
                         out, n, k, sums);
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream, &graph);
    cudaGraphExec_t step = nullptr;
    cudaGraphInstantiate(&step, graph, 0);
    cudaEvent_t begin = nullptr, end = nullptr;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    float best = 1e9f;
    for (int round = 0; round <= kRounds; ++round) {  // the first warms up
      cudaEventRecord(begin, stream);
      cudaGraphLaunch(step, stream);
      cudaEventRecord(end, stream);
      cudaStreamSynchronize(stream);
      float milliseconds = 0;
      cudaEventElapsedTime(&milliseconds, begin, end);
      if (round > 0 && milliseconds < best) best = milliseconds;
    }
    std::printf("%u rows, weight %u x %u, %u blocks a tile: %.2f us, %.0f GB/s (%s)\n", ROWS, n, k,
                blocks, best * 1e3f / kLaunches, bytes * kLaunches / (best * 1e6f),
                cudaGetErrorString(cudaGetLastError()));
    for (void* memory :
         {static_cast<void*>(weights), static_cast<void*>(group), static_cast<void*>(input),
          static_cast<void*>(out), static_cast<void*>(sums)})
      cudaFree(memory);
  }
}
