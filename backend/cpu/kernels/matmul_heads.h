// matmul_rope_kv_write: matmul_group of query, key and value, then rope_kv_write, or
// norm_rope_kv_write where norms are bound.
//   0 input   1-3 weights of query, key, value   4-6 biases, where bound   7 query: rows [rows, n_heads * head_dim]
//   8 angles: rows [rows, 2 n_pairs]   9 key_cache   10 value_cache   11 query_norm, 12 key_norm: vectors, or null
//   25 MatmulRopeKvWriteParams
//   slices: as matmul_group's, but of whole heads
//
// 1. What bounds it. Of a prompt, beside the products, writing results: on a matrix unit a quarter
//    of the matmul's time.
// 2. What is done about it. The results of a slice are still in L2 when its heads are normed,
//    rotated and stored. Float32 keys and values never go to memory, and queries go there once. A
//    matmul kernel that completes row by row (kRowByRow) reuses the memory of one row, in L1.
// 3. Not for generated rows: slices of whole heads are too few to be shared evenly.
//    docs/decisions/prompts-on-the-cpu.md.
#pragma once

#include "cpu/kernels/heads.h"
#include "cpu/kernels/matmul.h"

namespace akunu::cpu {

// With caches in `Format`.
template <class Isa, class Format>
struct MatmulHeads {
  using Params = MatmulRopeKvWriteParams;
  static constexpr uint32_t kQuery = 0, kValue = 2;  // members; key between them
  // Slots behind those of a group's biases.
  static constexpr uint32_t kQueryOut = kGroupOut, kAngles = kQueryOut + 1;
  static constexpr uint32_t kKeyCache = kQueryOut + 2, kValueCache = kQueryOut + 3;
  static constexpr uint32_t kQueryNorm = kQueryOut + 4, kKeyNorm = kQueryOut + 5;

  static uint64_t slices(const Call& call) {
    return count_group_slices(call, [&](uint32_t i) { return part_of(call, i, call.n_rows); });
  }

  static uint64_t at_once(const Call& call) {
    uint64_t most = 1;
    for (uint32_t i = 0; i < kMaxGroup; ++i) {
      const uint64_t of_member = part_of(call, i, call.n_rows).tiling.at_once;
      if (of_member > most) most = of_member;
    }
    return most;
  }

