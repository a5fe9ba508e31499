// The primitives of the level `avxvnni` (AVX2, FMA, F16C and AVX-VNNI): avx2's, with two instructions that
// multiply and add four codes, or two int16, in every lane.
//
// 1. What bounds it. Many rows: vpdpbusd, whose five cycles of latency need two panels' sums in
//    flight, and 16 registers (VnniPolicy: tiles of four rows). One row: as avx2_columns.h.
// 2. Why it is a level. The same sums as avx2's with one instruction for three:
//    docs/decisions/weights-and-formats-on-the-cpu.md. Products are a parameter (VexProducts), so that avxvnni_emulated.h has
//    them in the other encoding.
// 3. What was tried and did not pay. Tiles of three rows (0.92) and of six (0.97 to 1.01), six and
//    eight rows of the few-row kernel, and interleaved rows in it. See docs/decisions/weights-and-formats-on-the-cpu.md.
#pragma once

#include "cpu/isa/avx2.h"

namespace akunu::cpu {

struct VnniPolicy : X86Policy {
  static constexpr uint32_t kTileRows = 4, kMultiPanelRows = 4, kInt16Rows = 4;
  static constexpr uint32_t kProbeRows =
      6;  // over two panels: two products a cycle with a latency of five cycles
  static constexpr bool kWholeBytes = true;
};

// Products: see VexProducts.
template <class Level, class Products>
struct VnniColumns : EightColumns<Level> {
  using Base = EightColumns<Level>;
  using typename Base::Ints;

  using Policy = VnniPolicy;

  template <uint32_t, uint32_t kRegisters>
  static void dot(Ints (&sums)[1], const Ints* codes, const auto (&x)[1]) {
    dot_in_chains<VnniColumns, kRegisters>(sums[0], codes, x[0], Products::add_bytes);
  }
  template <uint32_t kUpperFactor, uint32_t kRegisters>
  static void dot_upper_scaled(Ints& sum, const Ints* codes, const auto& x) {
    dot_in_chains<VnniColumns, kRegisters, kUpperFactor>(sum, codes, x, Products::add_bytes);
  }
  template <uint32_t, uint32_t kRegisters, class Registers, uint32_t N>
  static void dot(Registers (&sums)[N], const Registers* codes, const auto (&x)[N]) {
    dot_interleaved<VnniColumns, kRegisters>(sums, codes, x, Products::add_bytes);
  }
  // The instruction wants the codes unsigned: 128 more than they are.
  static Ints signed_codes(Ints codes) {
    return _mm256_xor_si256(codes, _mm256_set1_epi8(static_cast<char>(0x80)));
  }
  template <uint32_t kRegisters>
  static void dot_signed(auto& sums, const auto* codes, const auto& x) {
    dot<255, kRegisters>(sums, codes, x);
  }

  static Ints add_pairs(Ints sum, Ints a, Ints b) { return Products::add_pairs(sum, a, b); }
};

template <class Level, class Products>
struct VnniPrimitives : Avx2Primitives<Level> {
  using Columns = VnniColumns<Level, Products>;
  using Wide = Level;
};

// sum + the products of four bytes, those of `codes` unsigned, or of two int16, in every lane. In
// assembly: AVX-512 has both instructions too, in another encoding, which assemblers take unasked.
// It also keeps sums in the order of dot_interleaved.
template <class Level>
struct VexProducts {
  static __m256i add_bytes(__m256i sum, __m256i codes, __m256i four) {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(codes), "x"(four));
    return sum;
  }
  static __m256i add_pairs(__m256i sum, __m256i a, __m256i b) {
    asm("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
    return sum;
  }
};

struct AvxVnni : VnniPrimitives<AvxVnni, VexProducts<AvxVnni>> {};

}  // namespace akunu::cpu
