// What lies in a cache: numbers (half, float), or blocks of 32 numbers along a head, as ggml's block_q8_0 and
// block_q4_0 lay them out. Heads are whole blocks. Beside values in Q4_0 keys are in Q8_0 (core/format.h). Of each
// there is
//
//   cached_at(pool, element)         where a head begins: `element` counts numbers (kv_offset)
//   load_cached(head, i, n, aligned) numbers i to i + 3, four of one block; `n` are left of the row
//   cached_number(head, i)           one number
//   store_cached(head, i, x, lane)   by all lanes of a SIMD-group, for i = lane plus a multiple of 32
//
// Blocks are stored as ggml rounds them (of numbers between two codes Q8_0 takes the even one) and read as
// d * code, which is exact.
#pragma once

#include "metal/kernels/formats.h"
#include "metal/kernels/functions.h"

struct CacheQ8_0 {
  ushort d;          // bits of a half
  ushort codes[16];  // 32 of int8
};
struct CacheQ4_0 {
  ushort d;
  ushort nibbles[8];  // number i < 16 is the low nibble of byte i, number i + 16 the high one
};

constant constexpr uint kCacheBlock = 32;  // numbers

template <class Number>
inline device const Number* cached_at(device const Number* pool, ulong element) {
  return pool + element;
}
template <class Number>
inline device Number* cached_at(device Number* pool, ulong element) {
  return pool + element;
}
inline device const CacheQ8_0* cached_at(device const CacheQ8_0* pool, ulong element) {
  return pool + element / kCacheBlock;
}
inline device CacheQ8_0* cached_at(device CacheQ8_0* pool, ulong element) {
  return pool + element / kCacheBlock;
}
inline device const CacheQ4_0* cached_at(device const CacheQ4_0* pool, ulong element) {
  return pool + element / kCacheBlock;
}
inline device CacheQ4_0* cached_at(device CacheQ4_0* pool, ulong element) {
  return pool + element / kCacheBlock;
}

template <class Number>
inline float4 load_cached(device const Number* head, ulong i, uint n, bool aligned) {
  return load_numbers(head + i, n, aligned);
}
inline float4 load_cached(device const CacheQ8_0* head, ulong i, uint, bool) {
  device const uchar* block = reinterpret_cast<device const uchar*>(head + i / kCacheBlock);
  // int8 as unsigned numbers that are 128 too large
  const uint raised = load_word(block + 2 + i % kCacheBlock) ^ 0x80808080u;
  return bytes_less(raised, 128.0f) * load_half(block);
}
inline float4 load_cached(device const CacheQ4_0* head, ulong i, uint, bool) {
  device const uchar* block = reinterpret_cast<device const uchar*>(head + i / kCacheBlock);
  const uint word = load_word(block + 2 + i % 16);
  return bytes_less(byte_fields(word, i % kCacheBlock < 16 ? 0 : 4, 15u), 8.0f) * load_half(block);
}

template <class Number>
inline float cached_number(device const Number* head, ulong i) {
  return float(head[i]);
}
inline float cached_number(device const CacheQ8_0* head, ulong i) {
  return load_cached(head, i / 4 * 4, 4, true)[i % 4];
}
inline float cached_number(device const CacheQ4_0* head, ulong i) {
  return load_cached(head, i / 4 * 4, 4, true)[i % 4];
}

// kDims neighbouring numbers of the row that begins at `row`, from number d on, a multiple of kDims; zeros from the
// n-th on.
template <uint kDims, class Cache>
inline void load_dims(device const Cache* head, ulong row, uint d, uint n, bool aligned,
                      thread float (&v)[kDims]) {
  const uint before = d % 4;  // not 0 only where kDims is two
  for (uint j = 0; j < kDims; j += 4) {
    float4 four = float4(0.0f);
    if (j < n) four = load_cached(head, row + d + j - before, n - j + before, aligned);
    if (kDims < 4 && before != 0) four = float4(four.z, four.w, 0.0f, 0.0f);
    for (uint e = 0; e < 4 && j + e < kDims; ++e) v[j + e] = four[e];
  }
}

// A number as a cache of numbers keeps it. Beside blocks nobody asks: what is rounded so are the values of
// rope_attention's own rows, which has no kernel for blocks.
template <class Number>
inline float as_cached(float x, device const Number*) {
  return float(Number(x));
}
inline float as_cached(float x, device const CacheQ8_0*) { return x; }
inline float as_cached(float x, device const CacheQ4_0*) { return x; }

template <class Number>
inline void store_cached(device Number* head, uint i, float x, uint) {
  head[i] = Number(x);
}
// What is not finite makes the block NaN. Numbers too small to divide by are zeros.
inline void store_cached(device CacheQ8_0* head, uint i, float x, uint lane) {
  device uchar* block = reinterpret_cast<device uchar*>(head + i / kCacheBlock);
  const bool has_no_finite = simd_any(!is_finite(x));
  const float largest = simd_max(abs(x));
  float scale = largest / 127.0f;
  const float reciprocal = 1.0f / scale;
  const bool has_codes = !has_no_finite && is_finite(reciprocal);
  if (!has_codes) scale = has_no_finite ? as_type<float>(0x7fc00000u) : 0.0f;
  const int code = has_codes ? int(round_to_whole(x * reciprocal)) : 0;
  block[2 + lane] = uchar(uint(code) & 255u);
  if (lane == 0) *reinterpret_cast<device half*>(block) = half(scale);
}
// The number of the largest magnitude is -8 scales. Scales that round to 0, or of NaN, have zeros beside them.
inline void store_cached(device CacheQ4_0* head, uint i, float x, uint lane) {
  device uchar* block = reinterpret_cast<device uchar*>(head + i / kCacheBlock);
  const bool has_no_finite = simd_any(!is_finite(x));
  const float most = simd_max(x), least = simd_min(x);
  float scale = (most >= -least ? most : least) / -8.0f;
  const float reciprocal = 1.0f / scale;
  const bool has_codes = !has_no_finite && is_finite(reciprocal);
  if (has_no_finite) scale = as_type<float>(0x7fc00000u);
  const uint code = has_codes ? min(uint(x * reciprocal + 8.5f), 15u) : 8u;
  const uint high = simd_shuffle_xor(code, 16);
  if (lane < 16) block[2 + lane] = uchar(code | high << 4);
  if (lane == 0) *reinterpret_cast<device half*>(block) = half(scale);
}
