// Matmuls of 1 to 16 input rows whose weights are streamed through shared memory, on Hopper and later GPUs.
//
// Lower bound of the time: the weights are read from memory once, for up to 16 rows.
// 1. A tile is 16 weight rows. One warp copies the tiles of its block, a chunk of k at a time, to a ring of stages in
//    shared memory (cp.async.bulk, an mbarrier for each stage). It begins before the input is ready, while the launch
//    before this one runs, so that the first stages are there when the input is.
// 2. Inputs are quantised in groups of 32, to 15-bit integers with a power of two as their common scale (int8_pair of
//    docs/kernels.md). Each is stored as two int8 numbers, 256 * upper + lower. Codes are bytes, too. An int8 product of tensor cores (mma.m16n8k32) multiplies a tile's unit of 32
//    of k by eight columns, two for an input row; its sums are exact.
// 3. A step is four units. Of several rows a product has the columns of four of them. Of one row four products, one for
//    each unit, are added up: in the columns of other units their inputs are 0: so a lane has the sums of one unit, and scales them
//    once for the step.
// 4. The kStreamWarps warps of a block take the steps of k in turn. For an output each keeps four sums, of every fourth
//    unit; they are added, and then what the warps found, in order. So the bits of an output depend on its weight row and
//    its input row alone.
// 5. One row: each warp rounds what it will multiply. Several: a launch before this one rounds the rows and leaves them in
//    the workspace (round_rows); a second warp copies them to shared memory. Where all of k is too much for that, they
//    come in passes, and the sums of the tiles wait in between.
// 6. Two blocks share a multiprocessor where their memory allows: when one ends, the first block of the next launch takes its
//    place and copies weights, while the other one still multiplies.

constexpr uint kStreamWarps = 8, kStreamThreads = 32 * kStreamWarps;
constexpr uint kStreamTileRows = 16, kStreamWindow = 256, kStreamMostStages = 16;
constexpr uint kStepUnits = 4, kStepsOfWindow = 2;
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

// What all weight rows meet of a unit of an input row: its codes times `scale` are the numbers.
struct UnitTerms {
  float scale;
  int sum;  // of the codes
};

// Rounded input rows, in shared memory or in the workspace. A unit of 32 has, for each column of a product, 32 bytes: lane t
// of four has the codes' bytes 4 t to 4 t + 3, then 16 + 4 t to 16 + 4 t + 3. Columns 2 r and 2 r + 1 are the upper and the
// lower bytes of row r.
template <uint kQuads>
struct RoundedRows {
  static constexpr uint kRows = kQuads == 0 ? 1 : 4 * kQuads;
  static constexpr uint kUnitBytes = 64 * kRows;
  uchar* codes;      // [unit][row][upper, lower][32]
  UnitTerms* terms;  // [unit][row]
  AKUNU_DEVICE static RoundedRows at(uchar* memory, uint n_units) {
    return {memory, reinterpret_cast<UnitTerms*>(memory + n_units * kUnitBytes)};
  }
  static constexpr uint kBytesOfUnit = kUnitBytes + kRows * uint(sizeof(UnitTerms));
};
// Of a group of input rows in the workspace: its rounded rows, then for each row and warp a sum of squares.
template <uint kQuads>
AKUNU_DEVICE ulong rounded_group_bytes(uint k) {
  using Rows = RoundedRows<kQuads>;
  return ulong(k / 32) * Rows::kBytesOfUnit + Rows::kRows * kStreamWarps * sizeof(float);
}

// --- Rounding ----------------------------------------------------------------------------------------

