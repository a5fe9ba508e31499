// How vectors multiply floats, and weights in blocks of 32.
#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_32.h"
#include "cpu/kernels/formats_bf16.h"
#include "cpu/kernels/multiply.h"
#include "cpu/kernels/ways.h"

namespace akunu::cpu {
namespace {

template <template <class> class Format>
constexpr MatmulWay way() {
  return matmul_way<Multiply<ThisIsa, Format<ThisIsa>>>();
}

constexpr MatmulWay kWays[] = {
    way<F32>(),  way<F16>(),  way<BF16>(), way<Q4_0>(),
    way<Q4_1>(), way<Q5_0>(), way<Q5_1>(), way<Q8_0>(),
};

}  // namespace

template <>
MatmulWays VectorWays<ThisIsa>::of_floats_and_32() {
  return list_of(kWays);
}

}  // namespace akunu::cpu
