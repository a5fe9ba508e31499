// What the translated kernels call while a lane runs. Included by generated code and by msl/, never
// by the host side.
//
// Each of these is a function of the emulator, compiled without instrumentation: what it touches is
// not taken for an access of the kernel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace akunu::metal::emulator {

constexpr uint32_t kSimdWidth = 32;
// What a lane gives to a SIMD function at most: a vector of four 64-bit numbers.
constexpr uint32_t kSlotBytes = 32;

// Where a lane calls the emulator: the name it used and the place in the .metal file.
struct Site {
  const char* what = nullptr;
  const char* file = nullptr;
  uint32_t line = 0;
};

// What the arguments of a kernel are bound to.
struct Bound {
  void* buffers[31] = {};
  void* threadgroup[8] = {};
};

struct Position {
  uint32_t at[3] = {};
};

// What the built-in arguments of a kernel are made of.
struct Lane {
  Position threadgroup;     // in the grid
  Position threadgroups;    // per grid
  Position thread;          // in its threadgroup
  Position threads;         // per threadgroup
  uint32_t index = 0;       // in its threadgroup
  uint32_t simdgroups = 0;  // per threadgroup
};

// The values that the lanes of a SIMD-group brought, kSlotBytes apart, as `combine` left them. They
// stay until the lane meets the others again.
struct Exchange {
  const std::byte* slots;
  uint32_t lane;
};
using Combine = void (*)(std::byte* slots);

void meet_threadgroup(Site site, bool orders_device, bool orders_threadgroup);
void meet_simdgroup(Site site, bool orders_device, bool orders_threadgroup);
// All lanes of the SIMD-group bring a value; the last to arrive runs `combine`, where there is one.
Exchange exchange(Site site, const void* value, uint32_t bytes, Combine combine);
// A function on simdgroup_matrix, whose storage is the variable of the group's first lane: true for
// that lane. The others need not wait, but have to pass here too.
bool reach_matrix_function(Site site);
// product = a * b + addend, row by row; each product and each sum is rounded.
void multiply_add_8x8(float* product, const float* a, const float* b, const float* addend);
[[noreturn]] void fail_in_lane(Site site, const char* problem);

enum class AtomicOperation : uint8_t {
  load,
  store,
  exchange,
  add,
  subtract,
  bit_or,
  bit_and,
  bit_xor,
  max_unsigned,
  min_unsigned,
  max_signed,
  min_signed,
};
// Returns what was there.
uint32_t apply_atomic(AtomicOperation operation, const volatile void* at, uint32_t operand);
// Weak: now and then it fails for no reason, so that kernels ask again.
bool compare_exchange(volatile void* at, uint32_t& expected, uint32_t desired);

}  // namespace akunu::metal::emulator
