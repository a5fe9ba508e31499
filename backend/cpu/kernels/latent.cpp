// Multi-head latent attention but for the attention itself, which is in attention.cpp.
//   latent_write: the first `rank` numbers normed, the others rotated, rounded to the cache's format
//     0 latent: rows [rows, rank + 2 n_pairs]   1 norm: vector [rank]   2 angles: rows [rows, 2 n_pairs],
//     or nothing: none rotates
//     3 cache: [page][256][rank + 2 n_pairs]   25 LatentWriteParams
//     slices: one row   limit: latency
//   latent_query: heads [n_plain | 2 n_pairs] -> [rank | 2 n_pairs]: the former through the head's part
//     of the weight, the latter rotated
//     0 query: rows [rows, n_heads * (n_plain + 2 n_pairs)]   1 weight   2 angles
//     3 out: rows [rows, n_heads * (rank + 2 n_pairs)]   25 LatentQueryParams
//   latent_value: out[h, i] = weight row [h * head_rows + first_row + i] . attended[h]
//     0 attended: rows [rows, n_heads * rank]   1 weight [n_heads * head_rows, rank]
//     2 out: activation [rows, n_heads * value_dim]   25 LatentValueParams
//     slices: up to kLatentRows rows x a head (the fewest heads whose output is whole groups)
//
// 1. What bounds them. One row: memory, a head's part of the weight is read once. A prompt's: the multipliers.
// 2. What is done about it. Rows of a slice share what is loaded, never a sum: every number is a sum in
//    order of its column, or in the order of multiply_panel, whatever runs beside it (row invariance).
//    Where the weight's rows are summed (`add_rows`), eight of them are in registers for all rows of a slice.
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/attention_range.h"
#include "cpu/kernels/formats_bf16.h"
#include "cpu/kernels/heads.h"
#include "cpu/kernels/matmul_tile.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

constexpr uint32_t kLatentRows =
    16;  // of a slice: a head's results of DeepSeek's are 32 KiB, an L1

template <class Isa, class Format>
struct LatentWrite {
  static void row(const Call& call, const LatentWriteParams& params, uint64_t r,
                  std::byte* scratch) {
    const Row& row = call.rows[r];
    if (!(row.flags & kRowActive)) return;
    const uint32_t n_rotated = 2 * params.n_pairs, width = params.rank + n_rotated;
    const float* latent = operand<const float>(call, 0, r, width);
    float* const made = reinterpret_cast<float*>(scratch);
    rms_norm_floats<Isa>(latent, operand<const float>(call, 1, 0, 0), params.rank, params.epsilon,
                         made);
    __builtin_memcpy(made + params.rank, latent + params.rank, sizeof(float) * uint64_t{n_rotated});
    if (call.operands[2] != nullptr)
      rotate_head<Isa>(made + params.rank, interleaved(operand<const float>(call, 2, r, n_rotated)),
                       params.n_pairs, params.style);
    const uint32_t page = page_of(call.pages, params.page_table_base, params.page_table_stride,
                                  row.sequence, row.position);
    store_head<Isa, Format>(made, width, call.operands[3],
                            kv_offset(page, 1, 0, row.position % kPagePositions, width));
  }
  static uint64_t scratch_bytes(const Call& call) {
    const auto& params = *static_cast<const LatentWriteParams*>(call.params);
    return sizeof(float) * (uint64_t{params.rank} + uint64_t{2} * params.n_pairs);
  }
};

// Slices: blocks of rows x units of heads, a unit's blocks one after another.
static inline uint64_t latent_blocks(const Call& call) {
  return (uint64_t{call.n_rows} + kLatentRows - 1) / kLatentRows;
}
// Calls use(first row, number of rows, unit) for slices [begin, end).
template <class Use>
static inline void for_each_latent_block(const Call& call, uint64_t begin, uint64_t end,
                                         const Use& use) {
  const uint64_t blocks = latent_blocks(call);
  for (uint64_t slice = begin; slice < end; ++slice) {
    const uint32_t first = static_cast<uint32_t>(slice % blocks) * kLatentRows;
    const uint32_t left = call.n_rows - first;
    use(uint64_t{call.first_row} + first, left < kLatentRows ? left : kLatentRows,
        static_cast<uint32_t>(slice / blocks));
  }
}

template <class Isa, template <class> class Format>
struct LatentQuery {
  using Wide = typename Isa::Wide;
  using Weights = Format<Isa>;

