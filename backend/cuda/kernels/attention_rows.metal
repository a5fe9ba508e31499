// attention and rope_attention of single rows and few, for short texts as well: a block of 128 threads
// takes the units of a split (metal/kernels/attention_split.h says which), 64 positions at a time.
//
// 1. What takes time, in a short text, is waiting for memory. So the keys and the values of a unit are
//    copied to shared memory at once, beside everything else that a block begins with; those of the
//    unit behind it are copied as soon as there is room.
// 2. Scores: two threads share a position and take every second piece of eight dimensions, in four sums.
//    Values: a thread owns a piece of eight dimensions and every 4th, 8th or 16th position, by the size of a
//    head; these parts are added at the end, in order.
// 3. Rows of keys and values lie 32 bytes past a multiple of 128 apart: the threads of four positions, and
//    those of eight pieces, read different banks.
// 4. rope_attention begins before query, key and value are there: with the keys and values of earlier rows.
// 5. What the splits of a row found is joined by the block that comes last, as `combine` does it: in
//    order of the units, whichever block that is. A row with one split needs no other.
//
// head_dim is a multiple of eight (kernel_table.cpp); kQueries is how many query heads of a kv head there is
// room for.
#include "metal/kernels/attention_split.h"

constant constexpr uint kBlockThreads = 128;
constant constexpr uint kPieceDims = 8;

// Eight numbers from an address that is a multiple of 16 bytes.
struct Eight {
  float4 low, high;
};
inline Eight load_eight(threadgroup const float* p) {
  return Eight{reinterpret_cast<threadgroup const float4*>(p)[0],
               reinterpret_cast<threadgroup const float4*>(p)[1]};
}
inline float2 halves_of(uint word) {
  return float2(float(as_type<half>(ushort(word & 0xffffu))), float(as_type<half>(ushort(word >> 16))));
}
inline Eight load_eight(threadgroup const half* p) {
  const uint4 words = *reinterpret_cast<threadgroup const uint4*>(p);
  const float2 a = halves_of(words.x), b = halves_of(words.y), c = halves_of(words.z),
               d = halves_of(words.w);
  return Eight{float4(a.x, a.y, b.x, b.y), float4(c.x, c.y, d.x, d.y)};
}

// What the softmax of a query head has come to.
struct Running {
  float largest, total, shrink;
};

// A block's shared memory. Values of the span's own rows are float32, their keys turned and rounded.
template <class Cache>
struct RowsMemory {
  threadgroup float* queries;    // [kQueries][head_dim]
  threadgroup float* scores;     // [kQueries][kUnit]
  threadgroup Running* running;  // [kQueries]
  threadgroup Cache* keys;       // [kUnit][stride]
  threadgroup Cache* values;     // [kUnit][stride]
  threadgroup float* parts;      // [parts][kQueries][head_dim], where keys and values were
  threadgroup float* fresh_values;  // [rows of the span][head_dim]
  threadgroup Cache* fresh_keys;    // likewise
  uint stride;
};
constant constexpr uint kRunningFloats = 32;

// Numbers between two rows of keys: kernel_table.cpp has the same.
template <class Cache>
inline uint row_stride(uint head_dim) {
  const uint bytes = uint(sizeof(Cache)) * head_dim;
  return ((bytes + 95) / 128 * 128 + 32) / uint(sizeof(Cache));
}

template <class Cache, uint kQueries>
inline RowsMemory<Cache> memory_of(threadgroup float* memory, uint head_dim, uint n_fresh) {
  RowsMemory<Cache> m;
  m.stride = row_stride<Cache>(head_dim);
  m.queries = memory;
  m.scores = m.queries + kQueries * head_dim;
  m.running = reinterpret_cast<threadgroup Running*>(m.scores + kQueries * kUnit);
  m.parts = m.scores + kQueries * kUnit + kRunningFloats;
  m.keys = reinterpret_cast<threadgroup Cache*>(m.parts);
  m.values = m.keys + kUnit * m.stride;
  const uint kept = 2 * kUnit * m.stride * uint(sizeof(Cache)) / 4;
  m.fresh_values = m.parts + max(kept, kQueries * kBlockThreads * kPieceDims);
  m.fresh_keys = reinterpret_cast<threadgroup Cache*>(m.fresh_values + n_fresh * head_dim);
  return m;
}

