// attention of single rows and few, and rope_attention.
//
// Floor: the keys and values that the row sees, once per group of query heads. A cache of positions
// is cut into units of 64, at multiples of 64 (so never across a page of 256), and unit u belongs
// to split u mod kSplits, whatever the length: a row's result depends on kv_length alone, not on
// how many splits had work. A split is a SIMD-group of its own, with its own maximum, sum and
// values: no barrier between the SIMD-groups of a threadgroup after the prologue. What the splits
// found meets in a launch of its own (attention_combine), in order of their units: Metal before 3.2
// orders no memory between threadgroups of one launch.
//
// A SIMD-group takes 32 positions at a time. Scores: eight lanes to a position, four positions side
// by side, so that loads of keys follow one another in memory; three shuffles join the lanes, and
// every loaded key serves up to eight query heads, which lie in threadgroup memory. Values: a lane
// owns kDims neighbouring dimensions and walks the positions. Registers: eight heads times kDims
// sums.
//
// Positions outside the row's range are never loaded, and weigh 0: other rows' numbers (a NaN of
// theirs included) do not exist for this row. A cache that wraps around or clamps (a ring for
// windows) would break both the causal order and this; the window only moves the beginning of the
// range.
//
// rope_attention turns its query heads in the prologue, and the keys of the rows of its own span up
// to its own. It attends to those out of the operands, rounded to the cache's dtype (so that the
// bits are those of a key that was read back), never out of memory that another threadgroup of this
// launch writes. A row's key and value are written by one threadgroup only.
#pragma once

#include "metal/kernels/cache.h"
#include "metal/kernels/functions.h"
#include "metal/kernels/norm.h"

constant uint kSplits [[function_constant(3)]];

constant constexpr uint kUnit = 64;  // positions of a split at a time
constant constexpr uint kChunk = 8;  // query heads per threadgroup
constant constexpr uint kBlockPositions = 32;

struct AttentionShape {
  uint n_heads, n_kv_heads, head_dim, window;
  float scale, soft_cap;
  uint page_table_stride, page_table_base;
};

// Of attention and rope_attention, whose parameters call the same things the same.
template <class Params>
inline AttentionShape shape_of(constant Params& params) {
  return AttentionShape{
      params.n_heads, params.n_kv_heads, params.head_dim,          params.window,
      params.scale,   params.soft_cap,   params.page_table_stride, params.page_table_base};
}

// The positions that a row sees, and the units that hold them.
struct Visible {
  uint begin, end;
  uint first_unit, n_units;
};
inline Visible visible_in(uint position, uint kv_length, uint window) {
  Visible v;
  v.end = kv_length;
  v.begin = window != 0 && position + 1 > window ? position + 1 - window : 0;
  v.first_unit = v.begin / kUnit;
  v.n_units = v.end > v.begin ? (v.end - 1) / kUnit - v.first_unit + 1 : 0;
  return v;
}
inline Visible visible_to(device const Row& row, uint window) {
  return visible_in(row.position, row.kv_length, window);
}
// How many units before the split's own come in the row's range; n_units or more: it has none.
inline uint units_before(Visible v, uint split) {
  return (split + kSplits - v.first_unit % kSplits) % kSplits;
}

// Keys and values of this pass's own rows, from position `first` on; kNone: there are none.
struct Fresh {
  uint first;
  threadgroup const float* keys;  // [rows][stride], rounded to the cache's dtype
  device const float* values;     // of this kv head, at the row of position `first`
  ulong values_stride;
};

// Where the split's results go: head_dim sums of values, then the maximum and the sum of weights.
inline ulong partial_offset(uint local_row, uint n_heads, uint head, uint split, uint head_dim) {
  return ((ulong(local_row) * n_heads + head) * kSplits + split) * (head_dim + 2);
}

