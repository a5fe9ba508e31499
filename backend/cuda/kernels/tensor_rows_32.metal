// matmul, matmul_add, matmul_group, norm_matmul_group and norm_gated_matmul of up to 16 rows on tensor cores, of
// large weights (blocks of 32): kernels/tensor_rows.h
#include "metal/kernels/formats_32.h"
#include "cuda/kernels/tensor_rows.h"

// Four bits as bit 4 of four bytes.
inline uint fifth_bits_of(uint bits) { return ((bits & 15u) * 0x00204081u & 0x01010101u) << 4; }

template <>
struct Quarter<Q4_0> {
  static constant constexpr uint kBytes = 8 * 18;
  uint low;
  static Quarter load(device const uchar* row, uint unit, uint t) {
    return Quarter{load_word(row + unit * 18 + 2 + 4 * t)};
  }
  uint2 codes(uint unit, uint run) const {
    return bytes_as_bfloat16(low >> 4 * run & 0x0f0f0f0fu, 8);
  }
};

template <>
struct Quarter<Q4_1> {
  static constant constexpr uint kBytes = 8 * 20;
  uint low;
  static Quarter load(device const uchar* row, uint unit, uint t) {
    return Quarter{aligned_word(row + unit * 20 + 4 + 4 * t)};
  }
  uint2 codes(uint unit, uint run) const {
    return bytes_as_bfloat16(low >> 4 * run & 0x0f0f0f0fu, 0);
  }
};

template <>
struct Quarter<Q5_0> {
  static constant constexpr uint kBytes = 8 * 22;
  uint low, high;
  static Quarter load(device const uchar* row, uint unit, uint t) {
    device const uchar* b = row + unit * 22;
    return Quarter{load_word(b + 6 + 4 * t), load_word(b + 2) >> 4 * t};
  }
  uint2 codes(uint unit, uint run) const {
    return bytes_as_bfloat16((low >> 4 * run & 0x0f0f0f0fu) | fifth_bits_of(high >> 16 * run), 16);
  }
};

template <>
struct Quarter<Q5_1> {
  static constant constexpr uint kBytes = 8 * 24;
  uint low, high;
  static Quarter load(device const uchar* row, uint unit, uint t) {
    device const uchar* b = row + unit * 24;
    return Quarter{aligned_word(b + 8 + 4 * t), aligned_word(b + 4) >> 4 * t};
  }
  uint2 codes(uint unit, uint run) const {
    return bytes_as_bfloat16((low >> 4 * run & 0x0f0f0f0fu) | fifth_bits_of(high >> 16 * run), 0);
  }
};

template <>
struct Quarter<Q8_0> {
  static constant constexpr uint kBytes = 8 * 34;
  uint words[2];
  static Quarter load(device const uchar* row, uint unit, uint t) {
    device const uchar* b = row + unit * 34 + 2 + 4 * t;
    return Quarter{{load_word(b), load_word(b + 16)}};
  }
  uint2 codes(uint unit, uint run) const {
    return signed_bytes_as_bfloat16(words[run]);
  }
};

AKUNU_TENSOR_ROWS(q4_0, Q4_0)
AKUNU_TENSOR_ROWS(q4_1, Q4_1)
AKUNU_TENSOR_ROWS(q5_0, Q5_0)
AKUNU_TENSOR_ROWS(q5_1, Q5_1)
AKUNU_TENSOR_ROWS(q8_0, Q8_0)
