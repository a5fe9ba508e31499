// multiply of metal/kernels/matvec.h for NVIDIA's GPUs: the same arithmetic in the same order, other
// loads. The translator (cuda/translate.py) puts this in the place of that.
//
// 1. A launch begins while those before it run. What it can read then is weights: of one input row, as many
//    units as there are registers for go there, the rest of the rows to the L2 cache; and the norm's
//    weights. When the inputs are there, all of a unit's are loaded at once.
// 2. Small weights have few rows for many multiprocessors. There several warps are one SIMD-group, which
//    has a block to itself (`lane` goes on behind 31): each takes units of its own, and the first one adds
//    up what all of them found, in the order in which a single warp would have come to it.
// 3. Lanes take units, so what neighbours load of the input lies far apart: each load touches 32 lines of the
//    cache, which takes longer than a large weight's bytes. There the warps of a block put the input into
//    shared memory once, as lanes read it and times the norm's weights, and take weight rows until there are
//    no more (kStages).
// 4. Of several rows a launch before this one does the same, in the command's workspace (staged_rows.cuh): all rows of
//    the longest input would not fit into shared memory (kTakesStagedRows).
#pragma once

#include "cuda/kernels/launch.cuh"
#include "metal/kernels/formats.cuh"
#include "metal/kernels/matvec_input.cuh"

namespace gpu {

// Files whose kernels' blocks stage their input (staged_matvec.cuh), or take input rows that another launch has staged
// (staged_rows.cuh), say so before they include this.
#ifdef AKUNU_BLOCKS_STAGE
constexpr bool kStages = true;
#else
constexpr bool kStages = false;
#endif
#ifdef AKUNU_ROWS_ARE_STAGED
constexpr bool kTakesStagedRows = true;
#else
constexpr bool kTakesStagedRows = false;
#endif

// Of launches whose blocks stage their input: the launch says how many warps have work in the whole grid.
// Threadgroups of them; how many of this block have work; whether the input is there for a warp.
__device__ inline uint n_groups() {
  const uint n_warps = blockDim.x / 32;
  return (akunu_constants.values[6] + n_warps - 1) / n_warps;
}
__device__ inline uint warps_with_work() {
  const uint n_warps = blockDim.x / 32, left = akunu_constants.values[6] - blockIdx.x * n_warps;
  return left < n_warps ? left : n_warps;
}
__device__ inline bool& is_staged() {
  static __shared__ bool of_warps[32];
  return of_warps[threadIdx.x / 32];
}

// Registers, of four bytes, for weights that wait for their inputs. Where blocks stage, twice as many warps are
// to fit on a multiprocessor.
constexpr uint kWaitingWords = 64, kStagedWords = 40;

// Units of each weight row that are loaded ahead, one after the other: at least one.
template <class F, uint kOutputs, uint kMostWords>
struct UnitsAhead {
  static constexpr uint kWords = kOutputs * uint(sizeof(typename F::Raw) / 4);
  static constexpr uint kFit = kMostWords / kWords < 4 ? kMostWords / kWords : 4;
  static constexpr uint value = !F::kScaled || kFit < 1 ? 1 : kFit;
};

// Bytes of a weight row that lies in one piece, 0 where it does not.
template <class Number>
__device__ inline ulong row_bytes(const Number* first, const Number* second) {
  return ulong(reinterpret_cast<const uchar*>(second) - reinterpret_cast<const uchar*>(first));
}
template <class Row>
__device__ inline ulong row_bytes(const Row&, const Row&) {
  return 0;
}
template <class Number>
__device__ inline const uchar* bytes_at(const Number* row) {
  return reinterpret_cast<const uchar*>(row);
}
template <class Row>
__device__ inline const uchar* bytes_at(const Row&) {
  return nullptr;
}

// What a run adds to the sums of kOutputs weight rows.
template <class F, uint kOutputs>
struct RunTerms {
  float scale[kOutputs], part[kOutputs], minimum[kOutputs];
  float inputs_sum, square;

  __device__ void add_to(float (&sums)[kOutputs], float& squares) const {
#pragma unroll
    for (uint o = 0; o < kOutputs; ++o) {
      sums[o] = F::kScaled ? fma(scale[o], part[o], sums[o]) : sums[o] + part[o];
      if (F::kMinimum) sums[o] = fma(minimum[o], inputs_sum, sums[o]);
    }
    squares += square;
  }

