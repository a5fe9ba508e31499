// The operands of one member of a group of matmuls that one launch computes.
#pragma once

#include "metal/kernels/matmul.cuh"

namespace gpu {

struct GroupMember {
  const uchar* weight;
  const float* bias;
  float* out;
};

// `unused`: an address for the bias of a member that has none. Members whose operands are not bound are not chosen.
__device__ inline GroupMember choose_member(uint member, const uchar* weight_0,
                                            const uchar* weight_1, const uchar* weight_2,
                                            const float* bias_0, const float* bias_1,
                                            const float* bias_2, float* out_0, float* out_1,
                                            float* out_2, const float* unused) {
  GroupMember chosen = GroupMember{weight_0, unused, out_0};
  if (kIsBound4 && member == 0) chosen.bias = bias_0;
  if (kIsBound2 && member == 1) {
    chosen.weight = weight_1;
    chosen.out = out_1;
    if (kIsBound5) chosen.bias = bias_1;
  }
  if (kIsBound3 && member == 2) {
    chosen.weight = weight_2;
    chosen.out = out_2;
    if (kIsBound6) chosen.bias = bias_2;
  }
  return chosen;
}

}  // namespace gpu
