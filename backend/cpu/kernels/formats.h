// A number format is a small trait: how wide a block is, how to unpack one for a dot product with
// the kind of input that goes with it, and what one weight's value is. Every loop over weights
// (matmuls, embedding lookup, the caches) is a template over these.
//
//   kFormat           its number in core/format.h
//   Input             the activation kind: FloatInput (f32) or QuantInput (q8_32)
//   row_bytes(k)      bytes of a row of k weights
//   unpack(row, b)    block b of a row, ready for `accumulate`
//   accumulate        sum += block . input block
//   element(row, i)   weight i of a row as float32: exact, or rounded once where a minimum is added
#pragma once

#include <stdint.h>

#include <cstddef>

namespace akunu::cpu {

template <class T>
static inline T load_unaligned(const std::byte* p) {
  T value;
  __builtin_memcpy(&value, p, sizeof(T));
  return value;
}

// Rows of float32.
template <class Isa>
struct FloatInput {
  static constexpr int32_t kKind = 0;  // ActivationKind::f32
  using Vector = typename Isa::Vector;
  using Block = Vector;
  static constexpr uint32_t kBlock = Isa::kLanes;

  struct Row {
    const float* values;
  };
  static uint64_t row_bytes(uint32_t k) { return uint64_t{4} * k; }
  static Row row(const std::byte* p, uint32_t) { return {reinterpret_cast<const float*>(p)}; }
  static Block block(const Row& row, uint32_t b) { return Isa::load(row.values + kBlock * b); }
  static Block tail(const Row& row, uint32_t b, uint32_t n) {
    return Isa::load(row.values + kBlock * b, n);
  }
};

// Rows of q8_32: int8 q[k], float32 scale[k / 32], int32 sum[k / 32].
template <class Isa>
struct QuantInput {
  static constexpr int32_t kKind = 3;  // ActivationKind::q8_32
  static constexpr uint32_t kBlock = 32;

  struct Row {
    const int8_t* q;
    const float* scale;
    const int32_t* sum;
  };
  struct Block {
    typename Isa::Bytes q;
    float scale;
    int32_t sum;
  };
  static uint64_t row_bytes(uint32_t k) { return uint64_t{k} + k / kBlock * uint64_t{8}; }
  static Row row(const std::byte* p, uint32_t k) {
    const std::byte* scale = p + k;
    return {reinterpret_cast<const int8_t*>(p), reinterpret_cast<const float*>(scale),
            reinterpret_cast<const int32_t*>(scale + uint64_t{4} * (k / kBlock))};
  }
  static Block block(const Row& row, uint32_t b) {
    return {Isa::load_bytes(row.q + uint64_t{kBlock} * b), row.scale[b], row.sum[b]};
  }
  static Block tail(const Row& row, uint32_t b, uint32_t) {
    return block(row, b);
  }  // never: 32 | k
};

template <class Isa>
struct F32 {
  using Vector = typename Isa::Vector;
  static constexpr int32_t kFormat = 0;
  using Input = FloatInput<Isa>;
  using Block = Vector;
  static constexpr uint32_t kTileColumns = Isa::kFloatTileColumns;

  static uint64_t row_bytes(uint32_t k) { return uint64_t{4} * k; }
  static Block unpack(const std::byte* row, uint32_t b) { return load(row, Input::kBlock * b, 8); }
  static Block unpack_tail(const std::byte* row, uint32_t b, uint32_t n) {
    return load(row, Input::kBlock * b, n);
  }
  static Vector accumulate(Vector sum, const Block& weights, const Vector& input) {
    return Isa::multiply_add(weights, input, sum);
  }
  static float element(const std::byte* row, uint64_t i) {
    return load_unaligned<float>(row + 4 * i);
  }
  // n (1 to 8) numbers from element i of a row on; the other lanes are 0.
  static Vector load(const std::byte* row, uint64_t i, uint32_t n) {
    return Isa::load(reinterpret_cast<const float*>(row + 4 * i), n);
  }
  static void store(std::byte* row, uint64_t i, Vector v, uint32_t n) {
    Isa::store(reinterpret_cast<float*>(row + 4 * i), v, n);
  }
};

template <class Isa>
struct F16 {
  using Vector = typename Isa::Vector;
  static constexpr int32_t kFormat = 1;
  using Input = FloatInput<Isa>;
  using Block = Vector;
  static constexpr uint32_t kTileColumns = Isa::kFloatTileColumns;

