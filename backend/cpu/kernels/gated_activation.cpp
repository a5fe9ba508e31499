// gated_activation: out[r, i] = kind(act(gate[r, i]) * up[r, i])
//   silu:      x / (1 + e^-x)
//   gelu_tanh: x/2 (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3)
//   0 gate, 1 up: rows [rows, n]   2 out: activation [rows, n]   25 GatedActivationParams
//   slices: kSlice columns of a row
//   limit:  the exponential, about 20 instructions per 8 numbers
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

constexpr uint32_t kSlice = 2048;  // about a microsecond; a multiple of every activation's group

template <class Isa>
static typename Isa::Vector silu(typename Isa::Vector x) {
  const auto one = Isa::broadcast(1.0f);
  return Isa::divide(x, Isa::add(one, exp<Isa>(Isa::subtract(Isa::zero(), x))));
}

// The logistic form of the same function: 1 + tanh loses all its digits for large negative x.
template <class Isa>
static typename Isa::Vector gelu_tanh(typename Isa::Vector x) {
  constexpr float kMinusTwoRoot = -0x1.988454p+0f;  // -2 sqrt(2 / pi)
  const auto cubic =
      Isa::multiply_add(Isa::multiply(x, x), Isa::broadcast(0.044715f), Isa::broadcast(1.0f));
  const auto exponent = Isa::multiply(Isa::multiply(x, cubic), Isa::broadcast(kMinusTwoRoot));
  return Isa::divide(x, Isa::add(Isa::broadcast(1.0f), exp<Isa>(exponent)));
}

template <class Isa, class Activation>
struct GatedActivation {
  static uint64_t parts(uint32_t n) { return (n + uint64_t{kSlice} - 1) / kSlice; }
  static uint64_t slices(const Call& call) {
    return parts(static_cast<const GatedActivationParams*>(call.params)->n) * call.n_rows;
  }
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
    const auto& params = *static_cast<const GatedActivationParams*>(call.params);
    for (uint64_t slice = begin; slice < end; ++slice) {
      if (params.activation == kActivationSilu)
        part(call, params.n, slice, [](auto x) { return silu<Isa>(x); });
      else
        part(call, params.n, slice, [](auto x) { return gelu_tanh<Isa>(x); });
    }
  }

 private:
  template <class Function>
  static void part(const Call& call, uint32_t n, uint64_t slice, const Function& function) {
    const uint64_t r = call.first_row + slice / parts(n);
    const uint64_t begin = slice % parts(n) * kSlice;
    const uint64_t end = begin + kSlice < n ? begin + kSlice : n;
    const float* gate = operand<const float>(call, 0, r, n);
    const float* up = operand<const float>(call, 1, r, n);
    Activation::write(
        call.operands[2] + r * Activation::row_bytes(n), n, static_cast<uint32_t>(begin),
        static_cast<uint32_t>(end), [&](uint32_t i, uint32_t count) {
          return Isa::multiply(function(Isa::load(gate + i, count)), Isa::load(up + i, count));
        });
  }
};

template <template <class> class Activation>
constexpr KernelEntry entry() {
  using Gated = GatedActivation<ThisIsa, Activation<ThisIsa>>;
  return {{Operation::gated_activation, Activation<ThisIsa>::kKind},
          {Gated::slices, Gated::run, nullptr}};
}

constexpr KernelEntry kEntries[] = {entry<F32Activation>(), entry<Bf16Activation>(),
                                    entry<Q8Activation>()};

}  // namespace

template <>
KernelList Families<ThisIsa>::gated_activation() {
  return list_of(kEntries);
}

}  // namespace akunu::cpu
