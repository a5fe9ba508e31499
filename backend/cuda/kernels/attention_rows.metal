// attention and rope_attention of single rows and few, for short texts as well: a block of 128 threads
// takes the units of a split (metal/kernels/attention_split.h says which), 64 positions at a time.
//
// A single warp would wait for each of its loads in turn; here two threads share a position, and all
// loads of a unit's keys are under way at once, then those of its values. Scores: a thread takes every
// second piece of eight dimensions, in four sums. Values: a thread owns two dimensions, and where a
// head has fewer than 256 dimensions, every second or fourth position; these parts are added at the end.
//
// head_dim is a multiple of eight (kernel_table.cpp); kQueries is how many query heads of a kv head there is
// room for. Partial results and their combination are those of attention_split.
#include "metal/kernels/attention_split.h"

constant constexpr uint kBlockThreads = 128;

// Eight numbers from an address that is a multiple of 16 bytes.
struct Eight {
  float4 low, high;
};
inline Eight load_eight(device const float* p) {
  return Eight{reinterpret_cast<device const float4*>(p)[0],
               reinterpret_cast<device const float4*>(p)[1]};
}
inline float2 halves_of(uint word) {
  return float2(float(as_type<half>(ushort(word & 0xffffu))), float(as_type<half>(ushort(word >> 16))));
}
inline Eight load_eight(device const half* p) {
  const uint4 words = *reinterpret_cast<device const uint4*>(p);
  const float2 a = halves_of(words.x), b = halves_of(words.y), c = halves_of(words.z),
               d = halves_of(words.w);
  return Eight{float4(a.x, a.y, b.x, b.y), float4(c.x, c.y, d.x, d.y)};
}
inline float2 load_two(device const float* p) { return *reinterpret_cast<device const float2*>(p); }
inline float2 load_two(device const half* p) {
  return halves_of(*reinterpret_cast<device const uint*>(p));
}

// What the softmax of a query head has come to.
struct Running {
  float largest, total, shrink;
};