// Rounds the units of `row` that warp `warp` multiplies, times the norm's weights where there is a norm. Lane t of a unit's
// four has the numbers that lane t of a product has. Returns this lane's sum of the squares. `ready` is called before the first
// number of the row is read; weights of the norm are under way then.
template <class Rounded, class Ready>
AKUNU_DEVICE float round_units(const float* input, const float* norm, bool normalise, uint k,
                               Rounded to, uint row, uint warp, uint lane, const Ready& ready) {
  // Two steps at a time, eight units.
  constexpr uint kTogether = 4, kSteps = 2;
  const uint n_steps = k / 32 / kStepUnits, t = lane % 4, own_unit = lane / 4 % kStepUnits;
  const auto step_of = [&](uint turn) {
    return warp + kStreamWarps * (kSteps * turn + lane / 4 / kStepUnits);
  };
  const uint n_turns =
      (n_steps - min(warp, n_steps) + kStreamWarps * kSteps - 1) / (kStreamWarps * kSteps);
  const auto load_units = [&](const float* from, uint first, float4(&numbers)[kTogether][2]) {
#pragma unroll
    for (uint i = 0; i < kTogether; ++i) {
      const uint step = min(step_of(first + i), n_steps - 1);
      const float4* const at =
          reinterpret_cast<const float4*>(from + 32 * (kStepUnits * step + own_unit)) + t;
      if (first + i >= n_turns) break;
      numbers[i][0] = at[0];
      numbers[i][1] = at[4];
    }
  };
  float squares = 0.0f;
  float4 x[kTogether][2], weights[kTogether][2];
  if (normalise) load_units(norm, 0, weights);
  ready();
  for (uint first = 0; first < n_turns; first += kTogether) {
    if (normalise && first != 0) load_units(norm, first, weights);
    load_units(input, first, x);
#pragma unroll
    for (uint i = 0; i < kTogether; ++i) {
      if (first + i >= n_turns) break;
      const uint step = step_of(first + i);
      const bool is_there = step < n_steps;
      float numbers[8] = {x[i][0].x, x[i][0].y, x[i][0].z, x[i][0].w,
                          x[i][1].x, x[i][1].y, x[i][1].z, x[i][1].w};
      if (normalise) {
        const float4(&w)[2] = weights[i];
        const float of_norm[8] = {w[0].x, w[0].y, w[0].z, w[0].w, w[1].x, w[1].y, w[1].z, w[1].w};
#pragma unroll
        for (uint n = 0; n < 8; ++n) {
          if (is_there) squares = fma(numbers[n], numbers[n], squares);
          numbers[n] *= of_norm[n];
        }
      }
      // The exponent of the largest; what is not finite has the largest exponent of all.
      uint most = 0;
#pragma unroll
      for (uint n = 0; n < 8; ++n) most = max(most, as_type<uint>(numbers[n]) & 0x7fffffffu);
      most = max(most, simd_shuffle_xor(most, 1));
      most = max(most, simd_shuffle_xor(most, 2));
      const uint exponent = max(most >> 23, 14u);
      const bool is_finite = exponent < 255;
      const float scale = as_type<float>(is_finite ? (exponent - 13) << 23 : 0x7fc00000u);
      const float inverse = as_type<float>(is_finite ? (267 - exponent) << 23 : 0u);
      // 1.5 * 2^23 and a whole number: its last bits are the code's. The sum of 32 of them is taken off below.
      uint codes[8], sum = 0;
#pragma unroll
      for (uint n = 0; n < 8; ++n) {
        codes[n] = as_type<uint>(fma(numbers[n], inverse, 12582912.0f));
        sum += codes[n];
      }
      sum += simd_shuffle_xor(sum, 1);
      sum += simd_shuffle_xor(sum, 2);
      if (!is_there) continue;
      const auto bytes_of = [&](uint half, uint which, uint add) {
        const uint* const c = codes + 4 * half;
        return choose_bytes(choose_bytes(c[0] + add, c[1] + add, which),
                            choose_bytes(c[2] + add, c[3] + add, which), 0x5410);
      };
      const uint unit = kStepUnits * step + own_unit;
      uint2* const at =
          reinterpret_cast<uint2*>(to.codes + unit * Rounded::kUnitBytes + 64 * row) + t;
      at[0] = uint2(bytes_of(0, 0x0051, 128), bytes_of(1, 0x0051, 128));
      at[4] = uint2(bytes_of(0, 0x0040, 0), bytes_of(1, 0x0040, 0));
      if (t == 0)
        to.terms[unit * Rounded::kRows + row] =
            UnitTerms{scale, is_finite ? int(sum - 32 * 0x4b400000u) : 0};
    }
  }
  return squares;
}

