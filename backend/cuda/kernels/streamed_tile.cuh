// Matmuls of more than 16 input rows, with the bits that streamed_rows.cuh gives one row: the same F16 numbers, the same products of
// tensor cores, added in the same order. For NVIDIA's GPUs with bulk copies. Hopper uses wgmma, which gives the same bits as
// mma.m16n8k16.
//
// 1. What limits the speed. Weights are read from memory once for each group of input rows; inputs are read from L2 by each tile. A tile
//    has 256 weight rows (128 in the larger formats) and 16, 32 or 64 input rows; a warp has 16 of its weight rows. A warp dequantises a
//    piece (32 of k) while the tensor cores multiply the piece before. With 64 input rows they take 64 cycles for a piece; the four warps
//    of a scheduler take four times as long to dequantise theirs.
// 2. An output is the sum of eight classes (streamed_rows.cuh). The block goes through k once for each, over every eighth window.
// 3. Where tiles are too few for the GPU, the classes of one are divided among several blocks. Each writes its classes' sums to the
//    workspace, where they are added up in the order of the classes. Up to four blocks are a cluster: when all have written, each
//    adds up a share of the outputs. Of eight the one that comes last does all: clusters of eight leave too many multiprocessors idle.
// 4. Four warps copy: inputs in bulk (round_rows leaves those of a window side by side), weights in pieces of 16 bytes, since
//    a window of a weight row is too short for a bulk copy. The first weights are on their way before the input is there.
#pragma once

#include "cuda/kernels/copied_pieces.cuh"
#include "cuda/kernels/streamed_rows.cuh"