// `queries` [kQueries][head_dim] and what follows in shared memory: `scores` [kQueries][kUnit],
// `running` [kQueries], `parts` [128 / pair threads][kQueries][head_dim].
template <class Cache, uint kQueries>
inline void attend_unit_by_unit(AttentionShape shape, Visible seen, uint split, uint sequence,
                                HeadChunk chunk, threadgroup const float* queries,
                                threadgroup float* scores, threadgroup Running* running,
                                threadgroup float* parts, Fresh fresh, device const Cache* key_cache,
                                device const Cache* value_cache, device const uint* pages,
                                uint local_row, device float* workspace, uint thread_index) {
  const uint head_dim = shape.head_dim, lane = thread_index % 32, simdgroup = thread_index / 32;
  const uint n_pairs = head_dim / 2;
  const uint pair_threads = n_pairs <= 32 ? 32 : n_pairs <= 64 ? 64 : 128;
  const uint n_parts = kBlockThreads / pair_threads;
  const uint own_pair = thread_index % pair_threads, own_part = thread_index / pair_threads;
  float2 values[kQueries];
#pragma unroll
  for (uint g = 0; g < kQueries; ++g) values[g] = float2(0.0f);
  if (thread_index < kQueries) running[thread_index] = Running{-infinity(), 0.0f, 1.0f};

  for (uint unit = units_before(seen, split); unit < seen.n_units; unit += kSplits) {
    const uint first = (seen.first_unit + unit) * kUnit;
    const uint page =
        page_of(pages, shape.page_table_base, shape.page_table_stride, sequence, first);
    const ulong offset =
        kv_offset(page, shape.n_kv_heads, chunk.kv_head, first % kPagePositions, head_dim);
    // Everyone is through with the scores of the unit before.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    {
      const uint i = thread_index / 2, position = first + i;
      const bool is_seen = position >= seen.begin && position < seen.end;
      const bool is_fresh = is_seen && position >= fresh.first;
      float4 sums[kQueries];
#pragma unroll
      for (uint g = 0; g < kQueries; ++g) sums[g] = float4(0.0f);
      device const Cache* key = key_cache + offset + ulong(i) * head_dim;
      threadgroup const float* fresh_key = fresh.keys + (is_fresh ? position - fresh.first : 0) * head_dim;
      if (is_seen) {
#pragma unroll 8
        for (uint d = thread_index % 2 * 8; d < head_dim; d += 16) {
          Eight k;
          if (is_fresh)
            k = Eight{*reinterpret_cast<threadgroup const float4*>(fresh_key + d),
                      *reinterpret_cast<threadgroup const float4*>(fresh_key + d + 4)};
          else
            k = load_eight(key + d);
#pragma unroll
          for (uint g = 0; g < kQueries; ++g) {
            threadgroup const float4* q =
                reinterpret_cast<threadgroup const float4*>(queries + g * head_dim + d);
            sums[g] = fma(k.low, q[0], sums[g]);
            sums[g] = fma(k.high, q[1], sums[g]);
          }
        }
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
      for (uint g = 0; g < kQueries; ++g) {
        const float part = sum_of(sums[g]);
        const float score = part + simd_shuffle_xor(part, 1);
        if (thread_index % 2 == 0) scores[g * kUnit + i] = score;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (uint g = simdgroup; g < chunk.n_queries; g += kBlockThreads / 32) {
      float score[2];
      bool is_seen[2];
      float top = running[g].largest;
      for (uint j = 0; j < 2; ++j) {
        const uint position = first + lane + 32 * j;
        is_seen[j] = position >= seen.begin && position < seen.end;
        score[j] = scores[g * kUnit + lane + 32 * j] * shape.scale;
        // The cap bends what the softmax gets, so it belongs here, before the maximum.
        if (shape.soft_cap > 0.0f) score[j] = shape.soft_cap * tanh_of(score[j] / shape.soft_cap);
        if (is_seen[j]) top = max(top, score[j]);
      }
      top = simd_max(top);
      float weights = 0.0f;
      for (uint j = 0; j < 2; ++j) {
        const float weight = is_seen[j] ? exp_of(score[j] - top) : 0.0f;
        scores[g * kUnit + lane + 32 * j] = weight;
        weights += weight;
      }
      weights = simd_sum(weights);
      const Running before = running[g];
      const float shrink = top == before.largest ? 1.0f : exp_of(before.largest - top);
      simdgroup_barrier(mem_flags::mem_threadgroup);  // all lanes have read it
      if (lane == 0) running[g] = Running{top, fma(before.total, shrink, weights), shrink};
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

#pragma unroll
    for (uint g = 0; g < kQueries; ++g)
      if (g < chunk.n_queries) values[g] = values[g] * float2(running[g].shrink);
    if (own_pair < n_pairs) {
      device const Cache* cached = value_cache + offset + 2 * own_pair;
#pragma unroll 8
      for (uint i = own_part; i < kUnit; i += n_parts) {
        const uint position = first + i;
        if (position < seen.begin || position >= seen.end) continue;
        float2 v;
        if (position >= fresh.first) {
          device const float* row =
              fresh.values + (position - fresh.first) * fresh.values_stride + 2 * own_pair;
          v = float2(float(Cache(row[0])), float(Cache(row[1])));
        } else {
          v = load_two(cached + ulong(i) * head_dim);
        }
#pragma unroll
        for (uint g = 0; g < kQueries; ++g) {
          if (g >= chunk.n_queries) continue;
          const float weight = scores[g * kUnit + i];
          values[g] = float2(fma(weight, v.x, values[g].x), fma(weight, v.y, values[g].y));
        }
      }
    }
  }

  if (own_pair < n_pairs) {
#pragma unroll
    for (uint g = 0; g < kQueries; ++g)
      if (g < chunk.n_queries)
        *reinterpret_cast<threadgroup float2*>(parts + (own_part * kQueries + g) * head_dim +
                                               2 * own_pair) = values[g];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint task = thread_index; task < chunk.n_queries * head_dim; task += kBlockThreads) {
    const uint g = task / head_dim, d = task % head_dim;
    float sum = parts[g * head_dim + d];
    for (uint part = 1; part < n_parts; ++part)
      sum += parts[(part * kQueries + g) * head_dim + d];
    device float* to = workspace + partial_offset(local_row, shape.n_heads, chunk.first_head + g,
                                                  split, head_dim);
    to[d] = sum;
    if (d == 0) {
      to[head_dim] = running[g].largest;
      to[head_dim + 1] = running[g].total;
    }
  }
}

// Floats of shared memory behind the queries, and where the keys of the span begin.
constant constexpr uint kPartsPerQuery = 256;  // 128 threads, two dimensions each

// Grid: (splits, kv heads * chunks of query heads, rows).
template <class Cache, uint kQueries>
[[kernel]] void attention_rows(
    device const float* query [[buffer(0)]], device const Cache* key_cache [[buffer(1)]],
    device const Cache* value_cache [[buffer(2)]], constant PassRange& pass [[buffer(23)]],
    device float* workspace [[buffer(24)]], constant AttentionParams& params [[buffer(25)]],
    device const Row* rows [[buffer(26)]], device const uint* pages [[buffer(27)]],
    threadgroup float* memory [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  const uint row = pass.first_row + group.z;
  const Visible seen = visible_to(rows[row], params.window);
  if (units_before(seen, group.x) >= seen.n_units) return;
  const HeadChunk chunk = chunk_of(group.y, params.n_heads, params.n_kv_heads);
  const uint head_dim = params.head_dim;
  device const float* heads = query + (ulong(row) * params.n_heads + chunk.first_head) * head_dim;
  for (uint i = thread_index; i < kQueries * head_dim; i += kBlockThreads)
    memory[i] = i < chunk.n_queries * head_dim ? heads[i] : 0.0f;
  threadgroup float* scores = memory + kQueries * head_dim;
  threadgroup float* parts = scores + kQueries * kUnit;
  threadgroup Running* running =
      reinterpret_cast<threadgroup Running*>(parts + kQueries * kPartsPerQuery);
  const Fresh fresh = Fresh{kNone, memory, query, 0};
  attend_unit_by_unit<Cache, kQueries>(shape_of(params), seen, group.x, rows[row].sequence, chunk,
                                       memory, scores, running, parts, fresh, key_cache,
                                       value_cache, pages, group.z, workspace, thread_index);
}

template <class Cache, uint kQueries>
[[kernel]] void rope_attention_rows(
    device const float* query [[buffer(0)]], device const float* key [[buffer(1)]],
    device const float* value [[buffer(2)]], device const float* angles [[buffer(3)]],
    device Cache* key_cache [[buffer(4)]], device Cache* value_cache [[buffer(5)]],
    device const float* query_norm [[buffer(6), function_constant(kIsBound6)]],
    device const float* key_norm [[buffer(7), function_constant(kIsBound7)]],
    constant PassRange& pass [[buffer(23)]], device float* workspace [[buffer(24)]],
    constant RopeAttentionParams& params [[buffer(25)]], device const Row* rows [[buffer(26)]],
    device const uint* pages [[buffer(27)]], device const Span* spans [[buffer(30)]],
    threadgroup float* memory [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  const uint row = pass.first_row + group.z;
  const Visible seen = visible_to(rows[row], params.window);
  // The first block of a kv head writes the row's key and value.
  const HeadChunk chunk = chunk_of(group.y, params.n_heads, params.n_kv_heads);
  const uint per_kv_head = params.n_heads / params.n_kv_heads;
  const bool writes = group.x == 0 && chunk.first_head == chunk.kv_head * per_kv_head &&
                      (rows[row].flags & kRowActive) != 0;
  const bool attends = units_before(seen, group.x) < seen.n_units;
  if (!attends && !writes) return;

  const uint head_dim = params.head_dim;
  const uint sequence = rows[row].sequence, place = rows[row].position;
  const uint first_row = spans[rows[row].span].first_row;
  const uint n_fresh = row - first_row + 1;  // rows of a span are consecutive, and so are positions
  threadgroup float* scores = memory + kQueries * head_dim;
  threadgroup float* parts = scores + kQueries * kUnit;
  threadgroup Running* running =
      reinterpret_cast<threadgroup Running*>(parts + kQueries * kPartsPerQuery);
  threadgroup float* fresh_keys = parts + kQueries * kPartsPerQuery + 32;
  for (uint i = chunk.n_queries * head_dim + thread_index; i < kQueries * head_dim;
       i += kBlockThreads)
    memory[i] = 0.0f;
  device const float* norm_of_query = query;  // as good as any where there is none
  device const float* norm_of_key = query;
  if (kIsBound6) norm_of_query = query_norm;
  if (kIsBound7) norm_of_key = key_norm;
  turn_heads<Cache>(query, key, angles, norm_of_query, kIsBound6, norm_of_key, kIsBound7, params,
                    chunk, row, first_row, head_dim, memory, fresh_keys, thread_index / 32,
                    kBlockThreads / 32, thread_index % 32);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (writes)
    write_row<Cache>(fresh_keys + (n_fresh - 1) * head_dim, value, key_cache, value_cache, pages,
                     params, chunk.kv_head, row, sequence, place, thread_index, kBlockThreads);
  if (!attends) return;

  const Fresh fresh =
      Fresh{rows[first_row].position, fresh_keys,
            value + (ulong(first_row) * params.n_kv_heads + chunk.kv_head) * head_dim,
            ulong(params.n_kv_heads) * head_dim};
  attend_unit_by_unit<Cache, kQueries>(shape_of(params), seen, group.x, sequence, chunk, memory,
                                       scores, running, parts, fresh, key_cache, value_cache,
                                       pages, group.z, workspace, thread_index);
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
