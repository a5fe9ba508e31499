// matmul and matmul_add for every weight format, on vectors; the groups are in matmul_group.cpp.
#include "cpu/kernels/matmul.h"

#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_32.h"
#include "cpu/kernels/formats_bf16.h"
#include "cpu/kernels/formats_k.h"
#include "cpu/kernels/multiply.h"

namespace akunu::cpu {
namespace {

template <template <class> class Format, bool kAdd>
constexpr KernelEntry entry() {
  return MatmulKernel<Multiply<ThisIsa, Format<ThisIsa>>, kAdd>::entry();
}

constexpr KernelEntry kEntries[] = {
    entry<F32, false>(),  entry<F32, true>(),  entry<F16, false>(),  entry<F16, true>(),
    entry<BF16, false>(), entry<BF16, true>(), entry<Q4_0, false>(), entry<Q4_0, true>(),
    entry<Q4_1, false>(), entry<Q4_1, true>(), entry<Q5_0, false>(), entry<Q5_0, true>(),
    entry<Q5_1, false>(), entry<Q5_1, true>(), entry<Q8_0, false>(), entry<Q8_0, true>(),
    entry<Q2_K, false>(), entry<Q2_K, true>(), entry<Q3_K, false>(), entry<Q3_K, true>(),
    entry<Q4_K, false>(), entry<Q4_K, true>(), entry<Q5_K, false>(), entry<Q5_K, true>(),
    entry<Q6_K, false>(), entry<Q6_K, true>(),
};

}  // namespace

template <>
KernelList Families<ThisIsa>::matmul() {
  return list_of(kEntries);
}

}  // namespace akunu::cpu
