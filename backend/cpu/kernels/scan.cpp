// selective_scan: the recurrence of Mamba-2. For each head h, with state S [head_dim, state_dim], over the rows of a span:
//   t = clamp(log(1 + e^(times[h] + time_bias[h])), time_min, time_max)
//   S = e^(t * rate[h]) * S + (t * x) B^T;  out = S C + skip[h] * x
//   0 input: rows [rows, n_heads * head_dim + 2 * n_groups * state_dim]: x, then B, then C
//   1 times: rows [rows, time_stride]   2 rate   3 time_bias   4 skip: vectors [n_heads]
//   5 states: float [page][2][n_heads][head_dim][state_dim]; the state after n positions is at index n % 2
//   6 out: rows [rows, n_heads * head_dim]
//   25 SelectiveScanParams
//   slices: kStateRows rows of the state of one head, for all rows of a span. With a state_dim of 128 the old state and
//   the new one take 8 KiB each, and stay in L1
//   limit: two FMAs per number of state and row
// gated_norm: out[r, i] = kind(rms_norm of u = input * silu(gate_factor * gate), over every `group` numbers)
//   0 input: rows [rows, dim]   1 gate: rows [rows, gate_stride]   2 weight: vector [dim], or none: kind(u)
//   3 out: activation [rows, dim]   25 GatedNormParams
//   slices: one row   limit: the exponential, about 20 instructions per vector
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/gate.h"
#include "cpu/kernels/norm.h"
#include "cpu/kernels/recurrent.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa>
struct SelectiveScan {
  static uint64_t slices(const Call& call) {
    const auto& params = *static_cast<const SelectiveScanParams*>(call.params);
    return uint64_t{call.n_spans} * params.n_heads * parts(params);
  }
  static void run(const Call& call, uint64_t begin, uint64_t end, std::byte*) {
    const auto& params = *static_cast<const SelectiveScanParams*>(call.params);
    const uint64_t n_parts = parts(params), of_span = params.n_heads * n_parts;
    for (uint64_t slice = begin; slice < end; ++slice) {
      const Span& span = call.spans[call.first_span + slice / of_span];
      const auto head = static_cast<uint32_t>(slice % of_span / n_parts);
      const auto first = static_cast<uint32_t>(slice % n_parts) * kStateRows;
      const uint32_t left = params.head_dim - first;
      scan(call, params, span, head, first, left < kStateRows ? left : kStateRows);
    }
  }

 private:
  static uint64_t parts(const SelectiveScanParams& params) {
    return (params.head_dim + uint64_t{kStateRows} - 1) / kStateRows;
  }

  // Rows [first, first + n) of the state of one head, of all rows of a span.
  static void scan(const Call& call, const SelectiveScanParams& params, const Span& span,
                   uint32_t head, uint32_t first, uint32_t n) {
    const uint64_t inner = uint64_t{params.n_heads} * params.head_dim;
    const uint64_t stride = inner + uint64_t{2} * params.n_groups * params.state_dim;
    const uint32_t group = head / (params.n_heads / params.n_groups);
    const uint64_t place = uint64_t{head} * params.head_dim + first;
    const uint32_t page =
        page_of(call.pages, params.page_table_base, params.page_table_stride, span.sequence, 0);
    const uint64_t half = inner * params.state_dim;
    float* const states =
        reinterpret_cast<float*>(call.operands[5]) + 2 * page * half + place * params.state_dim;
    const float rate = operand<const float>(call, 2, 0, 0)[head];
    const float bias = operand<const float>(call, 3, 0, 0)[head];
    const float skip = operand<const float>(call, 4, 0, 0)[head];
    for (uint64_t r = span.first_row; r < uint64_t{span.first_row} + span.n_rows; ++r) {
      float* const out = operand<float>(call, 6, r, inner) + place;
      if (!(call.rows[r].flags & kRowActive)) {
        for (uint32_t i = 0; i < n; ++i) out[i] = 0;
        continue;
      }
      const float* const x = operand<const float>(call, 0, r, stride);
      const float* const b = x + inner + uint64_t{group} * params.state_dim;
      const float* const c = b + uint64_t{params.n_groups} * params.state_dim;
      float time = softplus<Isa>(
          operand<const float>(call, 1, r, params.time_stride)[params.time_first + head] *
              params.time_factor +
          bias);
      time = time < params.time_min ? params.time_min : time;
      time = time > params.time_max ? params.time_max : time;
      const float keep = first_lane<Isa>(exp<Isa>(Isa::broadcast(time * rate)));
      const uint32_t position = call.rows[r].position;
      const float* const before = position == 0 ? nullptr : states + position % 2 * half;
      float* const after = states + (position + 1) % 2 * half;
      for (uint32_t i = 0; i < n; i += kRowsTogether) {
        const uint64_t at = uint64_t{i} * params.state_dim;
        rows_of_state(before == nullptr ? nullptr : before + at, after + at, params.state_dim,
                      n - i < kRowsTogether ? n - i : kRowsTogether, keep, time, b, c,
                      x + place + i, skip, out + i);
      }
    }
  }

