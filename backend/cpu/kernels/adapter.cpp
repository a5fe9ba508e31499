// What a row's low-rank adapters add to the product of a weight. Rows without one are passed over.
//   adapter_down: out[r, j] = sum over i of weight[j, i] * input[r, i], for the rows j of the row's adapters
//     0 input: activation [rows, width]   1 weight [rank, width]   2 parts   3 options
//     4 out: rows [rows, rank]            25 AdapterParams
//   adapter_up: data[r, i] += sum over j of share * scale * input[r, j] * weight[j, i]
//     0 input: rows [rows, rank]          1 weight [rank, width]   2 parts   3 options
//     4 data: rows [rows, width]          25 AdapterParams
//   slices: of adapter_down one row x kAdapterRanks rows of the weight, of adapter_up one row x kAdapterColumns numbers
//
// 1. What it computes. The two small products of LoRA. All adapters that are loaded lie one behind the other in
//    one weight, an AdapterPart says which of its rows are one's; a row's options list the adapters it has and
//    their shares. They are summed in the order of that list, so a sum depends on the row's own adapters alone,
//    not on what else is loaded.
// 2. What bounds it. Memory: each row reads its adapters' weights, `rank * width` numbers for each of the two.
// 3. What is done about it. A slice is one row's, so the weights of neighbouring rows with the same adapter come
//    from L2. adapter_down has four accumulators of eight lanes, which hide the latency of an FMA; adapter_up
//    keeps kAdapterColumns sums in L1 while it goes through the ranks. Inputs that are quantised become floats
//    once for a slice (AsFloats).
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/formats_bf16.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

constexpr uint32_t kAdapterRanks = 16;
constexpr uint32_t kAdapterColumns = 512;

// A row of an activation as floats: where it lies if it is such, else written to `out`.
template <class Isa, class Input>
struct AsFloats;

template <class Isa>
struct AsFloats<Isa, FloatInput<Isa>> {
  static const float* read(const std::byte* row, uint32_t, float*) {
    return reinterpret_cast<const float*>(row);
  }
};

template <class Isa>
struct AsFloats<Isa, Bf16Input<Isa>> {
  static const float* read(const std::byte* row, uint32_t k, float* out) {
    const uint16_t* in = reinterpret_cast<const uint16_t*>(row);
    for (uint32_t i = 0; i < k; i += Isa::kLanes) {
      const uint32_t n = k - i < Isa::kLanes ? k - i : Isa::kLanes;
      Isa::store(out + i, Isa::load_bfloat(in + i, n), n);
    }
    return out;
  }
};

template <class Isa>
struct AsFloats<Isa, Bf16PairInput<Isa>> {
  static const float* read(const std::byte* row, uint32_t k, float* out) {
    constexpr uint32_t kLine = 32;  // numbers: a line of the nearest, then one of the rests
    for (uint32_t i = 0; i < k; i += Isa::kLanes) {
      const uint32_t n = k - i < Isa::kLanes ? k - i : Isa::kLanes;
      const uint16_t* nearest =
          reinterpret_cast<const uint16_t*>(row) + i / kLine * (2 * kLine) + i % kLine;
      Isa::store(out + i,
                 Isa::add(Isa::load_bfloat(nearest, n), Isa::load_bfloat(nearest + kLine, n)), n);
    }
    return out;
  }
};

// Whole numbers, and a scale for each 32 of them.
template <class Number>
static inline const float* scaled(const Number* numbers, const float* scales, uint32_t k,
                                  float* out) {
  for (uint32_t i = 0; i < k; ++i) out[i] = static_cast<float>(numbers[i]) * scales[i / 32];
  return out;
}

template <class Isa>
struct AsFloats<Isa, QuantInput<Isa>> {
  static const float* read(const std::byte* row, uint32_t k, float* out) {
    return scaled(reinterpret_cast<const int8_t*>(row), reinterpret_cast<const float*>(row + k), k,
                  out);
  }
};

