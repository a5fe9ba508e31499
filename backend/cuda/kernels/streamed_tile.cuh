// Matmuls of more than 16 input rows, with the bits that streamed_rows.cuh gives one row: the same halves, the same products of
// tensor cores, added in the same order. For NVIDIA's GPUs with bulk copies. Hopper uses wgmma, which gives the same bits as
// mma.m16n8k16.
//
// 1. What limits the speed. Reads from L2: each tile of weight rows reads all inputs, as halves. And instructions: weights are
//    unpacked, and each output needs one fma for every 32 columns of k. So a tile has 256 weight rows (128 in the larger formats)
//    and 32 or 64 input rows; a warp has 16 of its weight rows.
// 2. An output is the sum of eight classes (streamed_rows.cuh). The block goes through k once for each, over every eighth window. A
//    lane has the sums of one class; those of the classes before wait in shared memory.
// 3. Where tiles are too few for the GPU, the classes of one are divided among several blocks. Each leaves its classes' sums in the
//    workspace; the block that comes last adds them up, in order.
// 4. Four warps copy: inputs in bulk (round_rows leaves those of a window side by side), weights in pieces of 16 bytes, since
//    a window of a weight row is too short for a bulk copy. The first weights are on their way before the input is there.
#pragma once

#include "cuda/kernels/streamed_rows.cuh"

