// multiply_tile of metal/kernels/gemm.h for tensor cores: the same tiles, the same contract. The
// generator (cuda/generate.py) puts this in the place of that.
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
// 4. A step covers 32 of k. While tensor cores work on one step, the bytes of the next are on their
//    way to registers; they are unpacked into the other half of shared memory. One barrier a step.
// 5. Rows in shared memory are 80 bytes apart: eight pieces of 16 bytes, which a matrix load reads
//    at once, lie in different banks.
//
// An output's bits depend neither on where in a tile it lies nor on the other rows: k runs in steps
// of 16, and each element of a product of tensor cores has its own sum.

constexpr uint kInputParts = 3;
constexpr uint kTileRowBytes = 80;  // 32 numbers of two bytes, and 16 that keep banks apart
constexpr uint kWeightPartBytes = kTile * kTileRowBytes;

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

// Which unit and run hold sixteen weights of a row (metal/kernels/formats.h).
template <class F>
struct Place {
  __device__ static uint unit(uint sixteen) { return sixteen / 2; }
  __device__ static uint run(uint sixteen) { return sixteen % 2; }
};
template <class C, class L>
struct Place<Blocks<C, L>> {
  static constexpr uint kPerBlock = L::kWeights / 16;
  __device__ static uint unit(uint sixteen) {
    return sixteen / kPerBlock * L::kUnits + L::unit_of(sixteen % kPerBlock);
  }
  __device__ static uint run(uint sixteen) { return L::run_of(sixteen % kPerBlock); }
};

