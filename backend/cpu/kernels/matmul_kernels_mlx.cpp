// Matmul kernels on vectors for MLX's weights: a group becomes floats once for all rows of a slice.
//
// 1. What it computes. Sums of float32 products, one accumulator of kLanes for each (row, column),
//    in order of k: a row's bits do not depend on the rows beside it.
// 2. What bounds it. Not measured; by its instructions, unpacking for a few rows (formats_mlx.h),
//    and for many loading the input, once for each column.
// 3. Where to change it. It is right, not fast (docs/decisions/0022): float_panel.h and
//    matmul_tile.h have tiles of several columns, which would share what is loaded.
#include <utility>

#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_mlx.h"
#include "cpu/kernels/matmul_kernels.h"
#include "cpu/kernels/multiply.h"

namespace akunu::cpu {
namespace {

template <class Isa, class Format>
struct MultiplyMlx : OneSliceAtOnce {
  using Vector = typename Isa::Vector;
  static constexpr int32_t kFormat = Format::kFormat, kKind = FloatInput<Isa>::kKind;
  static constexpr uint32_t kRows = kSliceRows, kGroup = Format::kGroup;
  static_assert(kGroup % Isa::kLanes == 0);

  // Whole groups of 32: a slice of gated_matmul writes those.
  static uint32_t columns(uint32_t k, uint32_t) { return slice_columns(Format::row_bytes(k), 32); }
  static constexpr uint64_t scratch_bytes(uint32_t) { return 0; }
  static void prefetch(const MatmulMember&, const MatmulSlice&) {}

  // A (row, column) has one accumulator, which takes its products in order of k.
  static void run(const MatmulMember& member, const std::byte* input, const MatmulSlice& slice,
                  std::byte*) {
    const float* inputs = reinterpret_cast<const float*>(input) + slice.first_row * member.k;
    for (uint64_t j = slice.begin; j < slice.end; ++j) {
      const auto row = Format::row(member.weight, member.more_planes, j, member.k);
      Vector sums[kRows];
      for (uint32_t r = 0; r < slice.n_rows; ++r) sums[r] = Isa::zero();
      for (uint32_t g = 0; g < member.k / kGroup; ++g) {
        float weights[kGroup];
        Format::unpack(row, g, weights);
        for (uint32_t r = 0; r < slice.n_rows; ++r) {
          const float* x = inputs + uint64_t{r} * member.k + uint64_t{g} * kGroup;
          for (uint32_t i = 0; i < kGroup; i += Isa::kLanes)
            sums[r] = Isa::multiply_add(Isa::load(weights + i), Isa::load(x + i), sums[r]);
        }
      }
      for (uint32_t r = 0; r < slice.n_rows; ++r) {
        const float sum = Isa::sum_lanes(sums[r]);
        store_results(member, slice.first_row + r, j, &sum, 1);
      }
    }
  }
};

template <class Indices>
struct MlxKernels;
template <size_t... kIndices>
struct MlxKernels<std::index_sequence<kIndices...>> {
  static constexpr MatmulKernel kAll[] = {
      matmul_kernel<MultiplyMlx<ThisIsa, MlxMxfp4<ThisIsa>>>(),
      matmul_kernel<MultiplyMlx<ThisIsa, MlxAffine<ThisIsa, kIndices>>>()...};
};

}  // namespace

template <>
MatmulKernels VectorMatmuls<ThisIsa>::of_mlx() {
  return list_of(MlxKernels<std::make_index_sequence<kMlxFormatCount>>::kAll);
}

}  // namespace akunu::cpu