// The sum over the warps of a block.
AKUNU_DEVICE float sum_of_squares(const float* of_warps) {
  float sum = 0.0f;
#pragma unroll
  for (uint warp = 0; warp < kStreamWarps; ++warp) sum += of_warps[warp];
  return sum;
}

// A block's work in the launch before that of several rows: rounds one row, or leaves zeros for one that is not there.
template <uint kQuads>
AKUNU_DEVICE void round_row_of_several(const float* input, const float* norm, bool normalise,
                                       uint k, uchar* group, uint row, bool is_there,
                                       uint thread_index) {
  using Rows = RoundedRows<kQuads>;
  const Rows to = Rows::at(group, k / 32);
  const uint warp = thread_index / 32, lane = thread_index % 32;
  float squares = 0.0f;
  if (is_there) {
    squares = simd_sum(
        round_units(input, norm, normalise, k, to, row, warp, lane, [] { inputs_ready(); }));
  } else {
    inputs_ready();  // the workspace may still be read
    for (uint unit = warp; unit < k / 32; unit += kStreamWarps) {
      if (lane < 16)
        reinterpret_cast<uint*>(to.codes + unit * Rows::kUnitBytes + 64 * row)[lane] = 0;
      if (lane == 0) to.terms[unit * Rows::kRows + row] = UnitTerms{0.0f, 0};
    }
  }
  float* const of_warps = reinterpret_cast<float*>(to.terms + k / 32 * Rows::kRows);
  if (lane == 0) of_warps[row * kStreamWarps + warp] = squares;
}

// --- Multiplying ---------------------------------------------------------------------------------------

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

// A lane's sums for a tile, of weight rows l / 4 and l / 4 + 8. One row: of units l % 4 of the steps. Several: of input rows
// 4 q + l % 4, each of the four units by itself.
template <uint kQuads>
struct TileSums {
  static constexpr uint kMany = kQuads == 0 ? 1 : kQuads, kOfUnits = kQuads == 0 ? 1 : kStepUnits;
  static constexpr uint kFloats = 2 * kMany * kOfUnits;
  float of[2][kMany][kOfUnits];

  AKUNU_DEVICE float total(uint r, uint q) const {
    if (kQuads != 0)
      return (of[r][q][0] + of[r][q][1 % kOfUnits]) +
             (of[r][q][2 % kOfUnits] + of[r][q][3 % kOfUnits]);
    float sum = of[r][0][0];
    sum += simd_shuffle_xor(sum, 1);
    sum += simd_shuffle_xor(sum, 2);
    return sum;
  }
};

// A block's shared memory: barriers, squares, and behind them what the plan says.
constexpr uint kSquaresAt = 320, kInputsAt = 384;
static_assert((2 * kStreamMostStages + 2) * sizeof(ulong) <= kSquaresAt);
static_assert(kSquaresAt + kStreamWarps * sizeof(float) <= kInputsAt);
template <uint kQuads>
struct StreamMemory {
  using Rows = RoundedRows<kQuads>;
  // Of one tile: what each warp found.
  static constexpr uint kSlotFloats = kStreamWarps * kStreamTileRows * Rows::kRows;
  static constexpr uint kWaitingFloats = kStreamThreads * TileSums<kQuads>::kFloats;
  ulong *full, *empty;  // of the stages
  ulong *inputs_full, *inputs_empty;
  float* squares;  // of each warp, of one row
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
    own.squares = reinterpret_cast<float*>(memory + kSquaresAt);
    own.inputs = Rows::at(memory + kInputsAt, n_units);
    own.waiting = reinterpret_cast<float*>(own.inputs.terms + n_units * Rows::kRows);
    own.slots = own.waiting + (plan.pass == 0 ? 0 : plan.n_slots * kWaitingFloats);
    own.ring = reinterpret_cast<uchar*>(own.slots + plan.n_slots * kSlotFloats);
    return own;
  }
};

