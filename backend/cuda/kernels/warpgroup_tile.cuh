// matmul of prompts on wgmma (warpgroup.cuh), for NVIDIA's Hopper GPUs (sm_90a).
//
// 1. Floor. A block computes 128 weight rows times 32, 64 or 128 input rows. The tensor cores take 64 cycles for one
//    m64n128k16; a warp dequantises 64 of k while they multiply the 64 before.
// 2. Quantised weights are rounded to F16 once, as those of generated rows are (streamed_weights.cuh), off by 2^-11 of a weight
//    at most; K formats round a unit's scale and minimum as well. wgmma adds up all of k.
// 3. An input row is rounded to F16 once, for all tiles (round_row), after multiplying by the power of two that brings
//    its largest magnitude into [2^14, 2^15). The error of an input is at most 2^-11 of it, or 2^-39 of the row's
//    largest magnitude. For BF16 weights, which F16 cannot hold, an input is the sum of two bfloat16 numbers, off by 2^-17
//    of it at most.
// 4. Each 16 of k are permuted, in weights and inputs alike and the same for all formats: lane t has numbers 4 t, 4 t +
//    2, 4 t + 1 and 4 t + 3, so that one 32-bit word of 4-bit codes gives its fragment without shuffles.
// 5. Warp specialisation: one warp copies inputs, 64 of k at a time, which round_row has already stored with the
//    swizzle; three others copy weights, unchanged from the file, in pieces of 16 bytes (a bulk copy of a row's 144 bytes takes some
//    60 cycles, which was more than the products with it took). Two warpgroups dequantise and multiply. They synchronise
//    through mbarriers only, so that one multiplies while the other one dequantises or applies scales.
//
// The bits of an output do not depend on the other rows: all tiles take the same steps of k with m64nNk16 (N is 32, 64 or
// 128), in which every output has a separate accumulator.
#pragma once

#include "cuda/kernels/copied_pieces.cuh"

