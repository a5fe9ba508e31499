#include "text/blake2b.h"

#include <algorithm>
#include <bit>

namespace akunu {
namespace {

// The first 64 bits of the fractions of the first eight primes' square roots.
constexpr std::array<uint64_t, 8> kStart = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

// Which words of a block each round mixes in; rounds 10 and 11 are rounds 0 and 1 again.
constexpr uint8_t kOrders[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                     {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                     {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                     {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                     {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                     {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                     {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                     {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                     {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                     {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

void mix(uint64_t& a, uint64_t& b, uint64_t& c, uint64_t& d, uint64_t x, uint64_t y) {
  a += b + x;
  d = std::rotr(d ^ a, 32);
  c += d;
  b = std::rotr(b ^ c, 24);
  a += b + y;
  d = std::rotr(d ^ a, 16);
  c += d;
  b = std::rotr(b ^ c, 63);
}

uint64_t word_at(std::span<const std::byte, 128> block, size_t i) {
  uint64_t word = 0;
  for (size_t byte = 8; byte-- > 0;)
    word = word << 8 | std::to_integer<uint64_t>(block[8 * i + byte]);
  return word;
}

}  // namespace

Blake2b::Blake2b(size_t digest_bytes) : state_(kStart), digest_bytes_(digest_bytes) {
  state_[0] ^= 0x01010000 ^ digest_bytes;
}

void Blake2b::add_block(bool is_last) {
  std::array<uint64_t, 16> words;
  for (size_t i = 0; i < 16; ++i) words[i] = word_at(block_, i);
  std::array<uint64_t, 16> v;
  std::ranges::copy(state_, v.begin());
  std::ranges::copy(kStart, v.begin() + 8);
  v[12] ^= n_bytes_;
  if (is_last) v[14] = ~v[14];
  for (size_t round = 0; round < 12; ++round) {
    const auto& order = kOrders[round % 10];
    for (size_t i = 0; i < 4; ++i)
      mix(v[i], v[4 + i], v[8 + i], v[12 + i], words[order[2 * i]], words[order[2 * i + 1]]);
    for (size_t i = 0; i < 4; ++i)
      mix(v[i], v[4 + (i + 1) % 4], v[8 + (i + 2) % 4], v[12 + (i + 3) % 4],
          words[order[8 + 2 * i]], words[order[9 + 2 * i]]);
  }
  for (size_t i = 0; i < 8; ++i) state_[i] ^= v[i] ^ v[8 + i];
  n_in_block_ = 0;
}

void Blake2b::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    // A full block is added when more follows: the last one is another.
    if (n_in_block_ == block_.size()) add_block(false);
    const size_t n = std::min(bytes.size(), block_.size() - n_in_block_);
    std::ranges::copy(bytes.first(n), block_.begin() + static_cast<ptrdiff_t>(n_in_block_));
    n_in_block_ += n;
    n_bytes_ += n;
    bytes = bytes.subspan(n);
  }
}

std::vector<std::byte> Blake2b::digest() {
  std::fill(block_.begin() + static_cast<ptrdiff_t>(n_in_block_), block_.end(), std::byte{0});
  add_block(true);
  std::vector<std::byte> digest;
  for (size_t i = 0; i < digest_bytes_; ++i)
    digest.push_back(static_cast<std::byte>(state_[i / 8] >> 8 * (i % 8)));
  return digest;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string digits;
  for (const std::byte byte : bytes) {
    digits += "0123456789abcdef"[std::to_integer<size_t>(byte >> 4)];
    digits += "0123456789abcdef"[std::to_integer<size_t>(byte & std::byte{15})];
  }
  return digits;
}

}  // namespace akunu
