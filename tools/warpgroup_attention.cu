// Checks and times attention of prompts on warpgroups (backend/cuda/kernels/warpgroup_attention.cuh) by itself, on an
// sm_90a GPU:
//   nvcc -std=c++17 -O3 -fmad=false -gencode arch=compute_90a,code=sm_90a -I src -I backend \
//     tools/warpgroup_attention.cu -o warpgroup_attention
//   ./warpgroup_attention check [RUNS]   small shapes against float64; the same bits for rows alone and in many runs
//   ./warpgroup_attention time           the heads of models
// `check 2` is small enough for compute-sanitizer (memcheck, racecheck, initcheck, synccheck).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cuda/kernels/warpgroup_attention.cuh"
#include "device_memory.h"

namespace gpu {

constexpr uint kPage = 256;

// Rows that follow one another in one text, whose first one is at `position`.
struct Problem {
  const float* query;
  const ushort* key_cache;
  const ushort* value_cache;
  float* out;
  const uint* pages;
  uint n_heads, n_kv_heads, position, n_rows, window;
  float scale;
};
struct Range {
  uint begin, end;
};
template <uint kDims>
struct CachedPositions {
  Problem problem;
  uint kv_head, first_row;
  __device__ Range range(uint row) const {
    const uint end = problem.position + first_row + row + 1, window = problem.window;
    return Range{window != 0 && end > window ? end - window : 0, end};
  }
  __device__ ulong offset(uint position) const {
    const ulong page = problem.pages[position / kPage];
    return ((page * problem.n_kv_heads + kv_head) * kPage + position % kPage) * kDims;
  }
  __device__ const ushort* keys(uint position) const {
    return problem.key_cache + offset(position);
  }
  __device__ const ushort* values(uint position) const {
    return problem.value_cache + offset(position);
  }
};

template <uint kDims, uint kGroups>
__global__ void __launch_bounds__(128 + 128 * kGroups, 1)
    attend(const __grid_constant__ Problem problem) {
  extern __shared__ __align__(16) uchar memory[];
  constexpr uint kRows = kGroups * kQueryRows;
  inputs_ready();
  const uint first_row = (gridDim.y - 1 - blockIdx.y) * kRows, head = blockIdx.x;
  const ulong place = (ulong(first_row) * problem.n_heads + head) * kDims;
  const AttentionTile tile{problem.query + place, problem.out + place, problem.n_heads * kDims,
                           min(kRows, problem.n_rows - first_row), problem.scale};
  const CachedPositions<kDims> cache{problem, head / (problem.n_heads / problem.n_kv_heads),
                                     first_row};
  attend_prompt_tile<kDims, kGroups>(tile, cache, memory, threadIdx.x);
}

namespace {

struct Shape {
  const char* name;
  uint n_heads, n_kv_heads, dims, position, n_rows, window;
  float query_size;  // standard deviation of a query's numbers
  uint end() const { return position + n_rows; }
  uint begin(uint row) const {
    const uint own_end = position + row + 1;
    return window != 0 && own_end > window ? own_end - window : 0;
  }
};

ushort half_of(float value) {  // of about 2^-14 to 2^15: rounded towards zero
  uint bits;
  std::memcpy(&bits, &value, 4);
  const int exponent = int(bits >> 23 & 255) - 112;
  const uint sign = bits >> 16 & 0x8000u;
  return ushort(exponent < 1 ? sign : sign | uint(exponent) << 10 | (bits >> 13 & 1023u));
}
double number_of(ushort half) {
  static const std::vector<double> numbers = [] {
    std::vector<double> all(65536);
    for (uint i = 0; i < 65536; ++i) {
      const double size = std::ldexp(1024.0 + (i & 1023), int(i >> 10 & 31) - 25);
      all[i] = (i & 0x7fff) == 0 ? 0.0 : i & 0x8000 ? -size : size;
    }
    return all;
  }();
  return numbers[half];
}

// Inputs and the pages of a text, in any order; positions behind it, and those that no row sees, are NaN.
struct Inputs {
  std::vector<float> query;
  std::vector<ushort> keys, values;
  std::vector<uint> pages;
  explicit Inputs(const Shape& shape) {
    std::mt19937 random(shape.n_rows + shape.position + shape.dims);
    std::normal_distribution<float> normal;
    query.resize(size_t(shape.n_rows) * shape.n_heads * shape.dims);
    for (float& x : query) x = normal(random) * shape.query_size;
    pages.resize((shape.end() + kPage - 1) / kPage);
    for (uint i = 0; i < pages.size(); ++i) pages[i] = i;
    std::shuffle(pages.begin(), pages.end(), random);
    keys.assign(pages.size() * kPage * shape.n_kv_heads * shape.dims, 0x7e00);
    values = keys;
    for (uint position = shape.begin(0); position < shape.end(); ++position)
      for (uint head = 0; head < shape.n_kv_heads; ++head)
        for (uint d = 0; d < shape.dims; ++d) {
          keys[place(shape, head, position) + d] = half_of(normal(random));
          values[place(shape, head, position) + d] = half_of(normal(random));
        }
  }
  size_t place(const Shape& shape, uint head, uint position) const {
    return ((size_t(pages[position / kPage]) * shape.n_kv_heads + head) * kPage +
            position % kPage) *
           shape.dims;
  }
};

// On the GPU.
struct Text {
  Memory<float> query, out;
  Memory<ushort> keys, values;
  Memory<uint> pages;
  explicit Text(const Inputs& inputs)
      : query(inputs.query.size()),
        out(inputs.query.size()),
        keys(inputs.keys.size()),
        values(inputs.values.size()),
        pages(inputs.pages.size()) {
    query.put(inputs.query), keys.put(inputs.keys), values.put(inputs.values);
    pages.put(inputs.pages);
  }
};

template <uint kDims, uint kGroups>
void launch(const Shape& shape, const Text& text, uint first, uint n_rows) {
  constexpr uint kBytes = AttentionStages<kDims, kGroups>::kBytes, kRows = kGroups * kQueryRows;
  static const bool is_ready = [] {
    must(cudaFuncSetAttribute(attend<kDims, kGroups>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              kBytes),
         "shared memory");
    return true;
  }();
  static_cast<void>(is_ready);
  const size_t skipped = size_t(first) * shape.n_heads * kDims;
  const Problem problem{text.query.at + skipped,
                        text.keys.at,
                        text.values.at,
                        text.out.at + skipped,
                        text.pages.at,
                        shape.n_heads,
                        shape.n_kv_heads,
                        shape.position + first,
                        n_rows,
                        shape.window,
                        1.0f / std::sqrt(float(kDims))};
  attend<kDims, kGroups>
      <<<dim3(shape.n_heads, (n_rows + kRows - 1) / kRows), 128 + 2 * kRows, kBytes>>>(problem);
}
void launch(const Shape& shape, const Text& text, uint groups, uint first, uint n_rows) {
  const auto own = shape.dims == 64 ? (groups == 1 ? launch<64, 1> : launch<64, 2>)
                                    : (groups == 1 ? launch<128, 1> : launch<128, 2>);
  own(shape, text, first, n_rows);
  must(cudaGetLastError(), "a launch");
}

// The largest error of a row of one head, in parts of its bound (docs/kernels.md); squares of errors and of results.
double compare(const Shape& shape, const Inputs& inputs, uint row, uint head,
               const std::vector<float>& out, double& square, double& squares) {
  const uint kv_head = head / (shape.n_heads / shape.n_kv_heads);
  const uint begin = shape.begin(row), end = shape.position + row + 1;
  const size_t own = (size_t(row) * shape.n_heads + head) * shape.dims;
  const double scale = 1.0f / std::sqrt(float(shape.dims)), u = 1.0 / 16777216, half_u = 1.0 / 2048;
  double largest = 0;
  for (uint d = 0; d < shape.dims; ++d)
    largest = std::fmax(largest, std::fabs(inputs.query[own + d]));
  std::vector<double> scores, errors;
  for (uint position = begin; position < end; ++position) {
    const ushort* key = inputs.keys.data() + inputs.place(shape, kv_head, position);
    double score = 0, magnitude = 0, size = 0;
    for (uint d = 0; d < shape.dims; ++d) {
      const double q = inputs.query[own + d], k = number_of(key[d]);
      score += q * k;
      magnitude += std::fabs(q * k);
      size += std::fabs(k);
    }
    scores.push_back(score * scale);
    errors.push_back(scale * (magnitude * (half_u + (shape.dims / 8 + 6) * u) +
                              size * largest * std::ldexp(1.0, -38)));
  }
  const size_t top = size_t(std::max_element(scores.begin(), scores.end()) - scores.begin());
  double total = 0;
  for (const double score : scores) total += std::exp(score - scores[top]);
  const double n_pages = (end - 1) / kPage - begin / kPage + 1;
  double worst = 0;
  std::vector<double> weights, relative;
  double all = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    weights.push_back(std::exp(scores[i] - scores[top]) / total);
    relative.push_back(errors[i] + errors[top] + 2 * u * std::fabs(scores[i] - scores[top]) +
                       (268 + 8 * n_pages) * u + half_u);
    all += weights[i] * relative[i];
  }
  for (uint d = 0; d < shape.dims; ++d) {
    double exact = 0, bound = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      const double v = number_of(inputs.values[inputs.place(shape, kv_head, begin + uint(i)) + d]);
      exact += weights[i] * v;
      bound += std::fabs(v) * (weights[i] * relative[i] + std::ldexp(1.0, -38));
    }
    bound += std::fabs(exact) * all;
    const double error = std::fabs(out[own + d] - exact);
    worst = std::fmax(worst, error <= bound ? error / bound : INFINITY);
    square += error * error;
    squares += exact * exact;
  }
  return worst;
}