namespace gpu {

constexpr uint kWeightRows = 128;  // of a block, 64 for each warpgroup
constexpr uint kPaddedRows = 128;  // input rows are padded to a multiple of this
constexpr uint kSlab = 64;         // of k: what of an input row is copied at once
constexpr uint kSlabRowBytes = 128;
constexpr uint kBarrierBytes = 256;
constexpr uint kSharedBytes = 231424;  // of a block at most
constexpr uint kConsumers = 2, kWarpgroupThreads = 128, kPieceThreads = 96;

// --- The input ---------------------------------------------------------------------------------------

// The layout of an input in the command's workspace, rounded to f16 (kParts 1) or split into two bfloat16 numbers
// (kParts 2): slabs of 64 of k, each with all rows, swizzled as in shared memory, the first bfloat16 numbers of a slab
// before the second ones; then a float32 factor for each row. k is a multiple of 64.
template <uint kParts>
struct RoundedInput {
  uchar* at;
  uint n_rows, k;
  AKUNU_DEVICE uint padded() const {
    return (n_rows + kPaddedRows - 1) / kPaddedRows * kPaddedRows;
  }
  AKUNU_DEVICE uint slabs() const { return k / kSlab * kParts; }
  AKUNU_DEVICE uchar* slab(uint index, uint row) const {
    return at + (ulong(index) * padded() + row) * kSlabRowBytes;
  }
  AKUNU_DEVICE float* factors() const { return reinterpret_cast<float*>(slab(slabs(), 0)); }
};

// The power of two that scales `largest` into [2^14, 2^15), but at most 2^126; 1 where the row is all zeros.
AKUNU_DEVICE float factor_of(float largest) {
  const uint exponent = as_type<uint>(largest) >> 23;  // 0: below the normal numbers
  if (exponent == 0) return largest == 0.0f ? 1.0f : as_type<float>(253u << 23);
  return as_type<float>(min(268u - exponent, 253u) << 23);
}

// Stores 16 f16 or bfloat16 numbers of a row, already permuted (even ones first), at their swizzled place.
AKUNU_DEVICE void store_sixteen(uchar* slab, uint row, uint sixteen, const uint (&numbers)[8]) {
  const uint piece = sixteen % 4 * 2;
#pragma unroll
  for (uint i = 0; i < 2; ++i)
    *reinterpret_cast<uint4*>(slab + ((piece + i) ^ row % 8) * 16) =
        uint4(numbers[4 * i], numbers[4 * i + 1], numbers[4 * i + 2], numbers[4 * i + 3]);
}

// Rounds row `row`: all threads of a block, 16 numbers each in turn. Padding rows become zeros. NaN and infinity stay
// so. `memory`: a float for each warp.
template <uint kParts>
AKUNU_DEVICE void round_row(const float* from, RoundedInput<kParts> to, uint row, float* memory,
                            uint thread_index, uint n_threads) {
  const bool is_there = row < to.n_rows;
  const float4* const fours = reinterpret_cast<const float4*>(from);
  float largest = 0.0f;
  const auto look_at = [&](float x) {
    const float size = fabs(x);
    if (size < as_type<float>(0x7f800000u)) largest = max(largest, size);
  };
  if (is_there)
    for (uint i = thread_index; i < to.k / 4; i += n_threads) {
      const float4 four = fours[i];
      look_at(four.x), look_at(four.y), look_at(four.z), look_at(four.w);
    }
  const float factor = factor_of(max_of_threadgroup(largest, memory, thread_index, n_threads));
  const uint sixteens = to.k / 16;
  for (uint sixteen = thread_index; sixteen < sixteens; sixteen += n_threads) {
    float x[16] = {};
    if (is_there)
#pragma unroll
      for (uint i = 0; i < 4; ++i) {
        const float4 four = fours[4 * sixteen + i];
        x[2 * i] = four.x * factor;  // even ones first
        x[2 * i + 1] = four.z * factor;
        x[8 + 2 * i] = four.y * factor;
        x[8 + 2 * i + 1] = four.w * factor;
      }
    uint numbers[8];
    if constexpr (kParts == 2) {
#pragma unroll
      for (uint part = 0; part < 2; ++part) {
#pragma unroll
        for (uint i = 0; i < 8; ++i) {
          numbers[i] = pack_bfloat16(x[2 * i], x[2 * i + 1]);
          x[2 * i] = x[2 * i] - as_type<float>(numbers[i] << 16);
          x[2 * i + 1] = x[2 * i + 1] - as_type<float>(numbers[i] & 0xffff0000u);
        }
        store_sixteen(to.slab(sixteen / 4 * 2 + part, row), row, sixteen, numbers);
      }
    } else {
#pragma unroll
      for (uint i = 0; i < 8; ++i) numbers[i] = pack_halves(x[2 * i], x[2 * i + 1]);
      store_sixteen(to.slab(sixteen / 4, row), row, sixteen, numbers);
    }
  }
  if (thread_index == 0) to.factors()[row] = 1.0f / factor;  // exact
  stores_before_copies();
}

// --- Tiles -------------------------------------------------------------------------------------------

// Where a tile lies in the output, and whether it is added to what is there.
struct TileOutput {
  float* out;
  const float* bias;
  uint first_row, n_rows, n;
  bool has_bias, accumulate;
  uint column, row;  // of the tile
};

// --- Shared memory -----------------------------------------------------------------------------------

// mbarriers, then the ring of input stages and that of weights.
template <class F, uint kRows>
struct TileStages {
  static constexpr uint kInputBytes = kRows * kSlabRowBytes;
  static constexpr uint kWeightBytes = kWeightRows * F::kRowBytes;
  static constexpr uint kWeightStages = 512 / F::kNumbers > 4 ? 4 : 512 / F::kNumbers;
  static constexpr uint kLeft = kSharedBytes - 2048 - kWeightStages * kWeightBytes;
  static constexpr uint kInputStages = kLeft / kInputBytes > 8 ? 8 : kLeft / kInputBytes;
  static constexpr uint kSlabsOfWindow = F::kNumbers / kSlab;
  static_assert(kInputStages >= 2, "copies run ahead");