// Copies of a unit's keys, or values, begin: rows that the cache has and the row sees. Rows of its own span are
// left out (place_fresh), zeros stand for those that it does not see.
template <class Cache>
inline void copy_unit(threadgroup Cache* to, uint stride, device const Cache* from, uint head_dim,
                      uint first, Visible seen, uint first_fresh, uint thread_index) {
  const uint n_pieces = head_dim * uint(sizeof(Cache)) / 16, numbers = 16 / uint(sizeof(Cache));
  uint i = thread_index / n_pieces, piece = thread_index % n_pieces;
  const uint rows_ahead = kBlockThreads / n_pieces, pieces_ahead = kBlockThreads % n_pieces;
  while (i < kUnit) {
    const uint position = first + i;
    const bool is_seen = position >= seen.begin && position < seen.end;
    if (!is_seen || position < first_fresh)
      copy_16_bytes(to + i * stride + piece * numbers, from + i * head_dim + piece * numbers, is_seen);
    i += rows_ahead;
    piece += pieces_ahead;
    if (piece >= n_pieces) {
      piece -= n_pieces;
      ++i;
    }
  }
  end_copies();
}

// Where the keys of a unit lie in the cache.
inline ulong unit_offset(AttentionShape shape, Visible seen, uint unit, uint sequence, uint kv_head,
                         device const uint* pages) {
  const uint first = (seen.first_unit + unit) * kUnit;
  const uint page = page_of(pages, shape.page_table_base, shape.page_table_stride, sequence, first);
  return kv_offset(page, shape.n_kv_heads, kv_head, first % kPagePositions, shape.head_dim);
}

// The keys and values of the span's own rows, from position `first_fresh` on, where they are in the unit.
template <class Cache>
inline void place_fresh(RowsMemory<Cache> memory, uint first_fresh, uint head_dim, uint first,
                        Visible seen, uint thread_index) {
  const uint begin = max(max(first_fresh, first), seen.begin), end = min(first + kUnit, seen.end);
  if (begin >= end) return;
  for (uint task = thread_index; task < (end - begin) * head_dim; task += kBlockThreads) {
    const uint position = begin + task / head_dim, d = task % head_dim, i = position - first;
    const uint from = (position - first_fresh) * head_dim + d;
    memory.keys[i * memory.stride + d] = memory.fresh_keys[from];
    memory.values[i * memory.stride + d] = Cache(memory.fresh_values[from]);
  }
}

// Both copies of the split's first unit begin.
template <class Cache>
inline void begin_copies(RowsMemory<Cache> memory, AttentionShape shape, Visible seen, uint split,
                         uint sequence, uint kv_head, uint first_fresh,
                         device const Cache* key_cache, device const Cache* value_cache,
                         device const uint* pages, uint thread_index) {
  const uint unit = units_before(seen, split), first = (seen.first_unit + unit) * kUnit;
  const ulong offset = unit_offset(shape, seen, unit, sequence, kv_head, pages);
  copy_unit(memory.keys, memory.stride, key_cache + offset, shape.head_dim, first, seen, first_fresh,
            thread_index);
  copy_unit(memory.values, memory.stride, value_cache + offset, shape.head_dim, first, seen,
            first_fresh, thread_index);
}

