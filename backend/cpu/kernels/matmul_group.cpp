// matmul_group for every combination of formats that read one activation kind; see matmul.h.
#include "cpu/isa/isa.h"
#include "cpu/kernels/matmul.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <class Isa>
struct NoFormat : Absent {
  static constexpr int32_t kFormat = kAbsent;
};

// The kernel's member type: the format, or Absent.
template <class Isa, template <class> class Format>
struct MemberOf {
  using Type = Format<Isa>;
};
template <class Isa>
struct MemberOf<Isa, NoFormat> {
  using Type = Absent;
};

template <template <class> class A, template <class> class B, template <class> class C>
constexpr KernelEntry entry() {
  using Isa = ThisIsa;
  return {{Operation::matmul_group,
           A<Isa>::Input::kKind,
           {A<Isa>::kFormat, B<Isa>::kFormat, C<Isa>::kFormat}},
          MatmulGroupKernel<Isa, A<Isa>, typename MemberOf<Isa, B>::Type,
                            typename MemberOf<Isa, C>::Type>::kernel()};
}

constexpr KernelEntry kEntries[] = {
    entry<F32, NoFormat, NoFormat>(),
    entry<F32, F32, NoFormat>(),
    entry<F32, F16, NoFormat>(),
    entry<F32, F32, F32>(),
    entry<F32, F32, F16>(),
    entry<F32, F16, F32>(),
    entry<F32, F16, F16>(),
    entry<F16, NoFormat, NoFormat>(),
    entry<F16, F32, NoFormat>(),
    entry<F16, F16, NoFormat>(),
    entry<F16, F32, F32>(),
    entry<F16, F32, F16>(),
    entry<F16, F16, F32>(),
    entry<F16, F16, F16>(),
    entry<Q8_0, NoFormat, NoFormat>(),
    entry<Q8_0, Q8_0, NoFormat>(),
    entry<Q8_0, Q4_0, NoFormat>(),
    entry<Q8_0, Q8_0, Q8_0>(),
    entry<Q8_0, Q8_0, Q4_0>(),
    entry<Q8_0, Q4_0, Q8_0>(),
    entry<Q8_0, Q4_0, Q4_0>(),
    entry<Q4_0, NoFormat, NoFormat>(),
    entry<Q4_0, Q8_0, NoFormat>(),
    entry<Q4_0, Q4_0, NoFormat>(),
    entry<Q4_0, Q8_0, Q8_0>(),
    entry<Q4_0, Q8_0, Q4_0>(),
    entry<Q4_0, Q4_0, Q8_0>(),
    entry<Q4_0, Q4_0, Q4_0>(),
};

}  // namespace

template <>
KernelList Families<ThisIsa>::matmul_group() {
  return list_of(kEntries);
}

}  // namespace akunu::cpu
