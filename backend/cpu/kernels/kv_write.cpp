// kv_write: the row's key and value, rounded to the caches' format, at (sequence, position)
//   0 key, 1 value: rows [rows, n_kv_heads * head_dim]
//   2 key_cache, 3 value_cache   25 KvWriteParams
// rope_kv_write: rope of query (in place) and key, then kv_write; `key` itself stays as it was
//   0 query: rows [rows, n_heads * head_dim]   1 key, 2 value   3 angles: rows [rows, 2 n_pairs]
//   4 key_cache, 5 value_cache   25 RopeKvWriteParams
// norm_rope_kv_write: head_norm of query and key first
//   as above, 6 query_norm, 7 key_norm: vectors [head_dim]
// kv_rotate: the pairs of the row's cached key turn, the same angles for all rows; rounded again, in whole blocks
//   0 turn: vector [2 n_pairs], as a row of angles   1 key_cache   25 KvRotateParams
//   slices: one row   limit: latency
// The fused kernels call what the unfused ones call, on the same numbers: equal bit for bit.
#include "cpu/isa/isa.h"
#include "cpu/kernels/formats.h"
#include "cpu/kernels/heads.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Values>
using KeyFormat = typename KeysBeside<Values>::Type;

template <class Isa, class Format>
struct KvWrite {
  static void row(const Call& call, const KvWriteParams& params, uint64_t r, std::byte*) {
    const Row& row = call.rows[r];
    if (!(row.flags & kRowActive)) return;
    const uint64_t stride = uint64_t{params.n_kv_heads} * params.head_dim;
    const float* key = operand<const float>(call, 0, r, stride);
    const float* value = operand<const float>(call, 1, r, stride);
    for (uint32_t h = 0; h < params.n_kv_heads; ++h) {
      const uint64_t offset = cache_element(call, params, row.sequence, h, row.position);
      const uint64_t head = uint64_t{h} * params.head_dim;
      store_head<Isa, KeyFormat<Format>>(key + head, params.head_dim, call.operands[2], offset);
      store_head<Isa, Format>(value + head, params.head_dim, call.operands[3], offset);
    }
  }
};

template <class Isa, class Format, bool kNorm>
struct RopeKvWrite {
  static void row(const Call& call, const RopeKvWriteParams& params, uint64_t r,
                  std::byte* scratch) {
    const Row& row = call.rows[r];
    const uint32_t head_dim = params.head_dim;
    const uint64_t stride = uint64_t{params.n_kv_heads} * head_dim;
    const uint64_t head_bytes = sizeof(float) * uint64_t{head_dim};
    float* query = operand<float>(call, 0, r, uint64_t{params.n_heads} * head_dim);
    const float* key = operand<const float>(call, 1, r, stride);
    const float* value = operand<const float>(call, 2, r, stride);
    float* const rotated = reinterpret_cast<float*>(scratch);
    const Angles<1> angles =
        deinterleave(operand<const float>(call, 3, r, uint64_t{2} * params.n_pairs), params.n_pairs,
                     rotated + head_dim);
    const float* query_norm = kNorm ? operand<const float>(call, 6, 0, 0) : nullptr;
    const float* key_norm = kNorm ? operand<const float>(call, 7, 0, 0) : nullptr;

    for (uint32_t h = 0; h < params.n_heads; ++h) {
      float* head = query + uint64_t{h} * head_dim;
      // Of the next row: other workers have just written it.
      prefetch_lines<kIntoL1>(head + uint64_t{params.n_heads} * head_dim, head_bytes);
      norm_and_rotate<Isa>(head, query_norm, params, angles, head);
    }
    if (!(row.flags & kRowActive)) return;
    for (uint32_t h = 0; h < params.n_kv_heads; ++h) {
      const uint64_t offset = cache_element(call, params, row.sequence, h, row.position);
      const float* head = key + uint64_t{h} * head_dim;
      prefetch_lines<kIntoL1>(head + stride, head_bytes);
      prefetch_lines<kIntoL1>(value + uint64_t{h} * head_dim + stride, head_bytes);
      norm_and_rotate<Isa>(head, key_norm, params, angles, rotated);
      store_head<Isa, KeyFormat<Format>>(rotated, head_dim, call.operands[4], offset);
      store_head<Isa, Format>(value + uint64_t{h} * head_dim, head_dim, call.operands[5], offset);
    }
  }
  static uint64_t scratch_bytes(const Call& call) {
    const auto& params = *static_cast<const RopeKvWriteParams*>(call.params);
    return sizeof(float) * (uint64_t{params.head_dim} + uint64_t{2} * params.n_pairs);
  }
};

