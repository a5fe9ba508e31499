// What the programs that check and time kernels of NVIDIA GPUs by themselves (tools/*.cu) share.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

inline void must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

template <class T>
struct Memory {
  T* at = nullptr;
  size_t count;
  explicit Memory(size_t n) : count(n) {
    must(cudaMalloc(&at, n * sizeof(T)), "cudaMalloc");
    must(cudaMemset(at, 0xff, n * sizeof(T)), "cudaMemset");
  }
  Memory(const Memory&) = delete;
  ~Memory() { cudaFree(at); }
  void put(const std::vector<T>& from) {
    must(cudaMemcpy(at, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "a copy");
  }
  std::vector<T> get() const {
    std::vector<T> to(count);
    must(cudaMemcpy(to.data(), at, count * sizeof(T), cudaMemcpyDeviceToHost), "a copy");
    return to;
  }
};

struct Events {
  cudaEvent_t first, last;
  Events() { cudaEventCreate(&first), cudaEventCreate(&last); }
  template <class Run>
  float best(int n_runs, const Run& run) const {
    float least = 1e9f;
    for (int i = 0; i < n_runs; ++i) {
      cudaEventRecord(first);
      run();
      cudaEventRecord(last);
      must(cudaEventSynchronize(last), "a run");
      float ms = 0;
      cudaEventElapsedTime(&ms, first, last);
      least = ms < least ? ms : least;
    }
    return least;
  }
};
