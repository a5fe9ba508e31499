// multiply_tile of metal/kernels/gemm.h for tensor cores: the same tiles, the same contract but for
// the input, which comes in parts (split_input.cuh). The translator (cuda/translate.py) puts this in the
// place of that.
//
// 1. Floor: tensor cores multiply bfloat16 numbers exactly and add in float32. An input is the sum
//    of three of them (8 + 8 + 8 bits: nothing is lost). A code of a quantised weight is one (8
//    bits at most); a half is the sum of two, a float of three. So a tile costs three products for
//    quantised weights and BF16, five for F16, six for F32: at most a third of the 990 TFLOP/s that
//    an H100 has.
// 2. Of products of parts only those are computed that float32 can hold beside the largest: part i
//    of the input times part j of the weight where i + j < 3.
// 3. Sums over 16 codes begin at 0; their scale and minimum are applied in float32, as the kernels
//    for few rows do.
// 4. A step covers 32 of k. While tensor cores work on one step, the weights of the next are unpacked
//    to the other half of their shared memory, and the input's parts of the step behind it are copied
//    there. One barrier a step.
// 5. Products that follow one another have sums of their own: none waits for the one before it.
// 6. A row of a step is 64 bytes in shared memory, four pieces of 16. Where a piece lies follows the
//    row (`place_of`): the eight pieces that a matrix load reads at once lie in different banks.
//
// An output's bits depend neither on where in a tile it lies nor on the other rows: k runs in steps
// of 16, and each element of a product of tensor cores has its own sum.
#pragma once

#include "cuda/kernels/split_input.cuh"
#include "metal/kernels/formats.cuh"
#include "metal/kernels/gemm_tile.cuh"

// Of kernels that call it: blocks have up to 256 threads, and a multiprocessor has registers for two of them.
#define AKUNU_TILE_LAUNCH_BOUNDS __launch_bounds__(256, 2)

namespace gpu {

constexpr uint kTileRowBytes = 64;  // 32 numbers of two bytes
constexpr uint kWeightPartBytes = kTile * kTileRowBytes;
constexpr uint kInputStages = 3, kWeightStages = 2;

template <class F>
struct WeightParts {
  static constexpr uint value = 1;
};
template <>
struct WeightParts<F16> {
  static constexpr uint value = 2;
};
template <>
struct WeightParts<F32> {
  static constexpr uint value = 3;
};

// Where piece `piece` of row `row` lies, in bytes.
__device__ inline uint place_of(uint row, uint piece) {
  return row * kTileRowBytes + (piece ^ (row / 2 % 4)) * 16;
}

// Sixteen weights on their way: bytes of a quantised format, or the numbers themselves.
template <class F, bool kIsScaled>
struct SixteenWeights {
  typename F::Raw raw;
  __device__ void load(typename F::Row row, uint sixteen, uint k) {
    raw = F::load(row, F::unit_of(min(sixteen, k / 16 - 1)), k);
  }
  // Past the end of a row all are 0.
  __device__ void unpack(typename F::Row row, uint sixteen, uint k, float4 (&q)[4], float& scale,
                         float& minimum) const {
    const uint at = min(sixteen, k / 16 - 1);
    F::unpack(row, raw, F::unit_of(at), F::run_of(at), k, q, scale, minimum);
    if (at == sixteen) return;
    for (uint piece = 0; piece < 4; ++piece) q[piece] = float4(0.0f);
    scale = minimum = 0.0f;
  }
};
template <class F>
struct SixteenWeights<F, false> {
  float4 numbers[4];
  __device__ void load(typename F::Row row, uint sixteen, uint k) {
#pragma unroll
    for (uint piece = 0; piece < 4; ++piece)
      numbers[piece] = load_four(row, 16 * sixteen + 4 * piece, k, k % 4 == 0);
  }
  __device__ void unpack(typename F::Row, uint, uint, float4 (&q)[4], float&, float&) const {
#pragma unroll
    for (uint piece = 0; piece < 4; ++piece) q[piece] = numbers[piece];
  }
};

// The block's shared memory.
template <class F>
struct TileMemory {
  unsigned char* inputs;   // [stage][part][row]
  unsigned char* weights;  // [stage][part][column]
  float2* scales;          // [stage][run][column]: scale and minimum
  float* sums;             // [stage][run][row]: of the input
  uint rows;

