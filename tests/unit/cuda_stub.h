// What a driver of tests says to the stand-in for NVIDIA's library (cuda_stub.cpp), and asks of it.
#pragma once

#include <cstdint>

#include "cuda/launch.h"

namespace akunu::test {

// A kernel of the stand-in is a function of the host, called once per launch. An image is an array of
// them that ends with one without a name.
struct StubKernel {
  const char* name;
  void (*run)(const cuda::Arguments& arguments, uint32_t blocks);
};

struct StubCounts {
  uint64_t launches = 0;        // of kernels, those of graphs included
  uint64_t captures = 0;        // graphs made
  uint64_t graph_launches = 0;  // and launched
  uint64_t graphs = 0;          // that are there
  uint64_t allocated = 0;       // bytes of all GPUs
  uint64_t peers = 0;           // contexts that may use the memory of another
  uint32_t blocked = 0;         // threads that wait for room in a stream
};

struct StubControls {
  // From now on this function gives this result, once `after` calls of it went well.
  void (*fail)(const char* function, int32_t result, uint32_t after);
  void (*mend)();
  // What is in a stream happens only while the gate is open.
  void (*open_gate)(bool is_open);
  void (*set_capability)(int32_t capability);  // 90 for sm_90
  void (*set_gpus)(int32_t n);                 // at most 8
  void (*link_gpus)(bool are_linked);          // whether they reach each other's memory
  StubCounts (*counts)();
};

}  // namespace akunu::test
