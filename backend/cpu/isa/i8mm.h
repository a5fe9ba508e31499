// The primitives of the level `i8mm` (the products of int8 matrices of ARMv8.6, above neon): one
// instruction multiplies eight codes of two rows of the input with eight weights of two columns. More
// than two rows are multiplied so, in pairs; everything else is neon's.
//
// 1. What bounds it. The products: a group of two rows takes 20 instructions.
// 2. What is done about it. What meets a register of two rows and two columns (scales, minima) is
//    arranged like it: the panel's when it is packed, the input's once for a slice.
// 3. What would cost more. Bringing the sums apart in the loop (3 instructions more for a group),
//    joining rows there (4 more), tiles of 16 rows. One row gains nothing by pairs, two would pay
//    for the arrangement what they gain. docs/decisions/weights-and-formats-on-the-cpu.md.
#pragma once

#include "cpu/isa/neon.h"
#include "cpu/kernels/row_tile.h"

namespace akunu::cpu {

// The row tile for two rows at once; kernels/row_tile.h says what its members mean.
template <class Level>
struct RowPairTile {
  using Columns = NeonColumns<Level>;
  using Direct = DirectRowTile<Columns>;
  // As the instruction leaves its sums: row 0 with columns 0 and 1, row 1 with columns 0 and 1; the same
  // with columns 2 and 3.
  struct Floats {
    float32x4_t low, high;
  };
  // Such sums, or codes: eight of column 0, eight of column 1; the same of columns 2 and 3.
  struct Ints {
    int32x4_t low, high;
  };

  using Registers = RowPairTile;
  static constexpr uint32_t kRows = 2, kPanels = 1;
  // 32 registers: 12 sums, 8 codes, 2 or 4 scales, two rows and what comes of them. With 16 rows some
  // go through memory, for 1 % fewer instructions.
  static constexpr uint32_t kTileRows = 12;
  static constexpr uint32_t interleaved_rows(uint32_t) { return 1; }
  template <class>
  static constexpr uint32_t kCodes = 4;
  template <class>
  static constexpr ScaleForm kScaleForm = ScaleForm::floats;
  // `pack_group` subtracts the offset of codes: the instruction takes signed codes.
  template <class Format, uint32_t, uint32_t>
  static Ints start(const auto&) {
    return integers(0);
  }

  static Floats zero() { return {vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)}; }
  static Floats multiply(Floats a, Floats b) {
    return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
  }
  static Floats multiply_add(Floats a, Floats b, Floats c) {
    return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
  }
  static Floats to_float(Ints v) { return {vcvtq_f32_s32(v.low), vcvtq_f32_s32(v.high)}; }
  static Ints integers(uint32_t x) { return {Columns::integers(x), Columns::integers(x)}; }

  template <uint32_t kLargest, uint32_t kRegisters>
  static void dot(Ints (&sums)[1], const Ints* codes, const int8_t* const (&x)[1]) {
    static_assert(kLargest <= 127);
    dot_signed<kRegisters>(sums, codes, x);
  }
  template <uint32_t kRegisters>
  static void dot_signed(Ints (&sums)[1], const Ints* codes, const int8_t* const (&x)[1]) {
    int8x16_t rows[kRegisters];  // loaded two at a time
    for (uint32_t i = 0; i < kRegisters; ++i) rows[i] = vld1q_s8(x[0] + 16 * i);
    for (uint32_t i = 0; i < kRegisters; ++i) {
      sums[0].low = vmmlaq_s32(sums[0].low, rows[i], vreinterpretq_s8_s32(codes[i].low));
      sums[0].high = vmmlaq_s32(sums[0].high, rows[i], vreinterpretq_s8_s32(codes[i].high));
    }
  }

