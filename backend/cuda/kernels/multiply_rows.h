// multiply of metal/kernels/matvec.h for NVIDIA's GPUs: the same arithmetic in the same order, other
// loads. The generator (cuda/generate.py) puts this in the place of that.
//
// A launch begins while those before it run. What it can read then is weights: of one input row, as many
// units as there are registers for go there, the rest of the rows to the L2 cache; and the norm's
// weights. When the inputs are there, all of a unit's are loaded at once.

// Registers, of four bytes, for weights that wait for their inputs.
constexpr uint kWaitingWords = 64;

// Units of each weight row that are loaded ahead, one after the other: at least one.
template <class F, uint kRows, uint kOutputs>
struct UnitsAhead {
  static constexpr uint kWords = kOutputs * uint(sizeof(typename F::Raw) / 4);
  static constexpr uint kFit = kWaitingWords / kWords < 4 ? kWaitingWords / kWords : 4;
  static constexpr uint value = kRows > 1 || !F::kScaled || kFit < 1 ? 1 : kFit;
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

template <class F, uint kRows, uint kOutputs>
__device__ inline void multiply(typename F::Row (&weights)[kOutputs], Input (&inputs)[kRows],
                                const float* norm, bool normalise, uint k, uint lane,
                                float (&sums)[kRows][kOutputs], float (&squares)[kRows]) {
  constexpr uint kAhead = UnitsAhead<F, kRows, kOutputs>::value;
#pragma unroll
  for (uint m = 0; m < kRows; ++m) {
    squares[m] = 0.0f;
#pragma unroll
    for (uint o = 0; o < kOutputs; ++o) sums[m][o] = 0.0f;
  }
  const uint n_units = F::units(k);
  typename F::Raw raw[kAhead][kOutputs];
  const auto load_weights = [&](uint first) {
#pragma unroll
    for (uint a = 0; a < kAhead; ++a)
#pragma unroll
      for (uint o = 0; o < kOutputs; ++o)
        raw[a][o] = F::load(weights[o], min(first + 32 * a, n_units - 1), k);
  };
  load_weights(lane);
  if (!F::kScaled || n_units > 32 * kAhead) {
    const ulong n_bytes = row_bytes(F::row(Planes{}, 0, k), F::row(Planes{}, 1, k));
#pragma unroll
    for (uint o = 0; o < kOutputs; ++o)
      if (lane == o) fetch_to_cache(bytes_at(weights[o]), n_bytes);
  }
  // Of one row, both runs' numbers are there at once; of several there is room for one run's.
  constexpr uint kRuns = kRows == 1 ? 2 : 1;
  float4 norms[kRuns][4], numbers[kRuns][4];
  const auto load_runs = [&](Input from, uint unit, float4(&to)[kRuns][4]) {
#pragma unroll
    for (uint run = 0; run < kRuns; ++run) load_run<F>(from, unit, run, k, to[run]);
  };
  if constexpr (kRuns == 2) {
    if (normalise && lane < n_units) load_runs(norm, lane, norms);
  }
  inputs_ready();
  for (uint first = lane; first < n_units; first += 32 * kAhead) {
    if (first != lane) load_weights(first);
#pragma unroll
    for (uint a = 0; a < kAhead; ++a) {
      const uint unit = first + 32 * a;
      if (unit >= n_units) break;
      if constexpr (kRuns == 2) {
        if (normalise && unit != lane) load_runs(norm, unit, norms);
        load_runs(inputs[0], unit, numbers);
      }
#pragma unroll
      for (uint run = 0; run < 2; ++run) {
        float4 q[kOutputs][4];
        float scale[kOutputs], minimum[kOutputs];
#pragma unroll
        for (uint o = 0; o < kOutputs; ++o) {
          scale[o] = 1.0f;
          minimum[o] = 0.0f;
          F::unpack(weights[o], raw[a][o], unit, run, k, q[o], scale[o], minimum[o]);
        }
        const uint at = run % kRuns;
        if (kRuns == 1 && normalise) load_run<F>(norm, unit, run, k, norms[at]);
#pragma unroll
        for (uint m = 0; m < kRows; ++m) {
          if (kRuns == 1) load_run<F>(inputs[m], unit, run, k, numbers[at]);
          float4 x[4];
#pragma unroll
          for (uint piece = 0; piece < 4; ++piece) x[piece] = numbers[at][piece];
          if (normalise) {
            float4 square = x[0] * x[0];
#pragma unroll
            for (uint piece = 1; piece < 4; ++piece) square = fma(x[piece], x[piece], square);
            squares[m] += sum_of(square);
#pragma unroll
            for (uint piece = 0; piece < 4; ++piece) x[piece] = x[piece] * norms[at][piece];
          }
          float inputs_sum = 0.0f;
          if (F::kMinimum) inputs_sum = sum_of((x[0] + x[1]) + (x[2] + x[3]));
#pragma unroll
          for (uint o = 0; o < kOutputs; ++o) {
            float4 dot = q[o][0] * x[0];
#pragma unroll
            for (uint piece = 1; piece < 4; ++piece) dot = fma(q[o][piece], x[piece], dot);
            const float part = sum_of(dot);
            sums[m][o] = F::kScaled ? fma(scale[o], part, sums[m][o]) : sums[m][o] + part;
            if (F::kMinimum) sums[m][o] = fma(minimum[o], inputs_sum, sums[m][o]);
          }
        }
      }
    }
  }
#pragma unroll
  for (uint m = 0; m < kRows; ++m)
#pragma unroll
    for (uint o = 0; o < kOutputs; ++o) sums[m][o] = simd_sum(sums[m][o]);
  if (normalise) {
#pragma unroll
    for (uint m = 0; m < kRows; ++m) squares[m] = simd_sum(squares[m]);
  }
}
