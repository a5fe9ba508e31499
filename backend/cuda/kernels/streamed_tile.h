// Matmuls of more than 16 input rows, with the bits that streamed_rows.h gives one row: the same rounded inputs, the same
// exact products of int8 numbers, added up in the same order. For NVIDIA's GPUs with bulk copies.
//
// 1. Limits. A product of 32 numbers takes four to five instructions a lane for each output, and reads the inputs from L2
//    once for each tile of weight rows. So a tile has 64 weight rows and 32 or 64 input rows, and a warp 32 by 16 of its
//    outputs.
// 2. An output is 32 sums: of each of the kStreamWarps warps that streamed_rows.h has, and of each of the four units of a
//    step. Here a lane has the four units' sums of one such warp at a time: the block goes through k four times, each time over
//    every fourth window, whose two steps belong to two of those warps. Half of the block's warps takes the first step of a
//    window, the other half the second one; both add what they found to the tile's sums in shared memory, in turns.
// 3. Four warps copy: inputs in bulk (round_rows leaves those of a window side by side), weights in pieces of 16 bytes, since
//    a window of a weight row is too short for a bulk copy. The first weights are on their way before the input is there.

constexpr uint kTileRows = 64, kTileWarpRows = 32, kTileWarpInputs = 16, kTileQuads = 4;
// How often a block goes through k: windows that lie so far apart have steps of the same warps.
constexpr uint kTilePasses = kStreamWarps / kStepsOfWindow;
constexpr uint kTileUnits = kStreamWindow / 32;
constexpr uint kTileSharedBytes = 231424, kTileBarrierBytes = 256;
constexpr uint kCopyThreads = 128;
// Registers of a thread that copies, and of one that multiplies: by the latter, two blocks or one share a multiprocessor.
constexpr uint kCopyRegisters = 32;
template <uint kQuads>
constexpr uint kMultiplyRegisters = kQuads > 8 ? 112 : 104;

// A window of a tile's inputs and weights.
template <class F, uint kQuads>
struct TileStage {
  using Rows = RoundedRows<kQuads>;
  static constexpr uint kCodeBytes = kTileUnits * Rows::kUnitBytes;
  static constexpr uint kTermBytes = kTileUnits * Rows::kRows * uint(sizeof(UnitTerms));
  static constexpr uint kSlack = F::kWindowBytes % 16 == 0 ? 0 : 14;
  static constexpr uint kPieces = (F::kWindowBytes + kSlack + 15) / 16;
  static constexpr uint kRowBytes = 16 * (kPieces | 1u);
  static constexpr uint kBytes = kCodeBytes + kTermBytes + kTileRows * kRowBytes;
};

// Of a tile's sums in shared memory: those of a weight row are neighbours.
template <uint kQuads>
struct TileSumsShape {
  static constexpr uint kStride = RoundedRows<kQuads>::kRows + 4;
  static constexpr uint kBytes = kTileRows * kStride * uint(sizeof(float));
  // Warps that multiply. Each computes one step of a window for 32 weight rows by 16 input rows.
  static constexpr uint kTiles =
      kTileRows / kTileWarpRows * RoundedRows<kQuads>::kRows / kTileWarpInputs;
  static constexpr uint kWarps = kStepsOfWindow * kTiles;
};

template <class F, uint kQuads>
struct TileMemory {
  using Stage = TileStage<F, kQuads>;
  using Sums = TileSumsShape<kQuads>;
  static constexpr uint kFit =
      (kTileSharedBytes - kTileBarrierBytes - Sums::kBytes) / Stage::kBytes;
  static constexpr uint kStages = kFit > 4 ? 4 : kFit;
  static_assert(kStages >= 3, "copies run ahead");
  static constexpr uint kBytes = kTileBarrierBytes + Sums::kBytes + kStages * Stage::kBytes;
  // Of each stage; of each warp's outputs, that those of a step have been added.
  static_assert((2 * kStages + kStepsOfWindow * Sums::kTiles) * sizeof(ulong) <= kTileBarrierBytes);
  ulong *full, *empty, *added;
  float* sums;
  uchar* stages;
  AKUNU_DEVICE static TileMemory at(uchar* memory) {
    TileMemory own;
    own.full = reinterpret_cast<ulong*>(memory);
    own.empty = own.full + kStages;
    own.added = own.empty + kStages;
    own.sums = reinterpret_cast<float*>(memory + kTileBarrierBytes);
    own.stages = memory + kTileBarrierBytes + Sums::kBytes;
    return own;
  }
  AKUNU_DEVICE uchar* codes(uint stage) const { return stages + stage * Stage::kBytes; }
  AKUNU_DEVICE UnitTerms* terms(uint stage) const {
    return reinterpret_cast<UnitTerms*>(codes(stage) + Stage::kCodeBytes);
  }
  AKUNU_DEVICE uchar* weights(uint stage) const {
    return codes(stage) + Stage::kCodeBytes + Stage::kTermBytes;
  }
};