template <class Isa>
struct AsFloats<Isa, Quant16Input<Isa>> {
  static const float* read(const std::byte* row, uint32_t k, float* out) {
    const int16_t* numbers = reinterpret_cast<const int16_t*>(row);
    return scaled(numbers, reinterpret_cast<const float*>(numbers + Quant16Input<Isa>::whole(k)), k,
                  out);
  }
};

// Calls use(part, weight) for each adapter of a row, in the order of its list.
template <class Isa, class Use>
static inline void for_each_adapter(const Call& call, const Row& row, const Use& use) {
  const AdapterPart* parts = reinterpret_cast<const AdapterPart*>(call.operands[2]);
  const uint32_t* list =
      operand<const uint32_t>(call, 3, row.sequence, kMaxOptionWords) + row.adapter;
  const AdapterShare* shares = reinterpret_cast<const AdapterShare*>(list + 1);
  for (uint32_t i = 0; i < list[0]; ++i) use(parts[shares[i].adapter], shares[i].weight);
}

template <class Isa, class Input, class Format>
struct AdapterDown {
  static uint64_t slices(const Call& call) { return uint64_t{call.n_rows} * pieces(call); }
  static uint64_t scratch_bytes(const Call& call) { return uint64_t{4} * params_of(call).width; }

  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    const AdapterParams& params = params_of(call);
    for (uint64_t slice = begin; slice < end; ++slice) {
      const uint64_t r = call.first_row + slice / pieces(call);
      if (call.rows[r].adapter == kNone) continue;
      const uint32_t first = static_cast<uint32_t>(slice % pieces(call)) * kAdapterRanks;
      const uint32_t last =
          params.rank - first < kAdapterRanks ? params.rank : first + kAdapterRanks;
      const float* input = nullptr;
      float* out = operand<float>(call, 4, r, params.rank);
      for_each_adapter<Isa>(call, call.rows[r], [&](const AdapterPart& part, float) {
        const uint32_t from = part.first > first ? part.first : first;
        const uint32_t end_of_part = part.first + part.rank;
        const uint32_t to = end_of_part < last ? end_of_part : last;
        if (from < to && input == nullptr)
          input = AsFloats<Isa, Input>::read(call.operands[0] + r * Input::row_bytes(params.width),
                                             params.width, reinterpret_cast<float*>(scratch));
        for (uint32_t j = from; j < to; ++j)
          out[j] = dot(call.operands[1] + j * Format::row_bytes(params.width), input, params.width);
      });
    }
  }

 private:
  static const AdapterParams& params_of(const Call& call) {
    return *static_cast<const AdapterParams*>(call.params);
  }
  static uint64_t pieces(const Call& call) {
    return (uint64_t{params_of(call).rank} + kAdapterRanks - 1) / kAdapterRanks;
  }
  static float dot(const std::byte* weights, const float* input, uint32_t k) {
    constexpr uint32_t kLanes = Isa::kLanes, kStep = 4 * kLanes;
    typename Isa::Vector sums[4] = {Isa::zero(), Isa::zero(), Isa::zero(), Isa::zero()};
    uint32_t i = 0;
    for (; i + kStep <= k; i += kStep)
      for (uint32_t j = 0; j < 4; ++j)
        sums[j] = Isa::multiply_add(Format::load(weights, i + kLanes * j, kLanes),
                                    Isa::load(input + i + kLanes * j), sums[j]);
    for (; i < k; i += kLanes) {
      const uint32_t n = k - i < kLanes ? k - i : kLanes;
      sums[0] = Isa::multiply_add(Format::load(weights, i, n), Isa::load(input + i, n), sums[0]);
    }
    return Isa::sum_lanes(Isa::add(Isa::add(sums[0], sums[1]), Isa::add(sums[2], sums[3])));
  }
};

