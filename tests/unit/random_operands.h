// Random operands of kernels: floats, weights and activations of every kind.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "core/format.h"
#include "core/operation.h"

namespace akunu::test {

inline std::mt19937 random_bits{20};

inline float uniform(float low, float high) {
  return low + (high - low) * static_cast<float>(random_bits() >> 8) * 0x1p-24f;
}

// Memory as a device gives it: aligned to 64 bytes.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(size_t size) : data_(size + 64), size_(size) {}
  Bytes(const Bytes& other) : Bytes(other.size_) { std::memcpy(data(), other.data(), size_); }
  Bytes& operator=(const Bytes&) = delete;
  std::byte* data() { return data_.data() + shift(); }
  const std::byte* data() const { return data_.data() + shift(); }
  size_t size() const { return size_; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data());
  }

 private:
  size_t shift() const { return -reinterpret_cast<uintptr_t>(data_.data()) % 64; }
  std::vector<std::byte> data_;
  size_t size_ = 0;
};

inline Bytes floats(uint64_t n, float low = -2.0f, float high = 2.0f) {
  Bytes bytes(4 * n);
  for (uint64_t i = 0; i < n; ++i) bytes.as<float>()[i] = uniform(low, high);
  return bytes;
}

inline uint16_t small_half() {  // 2^-7 to 2^-3, of either sign: exponents 8 to 11
  return static_cast<uint16_t>((random_bits() & 0x83ffu) | (8 + random_bits() % 4) << 10);
}

// Where a block of the format has halves.
inline std::vector<uint32_t> offsets_of_halves(Format format) {
  if (is_mlx_affine(format)) return {};
  switch (format) {
    case Format::q4_0:
    case Format::q5_0:
    case Format::q8_0:
      return {0};
    case Format::q4_1:
    case Format::q5_1:
    case Format::q4_k:
    case Format::q5_k:
      return {0, 2};
    case Format::q2_k:
      return {80, 82};
    case Format::q3_k:
      return {108};
    case Format::q6_k:
      return {208};
    case Format::iq4_nl:
    case Format::iq4_xs:
    case Format::iq2_xxs:
    case Format::iq2_xs:
    case Format::iq2_s:
    case Format::iq3_xxs:
    case Format::iq3_s:
      return {0};
    case Format::f32:
    case Format::f16:
    case Format::bf16:
    case Format::mlx_mxfp4:  // of several planes, below
    case Format::mlx_first:
    case Format::mlx_last:
    case Format::mxfp4:  // a power of two instead
    case Format::nvfp4:  // any byte is a scale
      return {};
  }
  __builtin_unreachable();
}

inline Bytes weights(Format format, uint64_t rows, uint64_t k) {
  const FormatInfo& info = format_info(format);
  const uint64_t blocks = rows * k / info.block_size;
  Bytes bytes(blocks * info.block_bytes);
  if (format == Format::f32) return floats(rows * k, -0.1f, 0.1f);
  if (format == Format::f16) {
    for (uint64_t i = 0; i < blocks; ++i) bytes.as<uint16_t>()[i] = small_half();
  } else if (format == Format::bf16) {
    for (uint64_t i = 0; i < blocks; ++i) {
      const float x = uniform(-0.1f, 0.1f);
      std::memcpy(bytes.data() + 2 * i, reinterpret_cast<const std::byte*>(&x) + 2, 2);
    }
  } else {  // every code, every scale, and halves that are numbers
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes.data()[i] = static_cast<std::byte>(random_bits());
    for (uint64_t i = 0; i < blocks; ++i)
      for (const uint32_t offset : offsets_of_halves(format)) {
        const uint16_t half = small_half();
        std::memcpy(bytes.data() + i * info.block_bytes + offset, &half, 2);
      }
    if (format == Format::mxfp4)  // 2^-8 to 2^-5
      for (uint64_t i = 0; i < blocks; ++i)
        bytes.data()[i * info.block_bytes] = static_cast<std::byte>(120 + random_bits() % 4);
  }
  return bytes;
}