  // Up to kRowsTogether rows of a state move on by one row of the text; none `before`: they are 0.
  static void rows_of_state(const float* before, float* after, uint32_t state_dim, uint32_t n,
                            float keep, float time, const float* b, const float* c, const float* x,
                            float skip, float* out) {
    using Vector = typename Isa::Vector;
    Vector sums[kRowsTogether] = {Isa::zero(), Isa::zero(), Isa::zero(), Isa::zero()};
    const Vector kept = Isa::broadcast(keep);
    for (uint32_t j = 0; j < state_dim; j += Isa::kLanes) {
      const uint32_t lanes = state_dim - j;
      const Vector in = Isa::load(b + j, lanes), read = Isa::load(c + j, lanes);
      for (uint32_t i = 0; i < n; ++i) {
        const uint64_t at = uint64_t{i} * state_dim + j;
        const Vector old = before == nullptr ? Isa::zero() : Isa::load(before + at, lanes);
        const Vector added = Isa::multiply(Isa::broadcast(time * x[i]), in);
        const Vector made = Isa::multiply_add(kept, old, added);
        Isa::store(after + at, made, lanes);
        sums[i] = Isa::multiply_add(made, read, sums[i]);
      }
    }
    float of_rows[kRowsTogether];
    Isa::store_sums(of_rows, sums);
    for (uint32_t i = 0; i < n; ++i) out[i] = of_rows[i] + skip * x[i];
  }
};

template <class Isa, class Activation>
struct GatedNorm {
  static void row(const Call& call, const GatedNormParams& params, uint64_t r, std::byte* scratch) {
    const uint32_t dim = params.dim, group = params.group;
    const float* input = operand<const float>(call, 0, r, dim);
    const float* gate = operand<const float>(call, 1, r, params.gate_stride) + params.gate_first;
    const float* weight = operand<const float>(call, 2, 0, 0);
    float* const gated = reinterpret_cast<float*>(scratch);
    const auto factor = Isa::broadcast(params.gate_factor);
    for (uint32_t i = 0; i < dim; i += Isa::kLanes) {
      const uint32_t n = dim - i;
      const auto let_through = silu<Isa>(Isa::multiply(Isa::load(gate + i, n), factor));
      Isa::store(gated + i, Isa::multiply(Isa::load(input + i, n), let_through), n);
    }
    for (uint32_t i = 0; weight != nullptr && i < dim; i += group)
      rms_norm_floats<Isa>(gated + i, weight + i, group, params.epsilon, gated + i);
    Activation::write(call.operands[3] + r * Activation::row_bytes(dim), dim, 0, dim,
                      [&](uint32_t i, uint32_t n) { return Isa::load(gated + i, n); });
  }
  static uint64_t scratch_bytes(const Call& call) {
    const auto& params = *static_cast<const GatedNormParams*>(call.params);
    return sizeof(float) * (uint64_t{params.dim} + Isa::kLanes);
  }
};

template <template <class> class Activation>
constexpr KernelEntry gated_norm_entry() {
  using Kernel = GatedNorm<ThisIsa, Activation<ThisIsa>>;
  using GatedNormRows = RowsKernel<ThisIsa, GatedNormParams, Kernel>;
  return {{Operation::gated_norm, Activation<ThisIsa>::kKind},
          {GatedNormRows::slices, GatedNormRows::run, Kernel::scratch_bytes}};
}

using StateScan = SelectiveScan<ThisIsa>;

constexpr KernelEntry kScanEntries[] = {
    {{Operation::selective_scan, kAny, {kAbsent, kAbsent, kAbsent}, F32<ThisIsa>::kFormat},
     {StateScan::slices, StateScan::run, nullptr}},
    gated_norm_entry<F32Activation>(),
    gated_norm_entry<Bf16Activation>(),
    gated_norm_entry<Bf16PairActivation>(),
    gated_norm_entry<Q8Activation>(),
    gated_norm_entry<Q16Activation>(),
};

}  // namespace

template <>
KernelList Families<ThisIsa>::scan() {
  return list_of(kScanEntries);
}

}  // namespace akunu::cpu
