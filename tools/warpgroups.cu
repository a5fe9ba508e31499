// Checks and times the wgmma tiles of prompts (backend/cuda/kernels/warpgroup_tile.cuh) by themselves, on an sm_90a GPU:
//   nvcc -std=c++17 -O3 -fmad=false -gencode arch=compute_90a,code=sm_90a -I src -I backend \
//     tools/warpgroups.cu -o warpgroups
//   ./warpgroups floor   the inner loop without copies, also without dequantising or scales
//   ./warpgroups check   small shapes against float64; the same bits for rows alone and in a hundred runs
//   ./warpgroups time    the matmul shapes of models
// `check` is small enough for compute-sanitizer (memcheck, racecheck, initcheck, synccheck).
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "cuda/kernels/warpgroup_tile.cuh"
#include "cuda/kernels/warpgroup_weights.cuh"
#include "device_memory.h"

namespace gpu {

template <uint kParts>
__global__ void __launch_bounds__(256) round_rows(const float* input, RoundedInput<kParts> to) {
  __shared__ float memory[8];
  inputs_ready();
  round_row(input + ulong(blockIdx.x) * to.k, to, blockIdx.x, memory, threadIdx.x, 256);
}

template <class F, uint kRows>
__global__ void __launch_bounds__(384, 1)
    multiply(RoundedInput<F::kParts> input, const uchar* weight, float* out, uint n,
             bool accumulate) {
  extern __shared__ __align__(16) uchar memory[];
  inputs_ready();
  multiply_prompt_tile<F, kRows>(input, weight,
                                 TileOutput{out, out, 0, input.n_rows, n, false, accumulate,
                                            blockIdx.y * kWeightRows, blockIdx.x * kRows},
                                 memory, threadIdx.x);
}

// The loop of multiply_windows on what shared memory has, without barriers and copies.
template <bool kUnpacks, bool kScales>
__global__ void __launch_bounds__(384, 1) loop(float* out, uint n_windows, uint nothing) {
  extern __shared__ __align__(16) uchar memory[];
  uchar* const first = memory + 1024 - shared_address(memory) % 1024;
  for (uint i = threadIdx.x; i < 51200; i += 384)  // halves of all signs, about 1
    reinterpret_cast<uint*>(first)[i] = (i * 2654435761u & 0x83ff83ffu) | 0x38003c00u;
  stores_before_copies();
  __syncthreads();
  if (threadIdx.x >= 256) {
    leave_registers<24>();
    return;
  }
  take_registers<240>();
  const uint lane = threadIdx.x % 32, t = lane % 4;
  const uchar* const row =
      first + 163840 + (threadIdx.x / 32 * 16 + lane / 4) * Q4_0Weights::kRowBytes;
  const uchar* const rows[2] = {row, row + 8 * Q4_0Weights::kRowBytes};
  float sums[2][64] = {}, products[64] = {};
  UnpackedBlock<Q4_0Weights> own, next;
  next.unpack(rows, 0, t);
  for (uint window = 0; window < n_windows; ++window)
#pragma unroll
    for (uint block = 0; block < 8; ++block) {
      own = next;
      const ulong inputs = inputs_at(first + (window * 4 + block / 2) % 5 * 32768);
#pragma unroll
      for (uint product = 0; product < 2; ++product) {
        const ulong from = further(inputs, product * 128 * kSlabRowBytes + block % 2 * 64);
        begin_products();
        add_product(kScales ? products : sums[product], own.registers[0], from,
                    kScales ? nothing : 1);
        add_product(kScales ? products : sums[product], own.registers[1], further(from, 32), 1);
        end_products();
        if (kUnpacks && product == 1) next.unpack(rows, (block + 1) % 8, t);
        wait_for_products(kScales ? products : sums[product]);
        if (kScales) add_scaled(sums[product], products, own.scale);
      }
    }
  float all = 0.0f;
  for (uint i = 0; i < 64; ++i) all += sums[0][i] + sums[1][i];
  out[blockIdx.x * 256 + threadIdx.x] = all;
}

namespace {

template <bool kUnpacks, bool kScales>
void floor_of(const char* name) {
  Memory<float> out(132 * 256);
  const auto kernel = loop<kUnpacks, kScales>;
  must(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
       name);
  const uint n_windows = 2000;
  const float ms =
      Events().best(5, [&] { kernel<<<132, 384, kSharedBytes>>>(out.at, n_windows, 0); });
  std::printf("floor, %-40s %7.1f TFLOP/s\n", name,
              132.0 * n_windows * 2 * 128 * 256 * 256 / ms * 1e-9);
}

// --- Formats: random blocks of finite scales, and their weights in float64 ------------------------------

double of_half(const uchar* at) {
  const uint bits = at[0] | at[1] << 8;
  const int exponent = int(bits >> 10 & 31);
  const double size = exponent == 0 ? std::ldexp(double(bits & 1023), -24)
                                    : std::ldexp(double(1024 + (bits & 1023)), exponent - 25);
  return bits & 0x8000 ? -size : size;
}
struct Q4_0Blocks {
  using Weights = Q4_0Weights;
  static constexpr const char* kName = "q4_0";
  static constexpr uint kWeights = 32, kBytes = 18, kHalves = 1;
  static constexpr double kRounding = 0;
  static double weight(const uchar* b, uint i) {
    return of_half(b) * (int(b[2 + i % 16] >> (i / 16 * 4) & 15) - 8);
  }
};
struct Q8_0Blocks {
  using Weights = Q8_0Weights;
  static constexpr const char* kName = "q8_0";
  static constexpr uint kWeights = 32, kBytes = 34, kHalves = 1;
  static constexpr double kRounding = 0;
  static double weight(const uchar* b, uint i) { return of_half(b) * int(int8_t(b[2 + i])); }
};
struct Q4_KBlocks {
  using Weights = Q4_KWeights;
  static constexpr const char* kName = "q4_k";
  static constexpr uint kWeights = 256, kBytes = 144, kHalves = 2;
  static constexpr double kRounding = 0;
  static double weight(const uchar* b, uint i) {
    const uint block = i / 32;
    const uchar* s = b + 4;
    const uint scale = block < 4 ? s[block] & 63 : (s[block + 4] & 15) | s[block - 4] >> 6 << 4;
    const uint minimum = block < 4 ? s[block + 4] & 63 : s[block + 4] >> 4 | s[block] >> 6 << 4;
    const uint code = b[16 + i / 64 * 32 + i % 32] >> (block % 2 * 4) & 15;
    return of_half(b) * scale * code - of_half(b + 2) * minimum;
  }
};
struct Q6_KBlocks {
  using Weights = Q6_KWeights;
  static constexpr const char* kName = "q6_k";
  static constexpr uint kWeights = 256, kBytes = 210, kHalves = 1;
  static constexpr double kRounding = 1.0 / 2048 + 1.0 / 4194304;
  static double weight(const uchar* b, uint i) {
    const uint at = i / 128 * 64 + i % 64;
    const uint low = b[at] >> (i % 128 / 64 * 4) & 15;
    const uint high = b[128 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    return of_half(b + 208) * int(int8_t(b[192 + i / 16])) * (int(low | high << 4) - 32);
  }
};
struct F16Blocks {
  using Weights = F16Weights;
  static constexpr const char* kName = "f16";
  static constexpr uint kWeights = 1, kBytes = 2, kHalves = 1;
  static constexpr double kRounding = 0;
  static double weight(const uchar* b, uint) { return of_half(b); }
};

struct BF16Blocks {
  using Weights = BF16Weights;
  static constexpr const char* kName = "bf16";
  static constexpr uint kWeights = 1, kBytes = 2, kHalves = 1;
  static constexpr double kRounding = 0;
  static double weight(const uchar* b, uint) {
    const uint bits = (b[0] | b[1] << 8u) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
};

// The fewest and the most input rows of a tile, by format.
template <class B>
constexpr uint kSmallest = B::Weights::kScaled ? 32 : 128;
template <class B>
constexpr uint kLargest = std::is_same_v<B, Q6_KBlocks> ? 64 : 128;

template <class B>
std::vector<uchar> random_weights(uint n, uint k, std::mt19937& random) {
  std::vector<uchar> bytes(size_t(n) * k / B::kWeights * B::kBytes);
  for (uchar& byte : bytes) byte = uchar(random());
  const uint at = B::kBytes == 210 ? 208 : 0;
  for (size_t block = 0; block < bytes.size(); block += B::kBytes)
    for (uint i = 0; i < B::kHalves; ++i)  // halves of 2^-7 to 2^-5, of both signs
      bytes[block + at + 2 * i + 1] =
          uchar((bytes[block + at + 2 * i + 1] & 0x83) |
                (B::Weights::kParts == 2 ? 0x3c : 0x20 | (random() & 4)));
  return bytes;
}

template <class B, uint kRows>
void launch(RoundedInput<B::Weights::kParts> input, const uchar* weight, float* out, uint n,
            bool accumulate) {
  const auto kernel = multiply<typename B::Weights, kRows>;
  static const bool is_ready = [&] {
    must(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
         B::kName);
    return true;
  }();
  static_cast<void>(is_ready);
  const dim3 grid((input.n_rows + kRows - 1) / kRows, (n + 127) / 128);
  kernel<<<grid, 384, kSharedBytes>>>(input, weight, out, n, accumulate);
}
uint padded(uint n_rows) { return (n_rows + kPaddedRows - 1) / kPaddedRows * kPaddedRows; }
size_t input_bytes(uint n_rows, uint k, uint parts) {
  return size_t(padded(n_rows)) * ((k + kSlab - 1) / kSlab * kSlabRowBytes * parts +
                                   (k + kWindow - 1) / kWindow * kSumsRowBytes + 4);
}
std::vector<float> random_rows(size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& x : numbers) x = normal(random);
  return numbers;
}

template <class B>
bool check(uint n_rows, uint n, uint k, int n_runs) {
  std::mt19937 random(n_rows + n + k);
  const std::vector<uchar> weights = random_weights<B>(n, k, random);
  const std::vector<float> x = random_rows(size_t(n_rows) * k, random);
  Memory<uchar> weight(weights.size() + 32);  // whole pieces of 16 bytes are copied
  Memory<float> input(x.size()), out(size_t(n_rows) * n);
  weight.put(weights);
  input.put(x);
  const auto run = [&](bool is_large, uint first, uint rows) {
    Memory<uchar> workspace(input_bytes(rows, k, B::Weights::kParts));
    const RoundedInput<B::Weights::kParts> rounded{workspace.at, rows, k};
    must(cudaMemset(out.at, 0xff, out.count * sizeof(float)), "cudaMemset");
    round_rows<<<padded(rows), 256>>>(input.at + size_t(first) * k, rounded);
    if (is_large)
      launch<B, kLargest<B>>(rounded, weight.at, out.at, n, false);
    else
      launch<B, kSmallest<B>>(rounded, weight.at, out.at, n, false);
    must(cudaGetLastError(), "a launch");
    must(cudaDeviceSynchronize(), "a kernel");
    return out.get();
  };
  const std::vector<float> one = run(false, 0, n_rows), two = run(true, 0, n_rows);
  double worst = 0, square = 0, squares = 0;
  for (uint r = 0; r < n_rows; ++r)
    for (uint j = 0; j < n; ++j) {
      double exact = 0, bound = 0, largest = 0;
      for (uint i = 0; i < k; ++i) largest = std::fmax(largest, std::fabs(x[size_t(r) * k + i]));
      for (uint i = 0; i < k; ++i) {
        const double own = x[size_t(r) * k + i];
        const double w = B::weight(weights.data() + (size_t(j) * k + i) / B::kWeights * B::kBytes,
                                   i % B::kWeights);
        exact += own * w;
        bound += std::fabs(w) *
                 (std::fabs(own) * (1.0 / 2048 + B::kRounding + (k / 8 + 8) / 16777216.0) +
                  largest * std::ldexp(1, -39));
      }
      const double error = std::fabs(two[size_t(r) * n + j] - exact);
      worst = std::fmax(worst, error <= bound ? error / bound : INFINITY);
      square += error * error;
      squares += exact * exact;
    }
  bool same = std::memcmp(one.data(), two.data(), one.size() * sizeof(float)) == 0;
  for (int i = 0; i < n_runs; ++i) {
    const std::vector<float> again = run(i % 2 != 0, 0, n_rows);
    same = same && std::memcmp(again.data(), two.data(), two.size() * sizeof(float)) == 0;
  }
  const uint first = n_rows / 2;
  const std::vector<float> part = run(true, first, n_rows - first);
  const bool alone = std::memcmp(part.data(), two.data() + size_t(first) * n,
                                 size_t(n_rows - first) * n * sizeof(float)) == 0;
  const bool good = worst <= 1 && same && alone;
  std::printf(
      "%s %4u rows x %4u, k %4u: error / bound %.3f, relative %.2e; bits of tiles and runs %s, of "
      "rows alone %s\n",
      B::kName, n_rows, n, k, worst, std::sqrt(square / squares), same ? "same" : "DIFFER",
      alone ? "same" : "DIFFER");
  return good;
}

template <class B, uint kRows>
float time_of(uint n_rows, uint n, uint k, bool accumulate) {
  std::mt19937 random(7);
  // As many weights as do not fit into the L2 cache, in turns.
  const size_t bytes = size_t(n) * k / B::kWeights * B::kBytes;
  const int sets = int((size_t(240) << 20) / bytes) + 1;
  const std::vector<uchar> weights = random_weights<B>(n, k, random);
  Memory<uchar> weight(bytes * sets + 32), workspace(input_bytes(n_rows, k, B::Weights::kParts));
  for (int i = 0; i < sets; ++i)
    must(cudaMemcpy(weight.at + i * bytes, weights.data(), bytes, cudaMemcpyHostToDevice),
         "a copy");
  Memory<float> input(size_t(n_rows) * k), out(size_t(n_rows) * n);
  input.put(random_rows(input.count, random));
  const RoundedInput<B::Weights::kParts> rounded{workspace.at, n_rows, k};
  round_rows<<<padded(n_rows), 256>>>(input.at, rounded);
  const int n_launches = 20;
  int set = 0;
  const float ms = Events().best(3, [&] {
    for (int i = 0; i < n_launches; ++i)
      launch<B, kRows>(rounded, weight.at + set++ % sets * bytes, out.at, n, accumulate);
  });
  return ms / n_launches;
}

template <class B>
void times() {
  struct Shape {
    const char* name;
    uint n, k, rows;
    bool accumulate;
  };
  const Shape shapes[] = {{"8B qkv", 6144, 4096, 2048, false},
                          {"8B o", 4096, 4096, 2048, true},
                          {"8B gate, up", 28672, 4096, 2048, false},
                          {"8B down", 4096, 14336, 2048, true},
                          {"8B o", 4096, 4096, 512, true},
                          {"8B gate, up", 28672, 4096, 512, false},
                          {"4B down", 2560, 9728, 2048, true},
                          {"1B gate, up", 16384, 2048, 2048, false},
                          {"0.6B gate, up", 6144, 1024, 2048, false},
                          {"0.6B down", 1024, 3072, 2048, true}};
  for (const Shape& s : shapes) {
    const float one = time_of<B, kSmallest<B>>(s.rows, s.n, s.k, s.accumulate);
    const float two = time_of<B, kLargest<B>>(s.rows, s.n, s.k, s.accumulate);
    const double work = 2.0 * s.n * s.k * s.rows * 1e-9;
    std::printf(
        "%s %-14s n %5u k %5u rows %4u: small tiles %7.1f us %6.1f TFLOP/s, large ones %7.1f us "
        "%6.1f "
        "TFLOP/s\n",
        B::kName, s.name, s.n, s.k, s.rows, 1e3 * one, work / one, 1e3 * two, work / two);
  }
}

void time_rounding() {
  std::mt19937 random(3);
  for (const uint k : {1024u, 4096u, 14336u}) {
    const uint rows = 2048;
    Memory<float> input(size_t(rows) * k);
    input.put(random_rows(input.count, random));
    Memory<uchar> workspace(input_bytes(rows, k, 1));
    const RoundedInput<1> rounded{workspace.at, rows, k};
    const float ms = Events().best(5, [&] {
      for (int i = 0; i < 20; ++i) round_rows<<<padded(rows), 256>>>(input.at, rounded);
    });
    std::printf("rounding of %u rows of %5u: %6.1f us, %.0f GB/s\n", rows, k, 1e3 * ms / 20,
                rows * double(k) * 6.1 / (ms / 20) * 1e-6);
  }
}

int run(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "floor") {
    floor_of<false, false>("products alone");
    floor_of<true, false>("with codes unpacked");
    floor_of<false, true>("with scales for each 32");
    floor_of<true, true>("with both: the loop of q4_0");
    return 0;
  }
  if (mode == "check") {
    const int n_runs = argc > 2 ? std::atoi(argv[2]) : 100;
    bool good = true;
    const uint shapes[][3] = {{1, 1, 256}, {130, 300, 512}, {300, 200, 1280}, {256, 128, 4096}};
    for (const auto& [rows, n, k] : shapes) {
      if (n_runs < 10 && k > 1280) continue;
      good = check<Q4_0Blocks>(rows, n, k, n_runs) && good;
      good = check<Q8_0Blocks>(rows, n, k, n_runs) && good;
      good = check<Q4_KBlocks>(rows, n, k, n_runs) && good;
      good = check<Q6_KBlocks>(rows, n, k, n_runs) && good;
      good = check<F16Blocks>(rows, n, k, n_runs) && good;
      good = check<BF16Blocks>(rows, n, k, n_runs) && good;
    }
    std::printf(good ? "all good\n" : "WRONG\n");
    return good ? 0 : 1;
  }
  if (mode == "time") {
    time_rounding();
    times<Q4_0Blocks>();
    times<Q8_0Blocks>();
    times<Q4_KBlocks>();
    times<Q6_KBlocks>();
    times<F16Blocks>();
    times<BF16Blocks>();
    return 0;
  }
  std::printf("usage: warpgroups floor | check [RUNS] | time\n");
  return 2;
}

}  // namespace
}  // namespace gpu

int main(int argc, char** argv) { return gpu::run(argc, argv); }
