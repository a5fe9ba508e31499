// Matmuls of 1 to 16 input rows whose weights are streamed through shared memory, on Hopper and later GPUs.
//
// Lower bound of the time: the weights are read from memory once, for up to 16 rows.
// 1. A tile is 16 weight rows. One warp copies the tiles of its block, a chunk of k at a time, to a ring of stages in
//    shared memory (cp.async.bulk, an mbarrier for each stage). It begins before the input is ready, while the launch
//    before this one runs, so that the first stages are there when the input is.
// 2. Input rows are rounded to F16 (rounded_rows.cuh), and so are dequantised weights (streamed_weights.cuh). Tensor cores multiply and
//    add (mma.m16n8k16, sums in float32).
// 3. The k columns are divided into windows of 256. Window w has class w % 8. The products of a class are added up in the order of k;
//    then the classes are multiplied by their inputs' powers of two and added up in order. So the bits of an output depend on its
//    weight row and its input row alone. The tiles of streamed_tile.cuh add in the same order.
// 4. Each of the kStreamWarps warps computes one class of a tile. A product has eight columns, one for each input row; one input row is
//    in all of them.
// 5. One row is rounded by each block. Several rows are rounded by a launch before this one, which writes them to the
//    workspace (round_rows); a second warp copies them to shared memory. If all of k does not fit there, it is copied in
//    parts, and the sums of the tiles are kept from one part to the next.
// 6. Two blocks share a multiprocessor where their memory allows: when one ends, the first block of the next launch takes its
//    place and copies weights, while the other one still multiplies.
#pragma once

#include "cuda/kernels/rounded_rows.cuh"