namespace gpu {

template <class F>
constexpr uint kTileRows = F::kWindowBytes <= 160 ? 256 : 128;
constexpr uint kTileWarpRows = 16;
constexpr uint kTileSharedBytes = 231424, kTileBarrierBytes = 256, kTileAlignment = 1024;
constexpr uint kCopyThreads = 128;
constexpr uint kMostClusterBlocks = 4;
// Registers of a thread that copies, and of one that multiplies.
constexpr uint kCopyRegisters = 32;
template <class F>
constexpr uint kMultiplyRegisters = kTileRows<F> == 256 ? 112 : 232;

// A window of a tile's inputs and weights.
template <class F, uint kQuads>
struct TileStage {
  static constexpr uint kInputBytes = kWindowUnits * RoundedRows<kQuads>::kAllBytes;
  static constexpr uint kSlack = F::kWindowBytes % 16 == 0 ? 0 : 14;
  static constexpr uint kPieces = (F::kWindowBytes + kSlack + 15) / 16;
  static constexpr uint kRowBytes = 16 * (kPieces | 1u);
  // (Inputs lie at multiples of 512 bytes, which wgmma's swizzle wants.)
  static constexpr uint kBytes = kInputBytes + kTileRows<F> * kRowBytes;
  static_assert(kInputBytes % 512 == 0 && kBytes % 512 == 0);
};

template <class F, uint kQuads>
struct TileMemory {
  using Stage = TileStage<F, kQuads>;
  static constexpr uint kRows = RoundedRows<kQuads>::kRows;
  static constexpr uint kWarps = kTileRows<F> / kTileWarpRows, kThreads = 32 * kWarps;
  static constexpr uint kBefore = kTileBarrierBytes + kTileAlignment;
  static constexpr uint kFit = (kTileSharedBytes - kBefore) / Stage::kBytes;
  static constexpr uint kStages = kFit > 5 ? 5 : kFit;
  static_assert(kStages >= 2, "copies run ahead");
  static constexpr uint kBytes = kBefore + kStages * Stage::kBytes;
  // In the end the tile's sums lie where the stages were: those of a weight row side by side.
  static constexpr uint kSumStride = kRows + 1;
  static_assert(kTileRows<F> * kSumStride * sizeof(float) <= kStages * Stage::kBytes);
  static_assert((2 * kStages + 1) * sizeof(ulong) <= kTileBarrierBytes);
  ulong *full, *empty;  // of each stage
  uint* is_last;
  uchar* stages;
  float* sums;
  AKUNU_DEVICE static TileMemory at(uchar* memory) {
    TileMemory own;
    own.full = reinterpret_cast<ulong*>(memory);
    own.empty = own.full + kStages;
    own.is_last = reinterpret_cast<uint*>(own.empty + kStages);
    own.stages = memory + kTileBarrierBytes;
    own.stages += kTileAlignment - shared_address(own.stages) % kTileAlignment;
    own.sums = reinterpret_cast<float*>(own.stages);
    return own;
  }
  AKUNU_DEVICE uchar* inputs(uint stage) const { return stages + stage * Stage::kBytes; }
  AKUNU_DEVICE uchar* weights(uint stage) const { return inputs(stage) + Stage::kInputBytes; }
};

// The weight rows of a tile, in two halves: the second follows the first, or is of another matrix. Rows past the end of a matrix
// repeat its last one.
template <class F>
struct TileWeights {
  struct Half {
    const uchar* first;  // its first row
    uint last;           // of its rows, the last one that exists
  } halves[2];
  uint row_bytes;
  AKUNU_DEVICE static Half half(const uchar* weight, uint row, uint n_rows, uint row_bytes) {
    const uint first = min(row, n_rows - 1);
    return {weight + ulong(first) * row_bytes, n_rows - 1 - first};
  }
  AKUNU_DEVICE static TileWeights of(const uchar* weight, uint row, uint n_rows, uint k) {
    const uint row_bytes = k / kStreamWindow * F::kWindowBytes;
    return {{half(weight, row, n_rows, row_bytes),
             half(weight, row + kTileRows<F> / 2, n_rows, row_bytes)},
            row_bytes};
  }
  // The same `row` of two matrices.
  AKUNU_DEVICE static TileWeights of_two(const uchar* first, const uchar* second, uint row,
                                         uint n_rows, uint k) {
    const uint row_bytes = k / kStreamWindow * F::kWindowBytes;
    return {{half(first, row, n_rows, row_bytes), half(second, row, n_rows, row_bytes)}, row_bytes};
  }
  AKUNU_DEVICE const uchar* row(uint r) const {
    constexpr uint kRows = kTileRows<F> / 2;
    const Half own = r < kRows ? halves[0] : halves[1];
    return own.first + ulong(min(r % kRows, own.last)) * row_bytes;
  }
};

// Which classes of a tile a block has, and where the blocks of the tile leave the sums of each class: [class][weight row][row].
struct TilePart {
  uint part, n_parts;  // 1, 2, 4 or 8
  uint place;          // of the tile in the launch
  float* sums;
  AKUNU_DEVICE uint first_class() const { return kStreamWarps * part / n_parts; }
  AKUNU_DEVICE uint last_class() const { return kStreamWarps * (part + 1) / n_parts; }
};

// The windows of k in the order in which a block takes them: those of a class, then those of the next one.
struct WindowWalk {
  uint n_windows, end, own_class, window = 0;
  AKUNU_DEVICE static WindowWalk of(TilePart part, uint n_windows) {
    WindowWalk walk{n_windows, part.last_class(), part.first_class()};
    walk.window = walk.own_class;
    walk.settle();
    return walk;
  }
  AKUNU_DEVICE bool is_over() const { return own_class >= end; }
  AKUNU_DEVICE void settle() {
    while (!is_over() && window >= n_windows) window = ++own_class;
  }
  AKUNU_DEVICE void next() {
    window += kStreamWarps;
    settle();
  }
};

// Run by the kCopyThreads threads that copy, of which this is number `index`.
template <class F, uint kQuads>
AKUNU_DEVICE void copy_tile_windows(const TileMemory<F, kQuads>& memory, RoundedRows<kQuads> from,
                                    TilePart part, uint n_windows, uint index,
                                    const TileWeights<F>& weights) {
  using Memory = TileMemory<F, kQuads>;
  using Stage = typename Memory::Stage;
  using Piece = CopiedPiece<Stage::kPieces, kCopyThreads>;
  const Piece own = Piece::of(index);
  const auto copy_tile_weights = [&](uint stage, uint window) {
    uchar* const to = memory.weights(stage) + own.offset;
    if (own.is_there)
#pragma unroll
      for (uint half = 0; half < 2; ++half) {
        constexpr uint kRows = kTileRows<F> / 2;
        const uchar* const first =
            weights.halves[half].first + window * F::kWindowBytes + own.offset;
#pragma unroll 4  // registers
        for (uint r = own.row; r < kRows; r += Piece::kStep) {
          const uchar* const at =
              first + ulong(min(r, weights.halves[half].last)) * weights.row_bytes;
          const uint before = bytes_before<F>(at - own.offset);
          if (F::kWindowBytes % 16 == 0 || own.offset < before + F::kWindowBytes)
            copy_16_bytes(to + (half * kRows + r) * Stage::kRowBytes, at - before, true);
        }
      }
    end_copies();
  };
  const auto copy_tile_inputs = [&](uint stage, uint window) {
    if (index != 0) return;
    ulong* const full = memory.full + stage;
    arrive_expecting(full, Stage::kInputBytes);
    copy_bytes(memory.inputs(stage), from.halves + window * Stage::kInputBytes, Stage::kInputBytes,
               full);
  };
  WindowWalk ahead = WindowWalk::of(part, n_windows);
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
  WindowWalk walk = WindowWalk::of(part, n_windows);
  for (uint stage = 0; stage < Memory::kStages && !walk.is_over(); ++stage, walk.next())
    copy_tile_inputs(stage, walk.window);
  // A stage is filled again after the next one has been announced: no warp has to wait for it then.
  RingPlace ring{Memory::kStages}, behind{Memory::kStages};
  bool is_first = true;
  wait_for_copies<Memory::kStages - 1>();
  for (WindowWalk now = WindowWalk::of(part, n_windows); !now.is_over(); now.next()) {
    stores_before_products();
    arrive(memory.full + ring.stage);
    ring.advance();
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
    is_first = false;
    wait_for_copies<Memory::kStages - 2>();
  }
}

// Adds four sums of a class, each times its row's scale.
AKUNU_DEVICE float4 add_class(float4 sums, float4 scales, float4 before) {
  return float4(fma(sums.x, scales.x, before.x), fma(sums.y, scales.y, before.y),
                fma(sums.z, scales.z, before.z), fma(sums.w, scales.w, before.w));
}

// A lane's sums: 4 e + i is of weight row g (i = 0 and 1) or g + 8 of the warp's, and of input row 8 e + 2 t + i % 2.
template <uint kQuads>
struct LaneSums {
  static constexpr uint kCount = 2 * kQuads;
  float of[kCount];
};

// Begins to add the products of a piece. They have been added after `wait_for_piece`.
template <bool kOnWarpgroups, uint kQuads>
AKUNU_DEVICE void begin_piece(LaneSums<kQuads>& sums, const PieceWeights& weights,
                              const uchar* inputs, uint lane) {
  if constexpr (kOnWarpgroups) {
    const ulong at = middle_inputs_at(inputs);
    begin_products();
    for (uint i = 0; i < 2; ++i) add_product(sums.of, weights.of[i], further(at, 32 * i), 1);
    end_products();
  } else {
    using Rows = RoundedRows<kQuads>;
#pragma unroll
    for (uint e = 0; e < kQuads / 2; ++e) {
      const uint row = 8 * e + lane % 8;
      uint own[4];
      load_matrices(own, Rows::word(const_cast<uchar*>(inputs) + kInputBytes * row, 4 * (lane / 8),
                                    Rows::swizzle(0, row)));
      float four[4] = {sums.of[4 * e], sums.of[4 * e + 1], sums.of[4 * e + 2], sums.of[4 * e + 3]};
      for (uint i = 0; i < 2; ++i)
        multiply_float16(four, weights.of[i], own[2 * i], own[2 * i + 1]);
#pragma unroll
      for (uint i = 0; i < 4; ++i) sums.of[4 * e + i] = four[i];
    }
  }
}
template <bool kOnWarpgroups, uint kQuads>
AKUNU_DEVICE void wait_for_piece(LaneSums<kQuads>& sums) {
  if constexpr (kOnWarpgroups) wait_for_products(sums.of);
}

// Multiplies a window: `rows` are the lane's weight rows, `inputs` the window's pieces.
template <class F, uint kQuads, bool kOnWarpgroups>
AKUNU_DEVICE void multiply_tile_window(const uchar* const (&rows)[2], const uchar* inputs,
                                       uint lane, LaneSums<kQuads>& sums) {
  PieceWeights weights = piece_weights<F>(rows, 0, lane % 4);
#pragma unroll
  for (uint piece = 0; piece < kWindowUnits; ++piece) {
    begin_piece<kOnWarpgroups>(sums, weights, inputs + piece * RoundedRows<kQuads>::kAllBytes,
                               lane);
    PieceWeights next;
    if (piece + 1 < kWindowUnits) next = piece_weights<F>(rows, piece + 1, lane % 4);
    wait_for_piece<kOnWarpgroups>(sums);
    weights = next;
  }
}

// Warps that multiply. Leave the sums of the block's classes, times their scales, in shared memory or, where a tile has several
// blocks, those of each class in the workspace.
template <class F, uint kQuads, bool kOnWarpgroups>
AKUNU_DEVICE void multiply_tile_windows(const TileMemory<F, kQuads>& memory, TilePart part,
                                        uint n_windows, const float* scales, uint thread_index,
                                        const TileWeights<F>& weights) {
  using Memory = TileMemory<F, kQuads>;
  using Stage = typename Memory::Stage;
  using Sums = LaneSums<kQuads>;
  const uint lane = thread_index % 32, g = lane / 4, t = lane % 4;
  const uint first_row = thread_index / 32 * kTileWarpRows + g;
  const uchar* of_rows[2];  // where they lie on the GPU
#pragma unroll
  for (uint r = 0; r < 2; ++r)
    of_rows[r] = F::kWindowBytes % 16 == 0 ? nullptr : weights.row(first_row + 8 * r);
  RingPlace ring{Memory::kStages};
  Sums totals;
#pragma unroll
  for (uint i = 0; i < Sums::kCount; ++i) totals.of[i] = 0.0f;
  for (uint own = part.first_class(); own < part.last_class(); ++own) {
    Sums sums;
#pragma unroll
    for (uint i = 0; i < Sums::kCount; ++i) sums.of[i] = 0.0f;
    // The scales of two rows. A lane gets the others that it needs from other lanes.
    const float2 scales_of_two =
        reinterpret_cast<const float2*>(scales + own * Memory::kRows)[lane % (Memory::kRows / 2)];
    for (uint window = own; window < n_windows; window += kStreamWarps) {
      wait_for_phase(memory.full + ring.stage, ring.parity);
      const uchar* rows[2];
#pragma unroll
      for (uint r = 0; r < 2; ++r) {
        rows[r] = memory.weights(ring.stage) + (first_row + 8 * r) * Stage::kRowBytes;
        if (F::kWindowBytes % 16 != 0)
          rows[r] += bytes_before<F>(of_rows[r] + window * F::kWindowBytes);
      }
      multiply_tile_window<F, kQuads, kOnWarpgroups>(rows, memory.inputs(ring.stage), lane, sums);
      simdgroup_barrier(mem_flags::mem_none);
      if (lane == 0) arrive(memory.empty + ring.stage);
      ring.advance();
    }
    if (part.n_parts > 1) {
#pragma unroll
      for (uint i = 0; i < Sums::kCount; i += 2)
        *reinterpret_cast<float2*>(part.sums +
                                   (own * kTileRows<F> + first_row + i % 4 * 4) * Memory::kRows +
                                   i / 4 * 8 + 2 * t) = float2(sums.of[i], sums.of[i + 1]);
      continue;
    }
#pragma unroll
    for (uint i = 0; i < Sums::kCount; i += 4) {
      const float first = simd_shuffle(scales_of_two.x, i + t);
      const float second = simd_shuffle(scales_of_two.y, i + t);
#pragma unroll
      for (uint j = 0; j < 4; ++j)
        totals.of[i + j] = fma(sums.of[i + j], j % 2 == 0 ? first : second, totals.of[i + j]);
    }
  }
  if (part.n_parts > 1) return;
  meet_at(kMultiplyBarrier, Memory::kThreads);  // no warp reads stages any more
#pragma unroll
  for (uint i = 0; i < Sums::kCount; i += 4) {
    float* const at = memory.sums + first_row * Memory::kSumStride + i / 4 * 8 + 2 * t;
    at[0] = totals.of[i];
    at[1] = totals.of[i + 1];
    at[8 * Memory::kSumStride] = totals.of[i + 2];
    at[8 * Memory::kSumStride + 1] = totals.of[i + 3];
  }
}

// The share of a tile's weight rows that a block finishes: the same part of both halves of the tile.
template <class F>
struct TileShare {
  static constexpr uint kHalf = kTileRows<F> / 2;
  uint first, of_half;  // of_half is a power of two
  AKUNU_DEVICE uint size() const { return 2 * of_half; }
  AKUNU_DEVICE uint row(uint index) const {
    return (index < of_half ? 0 : kHalf) + first + (index & (of_half - 1));
  }
};

// Adds up the sums of all classes, in their order. The blocks of a tile have written them to the workspace.
template <class F, uint kQuads>
AKUNU_DEVICE void add_classes(const TileMemory<F, kQuads>& memory, TilePart part,
                              TileShare<F> share, const float* scales, uint thread_index) {
  using Memory = TileMemory<F, kQuads>;
  constexpr uint kFours = kTileRows<F> * Memory::kRows / 4;
  // All fours of a thread are of the same input rows.
  static_assert(Memory::kThreads % kQuads == 0);
  float4 scales_of[kStreamWarps];
#pragma unroll
  for (uint c = 0; c < kStreamWarps; ++c)
    scales_of[c] = reinterpret_cast<const float4*>(scales)[c * kQuads + thread_index % kQuads];
  for (uint i = thread_index; i < share.size() * kQuads; i += Memory::kThreads) {
    const uint row = share.row(i / kQuads), four = i % kQuads;
    float4 of[kStreamWarps];
#pragma unroll
    for (uint c = 0; c < kStreamWarps; ++c)
      of[c] = reinterpret_cast<const float4*>(part.sums)[c * kFours + row * kQuads + four];
    float4 sum = float4(0.0f);
#pragma unroll
    for (uint c = 0; c < kStreamWarps; ++c) sum = add_class(of[c], scales_of[c], sum);
    float* const at = memory.sums + row * Memory::kSumStride + 4 * four;
    at[0] = sum.x;
    at[1] = sum.y;
    at[2] = sum.z;
    at[3] = sum.w;
  }
}

// A block's tile, or its part of one. addend(output, row) is what the sum of output 0 to kTileRows<F> - 1 of the tile meets in
// memory; finish(output, row, addend, sum_at, squares) ends it, with sum_at(r) the product of weight row r: only those of `output`
// and of the same row in the other half of the tile are there.
template <class F, uint kQuads, bool kOnWarpgroups = kHasWarpgroups, class Addend, class Finish>
AKUNU_DEVICE void stream_tile(uchar* shared, StreamInput from, TilePart part, uint k,
                              uint thread_index, const TileWeights<F>& weights,
                              const Addend& addend, const Finish& finish) {
  if constexpr (!kHasBulkCopies) {
    give_up();  // compiled for an older GPU
    return;
  }
  using Memory = TileMemory<F, kQuads>;
  using Rows = RoundedRows<kQuads>;
  constexpr uint kThreads = Memory::kThreads;
  const uint n_windows = k / kStreamWindow;
  const auto memory = Memory::at(shared);
  if (thread_index == 0)
    for (uint stage = 0; stage < Memory::kStages; ++stage) {
      begin_barrier(memory.full + stage, kCopyThreads + 1);
      begin_barrier(memory.empty + stage, Memory::kWarps);
    }
  barriers_ready();
  const Rows in_workspace{from.group};
  if (thread_index >= kThreads) {
    if constexpr (kHasWarpgroups) leave_registers<kCopyRegisters>();
    copy_tile_windows<F, kQuads>(memory, in_workspace, part, n_windows, thread_index - kThreads,
                                 weights);
    return;
  }
  if constexpr (kHasWarpgroups) take_registers<kMultiplyRegisters<F>>();
  inputs_ready();
  const auto numbers = RowNumbers<kQuads>::of(in_workspace, k);
  multiply_tile_windows<F, kQuads, kOnWarpgroups>(memory, part, n_windows, numbers.scales,
                                                  thread_index, weights);
  const bool is_cluster = part.n_parts > 1 && part.n_parts <= kMostClusterBlocks;
  uint first = 0, last = 1;
  if (is_cluster) {
    const uint2 own = shares_after_cluster(part.place, part.part, part.n_parts, kMultiplyBarrier,
                                           kThreads, thread_index);
    first = own.x, last = own.y;
  } else if (part.n_parts > 1 && !last_to_meet(part.place, part.n_parts, kMultiplyBarrier, kThreads,
                                               thread_index, memory.is_last)) {
    return;
  }
  for (uint i = first; i < last; ++i) {
    const uint of_half = TileShare<F>::kHalf / (is_cluster ? part.n_parts : 1);
    const TileShare<F> share{i * of_half, of_half};
    if (part.n_parts > 1) add_classes<F, kQuads>(memory, part, share, numbers.scales, thread_index);
    meet_at(kMultiplyBarrier, kThreads);
    uint row = 0, index = thread_index;
    for (;; index += kThreads) {
      for (; index >= share.size(); index -= share.size()) ++row;
      if (row >= from.n_rows) break;
      const uint output = share.row(index);
      const auto sum_at = [&](uint r) {
        return memory.sums[r * Memory::kSumStride + row] * kOfSum;
      };
      finish(output, row, addend(output, row), sum_at, numbers.squares + row * kStreamWarps);
    }
  }
}

}  // namespace gpu