// Adds to a sum what a unit of a weight row gives: its products, whole numbers, of the upper and the lower bytes.
template <class F>
AKUNU_DEVICE void add_unit(const UnitScales<F>& weight, const int (&upper)[F::kScales],
                           const int (&lower)[F::kScales], UnitTerms terms, float& sum) {
  const int less = int(F::kOffset) * terms.sum;
  float found = float(upper[0] * 256 + lower[0] - less) * weight.scales[0];
  if (F::kScales == 2)
    found = fma(float(upper[F::kScales - 1] * 256 + lower[F::kScales - 1]),
                weight.scales[F::kScales - 1], found);
  sum = fma(found, terms.scale, sum);
  // (The input's numbers may be too large for their sum.)
  if (F::kMinimum) sum = fma(weight.minimum * float(terms.sum), terms.scale, sum);
}

// The product of a unit: with two scales, of its halves apart.
template <class F>
AKUNU_DEVICE void multiply_unit(int (&products)[F::kScales][4], const uint (&first)[2],
                                const uint (&second)[2], uint b_upper, uint b_lower) {
  if constexpr (F::kScales == 1) {
    const uint a[4] = {first[0], second[0], first[1], second[1]};
    multiply_bytes(products[0], a, b_upper, b_lower);
  } else {
    multiply_bytes_16(products[0], first[0], second[0], b_upper);
    multiply_bytes_16(products[1], first[1], second[1], b_lower);
  }
}

// Adds the products of the lane's weight row r of two.
template <class F>
AKUNU_DEVICE void add_products(const int (&products)[F::kScales][4], uint r,
                               const UnitScales<F>& weight, UnitTerms terms, float& sum) {
  int upper[F::kScales], lower[F::kScales];
#pragma unroll
  for (uint s = 0; s < F::kScales; ++s) {
    upper[s] = products[s][2 * r];
    lower[s] = products[s][2 * r + 1];
  }
  add_unit<F>(weight, upper, lower, terms, sum);
}

// Multiplies a step: `rows` are the lane's two weight rows in a stage, `unit` is the first unit of the step among the inputs.
template <class F, uint kQuads>
AKUNU_DEVICE void multiply_step(const uchar* const (&rows)[2], uint step,
                                RoundedRows<kQuads> inputs, uint unit, uint lane,
                                TileSums<kQuads>& sums) {
  using Rows = RoundedRows<kQuads>;
  const uint g = lane / 4, t = lane % 4;
  const StepCodes codes[2] = {F::codes(rows[0], step, t), F::codes(rows[1], step, t)};
  if constexpr (kQuads == 0) {
    const uint2 own =
        *reinterpret_cast<const uint2*>(inputs.codes + unit * Rows::kUnitBytes + 32 * g + 8 * t);
    const UnitTerms terms = inputs.terms[unit + t];
    int products[F::kScales][4] = {};
#pragma unroll
    for (uint u = 0; u < kStepUnits; ++u) {
      const bool is_own = g / 2 == u;
      multiply_unit<F>(products, codes[0].of[u], codes[1].of[u], is_own ? own.x : 0u,
                       is_own ? own.y : 0u);
    }
#pragma unroll
    for (uint r = 0; r < 2; ++r)
      add_products<F>(products, r, F::scales(rows[r], step, t), terms, sums.of[r][0][0]);
  } else {
#pragma unroll
    for (uint u = 0; u < kStepUnits; ++u) {
      const UnitScales<F> scales[2] = {F::scales(rows[0], step, u), F::scales(rows[1], step, u)};
#pragma unroll
      for (uint q = 0; q < kQuads; ++q) {
        const uint2 b = *reinterpret_cast<const uint2*>(
            inputs.codes + (unit + u) * Rows::kUnitBytes + 32 * (8 * q + g) + 8 * t);
        const UnitTerms terms = inputs.terms[(unit + u) * Rows::kRows + 4 * q + t];
        int products[F::kScales][4] = {};
        multiply_unit<F>(products, codes[0].of[u], codes[1].of[u], b.x, b.y);
#pragma unroll
        for (uint r = 0; r < 2; ++r)
          add_products<F>(products, r, scales[r], terms, sums.of[r][q][u]);
      }
    }
  }
}

