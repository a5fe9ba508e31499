// What matvec.h and gemm.h share: the constants of their launches, and which member of a group a
// threadgroup works for.
#pragma once

#include "metal/kernels/formats.h"

// Adds to what is there instead of writing over it.
constant bool kAccumulate [[function_constant(1)]];
static_assert(kMaxGroup == 3, "kernels of groups have a buffer for each member, by its name");
// The members of a group that this launch computes: bit m.
constant uint kMembers [[function_constant(2)]];

// Both group kernels choose their member's buffers in lines of their own, and alike: an argument whose
// function constant is false is not there, and may not be passed on to a function that they share.

// The member whose outputs block `block` of the launch holds, and which block of its own that is:
// blocks of `size` outputs, the launch's members one after the other. kMaxGroup: there is none.
inline uint take_member(constant uint* n, uint size, thread uint& block) {
  uint member = 0;
  for (; member < kMaxGroup; ++member) {
    if ((kMembers >> member & 1u) == 0) continue;
    const uint blocks = (n[member] + size - 1) / size;
    if (block < blocks) break;
    block -= blocks;
  }
  return member;
}
