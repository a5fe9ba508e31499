// rope_angles: angles[r, 2i] = cos a, angles[r, 2i + 1] = sin a of
//   a = float(position + rope_offsets[axis of i]) * inverse_frequencies[i], both times factor and
//   1 + growth * log(1 + position / length)
//   0 inverse_frequencies: vector [n_pairs]   1 angles: rows [rows, 2 n_pairs]
//   25 RopeAnglesParams
// rope: rotates each head's pairs (a, b): a cos - b sin, b cos + a sin
//   0 data: rows [rows, n_heads * head_dim]   1 angles   25 RopeParams
//   slices: one row   limit: latency
#include "cpu/kernels/rope.h"

#include <math.h>

#include "cpu/isa/isa.h"
#include "cpu/kernels/rows_kernel.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa>
struct RopeAngles {
  static void row(const Call& call, const RopeAnglesParams& params, uint64_t r, std::byte*) {
    const Row& of = call.rows[r];
    float positions[3];
    for (uint32_t axis = 0; axis < 3; ++axis)
      positions[axis] =
          static_cast<float>(static_cast<int32_t>(of.position) + of.rope_offsets[axis]);
    const float* frequencies = operand<const float>(call, 0, 0, 0);
    float* angles = operand<float>(call, 1, r, uint64_t{2} * params.n_pairs);
    float factor = 1;
    if (params.growth != 0)
      factor += params.growth * ::logf(1 + static_cast<float>(of.position / params.growth_length));
    factor *= params.factor;
    for (uint32_t i = 0; i < params.n_pairs; ++i) {
      const uint32_t axis = i < kMostPairsWithAxes ? params.axes[i / 16] >> 2 * (i % 16) & 3 : 0;
      const float angle = positions[axis] * frequencies[i];
      angles[2 * i] = ::cosf(angle) * factor;
      angles[2 * i + 1] = ::sinf(angle) * factor;
    }
  }
};

template <class Isa>
struct Rope {
  static void row(const Call& call, const RopeParams& params, uint64_t r, std::byte*) {
    float* data = operand<float>(call, 0, r, uint64_t{params.n_heads} * params.head_dim);
    const float* angles = operand<const float>(call, 1, r, uint64_t{2} * params.n_pairs);
    for (uint32_t h = 0; h < params.n_heads; ++h)
      rotate_head<Isa>(data + uint64_t{h} * params.head_dim, interleaved(angles), params.n_pairs,
                       params.style);
  }
};

using AnglesRows = RowsKernel<ThisIsa, RopeAnglesParams, RopeAngles<ThisIsa>>;
using RopeRows = RowsKernel<ThisIsa, RopeParams, Rope<ThisIsa>>;

constexpr KernelEntry kRopeEntries[] = {
    {{Operation::rope_angles}, {AnglesRows::slices, AnglesRows::run, nullptr}},
    {{Operation::rope}, {RopeRows::slices, RopeRows::run, nullptr}},
};

}  // namespace

template <>
KernelList Families<ThisIsa>::rope() {
  return list_of(kRopeEntries);
}

}  // namespace akunu::cpu
