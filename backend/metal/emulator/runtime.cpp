// runtime.h: what the lane that runs asks for.
#include "metal/emulator/runtime.h"

#include <algorithm>

#include "metal/emulator/checks.h"
#include "metal/emulator/threadgroup.h"

namespace akunu::metal::emulator {

void meet_threadgroup(Site site, bool orders_device, bool orders_threadgroup) {
  running->meet_threadgroup(site, orders_device, orders_threadgroup);
}

void meet_simdgroup(Site site, bool orders_device, bool orders_threadgroup) {
  running->meet_simdgroup(site, orders_device, orders_threadgroup);
}

Exchange exchange(Site site, const void* value, uint32_t bytes, Combine combine) {
  return running->exchange(site, value, bytes, combine);
}

bool reach_matrix_function(Site site) { return running->reach_matrix_function(site); }

void multiply_add_8x8(float* product, const float* a, const float* b, const float* addend) {
  for (int row = 0; row < 8; ++row) {
    float sums[8];
    for (int column = 0; column < 8; ++column) sums[column] = addend[row * 8 + column];
    for (int k = 0; k < 8; ++k) {
      const float factor = a[row * 8 + k];
      for (int column = 0; column < 8; ++column) sums[column] += factor * b[k * 8 + column];
    }
    // `product` may be `a` or `addend`: their row has been read. It may not be `b`.
    for (int column = 0; column < 8; ++column) product[row * 8 + column] = sums[column];
  }
}

void fail_in_lane(Site site, const char* problem) {
  running->report(std::string("in ") + site.what + " at " + site.file + ":" +
                  std::to_string(site.line) + " " + problem);
  running->stop();
}

namespace {

volatile uint32_t& atomic_word(const volatile void* at, bool is_write) {
  if (running->checks() != nullptr) {
    running->checks()->access(reinterpret_cast<uintptr_t>(at), sizeof(uint32_t), is_write, true);
  }
  return *const_cast<volatile uint32_t*>(static_cast<const volatile uint32_t*>(at));
}

}  // namespace

uint32_t apply_atomic(AtomicOperation operation, const volatile void* at, uint32_t operand) {
  volatile uint32_t& word = atomic_word(at, operation != AtomicOperation::load);
  const uint32_t before = word;
  const auto as_signed = [](uint32_t value) { return static_cast<int32_t>(value); };
  switch (operation) {
    case AtomicOperation::load:
      break;
    case AtomicOperation::store:
    case AtomicOperation::exchange:
      word = operand;
      break;
    case AtomicOperation::add:
      word = before + operand;
      break;
    case AtomicOperation::subtract:
      word = before - operand;
      break;
    case AtomicOperation::bit_or:
      word = before | operand;
      break;
    case AtomicOperation::bit_and:
      word = before & operand;
      break;
    case AtomicOperation::bit_xor:
      word = before ^ operand;
      break;
    case AtomicOperation::max_unsigned:
      word = std::max(before, operand);
      break;
    case AtomicOperation::min_unsigned:
      word = std::min(before, operand);
      break;
    case AtomicOperation::max_signed:
      if (as_signed(operand) > as_signed(before)) word = operand;
      break;
    case AtomicOperation::min_signed:
      if (as_signed(operand) < as_signed(before)) word = operand;
      break;
  }
  return before;
}

bool compare_exchange(volatile void* at, uint32_t& expected, uint32_t desired) {
  volatile uint32_t& word = atomic_word(at, true);
  const uint32_t before = word;
  if (before != expected) {
    expected = before;
    return false;
  }
  if (running->fails_for_no_reason()) return false;
  word = desired;
  return true;
}

}  // namespace akunu::metal::emulator