  static uint64_t row_bytes(uint32_t k) { return uint64_t{2} * k; }
  static Block unpack(const std::byte* row, uint32_t b) { return load(row, Input::kBlock * b, 8); }
  static Block unpack_tail(const std::byte* row, uint32_t b, uint32_t n) {
    return load(row, Input::kBlock * b, n);
  }
  static Vector accumulate(Vector sum, const Block& weights, const Vector& input) {
    return Isa::multiply_add(weights, input, sum);
  }
  static float element(const std::byte* row, uint64_t i) {
    return Isa::half_to_float(load_unaligned<uint16_t>(row + 2 * i));
  }
  static Vector load(const std::byte* row, uint64_t i, uint32_t n) {
    return Isa::load_half(reinterpret_cast<const uint16_t*>(row + 2 * i), n);
  }
  static void store(std::byte* row, uint64_t i, Vector v, uint32_t n) {
    Isa::store_half(reinterpret_cast<uint16_t*>(row + 2 * i), v, n);
  }
};

// What the formats share that have 32 weights in a block of kBytes, a half as scale at its start.
template <class Isa, uint32_t kBytes>
struct BlocksOf32 {
  using Vector = typename Isa::Vector;
  using Input = QuantInput<Isa>;
  static constexpr uint32_t kTileColumns = Isa::kQuantTileColumns;

  static uint64_t row_bytes(uint32_t k) { return uint64_t{k / 32} * kBytes; }
  static const std::byte* block(const std::byte* row, uint64_t b) { return row + b * kBytes; }
  static Vector broadcast_scale(const std::byte* block) {
    return Isa::broadcast_half(load_unaligned<uint16_t>(block));
  }
  static float scale(const std::byte* block) {
    return Isa::half_to_float(load_unaligned<uint16_t>(block));
  }
};

// 18 bytes: half d, 16 bytes of nibbles; x = d * (nibble - 8), the low nibbles first.
template <class Isa>
struct Q4_0 : BlocksOf32<Isa, 18> {
  using Base = BlocksOf32<Isa, 18>;
  using Vector = typename Isa::Vector;
  static constexpr int32_t kFormat = 2;

  struct Block {
    typename Isa::Bytes nibbles;
    Vector scale;
  };
  static Block unpack(const std::byte* row, uint32_t b) {
    const std::byte* block = Base::block(row, b);
    return {Isa::unpack_nibbles(reinterpret_cast<const uint8_t*>(block + 2)),
            Base::broadcast_scale(block)};
  }
  static Block unpack_tail(const std::byte* row, uint32_t b, uint32_t) { return unpack(row, b); }
  // sum (nibble - 8) q = sum nibble q - 8 sum q, in whole numbers.
  static Vector accumulate(Vector sum, const Block& weights,
                           const typename Base::Input::Block& input) {
    const auto dot = Isa::subtract_ints(Isa::dot_nibbles(weights.nibbles, input.q),
                                        Isa::first_lane(8 * input.sum));
    const Vector scale = Isa::multiply(weights.scale, Isa::broadcast(input.scale));
    return Isa::multiply_add(Isa::to_float(dot), scale, sum);
  }
  static float element(const std::byte* row, uint64_t i) {
    const std::byte* block = Base::block(row, i / 32);
    const uint32_t j = i % 32;
    const uint32_t packed = static_cast<uint32_t>(block[2 + j % 16]);
    const int32_t nibble = static_cast<int32_t>(j < 16 ? packed & 15 : packed >> 4);
    return Base::scale(block) * static_cast<float>(nibble - 8);
  }
};

// 34 bytes: half d, 32 int8; x = d * q.
template <class Isa>
struct Q8_0 : BlocksOf32<Isa, 34> {
  using Base = BlocksOf32<Isa, 34>;
  using Vector = typename Isa::Vector;
  static constexpr int32_t kFormat = 8;

  struct Block {
    typename Isa::Bytes q;
    Vector scale;
  };
  static Block unpack(const std::byte* row, uint32_t b) {
    const std::byte* block = Base::block(row, b);
    return {Isa::load_bytes(reinterpret_cast<const int8_t*>(block + 2)),
            Base::broadcast_scale(block)};
  }
  static Block unpack_tail(const std::byte* row, uint32_t b, uint32_t) { return unpack(row, b); }
  static Vector accumulate(Vector sum, const Block& weights,
                           const typename Base::Input::Block& input) {
    const Vector scale = Isa::multiply(weights.scale, Isa::broadcast(input.scale));
    return Isa::multiply_add(Isa::to_float(Isa::dot_bytes(weights.q, input.q)), scale, sum);
  }
  static float element(const std::byte* row, uint64_t i) {
    const std::byte* block = Base::block(row, i / 32);
    return Base::scale(block) * static_cast<float>(static_cast<int8_t>(block[2 + i % 32]));
  }
};

}  // namespace akunu::cpu