namespace gpu {

template <class F>
constexpr uint kTileRows = F::kWindowBytes <= 160 ? 256 : 128;
constexpr uint kTileWarpRows = 16;
constexpr uint kTileSharedBytes = 231424, kTileBarrierBytes = 256, kTileAlignment = 1024;
constexpr uint kCopyThreads = 128;
// Registers of a thread that copies, and of one that multiplies.
constexpr uint kCopyRegisters = 32;
// Windows that are fetched to L2 before they are copied. (Of small tiles that costs more than it gives.)
template <uint kQuads>
constexpr uint kFetchedAhead = kQuads > 8 ? 3 : 0;
template <class F>
constexpr uint kMultiplyRegisters = kTileRows<F> == 256 ? 112 : 232;

// A window of a tile's inputs and weights.
template <class F, uint kQuads>
struct TileStage {
  using Rows = RoundedRows<kQuads>;
  static constexpr uint kHalfBytes = kWindowUnits * Rows::kAllBytes;
  static constexpr uint kInputBytes = kHalfBytes + Rows::kAllBytes;
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
  static constexpr uint kTotalBytes = kTileRows<F> * kRows * sizeof(float);
  static constexpr uint kBefore = kTileBarrierBytes + kTotalBytes + kTileAlignment;
  static constexpr uint kFit = (kTileSharedBytes - kBefore) / Stage::kBytes;
  static constexpr uint kStages = kFit > 4 ? 4 : kFit;
  static_assert(kStages >= 2, "copies run ahead");
  static constexpr uint kBytes = kBefore + kStages * Stage::kBytes;
  // In the end the tile's sums lie where the stages were: those of a weight row side by side.
  static constexpr uint kSumStride = kRows + 1;
  static_assert(kTileRows<F> * kSumStride * sizeof(float) <= kStages * Stage::kBytes);
  static_assert((2 * kStages + 1) * sizeof(ulong) <= kTileBarrierBytes);
  ulong *full, *empty;  // of each stage
  uint* is_last;
  float4* totals;  // [of a lane's, four][thread]
  uchar* stages;
  float* sums;
  AKUNU_DEVICE static TileMemory at(uchar* memory) {
    TileMemory own;
    own.full = reinterpret_cast<ulong*>(memory);
    own.empty = own.full + kStages;
    own.is_last = reinterpret_cast<uint*>(own.empty + kStages);
    own.totals = reinterpret_cast<float4*>(memory + kTileBarrierBytes);
    own.stages = memory + kTileBarrierBytes + kTotalBytes;
    own.stages += kTileAlignment - shared_address(own.stages) % kTileAlignment;
    own.sums = reinterpret_cast<float*>(own.stages);
    return own;
  }
  AKUNU_DEVICE uchar* halves(uint stage) const { return stages + stage * Stage::kBytes; }
  AKUNU_DEVICE uchar* weights(uint stage) const { return halves(stage) + Stage::kInputBytes; }
};

// Which classes of a tile a block has, and where the blocks of the tile leave the sums of each class: [class][weight row][row].
// `place`: where they meet.
struct TilePart {
  uint part, n_parts, place;
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

// Run by the kCopyThreads threads that copy, of which this is number `index`. row_at(r) points to weight row r of the tile.
template <class F, uint kQuads, class RowAt>
AKUNU_DEVICE void copy_tile_windows(const TileMemory<F, kQuads>& memory, RoundedRows<kQuads> from,
                                    TilePart part, uint n_windows, uint index,
                                    const RowAt& row_at) {
  using Memory = TileMemory<F, kQuads>;
  using Stage = typename Memory::Stage;
  static_assert(kTileRows<F> * Stage::kPieces % kCopyThreads == 0);
  const auto copy_tile_weights = [&](uint stage, uint window) {
    uchar* const to = memory.weights(stage);
#pragma unroll 3
    for (uint i = index; i < kTileRows<F> * Stage::kPieces; i += kCopyThreads) {
      const uint r = i / Stage::kPieces, piece = 16 * (i % Stage::kPieces);
      const uchar* const at = row_at(r) + window * F::kWindowBytes;
      const uint before = bytes_before<F>(at);
      if (F::kWindowBytes % 16 == 0 || piece < before + F::kWindowBytes)
        copy_16_bytes(to + r * Stage::kRowBytes + piece, at - before + piece, true);
    }
    end_copies();
  };
  const auto copy_tile_inputs = [&](uint stage, uint window) {
    if (index != 0) return;
    ulong* const full = memory.full + stage;
    arrive_expecting(full, Stage::kInputBytes);
    using Rows = RoundedRows<kQuads>;
    copy_bytes(memory.halves(stage), from.halves + window * kWindowUnits * Rows::kAllBytes,
               Stage::kHalfBytes, full);
    copy_bytes(memory.halves(stage) + Stage::kHalfBytes, from.sums + window * Rows::kAllBytes,
               Rows::kAllBytes, full);
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
  // What is copied after that comes to the L2 cache first: there are too few stages for the way from memory.
  WindowWalk further = ahead;
  const auto fetch_further = [&] {
    if (further.is_over()) return;
    for (uint r = index; r < kTileRows<F>; r += kCopyThreads) {
      const uchar* const at = row_at(r) + further.window * F::kWindowBytes;
      fetch_line_to_cache(at);
      fetch_line_to_cache(at + 128 < at + F::kWindowBytes - 1 ? at + 128 : at);
      if (F::kWindowBytes > 256) fetch_line_to_cache(at + F::kWindowBytes - 1);
    }
    further.next();
  };
  for (int i = 0; i < int(kFetchedAhead<kQuads>); ++i) fetch_further();
  inputs_ready();
  stores_before_copies();
  WindowWalk walk = WindowWalk::of(part, n_windows);
  for (uint stage = 0; stage < Memory::kStages && !walk.is_over(); ++stage, walk.next())
    copy_tile_inputs(stage, walk.window);
  // A stage is filled again once the one behind it has been announced, which nobody has to wait for then.
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
        if (kFetchedAhead<kQuads> > 0) fetch_further();
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

// A lane's sums of a class: 4 e + i is of weight row g (i = 0 and 1) or g + 8 of the warp's, and of input row 8 e + 2 t + i % 2.
template <uint kQuads>
struct LaneSums {
  static constexpr uint kCount = 2 * kQuads;
  float of[kCount];
};

// Two products with all columns, the second one added to the first where they are those of one sum: `inputs` is a unit's or the
// sums'. They are there after `wait_for_columns`.
template <bool kOnWarpgroups, uint kQuads>
AKUNU_DEVICE void begin_columns(LaneSums<kQuads>& products, UnitCodes& codes, const uchar* inputs,
                                uint first, uint last, uint lane) {
  if constexpr (kOnWarpgroups) {
    const ulong at = middle_inputs_at(inputs);
    begin_products();
    for (uint half = first; half <= last; ++half)
      add_product(products.of, codes.of[half], further(at, 32 * half), half - first);
    end_products();
  } else {
#pragma unroll
    for (uint e = 0; e < kQuads / 2; ++e) {
      const uint row = 8 * e + lane % 8;
      uint own[4];
      load_matrices(
          own, RoundedRows<kQuads>::word(const_cast<uchar*>(inputs) + kInputBytes * row,
                                         4 * (lane / 8), RoundedRows<kQuads>::swizzle(0, row)));
      float four[4] = {};
      for (uint half = first; half <= last; ++half)
        multiply_float16(four, codes.of[half], own[2 * half], own[2 * half + 1]);
#pragma unroll
      for (uint i = 0; i < 4; ++i) products.of[4 * e + i] = four[i];
    }
  }
}
template <bool kOnWarpgroups, uint kQuads>
AKUNU_DEVICE void wait_for_columns(LaneSums<kQuads>& products) {
  if constexpr (kOnWarpgroups) wait_for_products(products.of);
}

// Multiplies a window: `rows` are the lane's weight rows, `inputs` the window's units and, behind them, their sums.
template <class F, uint kQuads, bool kOnWarpgroups>
AKUNU_DEVICE void multiply_tile_window(const uchar* const (&rows)[2], const uchar* inputs,
                                       uint lane, LaneSums<kQuads>& sums) {
  using Rows = RoundedRows<kQuads>;
  const uint t = lane % 4;
  const auto add = [&](const LaneSums<kQuads>& products, float first, float second) {
#pragma unroll
    for (uint i = 0; i < LaneSums<kQuads>::kCount; ++i)
      sums.of[i] = fma(products.of[i], i % 4 < 2 ? first : second, sums.of[i]);
  };
  const auto codes_of = [&](uint unit) {
    return unit_codes<F>(rows[0], rows[1], unit / kStepUnits, unit % kStepUnits, t);
  };
  LaneSums<kQuads> products;
  UnitCodes codes = codes_of(0);
#pragma unroll
  for (uint unit = 0; unit < kWindowUnits; ++unit) {
    const uint step = unit / kStepUnits, u = unit % kStepUnits;
    const uchar* const at = inputs + unit * Rows::kAllBytes;
    UnitCodes next;
    UnitScales<F> first, second;
#pragma unroll
    for (uint s = 0; s < F::kScales; ++s) {
      begin_columns<kOnWarpgroups>(products, codes, at, s, F::kScales == 1 ? 1 : s, lane);
      if (s == 0) {
        first = F::scales(rows[0], step, u);
        second = F::scales(rows[1], step, u);
        if (unit + 1 < kWindowUnits)
          next = codes_of(unit + 1);
        else
          next = term_codes<F>(rows[0], rows[1], 0, t);
      }
      wait_for_columns<kOnWarpgroups>(products);
      add(products, first.scales[s], second.scales[s]);
    }
    codes = next;
  }
  begin_columns<kOnWarpgroups>(products, codes, inputs + kWindowUnits * Rows::kAllBytes, 0, 1,
                               lane);
  const float first = F::term_scale(rows[0], 0), second = F::term_scale(rows[1], 0);
  wait_for_columns<kOnWarpgroups>(products);
  add(products, first, second);
}

// Warps that multiply. Leave the sums of the block's classes, times their scales, in shared memory or, where a tile has several
// blocks, those of each class in the workspace.
template <class F, uint kQuads, bool kOnWarpgroups, class RowAt>
AKUNU_DEVICE void multiply_tile_windows(const TileMemory<F, kQuads>& memory, TilePart part,
                                        uint n_windows, const float* scales, uint thread_index,
                                        const RowAt& row_at) {
  using Memory = TileMemory<F, kQuads>;
  using Stage = typename Memory::Stage;
  using Sums = LaneSums<kQuads>;
  const uint lane = thread_index % 32, g = lane / 4, t = lane % 4;
  const uint first_row = thread_index / 32 * kTileWarpRows + g;
  const uchar* of_rows[2];  // where they lie on the GPU
#pragma unroll
  for (uint r = 0; r < 2; ++r)
    of_rows[r] = F::kWindowBytes % 16 == 0 ? nullptr : row_at(first_row + 8 * r);
  RingPlace ring{Memory::kStages};
  for (uint own = part.first_class(); own < part.last_class(); ++own) {
    Sums sums;
#pragma unroll
    for (uint i = 0; i < Sums::kCount; ++i) sums.of[i] = 0.0f;
    // Of two rows; a lane gets those that it needs from the others.
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
      multiply_tile_window<F, kQuads, kOnWarpgroups>(rows, memory.halves(ring.stage), lane, sums);
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
      float4& waiting = memory.totals[i / 4 * Memory::kThreads + thread_index];
      const float4 before = own == 0 ? float4(0.0f) : waiting;
      const float first = simd_shuffle(scales_of_two.x, i + t);
      const float second = simd_shuffle(scales_of_two.y, i + t);
      waiting = add_class(float4(sums.of[i], sums.of[i + 1], sums.of[i + 2], sums.of[i + 3]),
                          float4(first, second, first, second), before);
    }
  }
  if (part.n_parts > 1) return;
  meet_at(kMultiplyBarrier, Memory::kThreads);  // nobody reads stages any more
#pragma unroll
  for (uint i = 0; i < Sums::kCount; i += 4) {
    const float4 total = memory.totals[i / 4 * Memory::kThreads + thread_index];
    float* const at = memory.sums + first_row * Memory::kSumStride + i / 4 * 8 + 2 * t;
    at[0] = total.x;
    at[1] = total.y;
    at[8 * Memory::kSumStride] = total.z;
    at[8 * Memory::kSumStride + 1] = total.w;
  }
}

// Adds up the sums of all classes, in their order. The blocks of a tile have written them to the workspace.
template <class F, uint kQuads>
AKUNU_DEVICE void add_classes(const TileMemory<F, kQuads>& memory, TilePart part,
                              const float* scales, uint thread_index) {
  using Memory = TileMemory<F, kQuads>;
  constexpr uint kFours = kTileRows<F> * Memory::kRows / 4;
  // All fours of a thread are of the same rows.
  static_assert(Memory::kThreads % kQuads == 0);
  float4 scales_of[kStreamWarps];
#pragma unroll
  for (uint c = 0; c < kStreamWarps; ++c)
    scales_of[c] = reinterpret_cast<const float4*>(scales)[c * kQuads + thread_index % kQuads];
  for (uint i = thread_index; i < kFours; i += Memory::kThreads) {
    float4 of[kStreamWarps];
#pragma unroll
    for (uint c = 0; c < kStreamWarps; ++c)
      of[c] = reinterpret_cast<const float4*>(part.sums)[c * kFours + i];
    float4 sum = float4(0.0f);
#pragma unroll
    for (uint c = 0; c < kStreamWarps; ++c) sum = add_class(of[c], scales_of[c], sum);
    float* const at =
        memory.sums + 4 * i / Memory::kRows * Memory::kSumStride + 4 * i % Memory::kRows;
    at[0] = sum.x;
    at[1] = sum.y;
    at[2] = sum.z;
    at[3] = sum.w;
  }
}

// A block's tile, or its part of one. row_at(r) points to its weight row r, 0 to kTileRows<F> - 1. addend(output, row) is what the sum of one of
// its kOutputs outputs meets in memory; finish(output, row, addend, sum_at, squares) ends it, with sum_at(r) the product of
// weight row r.
template <class F, uint kQuads, uint kOutputs, bool kOnWarpgroups = kHasWarpgroups, class RowAt,
          class Addend, class Finish>
AKUNU_DEVICE void stream_tile(uchar* shared, StreamInput from, TilePart part, uint k,
                              uint thread_index, const RowAt& row_at, const Addend& addend,
                              const Finish& finish) {
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
  const Rows in_workspace = Rows::at(from.group, k / 32);
  if (thread_index >= kThreads) {
    if constexpr (kHasWarpgroups) leave_registers<kCopyRegisters>();
    copy_tile_windows<F, kQuads>(memory, in_workspace, part, n_windows, thread_index - kThreads,
                                 row_at);
    return;
  }
  if constexpr (kHasWarpgroups) take_registers<kMultiplyRegisters<F>>();
  inputs_ready();
  const auto numbers = RowNumbers<kQuads>::of(in_workspace, k);
  multiply_tile_windows<F, kQuads, kOnWarpgroups>(memory, part, n_windows, numbers.scales,
                                                  thread_index, row_at);
  if (part.n_parts > 1) {
    if (!last_to_meet(part.place, part.n_parts, kMultiplyBarrier, kThreads, thread_index,
                      memory.is_last))
      return;
    add_classes<F, kQuads>(memory, part, numbers.scales, thread_index);
  }
  meet_at(kMultiplyBarrier, kThreads);
  for (uint i = thread_index; i < kOutputs * from.n_rows; i += kThreads) {
    const uint output = i % kOutputs, row = i / kOutputs;
    const auto sum_at = [&](uint r) { return memory.sums[r * Memory::kSumStride + row] * kOfSum; };
    finish(output, row, addend(output, row), sum_at, numbers.squares + row * kStreamWarps);
  }
}

}  // namespace gpu