// The windows of k in the order in which a block takes them: every fourth one, four times.
struct WindowWalk {
  uint n_windows, pass = 0, window = 0;
  AKUNU_DEVICE bool is_over() const { return pass == kTilePasses; }
  AKUNU_DEVICE void settle() {
    while (!is_over() && window >= n_windows) window = ++pass;
  }
  AKUNU_DEVICE void next() {
    window += kTilePasses;
    settle();
  }
};

// Run by the kCopyThreads threads that copy, of which this is number `index`. row_at(r) points to weight row r of the tile.
template <class F, uint kQuads, class RowAt>
AKUNU_DEVICE void copy_tile_windows(const TileMemory<F, kQuads>& memory, RoundedRows<kQuads> from,
                                    uint n_windows, uint index, const RowAt& row_at) {
  using Memory = TileMemory<F, kQuads>;
  using Stage = typename Memory::Stage;
  // Two neighbours copy a row's window, every second piece each.
  static_assert(kCopyThreads == 2 * kTileRows);
  const uint r = index / 2, first = 16 * (index % 2);
  const uchar* const row = row_at(r);
  const auto copy_tile_weights = [&](uint stage, uint window) {
    const uchar* const at = row + window * F::kWindowBytes;
    const uint before = bytes_before<F>(at), end = before + F::kWindowBytes;
    const uchar* const from_piece = at - before + first;
    uchar* const to = memory.weights(stage) + r * Stage::kRowBytes + first;
#pragma unroll
    for (uint part = 0; part < 16 * Stage::kPieces; part += 32)
      if (part + 32 <= F::kWindowBytes || first + part < end)
        copy_16_bytes(to + part, from_piece + part, true);
    end_copies();
  };
  const auto copy_tile_inputs = [&](uint stage, uint window) {
    if (index != 0) return;
    ulong* const full = memory.full + stage;
    arrive_expecting(full, Stage::kCodeBytes + Stage::kTermBytes);
    const uint unit = kTileUnits * window;
    copy_bytes(memory.codes(stage), from.codes + unit * RoundedRows<kQuads>::kUnitBytes,
               Stage::kCodeBytes, full);
    copy_bytes(memory.terms(stage), from.terms + unit * RoundedRows<kQuads>::kRows,
               Stage::kTermBytes, full);
  };
  WindowWalk ahead{n_windows};
  for (uint stage = 0; stage < Memory::kStages; ++stage) {
    if (ahead.is_over()) {
      end_copies();
      continue;
    }
    copy_tile_weights(stage, ahead.window);
    ahead.next();
  }
  inputs_ready();
  stores_before_copies();
  WindowWalk walk{n_windows};
  for (uint stage = 0; stage < Memory::kStages && !walk.is_over(); ++stage, walk.next())
    copy_tile_inputs(stage, walk.window);
  // A stage is filled again once the one behind it has been announced, which nobody has to wait for then.
  RingPlace ring{Memory::kStages}, behind{Memory::kStages};
  wait_for_copies<Memory::kStages - 1>();
  for (WindowWalk now{n_windows}; !now.is_over();) {
    stores_before_products();
    arrive(memory.full + ring.stage);
    ring.advance();
    const bool is_first = now.pass == 0 && now.window == 0;
    now.next();
    if (!is_first) {
      if (!ahead.is_over()) {
        wait_for_phase(memory.empty + behind.stage, behind.parity);
        copy_tile_weights(behind.stage, ahead.window);
        copy_tile_inputs(behind.stage, ahead.window);
        ahead.next();
      } else {
        end_copies();
      }
      behind.advance();
    }
    wait_for_copies<Memory::kStages - 2>();
  }
}

