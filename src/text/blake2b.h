// BLAKE2b (RFC 7693) without a key: whether bytes are still the ones that were saved.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace akunu {

class Blake2b {
 public:
  // `digest_bytes`: 1 to 64.
  explicit Blake2b(size_t digest_bytes);

  void update(std::span<const std::byte> bytes);
  // Once, after the last bytes.
  std::vector<std::byte> digest();

 private:
  void add_block(bool is_last);

  std::array<uint64_t, 8> state_;
  std::array<std::byte, 128> block_{};
  size_t n_in_block_ = 0;
  uint64_t n_bytes_ = 0;
  const size_t digest_bytes_;
};

// Two digits a byte, in lower case.
std::string hex(std::span<const std::byte> bytes);

}  // namespace akunu