  ulong* barriers;
  uchar* first;
  AKUNU_DEVICE explicit TileStages(uchar* memory)
      : barriers(reinterpret_cast<ulong*>(memory)),
        first(memory + kBarrierBytes + 1024 - shared_address(memory + kBarrierBytes) % 1024) {}
  AKUNU_DEVICE uchar* inputs(uint stage) const { return first + stage * kInputBytes; }
  AKUNU_DEVICE uchar* weights(uint stage) const {
    return inputs(kInputStages) + stage * kWeightBytes;
  }
  // Of each stage: that it has been filled, and that it may be filled again.
  static constexpr uint kBarriers = 24;
  AKUNU_DEVICE ulong* has_inputs(uint stage) const { return barriers + stage; }
  AKUNU_DEVICE ulong* wants_inputs(uint stage) const { return barriers + 8 + stage; }
  AKUNU_DEVICE ulong* has_weights(uint stage) const { return barriers + 16 + stage; }
  AKUNU_DEVICE ulong* wants_weights(uint stage) const { return barriers + 20 + stage; }
  // In shared memory, since the accumulators need the registers.
  AKUNU_DEVICE TileOutput* output() const {
    return reinterpret_cast<TileOutput*>(barriers + kBarriers);
  }
  AKUNU_DEVICE void begin(const TileOutput& to, uint thread_index) const {
    static_assert(8 * kBarriers + sizeof(TileOutput) <= kBarrierBytes, "they have this room");
    if (thread_index == 0) {
      *output() = to;
#pragma unroll
      for (uint i = 0; i < kInputStages; ++i) {
        begin_barrier(has_inputs(i), 1);
        begin_barrier(wants_inputs(i), 4 * kConsumers);
      }
#pragma unroll
      for (uint i = 0; i < kWeightStages; ++i) {
        begin_barrier(has_weights(i), kPieceThreads);
        begin_barrier(wants_weights(i), 4 * kConsumers);
      }
    }
    barriers_ready();
  }
};

// A stage of a ring, and the parity of its mbarriers' current phase.
template <uint kStages>
struct Turn {
  uint stage = 0, parity = 0;
  AKUNU_DEVICE void next() {
    stage = stage + 1 == kStages ? 0 : stage + 1;
    if (stage == 0) parity ^= 1;
  }
};

// --- The warps that copy -----------------------------------------------------------------------------

template <class F, uint kRows>
AKUNU_DEVICE void copy_tile_inputs(const TileStages<F, kRows>& stages,
                                   RoundedInput<F::kParts> input) {
  using Stages = TileStages<F, kRows>;
  const uint row = stages.output()->row;
  Turn<Stages::kInputStages> turn;
  for (uint slab = 0; slab < input.slabs(); ++slab, turn.next()) {
    wait_for_phase(stages.wants_inputs(turn.stage), turn.parity ^ 1);
    arrive_expecting(stages.has_inputs(turn.stage), Stages::kInputBytes);
    copy_bytes(stages.inputs(turn.stage), input.slab(slab, row), Stages::kInputBytes,
               stages.has_inputs(turn.stage));
  }
}

// By kPieceThreads threads, of which this is number `index`. Rows past the end repeat the last one; their results are not
// stored.
template <class F, uint kRows>
AKUNU_DEVICE void copy_tile_weights(const TileStages<F, kRows>& stages,
                                    RoundedInput<F::kParts> input, const uchar* weight,
                                    uint index) {
  using Stages = TileStages<F, kRows>;
  using Piece = CopiedPiece<F::kCopied / 16, kPieceThreads>;
  const Piece own = Piece::of(index);
  const uint column = stages.output()->column;
  const uint row_bytes = input.k / F::kNumbers * F::kBytes;
  const uchar* const first = weight + ulong(column) * row_bytes;
  const uint last = stages.output()->n - 1 - column;
  Turn<Stages::kWeightStages> turn;
  const uint n_windows = input.k / F::kNumbers;
  for (uint window = 0; window < n_windows; ++window, turn.next()) {
    ulong* const barrier = stages.has_weights(turn.stage);
    wait_for_phase(stages.wants_weights(turn.stage), turn.parity ^ 1);
    const uchar* const of_window = first + window * F::kBytes;
    uchar* const to = stages.weights(turn.stage) + own.offset;
    if (own.is_there)
#pragma unroll 4
      for (uint r = own.row; r < kWeightRows; r += Piece::kStep) {
        const uchar* from = of_window + ulong(min(r, last)) * row_bytes;
        if (F::kCopied != F::kBytes) from -= reinterpret_cast<ulong>(from) % 16;
        copy_16_bytes(to + r * F::kRowBytes, from + own.offset, true);
      }
    arrive_when_copied(barrier);
  }
}

// --- The warps that multiply ---------------------------------------------------------------------------

// A lane's A fragments of a slab, of its two rows: four products.
template <class F>
struct SlabWeights {
  uint registers[4][4];
  AKUNU_DEVICE void load(const uchar* const (&rows)[2], uint slab, uint t) {
#pragma unroll
    for (uint unit = 0; unit < 2; ++unit)
#pragma unroll
      for (uint part = 0; part < 2; ++part) {
        uint numbers[4];
        F::weights(rows[part], 2 * slab + unit, t, numbers);
#pragma unroll
        for (uint i = 0; i < 2; ++i) {
          registers[2 * unit + i][part] = numbers[2 * i];
          registers[2 * unit + i][2 + part] = numbers[2 * i + 1];
        }
      }
  }
};

// The accumulators of a warpgroup: 64 weight rows times the tile's input rows.
template <class F, uint kRows>
AKUNU_DEVICE void multiply_windows(const TileStages<F, kRows>& stages, uint weight_offset, uint k,
                                   uint warp, uint lane, float (&sums)[kRows / 2]) {
  using Stages = TileStages<F, kRows>;
  const uint t = lane % 4, own_row = 16 * warp + lane / 4;
  const uint n_windows = k / F::kNumbers;
  Turn<Stages::kInputStages> input;
  Turn<Stages::kWeightStages> turn;
  const uchar* rows[2];
  const auto begin_window = [&](uint window) {
    wait_for_phase(stages.has_weights(turn.stage), turn.parity);
    rows[0] = stages.weights(turn.stage) + own_row * F::kRowBytes;
    rows[1] = rows[0] + 8 * F::kRowBytes;
    if (F::kCopied != F::kBytes) {  // rows that do not begin at a multiple of 16 bytes
      const volatile TileOutput& to = *stages.output();
#pragma unroll
      for (uint part = 0; part < 2; ++part) {
        const uint own = min(to.column + own_row + 8 * part, uint(to.n - 1));
        rows[part] += (weight_offset + (own * n_windows + window) * F::kBytes) % 16;
      }
    }
  };
  for (uint window = 0; window < n_windows; ++window, turn.next()) {
    SlabWeights<F> own, next;
    begin_window(window);
    next.load(rows, 0, t);
#pragma unroll
    for (uint slab = 0; slab < Stages::kSlabsOfWindow; ++slab) {
#pragma unroll
      for (uint i = 0; i < 4; ++i) {
#pragma unroll
        for (uint j = 0; j < 4; ++j) own.registers[i][j] = next.registers[i][j];
        settle(own.registers[i]);
      }
#pragma unroll
      for (uint part = 0; part < F::kParts; ++part, input.next()) {
        wait_for_phase(stages.has_inputs(input.stage), input.parity);
        const ulong inputs = inputs_at(stages.inputs(input.stage));
        begin_products();
#pragma unroll
        for (uint i = 0; i < 4; ++i) {
          const ulong from = further(inputs, i * 32);
          if constexpr (F::kParts == 1)
            add_product(sums, own.registers[i], from, 1);
          else
            add_product_bfloat16(sums, own.registers[i], from, 1);
        }
        end_products();
        // The next slab, while this one is multiplied. (Not of the next window: nothing may wait for a barrier while products
        // are under way.)
        if (part + 1 == F::kParts && slab + 1 < Stages::kSlabsOfWindow)
          next.load(rows, slab + 1, t);
        wait_for_products(sums);
        if (lane == 0) arrive(stages.wants_inputs(input.stage));
      }
    }
    simdgroup_barrier(mem_flags::mem_none);  // all lanes have read the window
    if (lane == 0) arrive(stages.wants_weights(turn.stage));
  }
}

// Stores a lane's results, sixteen at a time: all loads of what they are added to are issued before
// the first store, so that they overlap.
template <bool kIsWhole, uint kSums>
AKUNU_DEVICE void store_results(const TileOutput& to, const float* factors, uint j, uint row,
                                const float (&sums)[kSums]) {
  float bias[2] = {0.0f, 0.0f};
#pragma unroll
  for (uint part = 0; part < 2; ++part)
    if (to.has_bias && (kIsWhole || j + 8 * part < to.n))
      bias[part] = load_number(to.bias + j + 8 * part);
  float* const first = to.out + ulong(to.first_row + row) * to.n + j;
#pragma unroll
  for (uint sixteen = 0; sixteen < kSums; sixteen += 16) {
    float values[16];
    const auto for_each = [&](const auto& visit) {
#pragma unroll
      for (uint i = 0; i < 16; ++i) {
        const uint part = i / 2 % 2, r = (sixteen + i) / 4 * 8 + i % 2;
        if (kIsWhole || (row + r < to.n_rows && j + 8 * part < to.n))
          visit(values[i], i, part, r, first + ulong(r) * to.n + 8 * part);
      }
    };
    for_each([&](float& value, uint i, uint part, uint r, const float*) {
      value = sums[sixteen + i] * factors[row + r];
      if (to.has_bias) value = value + bias[part];
    });
    if (to.accumulate)
      for_each(
          [](float& value, uint, uint, uint, const float* at) { value = load_number(at) + value; });
    for_each([](float value, uint, uint, uint, float* at) { store_number(at, value); });
  }
}

template <uint kSums>
AKUNU_DEVICE void store_tile(const TileOutput& to, const float* factors, uint warp, uint lane,
                             const float (&sums)[kSums]) {
  const uint j = to.column + 16 * warp + lane / 4, row = to.row + lane % 4 * 2;
  if (to.row + 2 * kSums <= to.n_rows && to.column + kWeightRows <= to.n)
    store_results<true>(to, factors, j, row, sums);
  else
    store_results<false>(to, factors, j, row, sums);
}

// Computes the tile of `to`: 128 weight rows by kRows input rows, with 384 threads and kSharedBytes of shared
// memory.
template <class F, uint kRows>
AKUNU_DEVICE void multiply_prompt_tile(RoundedInput<F::kParts> input, const uchar* weight,
                                       const TileOutput& to, uchar* memory, uint thread_index) {
  if constexpr (!kHasWarpgroups) return;
  const TileStages<F, kRows> stages(memory);
  const uint warp = thread_index / 32, lane = thread_index % 32;
  stages.begin(to, thread_index);
  if (warp >= 4 * kConsumers) {
    leave_registers<88>();
    stores_before_copies();
    if (warp == 4 * kConsumers && lane == 0) copy_tile_inputs(stages, input);
    if (warp > 4 * kConsumers)
      copy_tile_weights(stages, input, weight, thread_index - 32 * (4 * kConsumers + 1));
  } else {
    take_registers<208>();
    float sums[kRows / 2];
#pragma unroll
    for (uint i = 0; i < kRows / 2; ++i) sums[i] = 0.0f;
    multiply_windows(stages, uint(reinterpret_cast<ulong>(weight)) % 16, input.k, warp, lane, sums);
    store_tile(*stages.output(), input.factors(), warp, lane, sums);
  }
}

}  // namespace gpu