bool check(const Shape& shape, int n_runs) {
  const Inputs inputs(shape);
  const Text text(inputs);
  const auto run = [&](uint groups, uint first, uint n_rows) {
    must(cudaMemset(text.out.at, 0xff, text.out.count * sizeof(float)), "cudaMemset");
    launch(shape, text, groups, first, n_rows);
    must(cudaDeviceSynchronize(), "a kernel");
    return text.out.get();
  };
  const std::vector<float> whole = run(2, 0, shape.n_rows);
  double worst = 0, square = 0, squares = 0;
  for (uint row = 0; row < shape.n_rows; row += shape.n_rows > 400 ? 13 : 1)
    for (uint head = 0; head < shape.n_heads; ++head)
      worst = std::fmax(worst, compare(shape, inputs, row, head, whole, square, squares));
  bool same = true;
  for (int i = 0; i < n_runs; ++i) {
    const std::vector<float> again = run(1 + i % 2, 0, shape.n_rows);
    same = same && std::memcmp(again.data(), whole.data(), whole.size() * sizeof(float)) == 0;
  }
  bool alone = true;
  const size_t width = size_t(shape.n_heads) * shape.dims;
  for (const uint first : {shape.n_rows / 3, shape.n_rows / 2, shape.n_rows - 1}) {
    const uint n_rows = std::min(shape.n_rows - first, first % 2 == 0 ? 70u : shape.n_rows);
    const std::vector<float> part = run(2 - first % 2, first, n_rows);
    alone = alone && std::memcmp(part.data() + first * width, whole.data() + first * width,
                                 n_rows * width * sizeof(float)) == 0;
  }
  const bool good = worst <= 1 && same && alone;
  std::printf(
      "%2u heads, %u of keys, of %3u: %4u rows at %4u, window %4u: error / bound %.3f, relative "
      "%.2e; bits of tiles and runs %s, of rows alone %s\n",
      shape.n_heads, shape.n_kv_heads, shape.dims, shape.n_rows, shape.position, shape.window,
      worst, std::sqrt(square / squares), same ? "same" : "DIFFER", alone ? "same" : "DIFFER");
  return good;
}

