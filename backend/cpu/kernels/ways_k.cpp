// How vectors multiply weights in super-blocks of 256.
#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_k.h"
#include "cpu/kernels/multiply.h"
#include "cpu/kernels/ways.h"

namespace akunu::cpu {
namespace {

template <template <class> class Format>
constexpr MatmulWay way() {
  return matmul_way<Multiply<ThisIsa, Format<ThisIsa>>>();
}

constexpr MatmulWay kWays[] = {
    way<Q2_K>(), way<Q3_K>(), way<Q4_K>(), way<Q5_K>(), way<Q6_K>(),
};

}  // namespace

template <>
MatmulWays VectorWays<ThisIsa>::of_k() {
  return list_of(kWays);
}

}  // namespace akunu::cpu
