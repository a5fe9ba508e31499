// What AltUp's models (Gemma 3n) have around a layer. x_0 is `stream`, x_1 and so on lie one behind the
// other in `others`; m_k = tanh(sum over i of router[k, i] * y[i] * norm[i] / (rms(y) * dim)).
//
// predict_streams: y = x_active; x_s += sum over t of (sum over k of coefficients[s n + t, k] * m_k) * x_t
//   for all s at once; active = x_active then
//   0 stream: rows [rows, dim]   1 others: rows [rows, (n - 1) dim]   2 norm: vector [dim]
//   3 router: vector [n dim]   4 coefficients: vector [n n n]   5 active: rows [rows, dim]
//   25 StreamsParams
// correct_streams: with y = data, for every stream s:
//   x_s += (1 + sum over k of coefficients[s, k] * m_k) * (data - x_active), x_active being the value before;
//   then data = the new x_active, times scale if there is one
//   0 to 3 as above   4 coefficients: vector [n n]   5 scale: vector [dim], optional
//   6 data: rows [rows, dim]   25 StreamsParams
// match_rms: out = input * rms(like) / rms(input)
//   0 input, 1 like: rows [rows, dim]   2 out: rows [rows, out_stride], from out_first on
//   25 MatchRmsParams
// sparsify: data = max(data - (mean + deviations * standard deviation), 0)
//   0 data: rows [rows, n]   25 SparsifyParams
//   slices: one row   limit: latency; the row is in L2
#include "cpu/isa/isa.h"
#include "cpu/kernels/activation.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

// The sum of term(i, n), which gives n numbers from i on and zeros behind them: four accumulators of
// eight lanes, cut by `dim` alone.
template <class Isa, class Term>
float sum_of_terms(uint32_t dim, const Term& term) {
  constexpr uint32_t kStep = 4 * Isa::kLanes;
  typename Isa::Vector sums[4] = {Isa::zero(), Isa::zero(), Isa::zero(), Isa::zero()};
  uint32_t i = 0;
  for (; i + kStep <= dim; i += kStep)
    for (uint32_t j = 0; j < 4; ++j)
      sums[j] = Isa::add(sums[j], term(i + Isa::kLanes * j, Isa::kLanes));
  for (; i < dim; i += Isa::kLanes) {
    const uint32_t n = dim - i < Isa::kLanes ? dim - i : Isa::kLanes;
    sums[0] = Isa::add(sums[0], term(i, n));
  }
  return Isa::sum_lanes(Isa::add(Isa::add(sums[0], sums[1]), Isa::add(sums[2], sums[3])));
}

template <class Isa>
float mean_square(const float* x, uint32_t dim) {
  const float sum = sum_of_terms<Isa>(dim, [&](uint32_t i, uint32_t n) {
    const auto v = Isa::load(x + i, n);
    return Isa::multiply(v, v);
  });
  return sum / static_cast<float>(dim);
}

template <class Isa>
class Streams {
 public:
  Streams(const Call& call, const StreamsParams& params, uint64_t r)
      : call_(call), params_(params), dim_(params.dim), n_(params.n_streams) {
    x_[0] = operand<float>(call, 0, r, dim_);
    float* const others = operand<float>(call, 1, r, uint64_t{n_ - 1} * dim_);
    for (uint32_t s = 1; s < n_; ++s) x_[s] = others + uint64_t{s - 1} * dim_;
  }

  float* stream(uint32_t s) const { return x_[s]; }
  float* active() const { return x_[params_.active]; }

  // m_k of y, for all k.
  void route(const float* y) {
    const float* norm = operand<const float>(call_, 2, 0, 0);
    const float factor = 1.0f / __builtin_sqrtf(mean_square<Isa>(y, dim_) + params_.epsilon);
    for (uint32_t k = 0; k < n_; ++k) {
      const float* router = operand<const float>(call_, 3, k, dim_);
      const float sum = sum_of_terms<Isa>(dim_, [&](uint32_t i, uint32_t n) {
        const auto normed = Isa::multiply(Isa::load(y + i, n), Isa::load(norm + i, n));
        return Isa::multiply(normed, Isa::load(router + i, n));
      });
      const float routed = sum * factor / static_cast<float>(dim_);
      Isa::store(routed_ + k, tanh<Isa>(Isa::broadcast(routed)), 1);
    }
  }
  // The sum over k of coefficients[row, k] * m_k.
  float coefficient(uint32_t row) const {
    const float* coefficients = operand<const float>(call_, 4, row, n_);
    float sum = 0;
    for (uint32_t k = 0; k < n_; ++k) sum += coefficients[k] * routed_[k];
    return sum;
  }

  // visit(i, n) for every vector of a row.
  template <class Visit>
  void for_each_vector(const Visit& visit) const {
    for (uint32_t i = 0; i < dim_; i += Isa::kLanes)
      visit(i, dim_ - i < Isa::kLanes ? dim_ - i : Isa::kLanes);
  }

 private:
  const Call& call_;
  const StreamsParams& params_;
  const uint32_t dim_, n_;
  float* x_[kMaxStreams] = {};
  float routed_[kMaxStreams] = {};
};