void time_of(const Shape& shape) {
  const Inputs inputs(shape);
  const Text text(inputs);
  double pairs = 0;
  for (uint row = 0; row < shape.n_rows; ++row)
    pairs += shape.position + row + 1 - shape.begin(row);
  std::printf("%-12s %2u heads of %3u: %4u rows at %4u:", shape.name, shape.n_heads, shape.dims,
              shape.n_rows, shape.position);
  for (const uint groups : {1u, 2u}) {
    const int n_launches = 10;
    const float ms = Events().best(5, [&] {
      for (int i = 0; i < n_launches; ++i) launch(shape, text, groups, 0, shape.n_rows);
    });
    const double us = 1e3 * ms / n_launches;
    std::printf("  tiles of %3u %8.1f us %6.1f TFLOP/s", 64 * groups, us,
                4.0 * shape.n_heads * shape.dims * pairs / us * 1e-6);
  }
  std::printf("\n");
}

int run(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "check") {
    const int n_runs = argc > 2 ? std::atoi(argv[2]) : 100;
    bool good = true;
    for (const uint dims : {64u, 128u}) {
      good = check({"", 1, 1, dims, 0, 1, 0, 1.0f}, n_runs) && good;
      good = check({"", 2, 1, dims, 0, 130, 0, 1.0f}, n_runs) && good;
      good = check({"", 4, 2, dims, 200, 150, 0, 4.0f}, n_runs) && good;
      good = check({"", 2, 2, dims, 700, 300, 257, 1.0f}, n_runs) && good;
      good = check({"", 2, 1, dims, 1000, 140, 3, 1.0f}, n_runs) && good;
      if (n_runs >= 10) good = check({"", 16, 8, dims, 0, 1500, 0, 1.0f}, n_runs) && good;
    }
    std::printf(good ? "all good\n" : "WRONG\n");
    return good ? 0 : 1;
  }
  if (mode == "time") {
    for (const auto& [name, n_heads, n_kv_heads, dims] :
         {std::tuple{"Qwen3-0.6B", 16u, 8u, 128u}, std::tuple{"Llama-3.2-1B", 32u, 8u, 64u},
          std::tuple{"Llama-3.1-8B", 32u, 8u, 128u}})
      for (const auto& [position, n_rows] : {std::pair{0u, 512u}, std::pair{0u, 2048u},
                                             std::pair{6144u, 2048u}, std::pair{0u, 8192u}})
        time_of({name, n_heads, n_kv_heads, dims, position, n_rows, 0, 1.0f});
    return 0;
  }
  std::printf("usage: warpgroup_attention check [RUNS] | time\n");
  return 2;
}

}  // namespace
}  // namespace gpu

int main(int argc, char** argv) { return gpu::run(argc, argv); }
