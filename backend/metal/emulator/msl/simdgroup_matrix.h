// simdgroup_float8x8 and simdgroup_half8x8. Every lane has a variable, but only that of the group's
// first lane holds elements: no layout over lanes is documented, so none may be relied on.
#pragma once

#include "metal/emulator/msl/simd.h"

namespace AKUNU_METAL_BUILD {
namespace metal {

template <class T, int Rows, int Columns>
struct simdgroup_matrix {
  static_assert(Rows == 8 && Columns == 8, "matrices are 8 by 8");
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, half>, "of float or half");
  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T value) {
    for (float& element : elements) element = float(value);
  }
  float elements[64];  // numbers of T
};

}  // namespace metal

using simdgroup_float8x8 = metal::simdgroup_matrix<float, 8, 8>;
using simdgroup_half8x8 = metal::simdgroup_matrix<half, 8, 8>;

namespace metal {

template <class T, int Rows, int Columns>
AKUNU_MSL_INLINE simdgroup_matrix<T, Rows, Columns> make_filled_simdgroup_matrix(
    std::type_identity_t<T> value, AKUNU_SITE_PARAMETERS) {
  simdgroup_matrix<T, Rows, Columns> result;
  if (emulator::reach_matrix_function({"make_filled_simdgroup_matrix", file, line})) {
    for (float& element : result.elements) element = float(value);
  }
  return result;
}

// Element (row, column) lies at from[(origin.y + row) * elements_per_row + origin.x + column], or
// with row and column exchanged where `transpose` is set.
template <class T>
AKUNU_MSL_INLINE void simdgroup_load(simdgroup_matrix<T, 8, 8>& matrix, const T* from,
                                     ulong elements_per_row = 8, ulong2 origin = ulong2(0),
                                     bool transpose = false, AKUNU_SITE_PARAMETERS) {
  if (!emulator::reach_matrix_function({"simdgroup_load", file, line})) return;
  from += origin.y * elements_per_row + origin.x;
  for (uint32_t row = 0; row < 8; ++row) {
    for (uint32_t column = 0; column < 8; ++column) {
      matrix.elements[transpose ? column * 8 + row : row * 8 + column] =
          float(from[row * elements_per_row + column]);
    }
  }
}

template <class T>
AKUNU_MSL_INLINE void simdgroup_store(const simdgroup_matrix<T, 8, 8>& matrix, T* to,
                                      ulong elements_per_row = 8, ulong2 origin = ulong2(0),
                                      bool transpose = false, AKUNU_SITE_PARAMETERS) {
  if (!emulator::reach_matrix_function({"simdgroup_store", file, line})) return;
  to += origin.y * elements_per_row + origin.x;
  for (uint32_t row = 0; row < 8; ++row) {
    for (uint32_t column = 0; column < 8; ++column) {
      to[row * elements_per_row + column] =
          T(matrix.elements[transpose ? column * 8 + row : row * 8 + column]);
    }
  }
}

template <class D, class A, class B, class C>
AKUNU_MSL_INLINE void multiply_add(simdgroup_matrix<D, 8, 8>& product,
                                   const simdgroup_matrix<A, 8, 8>& a,
                                   const simdgroup_matrix<B, 8, 8>& b,
                                   const simdgroup_matrix<C, 8, 8>& addend) {
  emulator::multiply_add_8x8(product.elements, a.elements, b.elements, addend.elements);
  if constexpr (!std::is_same_v<D, float>) {
    for (float& element : product.elements) element = float(D(element));
  }
}

template <class D, class A, class B, class C>
AKUNU_MSL_INLINE void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& product,
                                                    const simdgroup_matrix<A, 8, 8>& a,
                                                    const simdgroup_matrix<B, 8, 8>& b,
                                                    const simdgroup_matrix<C, 8, 8>& addend,
                                                    AKUNU_SITE_PARAMETERS) {
  if (emulator::reach_matrix_function({"simdgroup_multiply_accumulate", file, line})) {
    multiply_add(product, a, b, addend);
  }
}

template <class D, class A, class B>
AKUNU_MSL_INLINE void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& product,
                                         const simdgroup_matrix<A, 8, 8>& a,
                                         const simdgroup_matrix<B, 8, 8>& b,
                                         AKUNU_SITE_PARAMETERS) {
  if (emulator::reach_matrix_function({"simdgroup_multiply", file, line})) {
    multiply_add(product, a, b, simdgroup_matrix<D, 8, 8>(D(0)));
  }
}

}  // namespace metal
}  // namespace AKUNU_METAL_BUILD
