// matmul and matmul_add for every weight format; the kernels themselves are in matmul.h, the groups
// in matmul_group.cpp.
#include "cpu/kernels/matmul.h"

#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_32.h"
#include "cpu/kernels/formats_bf16.h"
#include "cpu/kernels/formats_k.h"
#include "cpu/kernels/table.h"

namespace akunu::cpu {
namespace {

template <template <class> class Format, bool kAdd>
constexpr KernelEntry entry() {
  return {{kAdd ? Operation::matmul_add : Operation::matmul,
           Format<ThisIsa>::Input::kKind,
           {Format<ThisIsa>::kFormat, kAbsent, kAbsent}},
          MatmulKernel<ThisIsa, Format<ThisIsa>, kAdd>::kernel()};
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