  // In shared memory each of them has `stride` places.
  __device__ void store(float* at, uint stride) const {
#pragma unroll
    for (uint o = 0; o < kOutputs; ++o) {
      at[o * stride] = part[o];
      if (F::kScaled) at[(kOutputs + o) * stride] = scale[o];
      if (F::kMinimum) at[(2 * kOutputs + o) * stride] = minimum[o];
    }
    if (F::kMinimum) at[3 * kOutputs * stride] = inputs_sum;
    at[(3 * kOutputs + 1) * stride] = square;
  }
  __device__ void load(const float* at, uint stride) {
#pragma unroll
    for (uint o = 0; o < kOutputs; ++o) {
      part[o] = at[o * stride];
      if (F::kScaled) scale[o] = at[(kOutputs + o) * stride];
      if (F::kMinimum) minimum[o] = at[(2 * kOutputs + o) * stride];
    }
    if (F::kMinimum) inputs_sum = at[3 * kOutputs * stride];
    square = at[(3 * kOutputs + 1) * stride];
  }
};

// `x` becomes what the weights meet.
template <class F, uint kOutputs>
__device__ inline void multiply_run(const float4 (&q)[kOutputs][4], float4 (&x)[4],
                                    const float4 (&norm)[4], bool normalise,
                                    RunTerms<F, kOutputs>& terms) {
  terms.square = 0.0f;
  if (normalise) {
    float4 square = x[0] * x[0];
#pragma unroll
    for (uint piece = 1; piece < 4; ++piece) square = fma(x[piece], x[piece], square);
    terms.square = sum_of(square);
#pragma unroll
    for (uint piece = 0; piece < 4; ++piece) x[piece] = x[piece] * norm[piece];
  }
  terms.inputs_sum = 0.0f;
  if (F::kMinimum) terms.inputs_sum = sum_of((x[0] + x[1]) + (x[2] + x[3]));
#pragma unroll
  for (uint o = 0; o < kOutputs; ++o) {
    float4 dot = q[o][0] * x[0];
#pragma unroll
    for (uint piece = 1; piece < 4; ++piece) dot = fma(q[o][piece], x[piece], dot);
    terms.part[o] = sum_of(dot);
  }
}

// Several rows: each unit's weights are unpacked once for all of them.
template <class F, uint kRows, uint kOutputs>
__device__ inline void multiply_several(typename F::Row (&weights)[kOutputs],
                                        Input (&inputs)[kRows], const float* norm, bool normalise,
                                        uint k, uint lane, float (&sums)[kRows][kOutputs],
                                        float (&squares)[kRows]) {
  const uint n_units = F::units(k);
  typename F::Raw raw[kOutputs];
#pragma unroll
  for (uint o = 0; o < kOutputs; ++o) raw[o] = F::load(weights[o], min(lane, n_units - 1), k);
  inputs_ready();
  for (uint unit = lane; unit < n_units; unit += 32) {
    if (unit != lane) {
#pragma unroll
      for (uint o = 0; o < kOutputs; ++o) raw[o] = F::load(weights[o], unit, k);
    }
#pragma unroll
    for (uint run = 0; run < 2; ++run) {
      float4 q[kOutputs][4], norms[4];
      RunTerms<F, kOutputs> terms;
#pragma unroll
      for (uint o = 0; o < kOutputs; ++o) {
        terms.scale[o] = 1.0f;
        terms.minimum[o] = 0.0f;
        F::unpack(weights[o], raw[o], unit, run, k, q[o], terms.scale[o], terms.minimum[o]);
      }
      if (normalise) load_run<F>(norm, unit, run, k, norms);
#pragma unroll
      for (uint m = 0; m < kRows; ++m) {
        float4 x[4];
        load_run<F>(inputs[m], unit, run, k, x);
        multiply_run<F, kOutputs>(q, x, norms, normalise, terms);
        terms.add_to(sums[m], squares[m]);
      }
    }
  }
}

// One row, `width` lanes.
template <class F, uint kOutputs>
__device__ inline void multiply_one(typename F::Row (&weights)[kOutputs], Input input,
                                    const float* norm, bool normalise, uint k, uint lane,
                                    uint width, float (&sums)[kOutputs], float& squares) {
  using Terms = RunTerms<F, kOutputs>;
  constexpr uint kAhead = UnitsAhead<F, kOutputs, kWaitingWords>::value;
  const uint n_units = F::units(k);
  typename F::Raw raw[kAhead][kOutputs];
  const auto load_weights = [&](uint first) {
#pragma unroll
    for (uint a = 0; a < kAhead; ++a)
#pragma unroll
      for (uint o = 0; o < kOutputs; ++o)
        if (a == 0 || first + width * a < n_units)
          raw[a][o] = F::load(weights[o], min(first + width * a, n_units - 1), k);
  };
  load_weights(lane);
  if (!F::kScaled || n_units > width * kAhead) {
    const ulong n_bytes = row_bytes(F::row(Planes{}, 0, k), F::row(Planes{}, 1, k));
#pragma unroll
    for (uint o = 0; o < kOutputs; ++o)
      if (lane == o) fetch_to_cache(bytes_at(weights[o]), n_bytes);
  }
  float4 norms[2][4], numbers[2][4];
  const auto load_runs = [&](Input from, uint unit, float4(&to)[2][4]) {
#pragma unroll
    for (uint run = 0; run < 2; ++run) load_run<F>(from, unit, run, k, to[run]);
  };
  if (normalise && lane < n_units) load_runs(norm, lane, norms);
  inputs_ready();
  float* const found = reinterpret_cast<float*>(akunu_shared);  // [term][run][unit]
  for (uint first = lane; first < n_units; first += width * kAhead) {
    if (first != lane) load_weights(first);
#pragma unroll
    for (uint a = 0; a < kAhead; ++a) {
      const uint unit = first + width * a;
      if (unit >= n_units) break;
      if (normalise && unit != lane) load_runs(norm, unit, norms);
      load_runs(input, unit, numbers);
#pragma unroll
      for (uint run = 0; run < 2; ++run) {
        float4 q[kOutputs][4];
        Terms terms;
#pragma unroll
        for (uint o = 0; o < kOutputs; ++o) {
          terms.scale[o] = 1.0f;
          terms.minimum[o] = 0.0f;
          F::unpack(weights[o], raw[a][o], unit, run, k, q[o], terms.scale[o], terms.minimum[o]);
        }
        multiply_run<F, kOutputs>(q, numbers[run], norms[run], normalise, terms);
        if (width > 32)
          terms.store(found + run * n_units + unit, 2 * n_units);
        else
          terms.add_to(sums, squares);
      }
    }
  }
  if (width == 32) return;
  __syncthreads();
  if (lane >= 32) return;
  for (uint unit = lane; unit < n_units; unit += 32)
#pragma unroll
    for (uint run = 0; run < 2; ++run) {
      Terms terms;
      terms.load(found + run * n_units + unit, 2 * n_units);
      terms.add_to(sums, squares);
    }
}

// What a run adds to the sum of one weight row; the arithmetic is that of multiply_run.
template <class F>
__device__ inline void add_run(const float4 (&q)[4], const float4 (&x)[4], float scale,
                               float minimum, float inputs_sum, float& sum) {
  float4 dot = q[0] * x[0];
#pragma unroll
  for (uint piece = 1; piece < 4; ++piece) dot = fma(q[piece], x[piece], dot);
  sum = fma(scale, sum_of(dot), sum);
  if (F::kMinimum) sum = fma(minimum, inputs_sum, sum);
}

// An input row as its launch stages it: the numbers that meet the weights, [piece of a unit][unit], so that
// neighbouring lanes read neighbouring pieces; and of each run what all weight rows add, [run][unit].
struct Staged {
  float4* numbers;
  float *squares, *sums;
  uint n_units;

