// all_reduce: out = the sum over ranks of their input, in the order of the ranks
//             0 input, 1 out: rows [rows, n], 2.. exchange of each rank                25 AllReduceParams
// all_reduce_add: data = data + that sum        1 data
//   slices: one, since its rounds follow each other; each rank writes its numbers into the exchange of all others and
//           reads what they wrote into its own
//   limit: the slowest rank
#include <sched.h>
#include <time.h>

#include "cpu/isa/isa.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

// A rank that stays away for so long does not come any more.
constexpr time_t kLongestSeconds = 60;
// Numbers of a round: two in a word of the exchange, of which one block is used here.
constexpr uint64_t kRound = uint64_t{2} * kExchangeUnits * kExchangeThreads;

// Half a word: a number, and the count of the round that it belongs to.
struct Half {
  float number;
  uint32_t count;
};
static_assert(2 * sizeof(Half) == kExchangeWordBytes);

static inline time_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

static inline void put(std::byte* at, uint64_t index, Half half) {
  uint64_t bits;
  __builtin_memcpy(&bits, &half, sizeof(bits));
  __atomic_store_n(reinterpret_cast<uint64_t*>(at) + index, bits, __ATOMIC_RELEASE);
}

// Not a number where the rank stayed away.
static inline float take(const std::byte* at, uint64_t index, uint32_t count) {
  time_t since = 0;
  for (uint32_t looks = 1;; ++looks) {
    const uint64_t bits =
        __atomic_load_n(reinterpret_cast<const uint64_t*>(at) + index, __ATOMIC_ACQUIRE);
    Half half;
    __builtin_memcpy(&half, &bits, sizeof(half));
    if (half.count == count) return half.number;
    if (looks % 256 != 0) continue;
    sched_yield();
    if (since == 0) since = now();
    if (now() - since > kLongestSeconds) return __builtin_nanf("");
  }
}

template <class Isa, bool kAdds>
struct AllReduce {
  static uint64_t slices(const Call&) { return 1; }

  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
    if (begin == end) return;
    const auto& params = *static_cast<const AllReduceParams*>(call.params);
    const float* input = operand<const float>(call, 0, call.first_row, params.n);
    float* out = operand<float>(call, 1, call.first_row, params.n);
    std::byte* own = call.operands[kExchangeSlot + params.rank];
    auto* counter =
        reinterpret_cast<uint32_t*>(own + exchange_words(params.n_ranks) * kExchangeWordBytes);
    const uint64_t n = uint64_t{call.n_rows} * params.n;
    for (uint64_t first = 0; first < n; first += kRound) {
      const uint32_t count = ++*counter;
      const uint64_t n_here = n - first < kRound ? n - first : kRound;
      round(call, params, count, input + first, out + first, n_here);
    }
  }

 private:
  static uint64_t byte_of(const AllReduceParams& params, uint32_t count, uint32_t rank) {
    return exchange_word(count, params.n_ranks, rank, 0) * kExchangeWordBytes;
  }

  static void round(const Call& call, const AllReduceParams& params, uint32_t count,
                    const float* input, float* out, uint64_t n) {
    for (uint32_t rank = 0; rank < params.n_ranks; ++rank) {
      if (rank == params.rank) continue;
      std::byte* to = call.operands[kExchangeSlot + rank] + byte_of(params, count, params.rank);
      for (uint64_t i = 0; i < n; ++i) put(to, i, {input[i], count});
    }
    const std::byte* own = call.operands[kExchangeSlot + params.rank];
    for (uint64_t i = 0; i < n; ++i) {
      float sum = 0;
      for (uint32_t rank = 0; rank < params.n_ranks; ++rank) {
        const float part =
            rank == params.rank ? input[i] : take(own + byte_of(params, count, rank), i, count);
        sum = rank == 0 ? part : sum + part;
      }
      out[i] = kAdds ? out[i] + sum : sum;
    }
  }
};

using Reduce = AllReduce<ThisIsa, false>;
using ReduceAdd = AllReduce<ThisIsa, true>;

constexpr KernelEntry kExchangeEntries[] = {
    {{Operation::all_reduce}, {Reduce::slices, Reduce::run, nullptr}},
    {{Operation::all_reduce_add}, {ReduceAdd::slices, ReduceAdd::run, nullptr}},
};

}  // namespace

template <>
KernelList Families<ThisIsa>::exchange() {
  return list_of(kExchangeEntries);
}

}  // namespace akunu::cpu