  static uint64_t slices(const Call& call) {
    return latent_blocks(call) * static_cast<const LatentQueryParams*>(call.params)->n_heads;
  }

  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
    const auto& params = *static_cast<const LatentQueryParams*>(call.params);
    for_each_latent_block(call, begin, end,
                          [&](uint64_t first_row, uint32_t n_rows, uint32_t head) {
                            run_head(call, params, first_row, n_rows, head);
                          });
  }

 private:
  static void run_head(const Call& call, const LatentQueryParams& params, uint64_t first_row,
                       uint32_t n_rows, uint32_t head) {
    const uint32_t n_rotated = 2 * params.n_pairs;
    const uint64_t in = params.n_plain + n_rotated, out = params.rank + n_rotated;
    const uint64_t in_stride = params.n_heads * in, out_stride = params.n_heads * out;
    const float* query = operand<const float>(call, 0, first_row, in_stride) + head * in;
    float* made = operand<float>(call, 3, first_row, out_stride) + head * out;
    const uint64_t row_bytes =
        Weights::row_bytes(params.is_transposed != 0 ? params.n_plain : params.rank);
    const std::byte* weights = call.operands[1] + uint64_t{head} * params.head_rows * row_bytes;
    if (params.is_transposed != 0) {
      typename FloatInput<Isa>::Row inputs[kLatentRows];
      for (uint32_t r = 0; r < n_rows; ++r) inputs[r] = {query + r * in_stride};
      multiply_panel<Isa, Weights>(
          inputs, n_rows, weights, row_bytes, 0, params.rank, params.n_plain, nullptr,
          [&](uint32_t r, uint32_t i, const float* sums, uint32_t n) {
            __builtin_memcpy(made + r * out_stride + i, sums, n * sizeof(float));
          });
    } else {
      uint32_t j = 0;
      for (; j + 8 <= params.n_plain; j += 8)
        add_rows<8>(query + j, in_stride, weights + j * row_bytes, row_bytes, params.rank, made,
                    out_stride, n_rows, j == 0);
      for (; j < params.n_plain; ++j)
        add_rows<1>(query + j, in_stride, weights + j * row_bytes, row_bytes, params.rank, made,
                    out_stride, n_rows, j == 0);
    }
    for (uint32_t r = 0; r < n_rows; ++r) {
      float* rotated = made + r * out_stride + params.rank;
      __builtin_memcpy(rotated, query + r * in_stride + params.n_plain, sizeof(float) * n_rotated);
      if (call.operands[2] != nullptr)
        rotate_head<Isa>(rotated,
                         interleaved(operand<const float>(call, 2, first_row + r, n_rotated)),
                         params.n_pairs, params.style);
    }
  }

  // made[r] += the sum over j of query[r][j] * weight row j, for kCount rows of the weight, in order.
  template <uint32_t kCount>
  static void add_rows(const float* query, uint64_t in_stride, const std::byte* weights,
                       uint64_t row_bytes, uint32_t n, float* made, uint64_t out_stride,
                       uint32_t n_rows, bool is_first) {
    uint32_t i = 0;
    for (; i + Wide::kLanes <= n; i += Wide::kLanes)
      add_columns<Wide, kCount>(query, in_stride, weights, row_bytes, i, Wide::kLanes, made,
                                out_stride, n_rows, is_first);
    for (; i < n; i += Isa::kLanes)
      add_columns<Isa, kCount>(query, in_stride, weights, row_bytes, i,
                               n - i < Isa::kLanes ? n - i : Isa::kLanes, made, out_stride, n_rows,
                               is_first);
  }

  // `count` columns from `first` on, a lane each: so vectors may be as wide as the level has them.
  template <class Lanes, uint32_t kCount>
  static void add_columns(const float* query, uint64_t in_stride, const std::byte* weights,
                          uint64_t row_bytes, uint32_t first, uint32_t count, float* made,
                          uint64_t out_stride, uint32_t n_rows, bool is_first) {
    typename Lanes::Vector loaded[kCount];
#pragma GCC unroll 8
    for (uint32_t j = 0; j < kCount; ++j)
      loaded[j] = Format<Lanes>::load(weights + j * row_bytes, first, count);
    for (uint32_t r = 0; r < n_rows; ++r) {
      float* const out = made + r * out_stride + first;
      auto sum = is_first ? Lanes::zero() : Lanes::load(out, count);
#pragma GCC unroll 8
      for (uint32_t j = 0; j < kCount; ++j)
        sum = Lanes::multiply_add(Lanes::broadcast(query[r * in_stride + j]), loaded[j], sum);
      if constexpr (Lanes::kLanes == Isa::kLanes)
        Isa::store(out, sum, count);
      else
        Lanes::store(out, sum);
    }
  }
};

static inline uint32_t heads_of_slice(const LatentValueParams& params, uint32_t out_group) {
  return heads_of_whole_groups(params.n_heads, params.value_dim, out_group);
}