  // Of a whole row: for each unit of 32 its numbers, and two terms of each of its two runs.
  __device__ static uint floats(uint k) { return k / 32 * 36; }
  __device__ static Staged at(float* memory, uint n_units) {
    float4* const numbers = reinterpret_cast<float4*>(memory);
    float* const squares = memory + 32 * n_units;
    return Staged{numbers, squares, squares + 2 * n_units, n_units};
  }
  __device__ float4& piece(uint unit, uint run, uint piece) const {
    return numbers[(4 * run + piece) * n_units + unit];
  }
  __device__ uint term(uint unit, uint run) const { return run * n_units + unit; }
};

// Stages a run: `run_index` counts those of all units. The arithmetic is that of multiply_run.
template <class F>
__device__ inline void stage_run(Staged staged, Input input, const float* norm, bool normalise,
                                 uint k, uint run_index) {
  const uint unit = run_index / 2, run = run_index % 2;
  float4 x[4], norms[4];
  load_run<F>(input, unit, run, k, x);
  if (normalise) {
    load_run<F>(norm, unit, run, k, norms);
    float4 square = x[0] * x[0];
#pragma unroll
    for (uint piece = 1; piece < 4; ++piece) square = fma(x[piece], x[piece], square);
    staged.squares[staged.term(unit, run)] = sum_of(square);
#pragma unroll
    for (uint piece = 0; piece < 4; ++piece) x[piece] = x[piece] * norms[piece];
  }
  if (F::kMinimum) staged.sums[staged.term(unit, run)] = sum_of((x[0] + x[1]) + (x[2] + x[3]));
#pragma unroll
  for (uint piece = 0; piece < 4; ++piece) staged.piece(unit, run, piece) = x[piece];
}

// One row of a launch that stages its input (staged_matvec.cuh): a warp comes here once for each kOutputs weight rows
// that it takes. Warps that have none are not waited for.
template <class F, uint kOutputs>
__device__ inline void multiply_staged(typename F::Row (&weights)[kOutputs], Input input,
                                       const float* norm, bool normalise, uint k, uint lane,
                                       float (&sums)[kOutputs], float& squares) {
  static_assert(F::kScaled,
                "numbers lie so that neighbours load neighbours: there is nothing to gain");
  constexpr uint kAhead = UnitsAhead<F, kOutputs, kStagedWords>::value;
  const uint n_units = F::units(k);
  typename F::Raw raw[kAhead][kOutputs];
  const auto load_weights = [&](uint first) {
#pragma unroll
    for (uint a = 0; a < kAhead; ++a)
#pragma unroll
      for (uint o = 0; o < kOutputs; ++o)
        if (a == 0 || first + 32 * a < n_units)
          raw[a][o] = F::load(weights[o], min(first + 32 * a, n_units - 1), k);
  };
  load_weights(lane);
  if (n_units > 32 * kAhead) {
    const ulong n_bytes = row_bytes(F::row(Planes{}, 0, k), F::row(Planes{}, 1, k));
#pragma unroll
    for (uint o = 0; o < kOutputs; ++o)
      if (lane == o) fetch_to_cache(bytes_at(weights[o]), n_bytes);
  }
  const Staged staged = Staged::at(reinterpret_cast<float*>(akunu_shared), n_units);
  if (!is_staged()) {
    const uint n_threads = 32 * warps_with_work();
    inputs_ready();
    for (uint i = threadIdx.x; i < 2 * n_units; i += n_threads)
      stage_run<F>(staged, input, norm, normalise, k, i);
    meet(n_threads);
    is_staged() = true;
    __syncwarp();
  }
  if (normalise)
    for (uint unit = lane; unit < n_units; unit += 32)
#pragma unroll
      for (uint run = 0; run < 2; ++run) squares += staged.squares[staged.term(unit, run)];
  for (uint first = lane; first < n_units; first += 32 * kAhead) {
    if (first != lane) load_weights(first);
#pragma unroll
    for (uint a = 0; a < kAhead; ++a) {
      const uint unit = first + 32 * a;
      if (unit >= n_units) break;
#pragma unroll
      for (uint run = 0; run < 2; ++run) {
        float4 x[4];
#pragma unroll
        for (uint piece = 0; piece < 4; ++piece) x[piece] = staged.piece(unit, run, piece);
        float inputs_sum = 0.0f;
        if (F::kMinimum) inputs_sum = staged.sums[staged.term(unit, run)];
#pragma unroll
        for (uint o = 0; o < kOutputs; ++o) {
          float4 q[4];
          float scale = 1.0f, minimum = 0.0f;
          F::unpack(weights[o], raw[a][o], unit, run, k, q, scale, minimum);
          add_run<F>(q, x, scale, minimum, inputs_sum, sums[o]);
        }
      }
    }
  }
}

// Several rows that a launch before this one staged: `inputs` are those in the workspace. Weights are loaded a unit
// ahead.
template <class F, uint kRows, uint kOutputs>
__device__ inline void multiply_staged_rows(typename F::Row (&weights)[kOutputs],
                                            Input (&inputs)[kRows], bool normalise, uint k,
                                            uint lane, float (&sums)[kRows][kOutputs],
                                            float (&squares)[kRows]) {
  static_assert(F::kScaled);
  const uint n_units = F::units(k);
  typename F::Raw raw[kOutputs], next[kOutputs];
  Staged staged[kRows];
#pragma unroll
  for (uint o = 0; o < kOutputs; ++o) next[o] = F::load(weights[o], min(lane, n_units - 1), k);
#pragma unroll
  for (uint m = 0; m < kRows; ++m) staged[m] = Staged::at(const_cast<float*>(inputs[m]), n_units);
  inputs_ready();
  for (uint unit = lane; unit < n_units; unit += 32) {
#pragma unroll
    for (uint o = 0; o < kOutputs; ++o) {
      raw[o] = next[o];
      next[o] = F::load(weights[o], min(unit + 32, n_units - 1), k);
    }
#pragma unroll
    for (uint run = 0; run < 2; ++run) {
      float4 q[kOutputs][4];
      float scale[kOutputs], minimum[kOutputs];
#pragma unroll
      for (uint o = 0; o < kOutputs; ++o) {
        scale[o] = 1.0f;
        minimum[o] = 0.0f;
        F::unpack(weights[o], raw[o], unit, run, k, q[o], scale[o], minimum[o]);
      }
#pragma unroll
      for (uint m = 0; m < kRows; ++m) {
        const uint term = staged[m].term(unit, run);
        float4 x[4];
#pragma unroll
        for (uint piece = 0; piece < 4; ++piece) x[piece] = staged[m].piece(unit, run, piece);
        if (normalise) squares[m] += staged[m].squares[term];
        const float inputs_sum = F::kMinimum ? staged[m].sums[term] : 0.0f;
#pragma unroll
        for (uint o = 0; o < kOutputs; ++o)
          add_run<F>(q[o], x, scale[o], minimum[o], inputs_sum, sums[m][o]);
      }
    }
  }
}

// input_rows of metal/kernels/matvec.h: rows that a launch staged lie further apart than those of an input.
template <uint kRows>
__device__ inline void input_rows(const float* input, Share share, uint k, Input (&inputs)[kRows]) {
  const uint stride = kTakesStagedRows ? Staged::floats(k) : k;
  for (uint m = 0; m < kRows; ++m)
    inputs[m] = input + ulong(share.row + min(m, share.n_rows - 1)) * stride;
}

template <class F, uint kRows, uint kOutputs>
__device__ inline void multiply(typename F::Row (&weights)[kOutputs], Input (&inputs)[kRows],
                                const float* norm, bool normalise, uint k, uint lane,
                                float (&sums)[kRows][kOutputs], float (&squares)[kRows]) {
#pragma unroll
  for (uint m = 0; m < kRows; ++m) {
    squares[m] = 0.0f;
#pragma unroll
    for (uint o = 0; o < kOutputs; ++o) sums[m][o] = 0.0f;
  }
  if constexpr (kRows == 1 && kStages)
    multiply_staged<F, kOutputs>(weights, inputs[0], norm, normalise, k, lane, sums[0], squares[0]);
  else if constexpr (kTakesStagedRows)
    multiply_staged_rows<F, kRows, kOutputs>(weights, inputs, normalise, k, lane, sums, squares);
  else if constexpr (kRows == 1)
    multiply_one<F, kOutputs>(weights, inputs[0], norm, normalise, k, lane,
                              is_wide() ? blockDim.x : 32, sums[0], squares[0]);
  else
    multiply_several<F, kRows, kOutputs>(weights, inputs, norm, normalise, k, lane, sums, squares);
#pragma unroll
  for (uint m = 0; m < kRows; ++m)
#pragma unroll
    for (uint o = 0; o < kOutputs; ++o) sums[m][o] = simd_sum(sums[m][o]);
  if (normalise) {
#pragma unroll
    for (uint m = 0; m < kRows; ++m) squares[m] = simd_sum(squares[m]);
  }
}

}  // namespace gpu
