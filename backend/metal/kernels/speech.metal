// What models of speech compute with and others do not: unfold, cross_attention, cross_weights and
// transcription_rules. All activations are float32.
#include "metal/kernels/sample.h"

// out[r, c * width + j] = input[stride * r + j - padding, c], 0 outside of the span's input; a thread
// per number.
[[kernel]] void unfold(device const float* input [[buffer(0)]], device float* out [[buffer(1)]],
                       constant PassRange& pass [[buffer(23)]],
                       constant UnfoldParams& params [[buffer(25)]],
                       device const Row* rows [[buffer(26)]],
                       device const Span* spans [[buffer(30)]],
                       uint3 position [[thread_position_in_grid]]) {
  const uint k = params.n_channels * params.width;
  if (position.x >= k) return;
  const uint row = pass.first_row + position.y;
  const Span span = spans[rows[row].span];
  const uint channel = position.x / params.width, j = position.x % params.width;
  // Counted from `padding` before the first row of the input, so that nothing is below 0.
  const uint from = params.stride * row + j,
             begin = params.stride * span.first_row + params.padding;
  const uint end = begin + params.stride * span.n_rows;
  out[ulong(row) * k + position.x] =
      from >= begin && from < end
          ? input[ulong(from - params.padding) * params.n_channels + channel]
          : 0.0f;
}

constant constexpr uint kMostCrossDims = 8;  // numbers of a head per lane: heads of up to 256

// A SIMD-group per row and head. Positions come in groups of 32, a lane each for the scores; for the
// values, a lane has the head's numbers 32 apart. Grid: (heads, rows).
template <class Cache>
[[kernel]] void cross_attention(
    device const float* query [[buffer(0)]], device const Cache* key_cache [[buffer(1)]],
    device const Cache* value_cache [[buffer(2)]], device float* out [[buffer(3)]],
    constant PassRange& pass [[buffer(23)]], constant CrossAttentionParams& params [[buffer(25)]],
    device const Row* rows [[buffer(26)]], device const uint* pages [[buffer(27)]],
    uint3 group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  const uint head_dim = params.head_dim, head = group.x, row = pass.first_row + group.y;
  const uint kv_head = head / (params.n_heads / params.n_kv_heads);
  const uint sequence = rows[row].sequence;
  device const float* own = query + (ulong(row) * params.n_heads + head) * head_dim;
  float sums[kMostCrossDims];
  for (uint d = 0; d < kMostCrossDims; ++d) sums[d] = 0.0f;
  float largest = -infinity(), total = 0.0f;
  for (uint first = 0; first < params.n_positions; first += 32) {
    const uint page =
        page_of(pages, params.page_table_base, params.page_table_stride, sequence, first);
    const ulong offset =
        kv_offset(page, params.n_kv_heads, kv_head, first % kPagePositions, head_dim);
    const uint n = min(32u, params.n_positions - first);
    float score = -infinity();
    if (lane < n) {
      device const Cache* k = key_cache + offset + ulong(lane) * head_dim;
      float dot = 0.0f;
      for (uint i = 0; i < head_dim; ++i) dot = fma(own[i], float(k[i]), dot);
      score = dot * params.scale;
    }
    const float top = max(largest, simd_max(score));
    const float keep = exp_of(largest - top);
    const float weight = lane < n ? exp_of(score - top) : 0.0f;
    total = fma(total, keep, simd_sum(weight));
    largest = top;
    for (uint d = 0; d < kMostCrossDims; ++d) sums[d] = sums[d] * keep;
    for (uint j = 0; j < n; ++j) {
      const float each = simd_shuffle(weight, ushort(j));
      device const Cache* v = value_cache + offset + ulong(j) * head_dim;
      for (uint d = 0; d < kMostCrossDims; ++d)
        if (lane + 32 * d < head_dim) sums[d] = fma(each, float(v[lane + 32 * d]), sums[d]);
    }
  }
  const float factor = 1.0f / total;
  for (uint d = 0; d < kMostCrossDims; ++d)
    if (lane + 32 * d < head_dim)
      out[(ulong(row) * params.n_heads + head) * head_dim + lane + 32 * d] = sums[d] * factor;
}

