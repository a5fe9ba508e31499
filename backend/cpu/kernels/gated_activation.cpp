// gated_activation: out[r, i] = kind(act(gate[r, i]) * up[r, up_first + i])
//   0 gate: rows [rows, n]   1 up: rows [rows, up_stride, or n]   2 out: activation [rows, n]
//   25 GatedActivationParams
//   slices: kSlice columns of a row
//   limit:  the exponential, about 20 instructions per 8 numbers
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/plain_activation.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

constexpr uint32_t kSlice = 2048;  // about a microsecond; a multiple of every activation's group

template <class Isa, class Activation>
struct GatedActivation {
  static uint64_t parts(uint32_t n) { return (n + uint64_t{kSlice} - 1) / kSlice; }
  static uint64_t slices(const Call& call) {
    return parts(static_cast<const GatedActivationParams*>(call.params)->n) * call.n_rows;
  }
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
    const auto& params = *static_cast<const GatedActivationParams*>(call.params);
    for (uint64_t slice = begin; slice < end; ++slice)
      with_gate_activation<Isa>(params.activation,
                                [&](const auto& function) { part(call, params, slice, function); });
  }

 private:
  template <class Function>
  static void part(const Call& call, const GatedActivationParams& params, uint64_t slice,
                   const Function& function) {
    const uint32_t n = params.n;
    const uint64_t r = call.first_row + slice / parts(n);
    const uint64_t begin = slice % parts(n) * kSlice;
    const uint64_t end = begin + kSlice < n ? begin + kSlice : n;
    const float* gate = operand<const float>(call, 0, r, n);
    const uint32_t up_stride = params.up_stride != 0 ? params.up_stride : n;
    const float* up = operand<const float>(call, 1, r, up_stride) + params.up_first;
    Activation::write(
        call.operands[2] + r * Activation::row_bytes(n), n, static_cast<uint32_t>(begin),
        static_cast<uint32_t>(end), [&](uint32_t i, uint32_t count) {
          return Isa::multiply(function(Isa::load(gate + i, count)), Isa::load(up + i, count));
        });
  }
};

template <template <class> class Activation>
constexpr KernelEntry gated_activation_entry() {
  using Gated = GatedActivation<ThisIsa, Activation<ThisIsa>>;
  return {{Operation::gated_activation, Activation<ThisIsa>::kKind},
          {Gated::slices, Gated::run, nullptr}};
}

constexpr KernelEntry kGatedActivationEntries[] = {
    gated_activation_entry<F32Activation>(), gated_activation_entry<Bf16Activation>(),
    gated_activation_entry<Bf16PairActivation>(), gated_activation_entry<Q8Activation>(),
    gated_activation_entry<Q16Activation>()};

}  // namespace

template <>
KernelList Families<ThisIsa>::gated_activation() {
  return list_of(kGatedActivationEntries);
}

}  // namespace akunu::cpu