  // A head, the results of slices at once, and behind them what multiplying takes.
  static uint64_t scratch_bytes(const Call& call) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < kMaxGroup; ++i) {
      const uint64_t bytes = results_bytes(call, i, part_of(call, i, UINT32_MAX).tiling) +
                             kernel_of(call, i)->scratch_bytes(params_of(call).k);
      if (bytes > most) most = bytes;
    }
    return most + head_bytes(params_of(call));
  }

  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    run_group_slices(
        call, begin, end, [&](uint32_t i) { return part_of(call, i, call.n_rows); },
        [&](uint32_t i) { return member(call, i); },
        [&](uint32_t i, const MatmulMember& member, const MatmulSlice& slice) {
          run_slice(call, i, member, slice, scratch);
        });
  }

  // False where `known` has no kernel for a weight of the request.
  template <uint32_t N>
  static bool find(const MatmulKernels (&known)[N], const KernelKey& request, Kernel& kernel) {
    kernel = {slices, run, scratch_bytes, at_once};
    for (uint32_t i = 0; i < kMaxGroup; ++i) {
      kernel.members[i] = find_matmul_kernel(known, request, i);
      if (kernel.members[i] == nullptr) return false;
    }
    return true;
  }

 private:
  static const Params& params_of(const Call& call) {
    return *static_cast<const Params*>(call.params);
  }
  static const float* vector(const Call& call, uint32_t slot) {
    return reinterpret_cast<const float*>(call.operands[slot]);
  }
  static uint32_t columns(const Params& params, uint32_t i) {
    const RopeKvWriteParams& heads = params.heads;
    return (i == kQuery ? heads.n_heads : heads.n_kv_heads) * heads.head_dim;
  }
  // Whole heads: as many as fit the columns of a slice, but one at least. And as many slices at
  // once as fit the kernel's.
  static MatmulPart part_of(const Call& call, uint32_t i, uint32_t n_rows) {
    const Params& params = params_of(call);
    const MatmulTiling tiling = tiling_of(*kernel_of(call, i), params.k, n_rows);
    const uint32_t head_dim = params.heads.head_dim;
    const uint32_t n_columns =
        head_dim < tiling.columns ? tiling.columns / head_dim * head_dim : head_dim;
    const uint32_t at_once = tiling.at_once * tiling.columns / n_columns;
    return {{n_columns, tiling.rows, at_once == 0 ? 1 : at_once}, columns(params, i)};
  }
  static MatmulMember member(const Call& call, uint32_t i) {
    const Params& params = params_of(call);
    return {call.operands[kGroupWeight + i],
            vector(call, kGroupBias + i),
            nullptr,
            columns(params, i),
            params.k,
            0,
            call.kernel->l1_panel_bytes,
            false,
            more_planes_of(call, i)};
  }

  static uint64_t whole_lines(uint64_t floats) { return (sizeof(float) * floats + 63) / 64 * 64; }
  // The most columns that a matmul of the group multiplies in one call.
  static uint32_t widest(const MatmulKernel& kernel, uint32_t k, uint32_t n_rows) {
    return kernel.columns(k, n_rows) * kernel.at_once;
  }
  static uint64_t results_bytes(const Call& call, uint32_t i, const MatmulTiling& tiling) {
    const MatmulKernel& kernel = *kernel_of(call, i);
    const uint64_t width = uint64_t{tiling.columns} * tiling.at_once;
    const bool one_row =
        kernel.row_by_row && width <= widest(kernel, params_of(call).k, UINT32_MAX);
    return whole_lines(width * (one_row ? 1 : tiling.rows));
  }
  static uint64_t head_bytes(const Params& params) { return whole_lines(params.heads.head_dim); }

  // What `finish_row` is called with.
  struct Rows {
    const Call& call;
    uint32_t member;
    const MatmulSlice& slice;
    const float* results;
    float* head_room;
  };

  static void run_slice(const Call& call, uint32_t i, MatmulMember to_scratch,
                        const MatmulSlice& slice, std::byte* scratch) {
    const MatmulKernel& kernel = *kernel_of(call, i);
    const Params& params = params_of(call);
    const uint64_t width = slice.end - slice.begin;
    const uint32_t step = widest(kernel, params.k, call.n_rows);  // a head may be wider
    auto* const head_room = reinterpret_cast<float*>(scratch);
    auto* const results = reinterpret_cast<float*>(scratch + head_bytes(params));
    std::byte* const rest =
        scratch + head_bytes(params) + results_bytes(call, i, part_of(call, i, call.n_rows).tiling);
    const Rows rows{call, i, slice, results, head_room};
    if (kernel.row_by_row && width <= step) {
      to_scratch.out = results - slice.begin;
      to_scratch.stride = 0;
      to_scratch.row_done = [](const void* context, uint64_t r) {
        const Rows& of = *static_cast<const Rows*>(context);
        finish_row(of.call, of.member, r, of.slice, of.results, of.head_room);
      };
      to_scratch.context = &rows;
      return kernel.run(to_scratch, call.operands[0], slice, rest);
    }
    // The address that output [0, 0] would have, so that the slice's first row and column are results[0].
    to_scratch.out = results - (slice.first_row * width + slice.begin);
    to_scratch.stride = width;
    for (uint64_t j = slice.begin; j < slice.end; j += step)
      kernel.run(to_scratch, call.operands[0],
                 {slice.first_row, slice.n_rows, j, slice.end - j < step ? slice.end : j + step},
                 rest);
    for (uint32_t r = 0; r < slice.n_rows; ++r)
      finish_row(call, i, slice.first_row + r, slice, results + r * width, head_room);
  }

  // The heads of one row, which are at `heads`.
  static void finish_row(const Call& call, uint32_t i, uint64_t r, const MatmulSlice& slice,
                         const float* heads, float* room) {
    const RopeKvWriteParams& params = params_of(call).heads;
    const uint32_t head_dim = params.head_dim;
    const auto first = static_cast<uint32_t>(slice.begin / head_dim);
    const auto end = static_cast<uint32_t>(slice.end / head_dim);
    const Angles<2> angles = interleaved(vector(call, kAngles) + r * 2 * params.n_pairs);
    if (i == kQuery) {
      float* query = reinterpret_cast<float*>(call.operands[kQueryOut]) +
                     (r * params.n_heads + first) * uint64_t{head_dim};
      for (uint32_t h = first; h < end; ++h, heads += head_dim, query += head_dim)
        norm_and_rotate<Isa>(heads, vector(call, kQueryNorm), params, angles, query);
      return;
    }
    const Row& row = call.rows[r];
    if (!(row.flags & kRowActive)) return;
    for (uint32_t h = first; h < end; ++h, heads += head_dim) {
      const uint64_t offset = cache_element(call, params, row.sequence, h, row.position);
      if (i == kValue) {
        store_head<Isa, Format>(heads, head_dim, call.operands[kValueCache], offset);
        continue;
      }
      norm_and_rotate<Isa>(heads, vector(call, kKeyNorm), params, angles, room);
      store_head<Isa, Format>(room, head_dim, call.operands[kKeyCache], offset);
    }
  }
};

}  // namespace akunu::cpu
