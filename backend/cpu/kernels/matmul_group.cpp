// matmul_group and gated_matmul on vectors; see matmul.h.
#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_32.h"
#include "cpu/kernels/formats_bf16.h"
#include "cpu/kernels/formats_k.h"
#include "cpu/kernels/gated_matmul.h"
#include "cpu/kernels/matmul.h"
#include "cpu/kernels/multiply.h"

namespace akunu::cpu {
namespace {

template <template <class> class Format>
constexpr GroupMember member() {
  return group_member<Multiply<ThisIsa, Format<ThisIsa>>>();
}

constexpr GroupMember kMembers[] = {
    member<F32>(),  member<F16>(),  member<BF16>(), member<Q4_0>(), member<Q4_1>(),
    member<Q5_0>(), member<Q5_1>(), member<Q8_0>(), member<Q2_K>(), member<Q3_K>(),
    member<Q4_K>(), member<Q5_K>(), member<Q6_K>(),
};

}  // namespace

template <>
bool Families<ThisIsa>::matmul_group(const KernelKey& request, Kernel& kernel) {
  return MatmulGroup<ThisIsa>::find(kMembers, request, kernel);
}

template <>
bool Families<ThisIsa>::gated_matmul(const KernelKey& request, Kernel& kernel) {
  if (request.activation == F32Activation<ThisIsa>::kKind)
    return GatedMatmul<ThisIsa, F32Activation<ThisIsa>>::find(kMembers, request, kernel);
  return GatedMatmul<ThisIsa, Q8Activation<ThisIsa>>::find(kMembers, request, kernel);
}

}  // namespace akunu::cpu