// Sixteen weights on their way: bytes of a quantised format, or the numbers themselves.
template <class F, bool kIsScaled>
struct SixteenWeights {
  typename F::Raw raw;
  __device__ void load(typename F::Row row, uint sixteen, uint k) {
    raw = F::load(row, Place<F>::unit(min(sixteen, k / 16 - 1)), k);
  }
  // Past the end of a row all are 0.
  __device__ void unpack(typename F::Row row, uint sixteen, uint k, float4 (&q)[4], float& scale,
                         float& minimum) const {
    const uint at = min(sixteen, k / 16 - 1);
    F::unpack(row, raw, Place<F>::unit(at), Place<F>::run(at), k, q, scale, minimum);
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

// The next part of sixteen numbers, to shared memory; what is left stays in `numbers`.
__device__ inline void store_part(float4 (&numbers)[4], unsigned char* to) {
  uint words[8];
#pragma unroll
  for (uint piece = 0; piece < 4; ++piece) {
    float4& four = numbers[piece];
    const uint low = pack_bfloat16(four.x, four.y), high = pack_bfloat16(four.z, four.w);
    four.x = four.x - as_type<float>(low << 16);
    four.y = four.y - as_type<float>(low & 0xffff0000u);
    four.z = four.z - as_type<float>(high << 16);
    four.w = four.w - as_type<float>(high & 0xffff0000u);
    words[2 * piece] = low;
    words[2 * piece + 1] = high;
  }
  reinterpret_cast<uint4*>(to)[0] = uint4(words[0], words[1], words[2], words[3]);
  reinterpret_cast<uint4*>(to)[1] = uint4(words[4], words[5], words[6], words[7]);
}

// One half of the block's shared memory: what a step multiplies.
struct TileStep {
  unsigned char* inputs;   // [part][row]
  unsigned char* weights;  // [part][column]
  float2* scales;          // [run][column]: scale and minimum
  float* sums;             // [run][row]: of the input
  uint rows;
  __device__ TileStep(unsigned char* memory, uint n_rows, uint parts)
      : inputs(memory),
        weights(inputs + kInputParts * n_rows * kTileRowBytes),
        scales(reinterpret_cast<float2*>(weights + parts * kWeightPartBytes)),
        sums(reinterpret_cast<float*>(scales + 2 * kTile)),
        rows(n_rows) {}
};

template <class F>
__device__ inline void store_weights(const TileStep& step, const SixteenWeights<F, F::kScaled>& own,
                                     typename F::Row row, uint sixteen, uint k, uint column,
                                     uint run) {
  float4 q[4];
  float scale = 1.0f, minimum = 0.0f;
  own.unpack(row, sixteen, k, q, scale, minimum);
#pragma unroll
  for (uint part = 0; part < WeightParts<F>::value; ++part)
    store_part(q, step.weights + part * kWeightPartBytes + column * kTileRowBytes + 32 * run);
  if (F::kScaled) step.scales[run * kTile + column] = float2(scale, minimum);
}

template <class F>
__device__ inline void store_inputs(const TileStep& step, float4 (&x)[4], uint row, uint run) {
  if (F::kMinimum) step.sums[run * step.rows + row] = sum_of((x[0] + x[1]) + (x[2] + x[3]));
#pragma unroll
  for (uint part = 0; part < kInputParts; ++part)
    store_part(x, step.inputs + (part * step.rows + row) * kTileRowBytes + 32 * run);
}

// A warp's 32 x 32 outputs: `sums` [16 rows][8 columns], as a product of tensor cores has them.
template <class F>
__device__ inline void multiply_step(const TileStep& step, uint own_row, uint own_column, uint lane,
                                     float (&sums)[2][4][4]) {
  constexpr uint kParts = WeightParts<F>::value;
  const uint g = lane / 4, pair = lane % 4 * 2;  // a lane's rows are g and g + 8
#pragma unroll
  for (uint run = 0; run < 2; ++run) {
    uint a[2][kInputParts][4];
#pragma unroll
    for (uint m = 0; m < 2; ++m)
#pragma unroll
      for (uint part = 0; part < kInputParts; ++part)
        load_matrices(a[m][part],
                      step.inputs +
                          (part * step.rows + own_row + 16 * m + lane % 16) * kTileRowBytes +
                          32 * run + lane / 16 * 16);
#pragma unroll
    for (uint two = 0; two < 2; ++two) {
      uint b[kParts][4];  // of two times eight columns
#pragma unroll
      for (uint part = 0; part < kParts; ++part)
        load_matrices(b[part],
                      step.weights + part * kWeightPartBytes +
                          (own_column + 16 * two + lane / 16 * 8 + lane % 8) * kTileRowBytes +
                          32 * run + lane / 8 % 2 * 16);
#pragma unroll
      for (uint one = 0; one < 2; ++one) {
        const uint n = 2 * two + one;
        float4 scales;
        if (F::kScaled)
          scales = *reinterpret_cast<const float4*>(step.scales + run * kTile + own_column + 8 * n +
                                                    pair);
#pragma unroll
        for (uint m = 0; m < 2; ++m) {
          float (&own)[4] = sums[m][n];
          if (F::kScaled) {
            float codes[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
            for (uint part = kInputParts; part-- > 0;)
              multiply_bfloat16(codes, a[m][part], b[0][2 * one], b[0][2 * one + 1]);
            own[0] = fma(codes[0], scales.x, own[0]);
            own[1] = fma(codes[1], scales.z, own[1]);
            own[2] = fma(codes[2], scales.x, own[2]);
            own[3] = fma(codes[3], scales.z, own[3]);
            if (F::kMinimum) {
              const float* inputs = step.sums + run * step.rows + own_row + 16 * m + g;
              const float upper = inputs[0], lower = inputs[8];
              own[0] = fma(upper, scales.y, own[0]);
              own[1] = fma(upper, scales.w, own[1]);
              own[2] = fma(lower, scales.y, own[2]);
              own[3] = fma(lower, scales.w, own[3]);
            }
          } else {
#pragma unroll
            for (uint both = kInputParts; both-- > 0;)  // the smallest products first
#pragma unroll
              for (uint part = 0; part < kParts; ++part)
                if (part <= both)
                  multiply_bfloat16(own, a[m][both - part], b[part][2 * one], b[part][2 * one + 1]);
          }
        }
      }
    }
  }
}

template <class F>
__device__ inline void multiply_tile(const float* input, Planes weight, const float* bias,
                                     bool has_bias, bool accumulate, float* out, uint first_row,
                                     uint n_rows, uint n, uint k, uint column, uint row,
                                     float* memory, uint thread_index, uint simdgroup,
                                     uint n_simdgroups) {
  const uint tile_rows = 16 * n_simdgroups, lane = thread_index % 32;
  const uint step_bytes = kInputParts * tile_rows * kTileRowBytes +
                          WeightParts<F>::value * kWeightPartBytes + 16 * kTile + 8 * tile_rows;
  unsigned char* const bytes = reinterpret_cast<unsigned char*>(memory);
  const auto half_of = [&](uint step) {
    return TileStep(bytes + step / kStep % 2 * step_bytes, tile_rows, WeightParts<F>::value);
  };
  // Rows and columns past the end repeat the last one; nobody takes their results. A thread has
  // half of a step of one row, and, of the first 128 threads, of one column.
  const uint own = thread_index / 2, run = thread_index % 2;
  const bool has_column = own < kTile;
  const float* x_row = input + ulong(first_row + min(row + own, n_rows - 1)) * k;
  const typename F::Row w_row = F::row(weight, min(column + own, n - 1), k);
  const bool aligned = F::kBlock > 1 || k % 4 == 0;
  const uint own_row = simdgroup / 2 * 32, own_column = simdgroup % 2 * 32;
  float sums[2][4][4] = {};
  float4 x[4];
  SixteenWeights<F, F::kScaled> w;

  const auto load = [&](uint step) {
#pragma unroll
    for (uint piece = 0; piece < 4; ++piece)
      x[piece] = load_four(x_row, step + 16 * run + 4 * piece, k, aligned);
    if (has_column) w.load(w_row, step / 16 + run, k);
  };
  const auto store = [&](uint step) {
    const TileStep to = half_of(step);
    store_inputs<F>(to, x, own, run);
    if (has_column) store_weights<F>(to, w, w_row, step / 16 + run, k, own, run);
  };
  load(0);
  store(0);
  __syncthreads();
  for (uint step = 0; step < k; step += kStep) {
    const bool has_next = step + kStep < k;
    if (has_next) load(step + kStep);
    multiply_step<F>(half_of(step), own_row, own_column, lane, sums);
    if (has_next) store(step + kStep);
    __syncthreads();
  }

#pragma unroll
  for (uint m = 0; m < 2; ++m)
#pragma unroll
    for (uint c = 0; c < 4; ++c)
#pragma unroll
      for (uint i = 0; i < 4; ++i) {
        const uint r = row + own_row + 16 * m + lane / 4 + i / 2 * 8;
        const uint j = column + own_column + 8 * c + lane % 4 * 2 + i % 2;
        if (r >= n_rows || j >= n) continue;
        float value = sums[m][c][i];
        float* to = out + ulong(first_row + r) * n + j;
        if (has_bias) value = value + bias[j];
        *to = accumulate ? *to + value : value;
      }
}
