#include "core/memory_left.h"

namespace akunu {

std::string mebibytes(uint64_t bytes) {
  constexpr uint64_t kMiB = 1024 * 1024;
  uint64_t whole = bytes / kMiB;
  uint64_t tenths = (bytes % kMiB * 10 + kMiB / 2) / kMiB;
  if (tenths == 10) ++whole, tenths = 0;
  return std::to_string(whole) + "." + std::to_string(tenths) + " MiB";
}

std::string describe_address_space(uint64_t bytes_left) {
  return "the process may take " + mebibytes(bytes_left) + " more (ulimit -v or -d)";
}

std::string describe_refusal(uint64_t bytes, const MemoryLeft& left) {
  if (left.address_space && bytes > *left.address_space)
    return describe_address_space(*left.address_space);
  if (left.memory && bytes > *left.memory) return mebibytes(*left.memory) + " are available";
  return "the system refused them" +
         (left.memory ? ", although " + mebibytes(*left.memory) + " should be available" : "");
}

}  // namespace akunu