template <class Isa, class Format>
struct KvRotate {
  static void row(const Call& call, const KvRotateParams& params, uint64_t r, std::byte* scratch) {
    const Row& row = call.rows[r];
    if (!(row.flags & kRowActive)) return;
    const uint32_t n = stored(params);
    float* const turned = reinterpret_cast<float*>(scratch);
    const Angles<1> turn =
        deinterleave(operand<const float>(call, 0, 0, 0), params.n_pairs, turned + n);
    for (uint32_t h = 0; h < params.n_kv_heads; ++h) {
      const uint64_t offset =
          cache_element(call, params, row.sequence, h, row.position) + params.first_dim;
      for (uint32_t i = 0; i < n; i += Isa::kLanes) {
        const uint32_t left = n - i < Isa::kLanes ? n - i : Isa::kLanes;
        Isa::store(turned + i, Format::load(call.operands[1], offset + i, left), left);
      }
      rotate_head<Isa>(turned, turn, params.n_pairs, params.style);
      store_head<Isa, Format>(turned, n, call.operands[1], offset);
    }
  }
  static uint64_t scratch_bytes(const Call& call) {
    const auto& params = *static_cast<const KvRotateParams*>(call.params);
    return sizeof(float) * (uint64_t{2} * params.n_pairs + stored(params));
  }

 private:
  // Numbers that are written again: those behind the last pair are in its block.
  static uint32_t stored(const KvRotateParams& params) {
    const uint32_t turning = 2 * params.n_pairs;
    return IsInBlocks<Format> ? (turning + kCacheBlock - 1) / kCacheBlock * kCacheBlock : turning;
  }
};

template <template <class> class Format>
constexpr KernelEntry kv_rotate() {
  using Rotate = KvRotate<ThisIsa, Format<ThisIsa>>;
  using Rows = RowsKernel<ThisIsa, KvRotateParams, Rotate>;
  return {{Operation::kv_rotate, kAny, {kAbsent, kAbsent, kAbsent}, Format<ThisIsa>::kFormat},
          {Rows::slices, Rows::run, Rotate::scratch_bytes}};
}

template <template <class> class Format>
constexpr KernelEntry kv_write() {
  using Rows = RowsKernel<ThisIsa, KvWriteParams, KvWrite<ThisIsa, Format<ThisIsa>>>;
  return {{Operation::kv_write, kAny, {kAbsent, kAbsent, kAbsent}, Format<ThisIsa>::kFormat},
          {Rows::slices, Rows::run, nullptr}};
}

template <template <class> class Format, bool kNorm>
constexpr KernelEntry fused() {
  using Write = RopeKvWrite<ThisIsa, Format<ThisIsa>, kNorm>;
  using Rows = RowsKernel<ThisIsa, RopeKvWriteParams, Write>;
  return {{kNorm ? Operation::norm_rope_kv_write : Operation::rope_kv_write,
           kAny,
           {kAbsent, kAbsent, kAbsent},
           Format<ThisIsa>::kFormat},
          {Rows::slices, Rows::run, Write::scratch_bytes}};
}

constexpr KernelEntry kKvWriteEntries[] = {
    kv_write<F32>(),           kv_write<F16>(),           kv_write<CacheQ8_0>(),
    kv_write<CacheQ4_0>(),     kv_rotate<F32>(),          kv_rotate<F16>(),
    kv_rotate<CacheQ8_0>(),    fused<F32, false>(),       fused<F16, false>(),
    fused<CacheQ8_0, false>(), fused<CacheQ4_0, false>(), fused<F32, true>(),
    fused<F16, true>(),        fused<CacheQ8_0, true>(),  fused<CacheQ4_0, true>(),
};

}  // namespace

template <>
KernelList Families<ThisIsa>::kv_write() {
  return list_of(kKvWriteEntries);
}

}  // namespace akunu::cpu