// What the splits of the chunk's heads found, as one: the arithmetic of `combine` in attention_split.metal, with all loads that do not
// depend on one another under way at once. `weights` [n_queries][kUnit] and `running` are shared memory.
inline void join_splits(AttentionShape shape, Visible seen, HeadChunk chunk,
                        device const float* workspace, device float* out,
                        threadgroup float* weights, threadgroup Running* running, uint local_row,
                        uint row, uint thread_index) {
  constexpr uint kTogether = 8;
  const uint lane = thread_index % 32, head_dim = shape.head_dim;
  const uint n = min(seen.n_units, kSplits);
  for (uint g = thread_index / 32; g < chunk.n_queries; g += kBlockThreads / 32) {
    // The split of unit `lane` of the row's range.
    device const float* own =
        workspace + partial_offset(local_row, shape.n_heads, chunk.first_head + g,
                                   (seen.first_unit + lane) % kSplits, head_dim);
    const float largest = lane < n ? own[head_dim] : -infinity();
    const float found = lane < n ? own[head_dim + 1] : 0.0f;
    const float top = simd_max(largest);
    const float weight = lane < n ? exp_of(largest - top) : 0.0f;
    const float total = simd_sum(weight * found);
    weights[g * kUnit + lane] = weight;
    if (lane == 0) running[g].total = total;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint task = thread_index; task < chunk.n_queries * head_dim; task += kBlockThreads) {
    const uint g = task / head_dim, d = task % head_dim, head = chunk.first_head + g;
    device const float* parts =
        workspace + partial_offset(local_row, shape.n_heads, head, 0, head_dim) + d;
    float sum = 0.0f;
    for (uint first = 0; first < n; first += kTogether) {
      float part[kTogether];
#pragma unroll
      for (uint i = 0; i < kTogether; ++i)
        part[i] = first + i < n
                      ? parts[(seen.first_unit + first + i) % kSplits * ulong(head_dim + 2)]
                      : 0.0f;
#pragma unroll
      for (uint i = 0; i < kTogether; ++i)
        if (first + i < n) sum = fma(weights[g * kUnit + first + i], part[i], sum);
    }
    out[(ulong(row) * shape.n_heads + head) * head_dim + d] = sum / running[g].total;
  }
}

