// Vector matmul kernels for MLX's weights, whose codes of 2 to 8 bits, scales and biases lie in separate
// planes; the inputs are q16_32.
//
// Only the number of bits is a template parameter. The group's size and the type of its scales are
// fields of the panel (PlanesFormat), so kernels for six numbers of bits serve all 54 formats.
#include <utility>

#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_planes.h"
#include "cpu/kernels/matmul_kernels.h"
#include "cpu/kernels/multiply.h"

namespace akunu::cpu {
namespace {

// Weights of any group and type of scale.
template <class Isa, class Codes>
struct MultiplyPlanes : Multiply<Isa, Codes> {
  using Base = Multiply<Isa, Codes>;
  static constexpr uint32_t kWidth = Base::kColumnStep;
  static constexpr uint64_t kLargestNumbers = 4;  // bytes of a scale of 32 weights

  // Behind what the rows need: padded copies of the planes of a weight that has fewer than a panel.
  static constexpr uint64_t scratch_bytes(uint32_t k) {
    return Base::scratch_bytes(k) + 2 * kWidth * kLargestNumbers * (k / 32);
  }

  [[gnu::noinline]] static void multiply(const MatmulMember& member, const PlanesFormat& format,
                                         const std::byte* input, const MatmulSlice& slice,
                                         std::byte* scratch) {
    const uint64_t stride = uint64_t{member.k / format.group} * bytes_of(format.number);
    PlanesPanel weight{{member.weight, Codes::row_bytes(member.k)},
                       member.more_planes[0],
                       member.more_planes[1],
                       stride,
                       member.n,
                       format};
    if (format.number == PlaneNumber::exponent) weight.biases = weight.scales;
    if (member.n < kWidth) {
      std::byte* room =
          scratch + Base::packed_rows_bytes(member.k) + Base::packed_panels_bytes(member.k);
      const auto padded = [&](const std::byte* rows, uint64_t bytes) {
        std::byte* const copy = room;
        __builtin_memset(copy, 0, kWidth * bytes);
        __builtin_memcpy(copy, rows, member.n * bytes);
        room += kWidth * bytes;
        return copy;
      };
      weight.first = padded(weight.first, weight.stride);
      weight.scales = padded(weight.scales, stride);
      weight.biases = padded(weight.biases, stride);
      weight.n_rows = kWidth;
    }
    Base::run(member, weight, input, slice, scratch);
  }
};

template <class Isa>
struct MultiplyMxfp4 : MultiplyPlanes<Isa, Mxfp4Codes<Isa>> {
  static void run(const MatmulMember& member, const std::byte* input, const MatmulSlice& slice,
                  std::byte* scratch) {
    MultiplyMxfp4::multiply(member, {32, PlaneNumber::exponent}, input, slice, scratch);
  }
};

template <class Isa, uint32_t kIndex>
struct MultiplyMlx : MultiplyPlanes<Isa, MlxCodes<Isa, mlx_format_at(kIndex).bits>> {
  static constexpr int32_t kFormat = number_of(Format::mlx_first) + static_cast<int32_t>(kIndex);

  static void run(const MatmulMember& member, const std::byte* input, const MatmulSlice& slice,
                  std::byte* scratch) {
    MultiplyMlx::multiply(member, planes_format(mlx_format_at(kIndex)), input, slice, scratch);
  }
};

template <class Indices>
struct MlxKernels;
template <size_t... kIndices>
struct MlxKernels<std::index_sequence<kIndices...>> {
  static constexpr MatmulKernel kAll[] = {matmul_kernel<MultiplyMxfp4<ThisIsa>>(),
                                          matmul_kernel<MultiplyMlx<ThisIsa, kIndices>>()...};
};

}  // namespace

template <>
MatmulKernels VectorMatmuls<ThisIsa>::of_mlx() {
  return list_of(MlxKernels<std::make_index_sequence<kMlxFormatCount>>::kAll);
}

}  // namespace akunu::cpu
