// The activation kinds as they are read, and the float formats as small traits: the value of one
// weight, and how a run of them becomes a vector. Block formats: formats_blocks.h; what quantised
// matmuls need of a format: panel.h.
//
// 1. What it computes. The number that a weight stands for: of F16 exactly. Sums are the kernels'.
// 2. What bounds it. Memory for one row: two or four bytes are read for each multiplication.
//    Widening a vector of F16 is one instruction where the level has one (all but generic).
// 3. What is done about it. Nothing is stored: a vector is widened where it is used (`unpack`).
//    Many rows: float_panel.h widens a panel once for all of them.
// 4. Where to change it. A float format: a struct beside F16, with its line in
//    matmul_kernels_32.cpp; as a cache, an entry in the tables at the end of attention.cpp and
//    kv_write.cpp. Caches in blocks: formats_cache.h.
//
//   kFormat              number_of the format
//   Input                the activation kind that it is multiplied with: FloatInput (f32) or QuantInput (q8_32)
//   row_bytes(k)         bytes of a row of k weights
//   byte_at(i)           of float formats and of caches: where number i is, of rows one after another
//   element(row, i)      weight i of a row as float32
//   unpack, accumulate   a vector of a row, and sum += weights * input
#pragma once

#include <stdint.h>

#include <cstddef>

#include "core/kinds.h"
#include "cpu/isa/prefetch.h"

namespace akunu::cpu {

// A format or an activation kind as kernels are looked up by it (KernelKey).
static constexpr int32_t number_of(Format format) { return static_cast<int32_t>(format); }
static constexpr int32_t number_of(ActivationKind kind) { return static_cast<int32_t>(kind); }

template <class T>
static inline T load_unaligned(const std::byte* p) {
  T value;
  __builtin_memcpy(&value, p, sizeof(T));
  return value;
}

// Rows of float32.
template <class Isa>
struct FloatInput {
  static constexpr int32_t kKind = number_of(ActivationKind::f32);
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

// Rows of bf16, with zeros behind them: whole lines of 64 bytes, as a matrix unit reads them, and an
// odd number of those, so that rows do not fall into the same few sets of a cache.
template <class Isa>
struct Bf16Input {
  static constexpr int32_t kKind = number_of(ActivationKind::bf16);
  static uint64_t row_bytes(uint32_t k) { return uint64_t{64} * ((uint64_t{k} + 31) / 32 | 1); }
};

// Rows of numbers as sums of two in bf16: the nearest one, and the one nearest to what is left. Of
// every 32, the former are in a line of 64 bytes and the latter in the next; zeros behind them, and
// one line more, so that the number of lines is odd.
template <class Isa>
struct Bf16PairInput {
  static constexpr int32_t kKind = number_of(ActivationKind::bf16_pair);
  static uint64_t row_bytes(uint32_t k) { return uint64_t{64} * ((uint64_t{k} + 31) / 32 * 2 + 1); }
};

// Rows of q8_32: int8 q[k], float32 scale[k / 32], int16 sum[k / 16].
template <class Isa>
struct QuantInput {
  static constexpr int32_t kKind = number_of(ActivationKind::q8_32);
  static uint64_t row_bytes(uint32_t k) { return uint64_t{k} + k / 32 * uint64_t{8}; }
  static constexpr uint32_t whole(uint32_t k) { return k; }  // as weights in blocks are
};

// Rows of q16_32: int16 q[whole(k)], float32 scale[whole(k) / 32].
template <class Isa>
struct Quant16Input {
  static constexpr int32_t kKind = number_of(ActivationKind::q16_32);
  static uint64_t row_bytes(uint32_t k) { return uint64_t{whole(k)} / 32 * 68; }
  static constexpr uint32_t whole(uint32_t k) { return (k + 31) / 32 * 32; }
};

// Rows of q16_32 for weights whose codes are bytes: each input code is split into a high and a low byte
// (row_tile_two_byte.h).
template <class Isa>
struct TwoByteInput : Quant16Input<Isa> {};

// What weights that are numbers have in common: `Format` says how such a number is stored, as a `Stored`.
template <class Isa, class Format, class Stored>
struct FloatFormat {
  using Vector = typename Isa::Vector;
  using Input = FloatInput<Isa>;
  using Block = Vector;

  static uint64_t row_bytes(uint32_t k) { return byte_at(k); }
  static uint64_t byte_at(uint64_t element) { return sizeof(Stored) * element; }
  static Block unpack(const std::byte* row, uint32_t b) {
    return Format::load(row, Input::kBlock * b, Input::kBlock);
  }
  static Block unpack_tail(const std::byte* row, uint32_t b, uint32_t n) {
    return Format::load(row, Input::kBlock * b, n);
  }
  static Vector accumulate(Vector sum, const Block& weights, const Vector& input) {
    return Isa::multiply_add(weights, input, sum);
  }
};

template <class Isa>
struct F32 : FloatFormat<Isa, F32<Isa>, float> {
  using Vector = typename Isa::Vector;
  static constexpr int32_t kFormat = number_of(Format::f32);

  static float element(const std::byte* row, uint64_t i) {
    return load_unaligned<float>(row + 4 * i);
  }
  // n (1 to kLanes) numbers from element i of a row on; the other lanes are 0.
  static Vector load(const std::byte* row, uint64_t i, uint32_t n) {
    return Isa::load(reinterpret_cast<const float*>(row + 4 * i), n);
  }
  static void store(std::byte* row, uint64_t i, Vector v, uint32_t n) {
    Isa::store(reinterpret_cast<float*>(row + 4 * i), v, n);
  }
};

template <class Isa>
struct F16 : FloatFormat<Isa, F16<Isa>, uint16_t> {
  using Vector = typename Isa::Vector;
  static constexpr int32_t kFormat = number_of(Format::f16);

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

}  // namespace akunu::cpu
