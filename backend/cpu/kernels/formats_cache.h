// Q8_0 and Q4_0 as formats of caches: what kv_write stores, and attention reads as floats. Blocks of 32
// numbers along a head, as ggml's block_q8_0 and block_q4_0 lay them out; heads are whole blocks. Beside values
// in Q4_0 keys are in Q8_0 (format_of_keys in core/format.h).
//
// 1. What it computes. Stored as ggml rounds them (of numbers between two codes Q8_0 takes the even one):
//    scales are those of the block's largest magnitude. Read as d * code, which is exact.
// 2. What bounds it. As attention.cpp says; a vector costs a conversion and a product more than one of halves,
//    and half or a quarter of the memory.
// 3. What is done about it. Nothing is stored: a vector is widened where it is used. Loops go block by block
//    (`kVectors`), so that a scale is read and widened once for all vectors of a block.
#pragma once

#include "cpu/kernels/blocks_32.h"
#include "cpu/kernels/formats.h"
#include "cpu/kernels/quantize8.h"

namespace akunu::cpu {

constexpr uint32_t kCacheBlock = 32;  // numbers

template <class Format>
concept IsInBlocks = requires { typename Format::CacheBlock; };

// What both have in common. `Format` says what kLanes codes of a block are, and stores one.
template <class Isa, class Format, class Stored>
struct CacheInBlocks {
  using Vector = typename Isa::Vector;
  using Input = FloatInput<Isa>;
  using Block = Vector;
  using CacheBlock = Stored;
  static constexpr uint32_t kVectors = kCacheBlock / Isa::kLanes;  // of a block

  // Also of parts of a block, for what is prefetched.
  static uint64_t byte_at(uint64_t element) { return element * sizeof(Stored) / kCacheBlock; }
  static uint64_t row_bytes(uint32_t k) { return byte_at(k); }
  // kLanes numbers from number `i` of a block on; i may be beyond it. Where i is a constant, neighbours share
  // what is read of the scale, and codes need no variable shift.
  static Vector load_behind(const std::byte* block, uint64_t i) {
    block += i / kCacheBlock * sizeof(Stored);
    return Isa::multiply(Isa::broadcast_half(load_unaligned<uint16_t>(block)),
                         Format::codes(block + sizeof(uint16_t), i % kCacheBlock));
  }
  // kLanes numbers, none of which is beyond a head: the block sizes of vectors divide that of the format.
  static Vector load(const std::byte* row, uint64_t i, uint32_t) { return load_behind(row, i); }
  static Block unpack(const std::byte* row, uint32_t b) {
    return load(row, uint64_t{Isa::kLanes} * b, Isa::kLanes);
  }
  // The same for b + v, where b begins a block.
  static Block unpack_of_block(const std::byte* row, uint32_t b, uint32_t v) {
    return load_behind(row + byte_at(uint64_t{Isa::kLanes} * b), uint64_t{Isa::kLanes} * v);
  }
  static Block unpack_tail(const std::byte* row, uint32_t b, uint32_t) { return unpack(row, b); }
  static Vector accumulate(Vector sum, const Block& weights, const Vector& input) {
    return Isa::multiply_add(weights, input, sum);
  }
  static void store_head(const float* head, uint32_t head_dim, std::byte* row) {
    for (uint32_t i = 0; i < head_dim; i += kCacheBlock) {
      Vector values[4];
      for (uint32_t j = 0; j < 4; ++j) values[j] = Isa::load(head + i + 8 * j);
      Stored block;
      const float scale = Format::store_codes(values, block);
      Isa::store_half(&block.d, Isa::broadcast(scale), 1);
      __builtin_memcpy(row + byte_at(i), &block, sizeof(block));
    }
  }
};

template <class Isa>
struct CacheQ8_0 : CacheInBlocks<Isa, CacheQ8_0<Isa>, BlockQ8_0> {
  using Vector = typename Isa::Vector;
  static constexpr int32_t kFormat = number_of(Format::q8_0);

  static Vector codes(const std::byte* codes, uint64_t i) {
    return Isa::load_bytes(reinterpret_cast<const int8_t*>(codes) + i);
  }
  static float store_codes(Vector (&values)[4], BlockQ8_0& block) {
    int16_t half_sums[2];
    return quantize8<Isa>(values, block.codes, half_sums);
  }
};

template <class Isa>
struct CacheQ4_0 : CacheInBlocks<Isa, CacheQ4_0<Isa>, BlockQ4_0> {
  using Vector = typename Isa::Vector;
  static constexpr int32_t kFormat = number_of(Format::q4_0);

  static Vector codes(const std::byte* nibbles, uint64_t i) {
    return Isa::load_nibbles(reinterpret_cast<const uint8_t*>(nibbles) + i % 16, i < 16 ? 0u : 4u);
  }
  // The number of the largest magnitude is -8 scales. Scales that round to 0, or of NaN, have zeros beside them.
  static float store_codes(Vector (&values)[4], BlockQ4_0& block) {
    Vector highest = values[0], lowest = values[0], zero_or_nan = Isa::zero();
    for (const Vector& each : values) {
      highest = Isa::maximum(each, highest);
      lowest = Isa::minimum(each, lowest);
      zero_or_nan = Isa::multiply_add(each, Isa::zero(), zero_or_nan);
    }
    const float most = Isa::max_lanes(highest);
    const float least = -Isa::max_lanes(Isa::subtract(Isa::zero(), lowest));
    const float scale = (most >= -least ? most : least) / -8.0f;
    const float reciprocal = 1.0f / scale;
    const bool has_no_finite = Isa::is_nan(zero_or_nan) != 0;
    if (has_no_finite || !(__builtin_fabsf(reciprocal) <= __FLT_MAX__)) {
      __builtin_memset(block.nibbles, 0x88, sizeof(block.nibbles));
      return has_no_finite ? __builtin_nanf("") : scale;
    }
    float lane[kCacheBlock];
    const Vector factor = Isa::broadcast(reciprocal), half = Isa::broadcast(8.5f);
    for (uint32_t j = 0; j < 4; ++j)
      Isa::store(lane + 8 * j, Isa::add(Isa::multiply(values[j], factor), half));
    for (uint32_t i = 0; i < 16; ++i)
      block.nibbles[i] = static_cast<uint8_t>(code(lane[i]) | code(lane[i + 16]) << 4);
    return scale;
  }

 private:
  static uint32_t code(float above_zero) {
    const auto whole = static_cast<uint32_t>(above_zero);
    return whole < 15 ? whole : 15;
  }
};

// What keys are kept in beside values in `Values`.
template <class Values>
struct KeysBeside {
  using Type = Values;
};
template <class Isa>
struct KeysBeside<CacheQ4_0<Isa>> {
  using Type = CacheQ8_0<Isa>;
};

}  // namespace akunu::cpu
