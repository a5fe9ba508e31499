// Which kernels a level has: each family gives a list of entries, the device asks find_kernel.
#pragma once

#include "core/kinds.h"
#include "cpu/kernel.h"

namespace akunu::cpu {

constexpr int32_t kAny = -1;     // the kernel doesn't depend on it
constexpr int32_t kAbsent = -1;  // there is no such operand

// What a kernel is for, and what a request prefetches. Numbers are values of the enums of core/kinds.h.
struct KernelKey {
  Operation operation;
  int32_t activation = kAny;                                 // an ActivationKind
  int32_t weights[kMaxGroup] = {kAbsent, kAbsent, kAbsent};  // a Format per weight operand
  int32_t cache = kAny;                                      // the Format of the caches
  int32_t query = kAny;  // of attention in whole numbers: the ActivationKind of what it multiplies
};

static_assert(kMaxGroup == 3, "entries list a format or kAbsent for each");

struct KernelEntry {
  KernelKey key;
  Kernel kernel;
};

struct KernelList {
  const KernelEntry* entries;
  uint32_t count;
};

template <uint32_t N>
static constexpr KernelList list_of(const KernelEntry (&entries)[N]) {
  return {entries, N};
}

// Whether a kernel does what a request prefetches.
static inline bool serves(const KernelKey& kernel, const KernelKey& request) {
  if (kernel.operation != request.operation || kernel.query != request.query) return false;
  for (uint32_t i = 0; i < kMaxGroup; ++i)
    if (kernel.weights[i] != request.weights[i]) return false;
  return (kernel.activation == kAny || kernel.activation == request.activation) &&
         (kernel.cache == kAny || kernel.cache == request.cache);
}

template <uint32_t N>
static inline bool find_in(const KernelList (&families)[N], const KernelKey& request,
                           Kernel& kernel) {
  for (const KernelList& family : families)
    for (uint32_t i = 0; i < family.count; ++i)
      if (serves(family.entries[i].key, request)) {
        kernel = family.entries[i].kernel;
        return true;
      }
  return false;
}

// A list per family, defined in the family's file for the level that the file is compiled for.
template <class Isa>
struct Families {
  static KernelList embed();
  static KernelList embed_mlx();  // of weights in MLX's formats
  static KernelList norm();
  static KernelList rope();
  static KernelList kv_write();
  static KernelList attention();
  static KernelList int16_attention();  // empty at levels that do not multiply int16
  static KernelList gated_activation();
  static KernelList elementwise();
  static KernelList encoder();
  static KernelList adapter();
  static KernelList span_attention();
  static KernelList speech();
  static KernelList latent();
  static KernelList experts();
  static KernelList hadamard();
  static KernelList convolution();
  static KernelList streams();
  static KernelList scan();
  static KernelList delta_rule();
  static KernelList exchange();
  static KernelList sample();
  static KernelList logprobs();
  static KernelList advance();
  // Not a list: the matmul operations share the kernels for a weight. False where one is missing.
  static bool find_matmul(const KernelKey& request, Kernel& kernel);
};

// Finds the kernel of this level for a request; false if it has none. All row classes share one kernel
// (where they have one key): it chooses its tile by the number of rows, and a row's
// bits don't depend on the tile.
template <class Isa>
bool find_kernel(const KernelKey& request, Kernel& kernel);

}  // namespace akunu::cpu