  static constexpr uint kScales = F::kScaled ? 2 * kTile : 0;
  __device__ TileMemory(void* memory, uint n_rows)
      : inputs(static_cast<unsigned char*>(memory)),
        weights(inputs + kInputStages * kInputParts * n_rows * kTileRowBytes),
        scales(reinterpret_cast<float2*>(weights +
                                         kWeightStages * WeightParts<F>::value * kWeightPartBytes)),
        sums(reinterpret_cast<float*>(scales + kWeightStages * kScales)),
        rows(n_rows) {}
  __device__ unsigned char* inputs_of(uint step) const {
    return inputs + step % kInputStages * (kInputParts * kTileRowBytes) * rows;
  }
  __device__ float* sums_of(uint step) const { return sums + step % kInputStages * 2 * rows; }
  __device__ unsigned char* weights_of(uint step) const {
    return weights + step % kWeightStages * WeightParts<F>::value * kWeightPartBytes;
  }
  __device__ float2* scales_of(uint step) const { return scales + step % kWeightStages * kScales; }
};

template <class F>
__device__ inline void store_weights(const TileMemory<F>& memory,
                                     const SixteenWeights<F, F::kScaled>& own, typename F::Row row,
                                     uint step, uint k, uint column, uint run) {
  float4 q[4];
  float scale = 1.0f, minimum = 0.0f;
  own.unpack(row, 2 * step + run, k, q, scale, minimum);
  unsigned char* to = memory.weights_of(step);
#pragma unroll
  for (uint part = 0; part < WeightParts<F>::value; ++part)
#pragma unroll
    for (uint half_run = 0; half_run < 2; ++half_run)
      *reinterpret_cast<uint4*>(to + part * kWeightPartBytes +
                                place_of(column, 2 * run + half_run)) =
          take_part(q[2 * half_run], q[2 * half_run + 1]);
  if (F::kScaled) memory.scales_of(step)[run * kTile + column] = float2(scale, minimum);
}

// The parts of the tile's rows in one step go to shared memory: four threads copy a row of a part.
template <class F>
__device__ inline void copy_inputs(const TileMemory<F>& memory, SplitInput input, uint step,
                                   uint row, uint thread_index) {
  const uint piece = thread_index % 4;
  unsigned char* const to = memory.inputs_of(step);
#pragma unroll
  for (uint half_tile = 0; half_tile < 2; ++half_tile) {
    const uint own = half_tile * (memory.rows / 2) + thread_index / 4;
    const bool is_there = row + own < input.n_rows;
    const unsigned char* from = input.row(step, is_there ? row + own : 0) + piece * 16;
#pragma unroll
    for (uint part = 0; part < kInputParts; ++part)
      copy_16_bytes(to + part * kTileRowBytes * memory.rows + place_of(own, piece),
                    from + part * kTileRowBytes, is_there);
  }
  if (F::kMinimum) {
    const uint run = thread_index / memory.rows, own = thread_index % memory.rows;
    const bool is_there = row + own < input.n_rows;
    copy_4_bytes(memory.sums_of(step) + thread_index,
                 input.sums(step, run) + (is_there ? row + own : 0), is_there);
  }
}

// A warp's 32 x 32 outputs: `sums` [16 rows][8 columns], as a product of tensor cores has them.
template <class F>
__device__ inline void multiply_step(const TileMemory<F>& memory, uint step, uint own_row,
                                     uint own_column, uint lane, float (&sums)[2][4][4]) {
  constexpr uint kParts = WeightParts<F>::value;
  const unsigned char* const inputs =
      memory.inputs_of(step) + place_of(own_row + lane % 16, lane / 16);
  const unsigned char* const weights =
      memory.weights_of(step) + place_of(own_column + lane / 16 * 8 + lane % 8, lane / 8 % 2);
  // Pieces of the second run lie two further, by exclusive or.
  const int input_run =
      int(place_of(lane % 16, lane / 16 + 2)) - int(place_of(lane % 16, lane / 16));
  const int weight_run =
      int(place_of(lane % 8, lane / 8 % 2 + 2)) - int(place_of(lane % 8, lane / 8 % 2));
  const uint g = lane / 4, pair = lane % 4 * 2;  // a lane's rows are g and g + 8
#pragma unroll
  for (uint run = 0; run < 2; ++run) {
    uint a[2][kInputParts][4];
#pragma unroll
    for (uint m = 0; m < 2; ++m)
#pragma unroll
      for (uint part = 0; part < kInputParts; ++part)
        load_matrices(a[m][part], inputs + (part * memory.rows + 16 * m) * kTileRowBytes +
                                      int(run) * input_run);
    float of_rows[2][2];  // the input's sums over the run
    if (F::kMinimum)
#pragma unroll
      for (uint m = 0; m < 2; ++m) {
        const float* from = memory.sums_of(step) + run * memory.rows + own_row + 16 * m + g;
        of_rows[m][0] = from[0];
        of_rows[m][1] = from[8];
      }
#pragma unroll
    for (uint two = 0; two < 2; ++two) {
      uint b[kParts][4];  // of two times eight columns
#pragma unroll
      for (uint part = 0; part < kParts; ++part)
        load_matrices(b[part], weights + part * kWeightPartBytes + 16 * two * kTileRowBytes +
                                   int(run) * weight_run);
      if (F::kScaled) {
        float4 scales[2];
#pragma unroll
        for (uint one = 0; one < 2; ++one)
          scales[one] = *reinterpret_cast<const float4*>(memory.scales_of(step) + run * kTile +
                                                         own_column + 16 * two + 8 * one + pair);
        float codes[2][2][4] = {};
#pragma unroll
        for (uint part = kInputParts; part-- > 0;)
#pragma unroll
          for (uint m = 0; m < 2; ++m)
#pragma unroll
            for (uint one = 0; one < 2; ++one)
              multiply_bfloat16(codes[m][one], a[m][part], b[0][2 * one], b[0][2 * one + 1]);
#pragma unroll
        for (uint m = 0; m < 2; ++m)
#pragma unroll
          for (uint one = 0; one < 2; ++one) {
            float (&own)[4] = sums[m][2 * two + one];
            const float4 by = scales[one];
            own[0] = fma(codes[m][one][0], by.x, own[0]);
            own[1] = fma(codes[m][one][1], by.z, own[1]);
            own[2] = fma(codes[m][one][2], by.x, own[2]);
            own[3] = fma(codes[m][one][3], by.z, own[3]);
            if (F::kMinimum) {
              own[0] = fma(of_rows[m][0], by.y, own[0]);
              own[1] = fma(of_rows[m][0], by.w, own[1]);
              own[2] = fma(of_rows[m][1], by.y, own[2]);
              own[3] = fma(of_rows[m][1], by.w, own[3]);
            }
          }
      } else {
#pragma unroll
        for (uint both = kInputParts; both-- > 0;)  // the smallest products first
#pragma unroll
          for (uint part = 0; part < kParts; ++part)
#pragma unroll
            for (uint m = 0; m < 2; ++m)
#pragma unroll
              for (uint one = 0; one < 2; ++one)
                if (part <= both)
                  multiply_bfloat16(sums[m][2 * two + one], a[m][both - part], b[part][2 * one],
                                    b[part][2 * one + 1]);
      }
    }
  }
}

template <class F>
__device__ inline void multiply_tile(const float* split, Planes weight, const float* bias,
                                     bool has_bias, bool accumulate, float* out, uint first_row,
                                     uint n_rows, uint n, uint k, uint column, uint row,
                                     float* shared, uint thread_index, uint simdgroup,
                                     uint n_simdgroups) {
  const uint lane = thread_index % 32;
  const TileMemory<F> memory(shared, 16 * n_simdgroups);
  const SplitInput input{reinterpret_cast<const unsigned char*>(split), n_rows, k};
  // Columns past the end repeat the last one, rows are zeros; nobody takes their results. Of the
  // first 128 threads, each has half of a step of one column.
  const uint own = thread_index / 2, run = thread_index % 2;
  const bool has_column = own < kTile;
  const typename F::Row w_row = F::row(weight, min(column + own, n - 1), k);
  const uint own_row = simdgroup / 2 * 32, own_column = simdgroup % 2 * 32;
  const uint n_steps = (k + kStep - 1) / kStep;
  float sums[2][4][4] = {};
  SixteenWeights<F, F::kScaled> w;

  if (has_column) w.load(w_row, run, k);
  copy_inputs(memory, input, 0, row, thread_index);
  end_copies();
  if (n_steps > 1) copy_inputs(memory, input, 1, row, thread_index);
  end_copies();
  if (has_column) {
    store_weights(memory, w, w_row, 0, k, own, run);
    if (n_steps > 1) w.load(w_row, 2 + run, k);
  }
  wait_for_copies<1>();
  __syncthreads();
  for (uint step = 0; step < n_steps; ++step) {
    if (has_column && step + 1 < n_steps) {
      store_weights(memory, w, w_row, step + 1, k, own, run);
      if (step + 2 < n_steps) w.load(w_row, 2 * (step + 2) + run, k);
    }
    if (step + 2 < n_steps) copy_inputs(memory, input, step + 2, row, thread_index);
    end_copies();
    multiply_step(memory, step, own_row, own_column, lane, sums);
    wait_for_copies<1>();  // those of the next step are there
    __syncthreads();
  }

  // All that is added is loaded before anything is stored: a load does not wait for the one before it.
  const auto for_each_output = [&](const auto& visit) {
#pragma unroll
    for (uint m = 0; m < 2; ++m)
#pragma unroll
      for (uint c = 0; c < 4; ++c)
#pragma unroll
        for (uint i = 0; i < 4; ++i) {
          const uint r = row + own_row + 16 * m + lane / 4 + i / 2 * 8;
          const uint j = column + own_column + 8 * c + lane % 4 * 2 + i % 2;
          if (r < n_rows && j < n) visit(sums[m][c][i], out + ulong(first_row + r) * n + j, j);
        }
  };
  if (has_bias) for_each_output([&](float& sum, const float*, uint j) { sum = sum + bias[j]; });
  if (accumulate) for_each_output([](float& sum, const float* at, uint) { sum = *at + sum; });
  for_each_output([](float sum, float* to, uint) { *to = sum; });
}

}  // namespace gpu