// Slices, whose results are written with `writer`.
template <class Isa, class Weights>
struct LatentValueSlices {
  [[gnu::noinline]] static void run(const Call& call, uint64_t begin, uint64_t end,
                                    std::byte* scratch, const ActivationWriter& writer) {
    const auto& params = *static_cast<const LatentValueParams*>(call.params);
    const uint32_t unit = heads_of_slice(params, writer.group);
    const uint32_t k = params.n_heads * params.value_dim;
    const uint64_t stride = uint64_t{unit} * params.value_dim;  // of a row's results
    const uint64_t in_stride = uint64_t{params.n_heads} * params.rank;
    const uint64_t row_bytes = Weights::row_bytes(params.rank);
    float* const made = reinterpret_cast<float*>(scratch);
    for_each_latent_block(
        call, begin, end, [&](uint64_t first_row, uint32_t n_rows, uint32_t which) {
          const uint32_t first = which * unit;
          const uint32_t last = first + unit < params.n_heads ? first + unit : params.n_heads;
          for (uint32_t head = first; head < last; ++head) {
            typename FloatInput<Isa>::Row inputs[kLatentRows];
            for (uint32_t r = 0; r < n_rows; ++r)
              inputs[r] = {operand<const float>(call, 0, first_row + r, in_stride) +
                           uint64_t{head} * params.rank};
            float* const out = made + uint64_t{head - first} * params.value_dim;
            multiply_panel<Isa, Weights>(
                inputs, n_rows,
                call.operands[1] +
                    (uint64_t{head} * params.head_rows + params.first_row) * row_bytes,
                row_bytes, 0, params.value_dim, params.rank, nullptr,
                [&](uint32_t r, uint32_t i, const float* sums, uint32_t n) {
                  __builtin_memcpy(out + r * stride + i, sums, n * sizeof(float));
                });
          }
          const uint32_t begin_column = first * params.value_dim,
                         end_column = last * params.value_dim;
          for (uint32_t r = 0; r < n_rows; ++r)
            writer.write(call.operands[2] + (first_row + r) * writer.row_bytes(k), k, begin_column,
                         end_column, made + r * stride);
        });
  }
};

template <class Isa, class Weights, class Activation>
struct LatentValue {
  static uint64_t slices(const Call& call) {
    const auto& params = *static_cast<const LatentValueParams*>(call.params);
    const uint32_t unit = unit_of(params);
    return latent_blocks(call) * ((params.n_heads + unit - 1) / unit);
  }

  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    LatentValueSlices<Isa, Weights>::run(call, begin, end, scratch,
                                         WriteStored<Isa, Activation>::kWriter);
  }

  static uint64_t scratch_bytes(const Call& call) {
    const auto& params = *static_cast<const LatentValueParams*>(call.params);
    return sizeof(float) *
           (uint64_t{kLatentRows} * unit_of(params) * params.value_dim + Isa::kLanes);
  }

 private:
  static uint32_t unit_of(const LatentValueParams& params) {
    return heads_of_slice(params, Activation::kGroup);
  }
};

template <template <class> class Format>
constexpr KernelEntry latent_write_entry() {
  using Write = LatentWrite<ThisIsa, Format<ThisIsa>>;
  using Rows = RowsKernel<ThisIsa, LatentWriteParams, Write>;
  return {{Operation::latent_write, kAny, {kAbsent, kAbsent, kAbsent}, Format<ThisIsa>::kFormat},
          {Rows::slices, Rows::run, Write::scratch_bytes}};
}

template <template <class> class Format>
constexpr KernelEntry latent_query_entry() {
  using Kernel = LatentQuery<ThisIsa, Format>;
  return {{Operation::latent_query, kAny, {Format<ThisIsa>::kFormat, kAbsent, kAbsent}},
          {Kernel::slices, Kernel::run, nullptr}};
}

template <template <class> class Format, template <class> class Activation>
constexpr KernelEntry latent_value_entry() {
  using Kernel = LatentValue<ThisIsa, Format<ThisIsa>, Activation<ThisIsa>>;
  return {{Operation::latent_value,
           Activation<ThisIsa>::kKind,
           {Format<ThisIsa>::kFormat, kAbsent, kAbsent}},
          {Kernel::slices, Kernel::run, Kernel::scratch_bytes}};
}

constexpr KernelEntry kLatentEntries[] = {
    latent_write_entry<F32>(),
    latent_write_entry<F16>(),
    latent_query_entry<F32>(),
    latent_query_entry<F16>(),
    latent_query_entry<BF16>(),
    latent_value_entry<F32, F32Activation>(),
    latent_value_entry<F32, Bf16Activation>(),
    latent_value_entry<F32, Bf16PairActivation>(),
    latent_value_entry<F32, Q8Activation>(),
    latent_value_entry<F32, Q16Activation>(),
    latent_value_entry<F16, F32Activation>(),
    latent_value_entry<F16, Bf16Activation>(),
    latent_value_entry<F16, Bf16PairActivation>(),
    latent_value_entry<F16, Q8Activation>(),
    latent_value_entry<F16, Q16Activation>(),
    latent_value_entry<BF16, F32Activation>(),
    latent_value_entry<BF16, Bf16Activation>(),
    latent_value_entry<BF16, Bf16PairActivation>(),
    latent_value_entry<BF16, Q8Activation>(),
    latent_value_entry<BF16, Q16Activation>(),
};

}  // namespace

template <>
KernelList Families<ThisIsa>::latent() {
  return list_of(kLatentEntries);
}

}  // namespace akunu::cpu
