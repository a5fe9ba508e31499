// What a launch tells its kernel. Every kernel that the host calls is a function akunu_<name> with one argument, the operands by their
// slots (docs/kernels.md).
#pragma once

#include "core/kernel_params.cuh"
#include "cuda/kernels/constants.cuh"

namespace gpu {
using namespace akunu;

// An operand is what the kernel says that it is: a pointer, or a reference.
struct Operand {
  const void* at;
  template <class T>
  __device__ operator T*() const {
    return static_cast<T*>(const_cast<void*>(at));
  }
};
struct ReferredOperand {
  const void* at;
  template <class T>
  __device__ operator T&() const {
    return *static_cast<T*>(const_cast<void*>(at));
  }
};

__device__ inline Operand operand(const void* at) { return Operand{at}; }
__device__ inline ReferredOperand reference(const void* at) { return ReferredOperand{at}; }

// In the order of the contract. The host has the same struct (cuda/launch.h).
struct alignas(16) Launch {
  uint32_t params[16];     // slot 25
  uint32_t pass_range[4];  // slot 23
  void* slots[31];
  uint32_t constants[8];      // function constants, by index
  uint32_t shared_offset[4];  // of each part of shared memory, in bytes

  __device__ Operand slot(uint index) const { return operand(slots[index]); }
  __device__ Operand numbers() const { return operand(params); }
  __device__ ReferredOperand parameters() const { return reference(params); }
  __device__ ReferredOperand pass() const { return reference(pass_range); }
  __device__ Operand shared(uint index) const {
    return operand(akunu_shared + shared_offset[index]);
  }
};
static_assert(sizeof(Launch) == 384, "as on the host");

// A kernel by the name that the host's table has, and its launch bounds, before a body that takes `launch`.
#define AKUNU_KERNEL(name, ...) \
  extern "C" __global__ void __VA_ARGS__ akunu_##name(const __grid_constant__ Launch launch)

// Which block and which thread it is, as vectors of shared kernels.
__device__ inline uint3 block_index() { return uint3(blockIdx.x, blockIdx.y, blockIdx.z); }
__device__ inline uint3 grid_size() { return uint3(gridDim.x, gridDim.y, gridDim.z); }
__device__ inline uint3 thread_position() {
  return uint3(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y, blockIdx.z);
}

__device__ inline void copy_constants(const Launch& launch) {
  if (threadIdx.x < 8) akunu_constants.values[threadIdx.x] = launch.constants[threadIdx.x];
}
// Comes first in kernels that ask for function constants. All threads of the block meet.
__device__ inline void take_constants(const Launch& launch) {
  copy_constants(launch);
  __syncthreads();
}

}  // namespace gpu