// Behind begin_copies, and a barrier behind what is written to `memory`.
template <class Cache, uint kQueries>
inline void attend(RowsMemory<Cache> memory, AttentionShape shape, Visible seen, uint split,
                   uint sequence, HeadChunk chunk, uint first_fresh, device const Cache* key_cache,
                   device const Cache* value_cache, device const uint* pages, uint local_row,
                   uint row, uint place, device float* workspace, device float* out,
                   uint thread_index) {
  const uint head_dim = shape.head_dim, lane = thread_index % 32, simdgroup = thread_index / 32;
  const uint n_pieces = head_dim / kPieceDims;
  const uint piece_threads = n_pieces <= 8 ? 8 : n_pieces <= 16 ? 16 : 32;
  const uint n_parts = kBlockThreads / piece_threads;
  const uint own_piece = thread_index % piece_threads, own_part = thread_index / piece_threads;
  float4 values[kQueries][2];
#pragma unroll
  for (uint g = 0; g < kQueries; ++g) values[g][0] = values[g][1] = float4(0.0f);
  if (thread_index < kQueries) memory.running[thread_index] = Running{-infinity(), 0.0f, 1.0f};

  for (uint unit = units_before(seen, split); unit < seen.n_units; unit += kSplits) {
    const uint first = (seen.first_unit + unit) * kUnit, next = unit + kSplits;
    const uint next_first = (seen.first_unit + next) * kUnit;
    const bool has_next = next < seen.n_units;
    ulong next_offset = 0;
    if (has_next) next_offset = unit_offset(shape, seen, next, sequence, chunk.kv_head, pages);
    place_fresh(memory, first_fresh, head_dim, first, seen, thread_index);
    wait_for_copies<1>();  // keys
    threadgroup_barrier(mem_flags::mem_threadgroup);
    {
      const uint i = thread_index / 2;
      float4 sums[kQueries];
#pragma unroll
      for (uint g = 0; g < kQueries; ++g) sums[g] = float4(0.0f);
      threadgroup const Cache* key = memory.keys + i * memory.stride;
#pragma unroll 4
      for (uint d = thread_index % 2 * kPieceDims; d < head_dim; d += 2 * kPieceDims) {
        const Eight k = load_eight(key + d);
#pragma unroll
        for (uint g = 0; g < kQueries; ++g) {
          threadgroup const float4* q =
              reinterpret_cast<threadgroup const float4*>(memory.queries + g * head_dim + d);
          sums[g] = fma(k.low, q[0], sums[g]);
          sums[g] = fma(k.high, q[1], sums[g]);
        }
      }
#pragma unroll
      for (uint g = 0; g < kQueries; ++g) {
        const float part = sum_of(sums[g]);
        const float score = part + simd_shuffle_xor(part, 1);
        if (thread_index % 2 == 0) memory.scores[g * kUnit + i] = score;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // The place of the keys is free; a group of copies for each unit, if only an empty one.
    if (has_next)
      copy_unit(memory.keys, memory.stride, key_cache + next_offset, head_dim, next_first, seen,
                first_fresh, thread_index);
    else
      end_copies();

    for (uint g = simdgroup; g < chunk.n_queries; g += kBlockThreads / 32) {
      float score[2];
      bool is_seen[2];
      const Running before = memory.running[g];
      float top = before.largest;
      for (uint j = 0; j < 2; ++j) {
        const uint position = first + lane + 32 * j;
        is_seen[j] = position >= seen.begin && position < seen.end;
        score[j] = memory.scores[g * kUnit + lane + 32 * j] * shape.scale;
        // The cap bends what the softmax gets, so it belongs here, before the maximum.
        if (shape.soft_cap > 0.0f) score[j] = shape.soft_cap * tanh_of(score[j] / shape.soft_cap);
        if (is_seen[j]) top = max(top, score[j]);
      }
      top = simd_max(top);
      float weights = 0.0f;
      for (uint j = 0; j < 2; ++j) {
        const float weight = is_seen[j] ? exp_of(score[j] - top) : 0.0f;
        memory.scores[g * kUnit + lane + 32 * j] = weight;
        weights += weight;
      }
      weights = simd_sum(weights);
      const float shrink = top == before.largest ? 1.0f : exp_of(before.largest - top);
      simdgroup_barrier(mem_flags::mem_threadgroup);  // all lanes have read it
      if (lane == 0) memory.running[g] = Running{top, fma(before.total, shrink, weights), shrink};
    }
    wait_for_copies<1>();  // values
    threadgroup_barrier(mem_flags::mem_threadgroup);

    if (own_piece < n_pieces) {
#pragma unroll
      for (uint g = 0; g < kQueries; ++g)
        if (g < chunk.n_queries) {
          values[g][0] = values[g][0] * memory.running[g].shrink;
          values[g][1] = values[g][1] * memory.running[g].shrink;
        }
#pragma unroll 4
      for (uint i = own_part; i < kUnit; i += n_parts) {
        const Eight v = load_eight(memory.values + i * memory.stride + own_piece * kPieceDims);
#pragma unroll
        for (uint g = 0; g < kQueries; ++g) {
          const float4 weight = float4(memory.scores[g * kUnit + i]);
          values[g][0] = fma(weight, v.low, values[g][0]);
          values[g][1] = fma(weight, v.high, values[g][1]);
        }
      }
    }
    // Everyone is through with the values, and with the weights.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (has_next)
      copy_unit(memory.values, memory.stride, value_cache + next_offset, head_dim, next_first, seen,
                first_fresh, thread_index);
    else
      end_copies();
  }

  if (own_piece < n_pieces) {
#pragma unroll
    for (uint g = 0; g < kQueries; ++g) {
      threadgroup float4* to = reinterpret_cast<threadgroup float4*>(
          memory.parts + (own_part * kQueries + g) * head_dim + own_piece * kPieceDims);
      to[0] = values[g][0];
      to[1] = values[g][1];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint n_splits = min(seen.n_units, kSplits);
  for (uint task = thread_index; task < chunk.n_queries * head_dim; task += kBlockThreads) {
    const uint g = task / head_dim, d = task % head_dim, head = chunk.first_head + g;
    float sum = memory.parts[g * head_dim + d];
    for (uint part = 1; part < n_parts; ++part)
      sum += memory.parts[(part * kQueries + g) * head_dim + d];
    if (n_splits == 1) {
      out[(ulong(row) * shape.n_heads + head) * head_dim + d] = sum / memory.running[g].total;
      continue;
    }
    device float* to =
        workspace + partial_offset(local_row, shape.n_heads, head, split, head_dim);
    to[d] = sum;
    if (d == 0) {
      to[head_dim] = memory.running[g].largest;
      to[head_dim + 1] = memory.running[g].total;
    }
  }
  if (n_splits == 1 || !last_to_arrive(place, n_splits)) return;
  join_splits(shape, seen, chunk, workspace, out, memory.scores, memory.running, local_row, row,
              thread_index);
}

// A block's splits: `first`, whose copies are under way, and every `step`th behind it.
template <class Cache, uint kQueries>
inline void attend_splits(RowsMemory<Cache> memory, AttentionShape shape, Visible seen, uint first,
                          uint step, uint sequence, HeadChunk chunk, uint first_fresh,
                          device const Cache* key_cache, device const Cache* value_cache,
                          device const uint* pages, uint local_row, uint row, uint place,
                          device float* workspace, device float* out, uint thread_index) {
  for (uint split = first; split < kSplits; split += step) {
    if (units_before(seen, split) >= seen.n_units) continue;
    if (split != first) {
      threadgroup_barrier(mem_flags::mem_threadgroup);  // all have read the parts
      begin_copies(memory, shape, seen, split, sequence, chunk.kv_head, first_fresh, key_cache,
                   value_cache, pages, thread_index);
    }
    attend<Cache, kQueries>(memory, shape, seen, split, sequence, chunk, first_fresh, key_cache,
                            value_cache, pages, local_row, row, place, workspace, out, thread_index);
  }
}

// A row that sees nothing.
inline void write_zeros(device float* out, HeadChunk chunk, uint n_heads, uint head_dim, uint row,
                        uint thread_index) {
  device float* to = out + (ulong(row) * n_heads + chunk.first_head) * head_dim;
  for (uint i = thread_index; i < chunk.n_queries * head_dim; i += kBlockThreads) to[i] = 0.0f;
}

// Grid: (blocks that share the splits of a row, kv heads * chunks of query heads, rows).
template <class Cache, uint kQueries>
[[kernel]] void attention_rows(
    device const float* query [[buffer(0)]], device const Cache* key_cache [[buffer(1)]],
    device const Cache* value_cache [[buffer(2)]], device float* out [[buffer(3)]],
    constant PassRange& pass [[buffer(23)]], device float* workspace [[buffer(24)]],
    constant AttentionParams& params [[buffer(25)]], device const Row* rows [[buffer(26)]],
    device const uint* pages [[buffer(27)]], threadgroup float* shared [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  const uint row = pass.first_row + group.z;
  const Row own = rows[row];
  const Visible seen = visible_in(own.position, own.kv_length, params.window);
  const HeadChunk chunk = chunk_of(group.y, params.n_heads, params.n_kv_heads);
  const uint head_dim = params.head_dim;
  if (seen.n_units == 0 && group.x == 0)
    write_zeros(out, chunk, params.n_heads, head_dim, row, thread_index);
  uint split = group.x;
  while (split < kSplits && units_before(seen, split) >= seen.n_units) split += groups.x;
  if (split >= kSplits) return;
  const RowsMemory<Cache> memory = memory_of<Cache, kQueries>(shared, head_dim, 0);
  const AttentionShape shape = shape_of(params);
  begin_copies(memory, shape, seen, split, own.sequence, chunk.kv_head, kNone, key_cache,
               value_cache, pages, thread_index);
  device const float* heads = query + (ulong(row) * params.n_heads + chunk.first_head) * head_dim;
  for (uint i = thread_index; i < kQueries * head_dim; i += kBlockThreads)
    memory.queries[i] = i < chunk.n_queries * head_dim ? heads[i] : 0.0f;
  attend_splits<Cache, kQueries>(memory, shape, seen, split, groups.x, own.sequence, chunk, kNone,
                                 key_cache, value_cache, pages, group.z, row,
                                 group.z * groups.y + group.y, workspace, out, thread_index);
}

// Copies of a span's own values to shared memory begin.
inline void copy_values(threadgroup float* to, device const float* from, uint stride, uint n_rows,
                        uint head_dim, uint thread_index) {
  const uint n_pieces = head_dim / 4;
  for (uint task = thread_index; task < n_rows * n_pieces; task += kBlockThreads)
    copy_16_bytes(to + 4 * task, from + ulong(task / n_pieces) * stride + task % n_pieces * 4, true);
}

// A head, normed and turned, by a SIMD-group, as turn_heads of attention_split.h does it; all loads are under way at
// once. The result is rounded to Number.
template <class Number>
inline void turn_head(device const float* data, device const float* norm, bool has_norm,
                      device const float* angles, constant RopeAttentionParams& params,
                      threadgroup Number* to, uint lane) {
  constexpr uint kPairs = 4;  // of a lane: 256 dimensions
  const uint head_dim = params.head_dim, n_pairs = params.n_pairs;
  float x[2 * kPairs];  // for the norm
  float2 values[kPairs], norms[kPairs], turns[kPairs];
#pragma unroll
  for (uint j = 0; j < 2 * kPairs; ++j) {
    const uint i = lane + 32 * j;
    x[j] = has_norm && i < head_dim ? data[i] : 0.0f;
  }
#pragma unroll
  for (uint j = 0; j < kPairs; ++j) {
    const uint i = lane + 32 * j;
    if (i >= n_pairs) continue;
    const uint2 pair = pair_of(i, n_pairs, params.style);
    values[j] = float2(data[pair.x], data[pair.y]);
    turns[j] = float2(angles[2 * i], angles[2 * i + 1]);
    if (has_norm) norms[j] = float2(norm[pair.x], norm[pair.y]);
  }
  float factor = 1.0f;
  if (has_norm) {
    float sum = 0.0f;
#pragma unroll
    for (uint j = 0; j < 2 * kPairs; ++j)
      if (lane + 32 * j < head_dim) sum = fma(x[j], x[j], sum);
    factor = 1.0f / sqrt(simd_sum(sum) / float(head_dim) + params.epsilon);
  }
#pragma unroll
  for (uint j = 0; j < kPairs; ++j) {
    const uint i = lane + 32 * j;
    if (i >= n_pairs) continue;
    float a = values[j].x, b = values[j].y;
    if (has_norm) {
      a = (a * factor) * norms[j].x;
      b = (b * factor) * norms[j].y;
    }
    const uint2 pair = pair_of(i, n_pairs, params.style);
    const float first = fma(a, turns[j].x, -(b * turns[j].y));
    const float second = fma(b, turns[j].x, a * turns[j].y);
    to[pair.x] = Number(first);
    to[pair.y] = Number(second);
  }
  for (uint i = 2 * n_pairs + lane; i < head_dim; i += 32) {
    const float rest = has_norm ? (data[i] * factor) * norm[i] : data[i];
    to[i] = Number(rest);
  }
}

template <class Cache, uint kQueries>
[[kernel]] void rope_attention_rows(
    device const float* query [[buffer(0)]], device const float* key [[buffer(1)]],
    device const float* value [[buffer(2)]], device const float* angles [[buffer(3)]],
    device Cache* key_cache [[buffer(4)]], device Cache* value_cache [[buffer(5)]],
    device const float* query_norm [[buffer(6), function_constant(kIsBound6)]],
    device const float* key_norm [[buffer(7), function_constant(kIsBound7)]],
    device float* out [[buffer(8)]], constant PassRange& pass [[buffer(23)]],
    device float* workspace [[buffer(24)]], constant RopeAttentionParams& params [[buffer(25)]],
    device const Row* rows [[buffer(26)]], device const uint* pages [[buffer(27)]],
    device const Span* spans [[buffer(30)]], threadgroup float* shared [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  const uint row = pass.first_row + group.z;
  const Row own = rows[row];
  const Visible seen = visible_in(own.position, own.kv_length, params.window);
  // The first block of a kv head writes the row's key and value.
  const HeadChunk chunk = chunk_of(group.y, params.n_heads, params.n_kv_heads);
  const uint per_kv_head = params.n_heads / params.n_kv_heads;
  const bool writes = group.x == 0 && chunk.first_head == chunk.kv_head * per_kv_head &&
                      (own.flags & kRowActive) != 0;
  uint split = group.x;
  while (split < kSplits && units_before(seen, split) >= seen.n_units) split += groups.x;
  const bool attends = split < kSplits;
  const uint head_dim = params.head_dim;
  if (seen.n_units == 0 && group.x == 0) {
    inputs_ready();  // `out` may still be read
    write_zeros(out, chunk, params.n_heads, head_dim, row, thread_index);
  }
  if (!attends && !writes) return;

  // One row is a span of its own. Rows of a span are consecutive, and so are positions.
  const uint first_row = pass.n_rows == 1 ? row : spans[own.span].first_row;
  const uint first_fresh = pass.n_rows == 1 ? own.position : rows[first_row].position;
  const uint n_fresh = row - first_row + 1;
  const RowsMemory<Cache> memory = memory_of<Cache, kQueries>(shared, head_dim, n_fresh);
  const AttentionShape shape = shape_of(params);
  // Rows, pages, and keys and values before the span's are older than the launch before this one.
  if (attends)
    begin_copies<Cache>(memory, shape, seen, split, own.sequence, chunk.kv_head, first_fresh,
                        key_cache, value_cache, pages, thread_index);
  inputs_ready();
  copy_values(memory.fresh_values,
              value + (ulong(first_row) * params.n_kv_heads + chunk.kv_head) * head_dim,
              params.n_kv_heads * head_dim, n_fresh, head_dim, thread_index);
  end_copies();
  for (uint i = chunk.n_queries * head_dim + thread_index; i < kQueries * head_dim;
       i += kBlockThreads)
    memory.queries[i] = 0.0f;
  device const float* norm_of_query = query;  // as good as any where there is none
  device const float* norm_of_key = query;
  if (kIsBound6) norm_of_query = query_norm;
  if (kIsBound7) norm_of_key = key_norm;
  const uint lane = thread_index % 32;
  for (uint item = thread_index / 32; item < chunk.n_queries + n_fresh; item += kBlockThreads / 32) {
    if (item < chunk.n_queries) {
      turn_head(query + (ulong(row) * params.n_heads + chunk.first_head + item) * head_dim,
                norm_of_query, kIsBound6, angles + ulong(row) * 2 * params.n_pairs, params,
                memory.queries + item * head_dim, lane);
    } else {
      const uint of_span = item - chunk.n_queries, of_row = first_row + of_span;
      turn_head(key + (ulong(of_row) * params.n_kv_heads + chunk.kv_head) * head_dim, norm_of_key,
                kIsBound7, angles + ulong(of_row) * 2 * params.n_pairs, params,
                memory.fresh_keys + of_span * head_dim, lane);
    }
  }
  wait_for_copies<0>();
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (writes) {
    const uint page = page_of(pages, params.page_table_base, params.page_table_stride, own.sequence,
                              own.position);
    const ulong to = kv_offset(page, params.n_kv_heads, chunk.kv_head,
                               own.position % kPagePositions, head_dim);
    for (uint i = thread_index; i < head_dim; i += kBlockThreads) {
      key_cache[to + i] = memory.fresh_keys[(n_fresh - 1) * head_dim + i];
      value_cache[to + i] = Cache(memory.fresh_values[(n_fresh - 1) * head_dim + i]);
    }
  }
  if (!attends) return;
  attend_splits<Cache, kQueries>(memory, shape, seen, split, groups.x, own.sequence, chunk,
                                 first_fresh, key_cache, value_cache, pages, group.z, row,
                                 group.z * groups.y + group.y, workspace, out, thread_index);
}

#define AKUNU_ROWS(name, Cache, queries)                                                   \
  template [[host_name("attention_rows_" #name "_q" #queries)]] [[kernel]] decltype(        \
      attention_rows<Cache, queries>) attention_rows<Cache, queries>;                       \
  template [[host_name("rope_attention_rows_" #name "_q" #queries)]] [[kernel]] decltype(   \
      rope_attention_rows<Cache, queries>) rope_attention_rows<Cache, queries>;
AKUNU_ROWS(f16, half, 1)
AKUNU_ROWS(f16, half, 2)
AKUNU_ROWS(f16, half, 4)
AKUNU_ROWS(f16, half, 8)
AKUNU_ROWS(f32, float, 1)
AKUNU_ROWS(f32, float, 2)
AKUNU_ROWS(f32, float, 4)
AKUNU_ROWS(f32, float, 8)