// Loops over query heads run to kChunk and pass over those that are not there: unrolled, so that
// what is kept for each stays in registers.
//
// `query` [n_queries][stride] and `scores` [kChunk][32] (the SIMD-group's own) in threadgroup
// memory; stride is head_dim rounded up to four, with zeros behind.
template <class Keys, class Values, uint kDims>
inline void attend_split(AttentionShape shape, Visible seen, uint split, uint sequence,
                         uint kv_head, uint first_head, uint n_queries,
                         threadgroup const float* query, uint stride, threadgroup float* scores,
                         Fresh fresh, device const Keys* key_cache,
                         device const Values* value_cache, device const uint* pages, uint local_row,
                         device float* workspace, uint lane) {
  const uint head_dim = shape.head_dim;
  const bool aligned = head_dim % 4 == 0;
  const uint own_dims = lane * kDims < head_dim ? head_dim - lane * kDims : 0;
  float largest[kChunk], total[kChunk], values[kChunk][kDims];
#pragma unroll
  for (uint g = 0; g < kChunk; ++g) {
    largest[g] = -infinity();
    total[g] = 0.0f;
#pragma unroll
    for (uint j = 0; j < kDims; ++j) values[g][j] = 0.0f;
  }

  for (uint unit = units_before(seen, split); unit < seen.n_units; unit += kSplits) {
    for (uint half_unit = 0; half_unit < kUnit; half_unit += kBlockPositions) {
      const uint first = (seen.first_unit + unit) * kUnit + half_unit;
      if (first >= seen.end || first + kBlockPositions <= seen.begin) continue;
      const uint page =
          page_of(pages, shape.page_table_base, shape.page_table_stride, sequence, first);
      const ulong offset =
          kv_offset(page, shape.n_kv_heads, kv_head, first % kPagePositions, head_dim);
      device const Keys* keys = cached_at(key_cache, offset);
      device const Values* cached_values = cached_at(value_cache, offset);

      for (uint step = 0; step < kBlockPositions; step += 4) {
        const uint i = step + lane / 8, position = first + i;
        const bool is_seen = position >= seen.begin && position < seen.end;
        float parts[kChunk];
#pragma unroll
        for (uint g = 0; g < kChunk; ++g) parts[g] = 0.0f;
        for (uint d = lane % 8 * 4; d < head_dim; d += 32) {
          float4 key = float4(0.0f);
          if (is_seen) {
            key = position < fresh.first
                      ? load_cached(keys, ulong(i) * head_dim + d, head_dim - d, aligned)
                      : *reinterpret_cast<threadgroup const float4*>(
                            fresh.keys + (position - fresh.first) * stride + d);
          }
#pragma unroll
          for (uint g = 0; g < kChunk; ++g) {
            if (g >= n_queries) continue;
            const float4 q = *reinterpret_cast<threadgroup const float4*>(query + g * stride + d);
            parts[g] = fma(key.x, q.x, parts[g]);
            parts[g] = fma(key.y, q.y, parts[g]);
            parts[g] = fma(key.z, q.z, parts[g]);
            parts[g] = fma(key.w, q.w, parts[g]);
          }
        }
#pragma unroll
        for (uint g = 0; g < kChunk; ++g) {
          if (g >= n_queries) continue;
          float score = parts[g];
          score += simd_shuffle_xor(score, 1);
          score += simd_shuffle_xor(score, 2);
          score += simd_shuffle_xor(score, 4);
          if (lane % 8 == g) scores[g * kBlockPositions + i] = score;
        }
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);

      const bool is_seen = first + lane >= seen.begin && first + lane < seen.end;
#pragma unroll
      for (uint g = 0; g < kChunk; ++g) {
        if (g >= n_queries) continue;
        float score = scores[g * kBlockPositions + lane] * shape.scale;
        // The cap bends what the softmax gets, so it belongs here, before the maximum.
        if (shape.soft_cap > 0.0f) score = shape.soft_cap * tanh_of(score / shape.soft_cap);
        const float top = max(largest[g], simd_max(is_seen ? score : -infinity()));
        const float weight = is_seen ? exp_of(score - top) : 0.0f;
        const float shrink = top == largest[g] ? 1.0f : exp_of(largest[g] - top);
        total[g] = fma(total[g], shrink, simd_sum(weight));
        largest[g] = top;
#pragma unroll
        for (uint j = 0; j < kDims; ++j) values[g][j] = values[g][j] * shrink;
        scores[g * kBlockPositions + lane] = weight;
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);

      for (uint i = 0; i < kBlockPositions; i += 4) {
        if (first + i >= seen.end) break;
        float loaded[4][kDims];
#pragma unroll
        for (uint p = 0; p < 4; ++p) {
          const uint position = first + i + p;
          const bool here = position >= seen.begin && position < seen.end;
          if (here && position >= fresh.first) {
            device const float* row =
                fresh.values + (position - fresh.first) * fresh.values_stride + lane * kDims;
#pragma unroll
            for (uint j = 0; j < kDims; ++j)
              loaded[p][j] = j < own_dims ? as_cached(row[j], value_cache) : 0.0f;
          } else {
            load_dims<kDims>(cached_values, ulong(i + p) * head_dim, lane * kDims,
                             here ? own_dims : 0, aligned, loaded[p]);
          }
        }
#pragma unroll
        for (uint g = 0; g < kChunk; ++g) {
          if (g >= n_queries) continue;
          const float4 weights =
              *reinterpret_cast<threadgroup const float4*>(scores + g * kBlockPositions + i);
#pragma unroll
          for (uint p = 0; p < 4; ++p)
#pragma unroll
            for (uint j = 0; j < kDims; ++j)
              values[g][j] = fma(weights[p], loaded[p][j], values[g][j]);
        }
      }
      // The next block's scores take this one's place.
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
  }

#pragma unroll
  for (uint g = 0; g < kChunk; ++g) {
    if (g >= n_queries) continue;
    device float* to =
        workspace + partial_offset(local_row, shape.n_heads, first_head + g, split, head_dim);
#pragma unroll
    for (uint j = 0; j < kDims; ++j)
      if (j < own_dims) to[lane * kDims + j] = values[g][j];
    if (lane == 0) {
      to[head_dim] = largest[g];
      to[head_dim + 1] = total[g];
    }
  }
}

// Which kv head and which of its query heads a threadgroup serves: group.y.
struct HeadChunk {
  uint kv_head, first_head, n_queries;
};
inline HeadChunk chunk_of(uint index, uint n_heads, uint n_kv_heads) {
  const uint per_kv_head = n_heads / n_kv_heads;
  const uint chunks = (per_kv_head + kChunk - 1) / kChunk;
  HeadChunk c;
  c.kv_head = index / chunks;
  const uint first = index % chunks * kChunk;
  c.first_head = c.kv_head * per_kv_head + first;
  c.n_queries = min(uint(kChunk), per_kv_head - first);
  return c;
}

// Whether any of the threadgroup's splits has a unit.
inline bool has_work(Visible seen, uint first_split, uint n_simdgroups) {
  for (uint s = 0; s < n_simdgroups; ++s)
    if (units_before(seen, first_split + s) < seen.n_units) return true;
  return false;
}

// The query heads of a chunk, normed and turned, and the keys of the rows of `row`'s span up to its own,
// from `first_row` on, rounded to the cache's dtype: a SIMD-group for each.
template <class Cache>
inline void turn_heads(device const float* query, device const float* key,
                       device const float* angles, device const float* query_norm,
                       bool has_query_norm, device const float* key_norm, bool has_key_norm,
                       constant RopeAttentionParams& params, HeadChunk chunk, uint row,
                       uint first_row, uint stride, threadgroup float* queries,
                       threadgroup float* fresh_keys, uint simdgroup, uint n_simdgroups,
                       uint lane) {
  const uint head_dim = params.head_dim, n_pairs = params.n_pairs;
  const uint n_fresh = row - first_row + 1;
  for (uint item = simdgroup; item < chunk.n_queries + n_fresh; item += n_simdgroups) {
    const bool is_query = item < chunk.n_queries;
    const uint of_row = is_query ? row : first_row + (item - chunk.n_queries);
    device const float* data =
        is_query ? query + (ulong(row) * params.n_heads + chunk.first_head + item) * head_dim
                 : key + (ulong(of_row) * params.n_kv_heads + chunk.kv_head) * head_dim;
    device const float* norm = data;  // as good as any where there is none
    const bool has_norm = is_query ? has_query_norm : has_key_norm;
    if (has_norm) norm = is_query ? query_norm : key_norm;
    const Head head = head_of(data, norm, has_norm, head_dim, params.epsilon, lane);
    device const float* row_angles = angles + ulong(of_row) * 2 * n_pairs;
    threadgroup float* to =
        is_query ? queries + item * stride : fresh_keys + (item - chunk.n_queries) * stride;
    for (uint i = lane; i < n_pairs; i += 32) {
      const uint2 pair = pair_of(i, n_pairs, params.style);
      const float2 turned = rotated_pair(head, row_angles, i, pair);
      to[pair.x] = is_query ? turned.x : float(Cache(turned.x));
      to[pair.y] = is_query ? turned.y : float(Cache(turned.y));
    }
    for (uint i = 2 * n_pairs + lane; i < stride; i += 32) {
      const float x = i < head_dim ? head_value(head, i) : 0.0f;
      to[i] = is_query ? x : float(Cache(x));
    }
  }
}

// A row's key, which is turned already, and its value go to the cache; `index` of `n_threads` threads.
template <class Cache>
inline void write_row(threadgroup const float* key, device const float* value,
                      device Cache* key_cache, device Cache* value_cache, device const uint* pages,
                      constant RopeAttentionParams& params, uint kv_head, uint row, uint sequence,
                      uint place, uint index, uint n_threads) {
  const uint head_dim = params.head_dim;
  const uint page =
      page_of(pages, params.page_table_base, params.page_table_stride, sequence, place);
  const ulong to = kv_offset(page, params.n_kv_heads, kv_head, place % kPagePositions, head_dim);
  const ulong from = (ulong(row) * params.n_kv_heads + kv_head) * head_dim;
  for (uint i = index; i < head_dim; i += n_threads) {
    key_cache[to + i] = Cache(key[i]);
    value_cache[to + i] = Cache(value[from + i]);
  }
}

// What the splits of a row's head have found, as one: a lane per split for the weights, a thread per
// dimension after that; in order of the row's units. `sink`: a score that has no value; -infinity: none.
inline void combine(uint n_heads, uint head_dim, Visible seen, device const float* workspace,
                    float sink, device float* out, uint local_row, uint row, uint head,
                    uint thread_index, uint n_threads, uint lane) {
  const uint n = min(seen.n_units, kSplits);
  const ulong first = partial_offset(local_row, n_heads, head, 0, head_dim);
  const ulong step = head_dim + 2;
  // The split of unit `lane` of its range.
  device const float* own = workspace + first + (seen.first_unit + lane) % kSplits * step;
  const float largest = lane < n ? own[head_dim] : -infinity();
  const float top = simd_max(largest);
  const float weight = lane < n ? exp_of(largest - top) : 0.0f;
  float total = simd_sum(lane < n ? weight * own[head_dim + 1] : 0.0f);
  if (sink != -infinity()) total = total + exp_of(sink - top);
  for (uint d = thread_index; d < (head_dim + 31) / 32 * 32; d += n_threads) {
    float sum = 0.0f;
    for (uint i = 0; i < n; ++i) {
      const float share = simd_shuffle(weight, ushort(i));
      const float part =
          d < head_dim ? workspace[first + (seen.first_unit + i) % kSplits * step + d] : 0.0f;
      sum = fma(share, part, sum);
    }
    // A row that sees nothing has nothing to divide by.
    if (d < head_dim)
      out[(ulong(row) * n_heads + head) * head_dim + d] = n == 0 ? 0.0f : sum / total;
  }
}
