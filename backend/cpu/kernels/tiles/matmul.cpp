// matmul, matmul_add, matmul_group and gated_matmul of an input in bf16, on a matrix unit.
#include "cpu/kernels/matmul.h"

#include "cpu/isa/isa.h"
#include "cpu/kernels/tiles/gated_matmul.h"
#include "cpu/kernels/tiles/table.h"

namespace akunu::cpu {
namespace {

template <template <class> class Format>
using Way = TileMultiply<ThisIsa, Format<ThisIsa>>;

template <template <class> class Format, bool kAdd>
constexpr KernelEntry entry() {
  return MatmulKernel<Way<Format>, kAdd>::entry();
}

// Not of float32: two numbers in bf16 have 16 of its 24 bits.
constexpr KernelEntry kEntries[] = {
    entry<F16, false>(),  entry<F16, true>(),  entry<BF16, false>(), entry<BF16, true>(),
    entry<Q4_0, false>(), entry<Q4_0, true>(), entry<Q4_1, false>(), entry<Q4_1, true>(),
    entry<Q5_0, false>(), entry<Q5_0, true>(), entry<Q5_1, false>(), entry<Q5_1, true>(),
    entry<Q8_0, false>(), entry<Q8_0, true>(), entry<Q2_K, false>(), entry<Q2_K, true>(),
    entry<Q3_K, false>(), entry<Q3_K, true>(), entry<Q4_K, false>(), entry<Q4_K, true>(),
    entry<Q5_K, false>(), entry<Q5_K, true>(), entry<Q6_K, false>(), entry<Q6_K, true>(),
};

template <template <class> class Format>
constexpr KernelEntry gated() {
  return TileGatedMatmul<ThisIsa, Format<ThisIsa>>::entry();
}

constexpr KernelEntry kGated[] = {
    gated<F16>(),  gated<BF16>(), gated<Q4_0>(), gated<Q4_1>(), gated<Q5_0>(), gated<Q5_1>(),
    gated<Q8_0>(), gated<Q2_K>(), gated<Q3_K>(), gated<Q4_K>(), gated<Q5_K>(), gated<Q6_K>(),
};

constexpr GroupMember kMembers[] = {
    group_member<Way<F16>>(),  group_member<Way<BF16>>(), group_member<Way<Q4_0>>(),
    group_member<Way<Q4_1>>(), group_member<Way<Q5_0>>(), group_member<Way<Q5_1>>(),
    group_member<Way<Q8_0>>(), group_member<Way<Q2_K>>(), group_member<Way<Q3_K>>(),
    group_member<Way<Q4_K>>(), group_member<Way<Q5_K>>(), group_member<Way<Q6_K>>(),
};

}  // namespace

template <>
KernelList TileFamilies<ThisIsa>::matmul() {
  return list_of(kEntries);
}

template <>
KernelList TileFamilies<ThisIsa>::gated_matmul() {
  return list_of(kGated);
}

template <>
bool TileFamilies<ThisIsa>::matmul_group(const KernelKey& request, Kernel& kernel) {
  return MatmulGroup<ThisIsa>::find(kMembers, request, kernel);
}

}  // namespace akunu::cpu