template <class Isa, class Format>
struct AdapterUp {
  static uint64_t slices(const Call& call) { return uint64_t{call.n_rows} * pieces(call); }
  static uint64_t scratch_bytes(const Call& call) {
    return uint64_t{4} * (params_of(call).rank + kAdapterColumns);
  }

  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte* scratch) {
    const AdapterParams& params = params_of(call);
    float* const sums = reinterpret_cast<float*>(scratch);
    for (uint64_t slice = begin; slice < end; ++slice) {
      const uint64_t r = call.first_row + slice / pieces(call);
      if (call.rows[r].adapter == kNone) continue;
      const uint32_t first = static_cast<uint32_t>(slice % pieces(call)) * kAdapterColumns;
      const uint32_t n =
          params.width - first < kAdapterColumns ? params.width - first : kAdapterColumns;
      const float* input = operand<const float>(call, 0, r, params.rank);
      __builtin_memset(sums, 0, uint64_t{4} * n);
      for_each_adapter<Isa>(call, call.rows[r], [&](const AdapterPart& part, float weight) {
        for (uint32_t j = part.first; j < part.first + part.rank; ++j)
          add_row(call.operands[1] + j * Format::row_bytes(params.width), first, n,
                  Isa::broadcast(weight * part.scale * input[j]), sums);
      });
      float* data = operand<float>(call, 4, r, params.width) + first;
      for (uint32_t i = 0; i < n; ++i) data[i] = data[i] + sums[i];
    }
  }

 private:
  static const AdapterParams& params_of(const Call& call) {
    return *static_cast<const AdapterParams*>(call.params);
  }
  static uint64_t pieces(const Call& call) {
    return (uint64_t{params_of(call).width} + kAdapterColumns - 1) / kAdapterColumns;
  }
  static void add_row(const std::byte* weights, uint32_t first, uint32_t n,
                      typename Isa::Vector factor, float* sums) {
    for (uint32_t i = 0; i < n; i += Isa::kLanes) {
      const uint32_t count = n - i < Isa::kLanes ? n - i : Isa::kLanes;
      Isa::store(sums + i,
                 Isa::multiply_add(Format::load(weights, first + i, count), factor,
                                   Isa::load(sums + i, count)),
                 count);
    }
  }
};

template <template <class> class Input, template <class> class Format>
constexpr KernelEntry down_entry() {
  using Down = AdapterDown<ThisIsa, Input<ThisIsa>, Format<ThisIsa>>;
  return {{Operation::adapter_down,
           Input<ThisIsa>::kKind,
           {Format<ThisIsa>::kFormat, kAbsent, kAbsent}},
          {Down::slices, Down::run, Down::scratch_bytes}};
}

template <template <class> class Format>
constexpr KernelEntry up_entry() {
  using Up = AdapterUp<ThisIsa, Format<ThisIsa>>;
  return {{Operation::adapter_up, kAny, {Format<ThisIsa>::kFormat, kAbsent, kAbsent}},
          {Up::slices, Up::run, Up::scratch_bytes}};
}

constexpr KernelEntry kAdapterEntries[] = {
    down_entry<FloatInput, F32>(),
    down_entry<FloatInput, F16>(),
    down_entry<FloatInput, BF16>(),
    down_entry<Bf16Input, F32>(),
    down_entry<Bf16Input, F16>(),
    down_entry<Bf16Input, BF16>(),
    down_entry<Bf16PairInput, F32>(),
    down_entry<Bf16PairInput, F16>(),
    down_entry<Bf16PairInput, BF16>(),
    down_entry<QuantInput, F32>(),
    down_entry<QuantInput, F16>(),
    down_entry<QuantInput, BF16>(),
    down_entry<Quant16Input, F32>(),
    down_entry<Quant16Input, F16>(),
    down_entry<Quant16Input, BF16>(),
    up_entry<F32>(),
    up_entry<F16>(),
    up_entry<BF16>(),
};

}  // namespace

template <>
KernelList Families<ThisIsa>::adapter() {
  return list_of(kAdapterEntries);
}

}  // namespace akunu::cpu