// The planes of one of MLX's weights: every code; scales and biases that are numbers.
inline std::vector<Bytes> planes(Format format, uint64_t rows, uint64_t k) {
  std::vector<Bytes> planes;
  for (uint32_t p = 0; p < format_info(format).n_planes; ++p) {
    Bytes plane(rows * plane_row_bytes(format, p, k));
    const bool is_codes = p == 0;
    const uint32_t number_bytes = is_codes ? 1 : format_info(format).plane_bytes[p];
    for (uint64_t i = 0; i < plane.size(); i += number_bytes) {
      const float x = uniform(-0.1f, 0.1f);
      const uint16_t half = small_half();
      std::byte* const to = plane.data() + i;
      if (is_codes)
        *to = static_cast<std::byte>(random_bits());
      else if (number_bytes == 1)  // 2^-8 to 2^-5
        *to = static_cast<std::byte>(119 + random_bits() % 4);
      else if (number_bytes == 4)
        std::memcpy(to, &x, 4);
      else if (format_info(format).name.ends_with("bf16"))
        std::memcpy(to, reinterpret_cast<const std::byte*>(&x) + 2, 2);
      else
        std::memcpy(to, &half, 2);
    }
    planes.push_back(plane);
  }
  return planes;
}

constexpr ActivationKind kKinds[] = {ActivationKind::f32, ActivationKind::bf16,
                                     ActivationKind::bf16_pair, ActivationKind::q8_32,
                                     ActivationKind::q16_32};

inline uint64_t activation_bytes(ActivationKind kind, uint64_t k) {
  if (kind == ActivationKind::bf16) return 64 * ((k + 31) / 32 | 1);
  if (kind == ActivationKind::bf16_pair) return 64 * ((k + 31) / 32 * 2 + 1);
  if (kind == ActivationKind::q16_32) return 68 * ((k + 31) / 32);
  return kind == ActivationKind::f32 ? 4 * k : k + 4 * (k / 32) + 2 * (k / 16);
}

inline Bytes activation(ActivationKind kind, uint64_t rows, uint64_t k) {
  if (kind == ActivationKind::f32) return floats(rows * k);
  Bytes bytes(rows * activation_bytes(kind, k));
  for (uint64_t r = 0; r < rows; ++r) {
    std::byte* row = bytes.data() + r * activation_bytes(kind, k);
    if (kind == ActivationKind::q16_32) {
      auto* codes = reinterpret_cast<int16_t*>(row);
      const uint64_t n_groups = (k + 31) / 32;
      for (uint64_t i = 0; i < 32 * n_groups; ++i)
        codes[i] = static_cast<int16_t>(i < k ? random_bits() % 16385 - 8192 : 0);
      for (uint64_t g = 0; g < n_groups; ++g) {
        const float scale = std::ldexp(1.0f, static_cast<int>(random_bits() % 8) - 16);
        std::memcpy(row + 64 * n_groups + 4 * g, &scale, 4);
      }
      continue;
    }
    auto* codes = reinterpret_cast<int8_t*>(row);
    for (uint64_t i = 0; i < k; ++i) codes[i] = static_cast<int8_t>(random_bits() % 255 - 127);
    for (uint64_t g = 0; g < k / 32; ++g) {
      const float scale = uniform(0.0f, 0.05f);
      std::memcpy(row + k + 4 * g, &scale, 4);
    }
    for (uint64_t half = 0; half < k / 16; ++half) {
      int16_t sum = 0;
      for (uint64_t i = 0; i < 16; ++i) sum = static_cast<int16_t>(sum + codes[16 * half + i]);
      std::memcpy(row + k + 4 * (k / 32) + 2 * half, &sum, 2);
    }
  }
  return bytes;
}

}  // namespace akunu::test