// Whole numbers of which each sum of a product is below 2^22: 1.5 * 2^23 and the sum, as bits of a float, are a float. A scale
// of 11 bits times that constant is exact, so that one fma gives the sum times the scale, rounded once.
template <class F>
constexpr bool kHasSmallSums = F::kScales == 1 && F::kOffset == 8;
constexpr int kFloatBits = 0x4b400000;
constexpr float kFloatZero = 12582912.0f;

// Multiplies a warp's step of a window: `rows` are the lane's weight rows g, g + 8, g + 16 and g + 24 of the warp's.
template <class F, uint kQuads>
AKUNU_DEVICE void multiply_tile_step(const uchar* const (&rows)[4], uint step, const uchar* codes,
                                     const UnitTerms* terms, uint lane,
                                     float (&sums)[4][kTileQuads][kStepUnits]) {
  using Rows = RoundedRows<kQuads>;
  const uint g = lane / 4, t = lane % 4;
  StepCodes own[4];
#pragma unroll
  for (uint r = 0; r < 4; ++r) own[r] = F::codes(rows[r], step, t);
#pragma unroll
  for (uint u = 0; u < kStepUnits; ++u) {
    const UnitScales<F> scales[4] = {F::scales(rows[0], step, u), F::scales(rows[1], step, u),
                                     F::scales(rows[2], step, u), F::scales(rows[3], step, u)};
    const uint unit = kStepUnits * step + u;
    float less[4];
#pragma unroll
    for (uint r = 0; r < 4; ++r) less[r] = -(kFloatZero * scales[r].scales[0]);
#pragma unroll
    for (uint q = 0; q < kTileQuads; ++q) {
      const uint2 b = *reinterpret_cast<const uint2*>(codes + unit * Rows::kUnitBytes +
                                                      32 * (8 * q + g) + 8 * t);
      const UnitTerms of_input = terms[unit * Rows::kRows + 4 * q + t];
      const int less_input = kFloatBits - int(F::kOffset) * of_input.sum;
#pragma unroll
      for (uint half = 0; half < 2; ++half) {
        int products[F::kScales][4] = {};
        multiply_unit<F>(products, own[2 * half].of[u], own[2 * half + 1].of[u], b.x, b.y);
#pragma unroll
        for (uint i = 0; i < 2; ++i) {
          const uint r = 2 * half + i;
          float& sum = sums[r][q][u];
          if constexpr (kHasSmallSums<F>) {
            const int bits = products[0][2 * i] * 256 + (products[0][2 * i + 1] + less_input);
            const float found = fma(as_type<float>(uint(bits)), scales[r].scales[0], less[r]);
            sum = fma(found, of_input.scale, sum);
          } else {
            add_products<F>(products, i, scales[r], of_input, sum);
          }
        }
      }
    }
  }
}