// The input of a launch: one row and the weights of its norm, or the quantised rows of a group in the workspace.
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
    const uint unit = begin * (kStreamWindow / 32), n_units = (end - begin) * (kStreamWindow / 32);
    const uint code_bytes = n_units * Rows::kUnitBytes;
    const uint term_bytes = n_units * Rows::kRows * uint(sizeof(UnitTerms));
    stores_before_copies();
    arrive_expecting(memory.inputs_full, code_bytes + term_bytes);
    copy_bytes(memory.inputs.codes, from.codes + unit * Rows::kUnitBytes, code_bytes,
               memory.inputs_full);
    copy_bytes(memory.inputs.terms, from.terms + unit * Rows::kRows, term_bytes,
               memory.inputs_full);
  };
  const auto nothing = [](auto...) {};
  walk.go(copy_pass, nothing, nothing, nothing, nothing, nothing);
}

// The other warps multiply. Of each of a tile's kOutputs outputs and each input row, addend(tile, output, row) is what its sum
// meets in memory: of a thread's first output of a batch it is read before the batch is multiplied. finish(tile, output, row,
// addend, sum_at, squares) ends it, with sum_at(r) the product of weight row r.
template <class F, uint kQuads, uint kOutputs, class RowAt, class Addend, class Finish>
AKUNU_DEVICE void multiply_tiles(const StreamMemory<kQuads>& memory, const StreamWalk& walk,
                                 const float* squares, uint n_rows, uint thread_index,
                                 const RowAt& row_at, const Addend& addend, const Finish& finish) {
  using Memory = StreamMemory<kQuads>;
  constexpr uint kRows = RoundedRows<kQuads>::kRows, kMany = TileSums<kQuads>::kMany;
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
  const auto begin_tile = [&](uint tile, uint slot, uint window) {
    if (F::kWindowBytes % 16 != 0)
      for (uint r = 0; r < 2; ++r) of_tile[r] = row_at(tile, g + 8 * r);
    float* const all = &sums.of[0][0][0];
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
    const uint before = window * kStepsOfWindow, n_steps = n_windows * kStepsOfWindow;
    const uint before_in_pass = (window - pass) * kStepsOfWindow;
#pragma unroll 2
    for (uint step = (warp - before) % kStreamWarps; step < n_steps; step += kStreamWarps)
      multiply_step<F, kQuads>(rows, step, memory.inputs, kStepUnits * (before_in_pass + step),
                               lane, sums);
    simdgroup_barrier(mem_flags::mem_none);
    if (lane == 0) arrive(memory.empty + ring.stage);
    ring.advance();
  };
  const auto end_tile = [&](uint slot, uint to) {
    if (to < walk.n_windows) {
      const float* const all = &sums.of[0][0][0];
#pragma unroll
      for (uint i = 0; i < TileSums<kQuads>::kFloats; ++i)
        waiting_of(slot)[i * kStreamThreads] = all[i];
      return;
    }
    float* const own = memory.slots + slot * Memory::kSlotFloats + warp * kStreamTileRows * kRows;
#pragma unroll
    for (uint r = 0; r < 2; ++r)
#pragma unroll
      for (uint q = 0; q < kMany; ++q) {
        const float total = sums.total(r, q);
        if (kQuads != 0 || t == 0) own[(g + 8 * r) * kRows + (kQuads == 0 ? 0 : 4 * q + t)] = total;
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
          sum += of_slot[(w * kStreamTileRows + r) * kRows + of_row];
        return sum;
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
  const Rows in_workspace = Rows::at(from.group, k / 32);
  if (warp > kStreamWarps) return copy_rows<kQuads>(memory, walk, in_workspace, lane);
  const float* squares = reinterpret_cast<const float*>(in_workspace.terms + k / 32 * Rows::kRows);
  if (kQuads == 0) {
    const float of_warp =
        simd_sum(round_units(from.input, from.norm, from.normalise, k, memory.inputs, 0, warp, lane,
                             [] { inputs_ready(); }));
    if (lane == 0) memory.squares[warp] = of_warp;
    simdgroup_barrier(mem_flags::mem_none);
    squares = memory.squares;
  }
  multiply_tiles<F, kQuads, kOutputs>(memory, walk, squares, from.n_rows, thread_index, row_at,
                                      addend, finish);
}