  template <class Format>
  static void pack_group(const auto& group, uint32_t, auto& out) {
    const int32x4_t offset = Columns::integers(Format::kOffset * 0x01010101u);
    const auto code = [&](uint32_t i) {
      if constexpr (Format::kOffset == 0) return group.codes[i];
      return vreinterpretq_s32_s8(
          vsubq_s8(vreinterpretq_s8_s32(group.codes[i]), vreinterpretq_s8_s32(offset)));
    };
    for (uint32_t i = 0; i < 4; ++i) {
      const int32x4_t even = code(2 * i), odd = code(2 * i + 1);
      out.codes[i] = {vzip1q_s32(even, odd), vzip2q_s32(even, odd)};
    }
    for (uint32_t i = 0; i < Format::kDots; ++i) out.scale[i] = for_both_rows(group.scale[i]);
    if constexpr (requires { group.minimum; }) out.minimum = for_both_rows(group.minimum);
  }
  template <class Format>
  static void pack_minima(const auto& of_group, uint32_t, uint32_t index, auto& out) {
    for (uint32_t i = 0; i < Format::kDots; ++i)
      out.minima[Format::kDots * index + i] = for_both_rows(of_group.minima[i]);
  }
  static void pack_factor(const auto& of_group, uint32_t, auto& out) {
    out.factor = for_both_rows(of_group.factor);
  }

  // A packed group of two rows: 64 codes, in turns eight of the first row and eight of the second; then
  // four scales (first row, first, second, second); then the sums of codes for minima, in that order.
  template <class Format>
  static constexpr uint64_t kGroupBytes = 80 + 16 * Direct::template kSums<Format>;
  template <class Format>
  static auto group(const auto& rows, uint32_t, uint32_t g) {
    const std::byte* const p = rows.codes + g * kGroupBytes<Format>;
    return Group{reinterpret_cast<const int8_t*>(p), reinterpret_cast<const float*>(p + 64),
                 reinterpret_cast<const float*>(p + 80)};
  }
  template <class Format>
  static void pack_rows(const auto (&groups)[kRows], std::byte* out) {
    const auto& [first, second] = groups;
    for (uint32_t i = 0; i < 2; ++i) {
      const int8x16_t a = vld1q_s8(first.codes + 16 * i), b = vld1q_s8(second.codes + 16 * i);
      int8_t* const codes = reinterpret_cast<int8_t*>(out) + 32 * i;
      vst1q_s8(codes, vcombine_s8(vget_low_s8(a), vget_low_s8(b)));
      vst1q_s8(codes + 16, vcombine_s8(vget_high_s8(a), vget_high_s8(b)));
    }
    store_twice(out + 64, *first.scale, *second.scale);
    for (uint32_t i = 0; i < Direct::template kSums<Format>; ++i)
      store_twice(out + 80 + 16 * i,
                  Direct::template sum_of<Format>(first.scale, first.half_sums, i),
                  Direct::template sum_of<Format>(second.scale, second.half_sums, i));
  }

  static Floats row_scales(const float* scales) {
    const float32x4_t both = vld1q_f32(scales);
    return {both, both};
  }
  template <class>
  static Floats sum(const auto& group, uint32_t i) {
    return row_scales(group.sums + 4 * i);
  }

  // A copy: a loop over the rows of `sums` themselves would keep those in memory as well.
  template <uint32_t R>
  static auto rows(const Floats (&sums)[R]) {
    Rows<R> rows;
#pragma GCC unroll 16
    for (uint32_t r = 0; r < R; ++r) {
      const float64x2_t low = vreinterpretq_f64_f32(sums[r].low);
      const float64x2_t high = vreinterpretq_f64_f32(sums[r].high);
      rows.sums[2 * r] = vreinterpretq_f32_f64(vzip1q_f64(low, high));
      rows.sums[2 * r + 1] = vreinterpretq_f32_f64(vzip2q_f64(low, high));
    }
    return rows;
  }
  static float32x4_t of_panel(float32x4_t sums, uint32_t) { return sums; }

 private:
  template <uint32_t R>
  struct Rows {
    float32x4_t sums[2 * R];
    float32x4_t operator[](uint32_t r) const { return sums[r]; }
  };
  struct Group {
    const int8_t* codes;
    const float *scale, *sums;
  };

  // Of four columns, for both rows: columns 0 and 1 twice, 2 and 3 twice.
  static Floats for_both_rows(float32x4_t v) {
    const float64x2_t pairs = vreinterpretq_f64_f32(v);
    return {vreinterpretq_f32_f64(vdupq_laneq_f64(pairs, 0)),
            vreinterpretq_f32_f64(vdupq_laneq_f64(pairs, 1))};
  }

  static void store_twice(std::byte* p, float first, float second) {
    const float four[4] = {first, first, second, second};
    __builtin_memcpy(p, four, sizeof(four));
  }
};

struct I8mm : NeonPrimitives<I8mm> {
  using ManyRowTile = RowPairTile<I8mm>;
};

}  // namespace akunu::cpu
