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
#include "cuda/kernels/launch.cuh"

namespace gpu {

constexpr ulong kLongestNanoseconds = 10'000'000'000;

// The numbers of a word, once it has come.
__device__ inline float2 take_word(const uint4* at, uint count) {
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
  uint4* of[kMaxRanks];
};

template <bool kAdds>
__device__ inline void reduce_rows(const float* input, float* out, Exchanges exchanges,
                                   const PassRange& pass, const AllReduceParams& params, uint block,
                                   uint n_blocks, uint thread_index) {
  const uint rank = params.rank, n_ranks = params.n_ranks;
  const ulong begin = ulong(pass.first_row) * params.n / 2;
  const ulong n_pairs = ulong(pass.n_rows) * params.n / 2;
  const float2* from = reinterpret_cast<const float2*>(input) + begin;
  float2* to = reinterpret_cast<float2*>(out) + begin;
  uint4* own_exchange = exchanges.of[0];
#pragma unroll
  for (uint r = 1; r < kMaxRanks; ++r)
    if (r == rank) own_exchange = exchanges.of[r];
  uint* counters = reinterpret_cast<uint*>(own_exchange + exchange_words(n_ranks));
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
        const float2 part = r == rank
                                ? own[unit]
                                : take_word(own_exchange + exchange_word(count, n_ranks, r, block) +
                                                unit * kExchangeThreads + thread_index,
                                            count);
        sum = r == 0 ? part : sum + part;
      }
      if (i < n_pairs) to[i] = kAdds ? to[i] + sum : sum;
    }
  }
  __syncthreads();  // every thread has read the counter
  if (thread_index == 0) counters[block] = count;
}

// out = the sum
__device__ void all_reduce(const float* input, float* out, uint4* exchange_0, uint4* exchange_1,
                           uint4* exchange_2, uint4* exchange_3, uint4* exchange_4,
                           uint4* exchange_5, uint4* exchange_6, uint4* exchange_7,
                           const PassRange& pass, const AllReduceParams& params, uint3 group,
                           uint3 n_groups, uint thread_index) {
  const Exchanges exchanges = Exchanges{{exchange_0, exchange_1, exchange_2, exchange_3, exchange_4,
                                         exchange_5, exchange_6, exchange_7}};
  reduce_rows<false>(input, out, exchanges, pass, params, group.x, n_groups.x, thread_index);
}

// data = data + the sum
__device__ void all_reduce_add(const float* input, float* data, uint4* exchange_0,
                               uint4* exchange_1, uint4* exchange_2, uint4* exchange_3,
                               uint4* exchange_4, uint4* exchange_5, uint4* exchange_6,
                               uint4* exchange_7, const PassRange& pass,
                               const AllReduceParams& params, uint3 group, uint3 n_groups,
                               uint thread_index) {
  const Exchanges exchanges = Exchanges{{exchange_0, exchange_1, exchange_2, exchange_3, exchange_4,
                                         exchange_5, exchange_6, exchange_7}};
  reduce_rows<true>(input, data, exchanges, pass, params, group.x, n_groups.x, thread_index);
}

AKUNU_KERNEL(all_reduce, ) {
  inputs_ready();
  all_reduce(launch.slot(0), launch.slot(1), launch.slot(2), launch.slot(3), launch.slot(4),
             launch.slot(5), launch.slot(6), launch.slot(7), launch.slot(8), launch.slot(9),
             launch.pass(), launch.parameters(), block_index(), grid_size(), threadIdx.x);
}

AKUNU_KERNEL(all_reduce_add, ) {
  inputs_ready();
  all_reduce_add(launch.slot(0), launch.slot(1), launch.slot(2), launch.slot(3), launch.slot(4),
                 launch.slot(5), launch.slot(6), launch.slot(7), launch.slot(8), launch.slot(9),
                 launch.pass(), launch.parameters(), block_index(), grid_size(), threadIdx.x);
}

}  // namespace gpu
