// How vectors multiply weights of 16-bit floats as codes, where the level has words for pairs of int16.
#include "cpu/isa/isa.h"
#include "cpu/kernels/formats_bf16.h"
#include "cpu/kernels/formats_coded.h"
#include "cpu/kernels/multiply.h"
#include "cpu/kernels/ways.h"

namespace akunu::cpu {
namespace {

template <class Isa>
MatmulWays coded() {
  if constexpr (requires { Isa::Columns::add_pairs; }) {
    static constexpr MatmulWay kWays[] = {
        matmul_way<Multiply<Isa, Coded<Isa, F16<Isa>>>>(),
        matmul_way<Multiply<Isa, Coded<Isa, BF16<Isa>>>>(),
    };
    return list_of(kWays);
  } else {
    return {nullptr, 0};
  }
}

}  // namespace

template <>
MatmulWays VectorWays<ThisIsa>::of_coded() {
  return coded<ThisIsa>();
}

}  // namespace akunu::cpu
