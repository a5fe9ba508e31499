// all_reduce, all_reduce_add: what the ranks of a group have made of the same rows, added up in the order of the ranks.
//
// 1. A rank writes its numbers into the exchange of every other one, over NVLink, and reads what they wrote from
//    its own. A word of 16 bytes has two numbers and, beside each, the count of the round: a word that has come says so
//    itself, and nobody waits for more than it (the protocol that NCCL calls LL). 8 bytes arrive together.
// 2. A thread writes and reads the same words of every round, two slots in turn. It writes a slot again two
//    rounds later, when the words that it read in between have told it that the other rank's thread had read the slot.
//    So that there are such words, a thread without numbers in a round writes its first word all the same.
// 3. Each block counts its rounds in the exchange, in device memory: a captured graph is launched with the same
//    arguments each time, so the count cannot be one of them.
// 4. A thread waits ten seconds for a word. Then the other rank is lost, and the kernel aborts with an error.
//
// Floor: a way over NVLink for one row, some two microseconds; twice the bytes of the rows for many.
#include "metal/kernels/common.h"

constant constexpr ulong kLongestNanoseconds = 10'000'000'000;

// The numbers of a word, once it has come.
inline float2 take_word(device const uint4* at, uint count) {
  uint4 word = look_at_word(at);
  if (word.y != count || word.w != count) {
    const ulong begin = nanoseconds();
    do {
      word = look_at_word(at);
      if (nanoseconds() - begin > kLongestNanoseconds) give_up();
    } while (word.y != count || word.w != count);
  }
  return float2(as_type<float>(word.x), as_type<float>(word.z));
}

struct Exchanges {
  device uint4* of[kMaxRanks];
};

template <bool kAdds>
inline void reduce_rows(device const float* input, device float* out, Exchanges exchanges,
                        constant PassRange& pass, constant AllReduceParams& params, uint block,
                        uint n_blocks, uint thread_index) {
  const uint rank = params.rank, n_ranks = params.n_ranks;
  const ulong begin = ulong(pass.first_row) * params.n / 2;
  const ulong n_pairs = ulong(pass.n_rows) * params.n / 2;
  device const float2* from = reinterpret_cast<device const float2*>(input) + begin;
  device float2* to = reinterpret_cast<device float2*>(out) + begin;
  device uint4* own_exchange = exchanges.of[0];
#pragma unroll
  for (uint r = 1; r < kMaxRanks; ++r)
    if (r == rank) own_exchange = exchanges.of[r];
  device uint* counters = reinterpret_cast<device uint*>(own_exchange + exchange_words(n_ranks));
  uint count = counters[block];
  const uint step = n_blocks * kExchangeThreads;
  for (ulong first = 0; first < n_pairs; first += ulong(step) * kExchangeUnits) {
    ++count;
    const ulong mine = first + block * kExchangeThreads + thread_index;
    const ulong written = exchange_word(count, n_ranks, rank, block) + thread_index;
    float2 own[kExchangeUnits];
#pragma unroll
    for (uint unit = 0; unit < kExchangeUnits; ++unit) {
      const ulong i = mine + ulong(unit) * step;
      own[unit] = i < n_pairs ? from[i] : float2(0.0f);
      if (unit > 0 && i >= n_pairs) continue;
      const uint4 word =
          uint4(as_type<uint>(own[unit].x), count, as_type<uint>(own[unit].y), count);
#pragma unroll
      for (uint r = 0; r < kMaxRanks; ++r)
        if (r < n_ranks && r != rank)
          put_word(exchanges.of[r] + written + unit * kExchangeThreads, word);
    }
#pragma unroll
    for (uint unit = 0; unit < kExchangeUnits; ++unit) {
      const ulong i = mine + ulong(unit) * step;
      if (unit > 0 && i >= n_pairs) continue;
      float2 sum = float2(0.0f);
      for (uint r = 0; r < n_ranks; ++r) {
        const float2 part =
            r == rank ? own[unit]
                      : take_word(own_exchange + exchange_word(count, n_ranks, r, block) +
                                      unit * kExchangeThreads + thread_index,
                                  count);
        sum = r == 0 ? part : sum + part;
      }
      if (i < n_pairs) to[i] = kAdds ? to[i] + sum : sum;
    }
  }
  threadgroup_barrier(mem_flags::mem_none);  // every thread has read the counter
  if (thread_index == 0) counters[block] = count;
}

// out = the sum
[[kernel]] void all_reduce(device const float* input [[buffer(0)]], device float* out [[buffer(1)]],
                           device uint4* exchange_0 [[buffer(2)]],
                           device uint4* exchange_1 [[buffer(3)]],
                           device uint4* exchange_2 [[buffer(4)]],
                           device uint4* exchange_3 [[buffer(5)]],
                           device uint4* exchange_4 [[buffer(6)]],
                           device uint4* exchange_5 [[buffer(7)]],
                           device uint4* exchange_6 [[buffer(8)]],
                           device uint4* exchange_7 [[buffer(9)]],
                           constant PassRange& pass [[buffer(23)]],
                           constant AllReduceParams& params [[buffer(25)]],
                           uint3 group [[threadgroup_position_in_grid]],
                           uint3 n_groups [[threadgroups_per_grid]],
                           uint thread_index [[thread_index_in_threadgroup]]) {
  const Exchanges exchanges = Exchanges{{exchange_0, exchange_1, exchange_2, exchange_3, exchange_4,
                                         exchange_5, exchange_6, exchange_7}};
  reduce_rows<false>(input, out, exchanges, pass, params, group.x, n_groups.x, thread_index);
}

// data = data + the sum
[[kernel]] void all_reduce_add(
    device const float* input [[buffer(0)]], device float* data [[buffer(1)]],
    device uint4* exchange_0 [[buffer(2)]], device uint4* exchange_1 [[buffer(3)]],
    device uint4* exchange_2 [[buffer(4)]], device uint4* exchange_3 [[buffer(5)]],
    device uint4* exchange_4 [[buffer(6)]], device uint4* exchange_5 [[buffer(7)]],
    device uint4* exchange_6 [[buffer(8)]], device uint4* exchange_7 [[buffer(9)]],
    constant PassRange& pass [[buffer(23)]], constant AllReduceParams& params [[buffer(25)]],
    uint3 group [[threadgroup_position_in_grid]], uint3 n_groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  const Exchanges exchanges = Exchanges{{exchange_0, exchange_1, exchange_2, exchange_3, exchange_4,
                                         exchange_5, exchange_6, exchange_7}};
  reduce_rows<true>(input, data, exchanges, pass, params, group.x, n_groups.x, thread_index);
}