// Warps that multiply.
template <class F, uint kQuads, class RowAt>
AKUNU_DEVICE void multiply_tile_windows(const TileMemory<F, kQuads>& memory, uint n_windows,
                                        uint warp, uint lane, const RowAt& row_at) {
  using Memory = TileMemory<F, kQuads>;
  using Stage = typename Memory::Stage;
  using Sums = typename Memory::Sums;
  constexpr uint kWarpsOfInputs = Sums::kTiles / (kTileRows / kTileWarpRows);
  const uint g = lane / 4, t = lane % 4;
  const uint step = warp / Sums::kTiles, tile = warp % Sums::kTiles;
  const uint first_row = tile / kWarpsOfInputs * kTileWarpRows;
  const uint first_input = tile % kWarpsOfInputs * kTileWarpInputs;
  ulong* const own_turn = memory.added + step * Sums::kTiles + tile;
  ulong* const other_turn = memory.added + (1 - step) * Sums::kTiles + tile;
  const uchar* of_rows[4];  // where they lie on the GPU
#pragma unroll
  for (uint r = 0; r < 4; ++r)
    of_rows[r] = F::kWindowBytes % 16 == 0 ? nullptr : row_at(first_row + 8 * r + g);
  RingPlace ring{Memory::kStages};
  for (uint pass = 0; pass < kTilePasses; ++pass) {
    float sums[4][kTileQuads][kStepUnits];
#pragma unroll
    for (uint r = 0; r < 4; ++r)
#pragma unroll
      for (uint q = 0; q < kTileQuads; ++q)
#pragma unroll
        for (uint u = 0; u < kStepUnits; ++u) sums[r][q][u] = 0.0f;
    for (uint window = pass; window < n_windows; window += kTilePasses) {
      wait_for_phase(memory.full + ring.stage, ring.parity);
      const uchar* rows[4];
#pragma unroll
      for (uint r = 0; r < 4; ++r) {
        rows[r] = memory.weights(ring.stage) + (first_row + 8 * r + g) * Stage::kRowBytes;
        if (F::kWindowBytes % 16 != 0)
          rows[r] += bytes_before<F>(of_rows[r] + window * F::kWindowBytes);
      }
      multiply_tile_step<F, kQuads>(rows, step, memory.codes(ring.stage) + 64 * first_input,
                                    memory.terms(ring.stage) + first_input, lane, sums);
      simdgroup_barrier(mem_flags::mem_none);
      if (lane == 0) arrive(memory.empty + ring.stage);
      ring.advance();
    }
    // The two steps add in a fixed order: the sum of the first step, then that of the second.
    if (step != 0 || pass != 0) wait_for_phase(other_turn, step == 0 ? (pass - 1) & 1u : pass & 1u);
#pragma unroll
    for (uint r = 0; r < 4; ++r)
#pragma unroll
      for (uint q = 0; q < kTileQuads; ++q) {
        const float (&of)[kStepUnits] = sums[r][q];
        float& sum = memory.sums[(first_row + 8 * r + g) * Sums::kStride + first_input + 4 * q + t];
        const float total = (of[0] + of[1]) + (of[2] + of[3]);
        sum = (step == 0 && pass == 0 ? 0.0f : sum) + total;
      }
    simdgroup_barrier(mem_flags::mem_none);
    if (lane == 0) arrive(own_turn);
  }
}

// A block's tile. row_at(r) points to its weight row r, 0 to 63. addend(output, row) is what the sum of one of its kOutputs
// outputs meets in memory; finish(output, row, addend, sum_at, squares) ends it, with sum_at(r) the product of weight row r.
template <class F, uint kQuads, uint kOutputs, class RowAt, class Addend, class Finish>
AKUNU_DEVICE void stream_tile(uchar* shared, StreamInput from, uint k, uint thread_index,
                              const RowAt& row_at, const Addend& addend, const Finish& finish) {
  if constexpr (!kHasBulkCopies) {
    give_up();  // compiled for an older GPU
    return;
  }
  using Memory = TileMemory<F, kQuads>;
  using Rows = RoundedRows<kQuads>;
  constexpr uint kWarps = Memory::Sums::kWarps, kThreads = 32 * kWarps;
  const uint warp = thread_index / 32, lane = thread_index % 32, n_windows = k / kStreamWindow;
  const auto memory = Memory::at(shared);
  if (thread_index == 0) {
    for (uint stage = 0; stage < Memory::kStages; ++stage) {
      begin_barrier(memory.full + stage, kCopyThreads + 1);
      begin_barrier(memory.empty + stage, kWarps);
    }
    for (uint i = 0; i < kWarps; ++i) begin_barrier(memory.added + i, 1);
  }
  barriers_ready();
  const Rows in_workspace = Rows::at(from.group, k / 32);
  if (warp >= kWarps) {
    if constexpr (kHasWarpgroups) leave_registers<kCopyRegisters>();
    copy_tile_windows<F, kQuads>(memory, in_workspace, n_windows, thread_index - kThreads, row_at);
    return;
  }
  if constexpr (kHasWarpgroups) take_registers<kMultiplyRegisters<kQuads>>();
  inputs_ready();
  multiply_tile_windows<F, kQuads>(memory, n_windows, warp, lane, row_at);
  meet_at(kMultiplyBarrier, kThreads);
  const float* const squares =
      reinterpret_cast<const float*>(in_workspace.terms + k / 32 * Rows::kRows);
  for (uint i = thread_index; i < kOutputs * from.n_rows; i += kThreads) {
    const uint output = i % kOutputs, row = i / kOutputs;
    const auto sum_at = [&](uint r) { return memory.sums[r * Memory::Sums::kStride + row]; };
    finish(output, row, addend(output, row), sum_at, squares + row * kStreamWarps);
  }
}
