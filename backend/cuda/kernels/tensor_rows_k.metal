// matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of up to 16 rows on tensor cores, of
// large weights (K formats): kernels/tensor_rows.h
#include "metal/kernels/formats_k.h"
#include "cuda/kernels/tensor_rows.h"

template <>
struct Quarter<Q2_K> {
  static constant constexpr uint kBytes = 84;
  uint low;
  static Quarter load(device const uchar* row, uint unit, uint t) {
    return Quarter{aligned_word(row + 16 + unit / 4 * 32 + unit % 2 * 16 + 4 * t)};
  }
  uint2 codes(uint unit, uint run) const {
    return bytes_as_bfloat16(low >> (unit / 2 % 2 * 4 + 2 * run) & 0x03030303u, 0);
  }
};

template <>
struct Quarter<Q3_K> {
  static constant constexpr uint kBytes = 110;
  uint low, high;
  static Quarter load(device const uchar* row, uint unit, uint t) {
    return Quarter{load_word(row + 32 + unit / 4 * 32 + unit % 2 * 16 + 4 * t),
                   load_word(row + unit % 2 * 16 + 4 * t)};
  }
  uint2 codes(uint unit, uint run) const {
    const uint low_bits = low >> (unit / 2 % 2 * 4 + 2 * run) & 0x03030303u;
    const uint high_bits = high >> (unit / 2 * 2 + run) & 0x01010101u;
    return bytes_as_bfloat16(low_bits | high_bits << 2, 4);
  }
};

template <>
struct Quarter<Q4_K> {
  static constant constexpr uint kBytes = 144;
  uint low;
  static Quarter load(device const uchar* row, uint unit, uint t) {
    return Quarter{aligned_word(row + 16 + 16 * unit + 4 * t)};
  }
  uint2 codes(uint unit, uint run) const {
    return bytes_as_bfloat16(low >> 4 * run & 0x0f0f0f0fu, 0);
  }
};

template <>
struct Quarter<Q5_K> {
  static constant constexpr uint kBytes = 176;
  uint low, high;
  static Quarter load(device const uchar* row, uint unit, uint t) {
    return Quarter{aligned_word(row + 48 + 16 * unit + 4 * t),
                   aligned_word(row + 16 + 16 * (unit % 2) + 4 * t)};
  }
  uint2 codes(uint unit, uint run) const {
    const uint high_bits = high >> (unit / 2 * 2 + run) & 0x01010101u;
    return bytes_as_bfloat16((low >> 4 * run & 0x0f0f0f0fu) | high_bits << 4, 0);
  }
};

template <>
struct Quarter<Q6_K> {
  static constant constexpr uint kBytes = 210;
  uint low, high;
  static Quarter load(device const uchar* row, uint unit, uint t) {
    const uint h = unit / 4, p = unit % 4;
    return Quarter{load_word(row + 64 * h + 16 * p + 4 * t),
                   load_word(row + 128 + 32 * h + 16 * (p % 2) + 4 * t)};
  }
  uint2 codes(uint unit, uint run) const {
    const uint high_bits = high >> (unit % 4 / 2 * 2 + 4 * run) & 0x03030303u;
    return bytes_as_bfloat16((low >> 4 * run & 0x0f0f0f0fu) | high_bits << 4, 32);
  }
};

AKUNU_TENSOR_ROWS(q2_k, Q2_K)
AKUNU_TENSOR_ROWS(q3_k, Q3_K)
AKUNU_TENSOR_ROWS(q4_k, Q4_K)
AKUNU_TENSOR_ROWS(q5_k, Q5_K)
AKUNU_TENSOR_ROWS(q6_k, Q6_K)