#define AKUNU_CROSS_ATTENTION(name, Cache)                                                     \
  template [[host_name("cross_attention_" #name)]] [[kernel]] decltype(cross_attention<Cache>) \
      cross_attention<Cache>;
AKUNU_CROSS_ATTENTION(f16, half)
AKUNU_CROSS_ATTENTION(f32, float)

// A SIMD-group per row and head of the result, a lane per position. Grid: (heads that are wanted, rows).
template <class Cache>
[[kernel]] void cross_weights(
    device const float* query [[buffer(0)]], device const Cache* key_cache [[buffer(1)]],
    device float* out [[buffer(2)]], constant PassRange& pass [[buffer(23)]],
    constant CrossWeightsParams& params [[buffer(25)]], device const Row* rows [[buffer(26)]],
    device const uint* pages [[buffer(27)]], uint3 group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const uint head_dim = params.head_dim, n = params.n_positions, row = pass.first_row + group.y;
  const uint head_row = rows[row].head_row, sequence = rows[row].sequence;
  if (head_row == kNone) return;
  uint head = 0;
  for (uint left = group.x + 1; left > 0; ++head) left -= params.heads >> head & 1u;
  head -= 1;
  const uint kv_head = head / (params.n_heads / params.n_kv_heads);
  device const float* own = query + (ulong(row) * params.n_heads + head) * head_dim;
  device float* weights = out + (ulong(head_row) * params.n_out + params.first + group.x) * n;
  float largest = -infinity();
  for (uint at = lane; at < n; at += 32) {
    const uint page =
        page_of(pages, params.page_table_base, params.page_table_stride, sequence, at);
    device const Cache* key =
        key_cache + kv_offset(page, params.n_kv_heads, kv_head, at % kPagePositions, head_dim);
    float dot = 0.0f;
    for (uint i = 0; i < head_dim; ++i) dot = fma(own[i], float(key[i]), dot);
    weights[at] = dot * params.scale;
    largest = max(largest, weights[at]);
  }
  largest = simd_max(largest);
  float total = 0.0f;
  for (uint at = lane; at < n; at += 32) total = total + exp_of(weights[at] - largest);
  const float factor = 1.0f / simd_sum(total);
  for (uint at = lane; at < n; at += 32) weights[at] = exp_of(weights[at] - largest) * factor;
}

#define AKUNU_CROSS_WEIGHTS(name, Cache) \
  template [[host_name(                  \
      "cross_weights_" #name)]] [[kernel]] decltype(cross_weights<Cache>) cross_weights<Cache>;
AKUNU_CROSS_WEIGHTS(f16, half)
AKUNU_CROSS_WEIGHTS(f32, float)

inline void ban(Team team, device float* logits, uint begin, uint end) {
  for (uint i = begin + team.thread_index; i < end; i += team.n_threads) logits[i] = -infinity();
}

inline void ban_listed(Team team, device float* logits, uint vocab_size, device const uint* tokens,
                       uint n) {
  for (uint i = team.thread_index; i < n; i += team.n_threads)
    if (tokens[i] < vocab_size) logits[tokens[i]] = -infinity();
}

inline float largest_of(Team team, device const float* logits, uint begin, uint end) {
  Candidate best = Candidate{-infinity(), kNone};
  for (uint i = begin + team.thread_index; i < end; i += team.n_threads)
    if (logits[i] > best.value) best = Candidate{logits[i], i};
  return team_best(team, best).value;
}

// Logits of what may not follow become -inf (docs/kernels.md). One threadgroup per row. `partial`:
// threadgroup memory of two floats for each SIMD-group.
[[kernel]] void transcription_rules(
    device float* logits [[buffer(0)]], device const uint* tokens [[buffer(1)]],
    device const uint* options [[buffer(2)]], constant PassRange& pass [[buffer(23)]],
    constant TranscriptionRulesParams& params [[buffer(25)]], device const Row* rows [[buffer(26)]],
    device const SequenceRecord* sequences [[buffer(28)]],
    threadgroup float* partial [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const Team team = Team{thread_index, simdgroup, lane, n_simdgroups, 32 * n_simdgroups, partial};
  const uint vocab_size = params.vocab_size;
  device const Row& row = rows[pass.first_row + group.x];
  device const SequenceRecord& record = sequences[row.sequence];
  if ((row.flags & kRowActive) == 0 || row.head_row == kNone || row.position + 1 < record.n_prompt)
    return;
  device float* own = logits + ulong(row.head_row) * vocab_size;
  device const uint* words = options + ulong(row.sequence) * kMaxOptionWords;
  const uint n_chosen = row.position + 1 - record.rules.n_before;
  ban_listed(team, own, vocab_size, words + record.rules.banned.first, record.rules.banned.n);
  threadgroup_barrier(mem_flags::mem_device);
  if (n_chosen == 0)
    ban_listed(team, own, vocab_size, words + record.rules.banned_first.first,
               record.rules.banned_first.n);
  const uint first = record.rules.first_timestamp;
  if (first == 0 || first >= vocab_size) return;
  threadgroup_barrier(mem_flags::mem_device);

  // What is allowed: text from `text` on, and timestamps [earliest, latest].
  device const uint* chosen =
      tokens + ulong(row.sequence) * params.log_stride + record.rules.n_before;
  uint text = 0, earliest = first, latest = vocab_size - 1;
  if (n_chosen == 0) {
    text = first;
    latest = record.rules.last_initial;
  } else {
    const bool is_behind = chosen[n_chosen - 1] >= first;
    const bool is_behind_two = n_chosen < 2 || chosen[n_chosen - 2] >= first;
    uint i = n_chosen;
    while (i > 0 && chosen[i - 1] < first) --i;
    if (i > 0) earliest = is_behind && !is_behind_two ? chosen[i - 1] : chosen[i - 1] + 1;
    if (is_behind && is_behind_two) earliest = vocab_size;
    if (is_behind && !is_behind_two) text = record.rules.end_of_text;
  }
  for (uint i = thread_index; i < vocab_size; i += team.n_threads)
    if (i < first ? i < text : i < earliest || i > latest) own[i] = -infinity();
  threadgroup_barrier(mem_flags::mem_device);

  const float largest = largest_of(team, own, first, vocab_size);
  if (largest == -infinity()) return;
  Mass total = Mass{0.0f, 0.0f};
  for (uint i = first + thread_index; i < vocab_size; i += team.n_threads)
    total = sum_of(total, Mass{exp_of(own[i] - largest), 0.0f});
  total = team_mass(team, total);
  const float of_text = largest_of(team, own, 0, first);
  if (largest + log_of(total.high + total.low) > of_text) {
    threadgroup_barrier(mem_flags::mem_device);  // all have read the text's
    ban(team, own, 0, first);
  }
}