template <class Isa>
struct PredictStreams {
  static void row(const Call& call, const StreamsParams& params, uint64_t r, std::byte*) {
    const uint32_t n_streams = params.n_streams;
    Streams<Isa> streams(call, params, r);
    streams.route(streams.active());
    float by[kMaxStreams][kMaxStreams];
    for (uint32_t s = 0; s < n_streams; ++s)
      for (uint32_t t = 0; t < n_streams; ++t) by[s][t] = streams.coefficient(s * n_streams + t);
    float* active = operand<float>(call, 5, r, params.dim);
    streams.for_each_vector([&](uint32_t i, uint32_t n) {
      typename Isa::Vector x[kMaxStreams];
      for (uint32_t t = 0; t < n_streams; ++t) x[t] = Isa::load(streams.stream(t) + i, n);
      for (uint32_t s = 0; s < n_streams; ++s) {
        auto sum = x[s];
        for (uint32_t t = 0; t < n_streams; ++t)
          sum = Isa::multiply_add(Isa::broadcast(by[s][t]), x[t], sum);
        Isa::store(streams.stream(s) + i, sum, n);
        if (s == params.active) Isa::store(active + i, sum, n);
      }
    });
  }
};

template <class Isa>
struct CorrectStreams {
  static void row(const Call& call, const StreamsParams& params, uint64_t r, std::byte*) {
    const uint32_t n_streams = params.n_streams;
    const auto* const scale = reinterpret_cast<const float*>(call.operands[5]);
    float* data = operand<float>(call, 6, r, params.dim);
    Streams<Isa> streams(call, params, r);
    streams.route(data);
    float by[kMaxStreams];
    for (uint32_t s = 0; s < n_streams; ++s) by[s] = streams.coefficient(s) + 1.0f;
    streams.for_each_vector([&](uint32_t i, uint32_t n) {
      const auto change = Isa::subtract(Isa::load(data + i, n), Isa::load(streams.active() + i, n));
      for (uint32_t s = 0; s < n_streams; ++s) {
        float* const x = streams.stream(s) + i;
        const auto sum = Isa::multiply_add(Isa::broadcast(by[s]), change, Isa::load(x, n));
        Isa::store(x, sum, n);
        if (s != params.active) continue;
        Isa::store(data + i, scale == nullptr ? sum : Isa::multiply(sum, Isa::load(scale + i, n)),
                   n);
      }
    });
  }
};

template <class Isa>
struct MatchRms {
  static void row(const Call& call, const MatchRmsParams& params, uint64_t r, std::byte*) {
    const uint32_t dim = params.dim;
    const float* input = operand<const float>(call, 0, r, dim);
    const float* like = operand<const float>(call, 1, r, dim);
    float* out = operand<float>(call, 2, r, params.out_stride) + params.out_first;
    const float wanted = mean_square<Isa>(like, dim), has = mean_square<Isa>(input, dim);
    const float least = has < params.least ? params.least : has;
    const auto factor = Isa::broadcast(__builtin_sqrtf(wanted) / __builtin_sqrtf(least));
    F32Activation<Isa>::write(
        reinterpret_cast<std::byte*>(out), dim, 0, dim,
        [&](uint32_t i, uint32_t n) { return Isa::multiply(Isa::load(input + i, n), factor); });
  }
};

template <class Isa>
struct Sparsify {
  static void row(const Call& call, const SparsifyParams& params, uint64_t r, std::byte*) {
    const uint32_t size = params.n;
    float* data = operand<float>(call, 0, r, size);
    const float mean =
        sum_of_terms<Isa>(size, [&](uint32_t i, uint32_t n) { return Isa::load(data + i, n); }) /
        static_cast<float>(size);
    // Lanes behind the end must not count as far from the mean.
    const auto square = [&](uint32_t i, uint32_t n) {
      const auto apart = Isa::subtract(Isa::load(data + i, n), Isa::broadcast(mean));
      const auto squared = Isa::multiply(apart, apart);
      if (n == Isa::kLanes) return squared;
      float kept[Isa::kLanes] = {};
      Isa::store(kept, squared, n);
      return Isa::load(kept);
    };
    const float variance = sum_of_terms<Isa>(size, square) / static_cast<float>(size);
    const auto cut = Isa::broadcast(mean + params.deviations * __builtin_sqrtf(variance));
    F32Activation<Isa>::write(reinterpret_cast<std::byte*>(data), size, 0, size,
                              [&](uint32_t i, uint32_t n) {
                                const auto above = Isa::subtract(Isa::load(data + i, n), cut);
                                return Isa::maximum(Isa::zero(), above);
                              });
  }
};

template <class Params, class Kernel>
constexpr KernelEntry streams_entry(Operation operation) {
  using InRows = RowsKernel<ThisIsa, Params, Kernel>;
  return {{operation}, {InRows::slices, InRows::run, nullptr}};
}

constexpr KernelEntry kStreamsEntries[] = {
    streams_entry<StreamsParams, PredictStreams<ThisIsa>>(Operation::predict_streams),
    streams_entry<StreamsParams, CorrectStreams<ThisIsa>>(Operation::correct_streams),
    streams_entry<MatchRmsParams, MatchRms<ThisIsa>>(Operation::match_rms),
    streams_entry<SparsifyParams, Sparsify<ThisIsa>>(Operation::sparsify),
};

}  // namespace

template <>
KernelList Families<ThisIsa>::streams() {
  return list_of(kStreamsEntries);
}

}  // namespace akunu::cpu