namespace gpu {

constexpr uint kStreamTileRows = 16, kStreamMostStages = 16;
// Named barrier of the warps that multiply.
constexpr uint kMultiplyBarrier = 1;

// How shared memory is divided, as the host says it (kernel_table_streamed.cpp has the same): stages of the ring, windows
// of 256 of k in a stage, tiles whose sums are kept at a time, windows of a pass (0: all).
struct StreamPlan {
  uint n_stages, chunk, n_slots, pass;
  AKUNU_DEVICE static StreamPlan of(uint packed) {
    return {packed & 255u, packed >> 8 & 255u, packed >> 16 & 255u, packed >> 24};
  }
};

// Bytes from one weight row of a stage to the next: an odd number of 16-byte pieces, so that the rows that lanes read at the
// same time lie in different banks. Rows that do not begin at multiples of 16 are copied from the one before.
template <class F>
AKUNU_DEVICE uint stage_row_bytes(uint chunk) {
  const uint slack = F::kWindowBytes % 16 == 0 ? 0 : 14;
  return 16 * ((chunk * F::kWindowBytes + slack + 15) / 16 | 1u);
}
template <class F>
AKUNU_DEVICE uint bytes_before(const uchar* at) {
  return F::kWindowBytes % 16 == 0 ? 0 : uint(reinterpret_cast<ulong>(at)) & 15u;
}

// All warps of a block walk through its tiles in the same order: batches of tiles, passes over k, tiles, chunks of k.
struct StreamWalk {
  StreamPlan plan;
  uint first_tile, last_tile, n_windows;
  template <class BeginPass, class BeginTile, class Chunk, class EndTile, class EndPass,
            class EndBatch>
  AKUNU_DEVICE void go(const BeginPass& begin_pass, const BeginTile& begin_tile, const Chunk& chunk,
                       const EndTile& end_tile, const EndPass& end_pass,
                       const EndBatch& end_batch) const {
    const uint pass = plan.pass == 0 ? n_windows : plan.pass;
    for (uint batch = first_tile; batch < last_tile; batch += plan.n_slots) {
      const uint end = min(batch + plan.n_slots, last_tile);
      for (uint from = 0; from < n_windows; from += pass) {
        const uint to = min(from + pass, n_windows);
        begin_pass(batch, from, to);
        for (uint tile = batch; tile < end; ++tile) {
          begin_tile(tile, tile - batch, from);
          for (uint window = from; window < to; window += plan.chunk)
            chunk(tile, from, window, min(plan.chunk, to - window));
          end_tile(tile - batch, to);
        }
        end_pass();
      }
      end_batch(batch, end);
    }
  }
};

// A lane's sums for a tile, those of mma.m16n8k16: of[e][2 r + c] is of weight row l / 4 + 8 r and input row 8 e + 2 (l % 4) + c. Where
// there are fewer than eight input rows, the others repeat them.
template <uint kQuads>
struct TileSums {
  static constexpr uint kEights = kQuads < 2 ? 1 : kQuads / 2, kFloats = 4 * kEights;
  float of[kEights][4];
};

// A block's shared memory: barriers, squares, and then the buffers that the plan lists.
constexpr uint kScaleAt = 272, kSquaresAt = 320, kInputsAt = 384;
static_assert((2 * kStreamMostStages + 2) * sizeof(ulong) <= kScaleAt);
static_assert(kScaleAt + kStreamWarps * sizeof(float) <= kSquaresAt);
static_assert(kSquaresAt + kStreamWarps * sizeof(float) <= kInputsAt);
template <uint kQuads>
struct StreamMemory {
  using Rows = RoundedRows<kQuads>;
  // The sums of one tile, for each class.
  static constexpr uint kSlotFloats = kStreamWarps * kStreamTileRows * Rows::kRows;
  static constexpr uint kWaitingFloats = kStreamThreads * TileSums<kQuads>::kFloats;
  ulong *full, *empty;  // of the stages
  ulong *inputs_full, *inputs_empty;
  float *scales, *squares;  // of each warp, of one row
  Rows inputs;
  float* waiting;  // sums of tiles between the passes, [slot][warp][lane]; none with one pass
  float* slots;
  uchar* ring;
  AKUNU_DEVICE static StreamMemory at(uchar* memory, StreamPlan plan, uint k) {
    const uint n_units = plan.pass == 0 ? k / 32 : plan.pass * (kStreamWindow / 32);
    StreamMemory own;
    own.full = reinterpret_cast<ulong*>(memory);
    own.empty = own.full + kStreamMostStages;
    own.inputs_full = own.empty + kStreamMostStages;
    own.inputs_empty = own.inputs_full + 1;
    own.scales = reinterpret_cast<float*>(memory + kScaleAt);
    own.squares = reinterpret_cast<float*>(memory + kSquaresAt);
    own.inputs = {memory + kInputsAt};
    own.waiting = reinterpret_cast<float*>(own.inputs.halves + n_units * Rows::kAllBytes);
    own.slots = own.waiting + (plan.pass == 0 ? 0 : plan.n_slots * kWaitingFloats);
    own.ring = reinterpret_cast<uchar*>(own.slots + plan.n_slots * kSlotFloats);
    return own;
  }
};

// A piece of two weight rows as the A operands of its two products (RoundedRows says which weights a lane has).
struct PieceWeights {
  uint of[2][4];
};
template <class F>
AKUNU_DEVICE PieceWeights piece_weights(const uchar* const (&rows)[2], uint piece, uint t) {
  uint numbers[2][4];
#pragma unroll
  for (uint r = 0; r < 2; ++r) F::weights(rows[r], 2 * t + piece / 4, piece % 4, numbers[r]);
  PieceWeights own;
#pragma unroll
  for (uint product = 0; product < 2; ++product)
#pragma unroll
    for (uint r = 0; r < 2; ++r) {
      own.of[product][r] = numbers[r][2 * product];
      own.of[product][2 + r] = numbers[r][2 * product + 1];
    }
  return own;
}

// Multiplies a window: `rows` are the lane's two weight rows at the window, `inputs` the window's pieces.
template <class F, uint kQuads>
AKUNU_DEVICE void multiply_window(const uchar* const (&rows)[2], uchar* inputs, uint lane,
                                  TileSums<kQuads>& sums) {
  using Rows = RoundedRows<kQuads>;
  // B operands of eight columns: lane l gives the address of words 4 (l / 8) to 4 (l / 8) + 3 of row l % 8. Where there are fewer
  // than eight rows, they are repeated.
  const uint row = lane % 8 % Rows::kRows;
#pragma unroll
  for (uint piece = 0; piece < kWindowUnits; ++piece) {
    const PieceWeights weights = piece_weights<F>(rows, piece, lane % 4);
    uchar* const at = inputs + piece * Rows::kAllBytes + kInputBytes * row;
    const uint swizzled = Rows::swizzle(piece, row);
#pragma unroll
    for (uint e = 0; e < TileSums<kQuads>::kEights; ++e) {
      uint own[4];
      load_matrices(own, Rows::word(at + 8 * kInputBytes * e, lane / 8 * 4, swizzled));
      multiply_float16(sums.of[e], weights.of[0], own[0], own[1]);
      multiply_float16(sums.of[e], weights.of[1], own[2], own[3]);
    }
  }
}

// The input of a launch: one row and the weights of its norm, or the rounded rows of a group in the workspace.
struct StreamInput {
  const float *input, *norm;
  bool normalise;
  uchar* group;
  uint n_rows;
};

// Which tiles of a launch a block has: the tiles are divided among the multiprocessors, then among the blocks of one.
struct StreamShare {
  uint multiprocessor, n_multiprocessors, part, n_parts;
  AKUNU_DEVICE uint first_tile(uint n_tiles, uint of_part) const {
    const uint begin = uint(ulong(multiprocessor) * n_tiles / n_multiprocessors);
    const uint end = uint(ulong(multiprocessor + 1) * n_tiles / n_multiprocessors);
    return begin + ((end - begin) * of_part + n_parts - 1) / n_parts;
  }
};

// The stages of the ring, one after the other: which one is next, and the parity of its barriers.
struct RingPlace {
  uint n_stages, stage = 0, parity = 0;
  AKUNU_DEVICE void advance() {
    if (++stage < n_stages) return;
    stage = 0;
    parity ^= 1;
  }
};

// Run by one warp: copies the weights of the block's tiles to the ring. row_at(tile, r) points to weight row r, 0 to 15, of a
// tile.
template <class F, class Memory, class RowAt>
AKUNU_DEVICE void copy_weights(const Memory& memory, const StreamWalk& walk, uint lane,
                               const RowAt& row_at) {
  const uint row_bytes = stage_row_bytes<F>(walk.plan.chunk);
  RingPlace ring{walk.plan.n_stages};
  const uchar* of_tile = nullptr;
  const auto begin_tile = [&](uint tile, uint, uint) {
    of_tile = row_at(tile, lane % kStreamTileRows);
  };
  const auto copy_chunk = [&](uint, uint, uint window, uint n_windows) {
    wait_for_phase(memory.empty + ring.stage, ring.parity ^ 1);
    const uchar* const row = of_tile + window * F::kWindowBytes;
    const uint before = bytes_before<F>(row);
    const uint n_bytes = (before + n_windows * F::kWindowBytes + 15) / 16 * 16;
    const uint total = F::kWindowBytes % 16 == 0 ? kStreamTileRows * n_bytes
                                                 : simd_sum(lane < kStreamTileRows ? n_bytes : 0u);
    if (lane == 0) arrive_expecting(memory.full + ring.stage, total);
    simdgroup_barrier(mem_flags::mem_none);
    if (lane < kStreamTileRows)
      copy_bytes(memory.ring + (ring.stage * kStreamTileRows + lane) * row_bytes, row - before,
                 n_bytes, memory.full + ring.stage);
    ring.advance();
  };
  const auto nothing = [](auto...) {};
  walk.go(nothing, begin_tile, copy_chunk, nothing, nothing, nothing);
}

// One warp copies the rounded rows of each pass from the workspace.
template <uint kQuads>
AKUNU_DEVICE void copy_rows(const StreamMemory<kQuads>& memory, const StreamWalk& walk,
                            RoundedRows<kQuads> from, uint lane) {
  using Rows = RoundedRows<kQuads>;
  uint parity = 0;
  const auto copy_pass = [&](uint batch, uint begin, uint end) {
    if (walk.plan.pass == 0 && batch != walk.first_tile) return;
    wait_for_phase(memory.inputs_empty, parity ^ 1);
    parity ^= 1;
    if (lane != 0) return;
    const uint n_bytes = (end - begin) * kWindowUnits * Rows::kAllBytes;
    stores_before_copies();
    arrive_expecting(memory.inputs_full, n_bytes);
    copy_bytes(memory.inputs.halves, from.halves + begin * kWindowUnits * Rows::kAllBytes, n_bytes,
               memory.inputs_full);
  };
  const auto nothing = [](auto...) {};
  walk.go(copy_pass, nothing, nothing, nothing, nothing, nothing);
}

// The other warps multiply. A tile has kOutputs outputs for each input row. addend(tile, output, row) reads the number in memory
// to which the output's sum is added; for a thread's first output of a batch it is read before the batch is multiplied.
// finish(tile, output, row, addend, sum_at, squares) writes the output; sum_at(r) is the product of weight row r. `scales` and `squares` are those of RowNumbers.
template <class F, uint kQuads, uint kOutputs, class RowAt, class Addend, class Finish>
AKUNU_DEVICE void multiply_tiles(const StreamMemory<kQuads>& memory, const StreamWalk& walk,
                                 const float* scales, const float* squares, uint n_rows,
                                 uint thread_index, const RowAt& row_at, const Addend& addend,
                                 const Finish& finish) {
  using Memory = StreamMemory<kQuads>;
  constexpr uint kRows = RoundedRows<kQuads>::kRows;
  const uint warp = thread_index / 32, lane = thread_index % 32, g = lane / 4, t = lane % 4;
  const StreamPlan plan = walk.plan;
  const uint row_bytes = stage_row_bytes<F>(plan.chunk), stage_bytes = kStreamTileRows * row_bytes;
  RingPlace ring{plan.n_stages};
  uint inputs_parity = 0;
  TileSums<kQuads> sums;
  const uchar* of_tile[2];  // the lane's weight rows, where they lie on the GPU
  // An output of a batch: a row's are neighbours.
  struct Place {
    uint slot, output, row;
  };
  const auto place_of = [&](uint i) {
    const uint of_row = (kQuads == 0 ? 1 : n_rows) * kOutputs;
    return Place{i / of_row, i % kOutputs, i % of_row / kOutputs};
  };
  float first_addend = 0.0f;
  const auto begin_pass = [&](uint batch, uint window, uint) {
    const Place place = place_of(thread_index);
    if (window == 0 && batch + place.slot < min(batch + plan.n_slots, walk.last_tile))
      first_addend = addend(batch + place.slot, place.output, place.row);
    if (kQuads == 0 || (plan.pass == 0 && batch != walk.first_tile)) return;
    wait_for_phase(memory.inputs_full, inputs_parity);
    inputs_parity ^= 1;
  };
  const auto waiting_of = [&](uint slot) {
    return memory.waiting + slot * Memory::kWaitingFloats + thread_index;
  };
  uint own_class = 0;
  const auto begin_tile = [&](uint tile, uint slot, uint window) {
    // Each tile's windows begin with another warp, so that all have work where a row has few.
    own_class = (warp - tile * walk.n_windows) % kStreamWarps;
    if (F::kWindowBytes % 16 != 0)
      for (uint r = 0; r < 2; ++r) of_tile[r] = row_at(tile, g + 8 * r);
    float* const all = &sums.of[0][0];
#pragma unroll
    for (uint i = 0; i < TileSums<kQuads>::kFloats; ++i)
      all[i] = window == 0 ? 0.0f : waiting_of(slot)[i * kStreamThreads];
  };
  const auto multiply_chunk = [&](uint, uint pass, uint window, uint n_windows) {
    wait_for_phase(memory.full + ring.stage, ring.parity);
    const uchar* rows[2];
#pragma unroll
    for (uint r = 0; r < 2; ++r) {
      rows[r] = memory.ring + ring.stage * stage_bytes + (g + 8 * r) * row_bytes;
      if (F::kWindowBytes % 16 != 0)
        rows[r] += bytes_before<F>(of_tile[r] + window * F::kWindowBytes);
    }
#pragma unroll 1  // registers
    for (uint i = (own_class - window) % kStreamWarps; i < n_windows; i += kStreamWarps) {
      const uchar* const at[2] = {rows[0] + i * F::kWindowBytes, rows[1] + i * F::kWindowBytes};
      uchar* const inputs = memory.inputs.halves +
                            kWindowUnits * (window - pass + i) * RoundedRows<kQuads>::kAllBytes;
      multiply_window<F, kQuads>(at, inputs, lane, sums);
    }
    simdgroup_barrier(mem_flags::mem_none);
    if (lane == 0) arrive(memory.empty + ring.stage);
    ring.advance();
  };
  const auto end_tile = [&](uint slot, uint to) {
    if (to < walk.n_windows) {
      const float* const all = &sums.of[0][0];
#pragma unroll
      for (uint i = 0; i < TileSums<kQuads>::kFloats; ++i)
        waiting_of(slot)[i * kStreamThreads] = all[i];
      return;
    }
    float* const own =
        memory.slots + slot * Memory::kSlotFloats + own_class * kStreamTileRows * kRows;
#pragma unroll
    for (uint e = 0; e < TileSums<kQuads>::kEights; ++e)
#pragma unroll
      for (uint i = 0; i < 4; ++i) {
        const uint row = 8 * e + 2 * t + i % 2;
        if (row < kRows) own[(g + i / 2 * 8) * kRows + row] = sums.of[e][i];
      }
  };
  const auto end_pass = [&] {
    if (kQuads == 0 || plan.pass == 0) return;
    simdgroup_barrier(mem_flags::mem_none);
    if (lane == 0) arrive(memory.inputs_empty);
  };
  const auto end_batch = [&](uint begin, uint end) {
    meet_at(kMultiplyBarrier, kStreamThreads);
    for (uint i = thread_index; i < (end - begin) * kOutputs * n_rows; i += kStreamThreads) {
      const auto [slot, output, row] = place_of(i);
      const float* const of_slot = memory.slots + slot * Memory::kSlotFloats;
      const auto sum_at = [&, of_row = row](uint r) {
        float sum = 0.0f;
#pragma unroll
        for (uint w = 0; w < kStreamWarps; ++w)
          sum = fma(of_slot[(w * kStreamTileRows + r) * kRows + of_row], scales[w * kRows + of_row],
                    sum);
        return sum * kOfSum;
      };
      const float meets = i == thread_index ? first_addend : addend(begin + slot, output, row);
      finish(begin + slot, output, row, meets, sum_at, squares + row * kStreamWarps);
    }
    if (end < walk.last_tile) meet_at(kMultiplyBarrier, kStreamThreads);
  };
  walk.go(begin_pass, begin_tile, multiply_chunk, end_tile, end_pass, end_batch);
}

// A block's share of a launch; row_at as of copy_weights, addend and finish as of multiply_tiles.
template <class F, uint kQuads, uint kOutputs, class RowAt, class Addend, class Finish>
AKUNU_DEVICE void stream_tiles(uchar* shared, StreamPlan plan, StreamInput from, uint n_tiles,
                               uint k, StreamShare share, uint thread_index, const RowAt& row_at,
                               const Addend& addend, const Finish& finish) {
  if constexpr (!kHasBulkCopies) {
    give_up();  // compiled for an older GPU
    return;
  }
  using Rows = RoundedRows<kQuads>;
  const uint warp = thread_index / 32, lane = thread_index % 32;
  const auto memory = StreamMemory<kQuads>::at(shared, plan, k);
  const StreamWalk walk{plan, share.first_tile(n_tiles, share.part),
                        share.first_tile(n_tiles, share.part + 1), k / kStreamWindow};
  if (thread_index == 0) {
    for (uint stage = 0; stage < plan.n_stages; ++stage) {
      begin_barrier(memory.full + stage, 1);
      begin_barrier(memory.empty + stage, kStreamWarps);
    }
    begin_barrier(memory.inputs_full, 1);
    begin_barrier(memory.inputs_empty, kStreamWarps);
  }
  barriers_ready();
  if (warp == kStreamWarps) return copy_weights<F>(memory, walk, lane, row_at);
  if (kQuads != 0) inputs_ready();
  const Rows in_workspace{from.group};
  if (warp > kStreamWarps) return copy_rows<kQuads>(memory, walk, in_workspace, lane);
  if (kQuads != 0) {
    const auto numbers = RowNumbers<kQuads>::of(in_workspace, k);
    return multiply_tiles<F, kQuads, kOutputs>(memory, walk, numbers.scales, numbers.squares,
                                               from.n_rows, thread_index, row_at, addend, finish);
  }
  float squares;
  const float scale = round_row_to_halves(
      from.input, from.norm, from.normalise, k, memory.inputs, 0, thread_index,
      [] { inputs_ready(); }, squares);
  // A warp has rounded every eighth window: those that it multiplies, unless other tiles begin with other warps.
  if (walk.n_windows % kStreamWarps == 0)
    simdgroup_barrier(mem_flags::mem_none);
  else
    meet_at(kMultiplyBarrier, kStreamThreads);
  // (These are read after another barrier.)
  if (from.normalise) squares = simd_sum(squares);
  if (lane == 0) {
    memory.squares[warp] = squares;
    memory.scales[warp] = scale;
  }
  multiply_tiles<F, kQuads, kOutputs>(memory, walk, memory.scales, memory.squares, 1, thread_index,
                                      row_at, addend, finish);
}

}  // namespace gpu
