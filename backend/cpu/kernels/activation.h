// Writing an activation in the kind that the matmul after it reads. The rounding is that of
// docs/kernels.md, and every producer (norm, attention, gated activation) goes through here.
//
// 1. What bounds it. Nothing of its own: its producers wait for memory or compute exponentials.
// 2. What is done about it. Values come in vectors from the caller, so that they never go through
//    memory in float32.
//
//   write(row, k, begin, end, value)   elements [begin, end) of a row of k; value(i, n) gives the
//                                      n (1 to kLanes) numbers from i on as a Vector
//   kGroup                             begin is a multiple of it, end too unless end = k
#pragma once

#include "cpu/kernels/formats.h"
#include "cpu/kernels/quantize16.h"
#include "cpu/kernels/quantize8.h"

namespace akunu::cpu {

template <class Input, uint32_t kGroup_ = 1>
struct WrittenFor {
  static constexpr int32_t kKind = Input::kKind;
  static constexpr uint32_t kGroup = kGroup_;
  static uint64_t row_bytes(uint32_t k) { return Input::row_bytes(k); }
};

template <class Isa>
struct F32Activation : WrittenFor<FloatInput<Isa>> {
  template <class Value>
  static void write(std::byte* row, uint32_t, uint32_t begin, uint32_t end, const Value& value) {
    float* out = reinterpret_cast<float*>(row);
    uint32_t i = begin;
    for (; i + Isa::kLanes <= end; i += Isa::kLanes) Isa::store(out + i, value(i, Isa::kLanes));
    if (i < end) Isa::store(out + i, value(i, end - i), end - i);
  }
};

template <class Isa>
struct Bf16Activation : WrittenFor<Bf16Input<Isa>> {
  template <class Value>
  static void write(std::byte* row, uint32_t k, uint32_t begin, uint32_t end, const Value& value) {
    uint16_t* out = reinterpret_cast<uint16_t*>(row);
    uint32_t i = begin;
    for (; i + Isa::kLanes <= end; i += Isa::kLanes)
      Isa::store_bfloat(out + i, value(i, Isa::kLanes));
    if (i < end) Isa::store_bfloat(out + i, value(i, end - i), end - i);
    if (end == k) __builtin_memset(out + k, 0, Bf16Input<Isa>::row_bytes(k) - uint64_t{2} * k);
  }
};

template <class Isa>
struct Bf16PairActivation : WrittenFor<Bf16PairInput<Isa>> {
  template <class Value>
  static void write(std::byte* row, uint32_t k, uint32_t begin, uint32_t end, const Value& value) {
    for (uint32_t i = begin, n = 0; i < end; i += n) {
      const uint32_t in_line = kLine - i % kLine, left = end - i < in_line ? end - i : in_line;
      n = left < Isa::kLanes ? left : Isa::kLanes;
      uint16_t* const nearest = at(row, i);
      const typename Isa::Vector x = value(i, n);
      Isa::store_bfloat(nearest, x, n);
      const auto rest = Isa::subtract(x, Isa::load_bfloat(nearest, n));
      // Of what is not finite, or rounds to infinity, the first one says it all.
      const auto infinity = Isa::broadcast(__builtin_inff());
      Isa::store_bfloat(nearest + kLine,
                        Isa::select_less(Isa::absolute(rest), infinity, rest, Isa::zero()), n);
    }
    if (end < k) return;
    if (k % kLine != 0)
      for (uint32_t line = 0; line < 2; ++line)
        __builtin_memset(at(row, k) + line * kLine, 0, uint64_t{2} * (kLine - k % kLine));
    __builtin_memset(row + Bf16PairInput<Isa>::row_bytes(k) - kCacheLine, 0, kCacheLine);
  }

 private:
  static constexpr uint32_t kLine = 32;  // numbers
  static uint16_t* at(std::byte* row, uint32_t i) {
    return reinterpret_cast<uint16_t*>(row) + i / kLine * (2 * kLine) + i % kLine;
  }
};

// Numbers in bf16, or sums of two of them.
template <class Isa, uint32_t kNumbers>
struct BfloatActivation : Bf16Activation<Isa> {};
template <class Isa>
struct BfloatActivation<Isa, 2> : Bf16PairActivation<Isa> {};

template <class Isa>
struct Q8Activation : WrittenFor<QuantInput<Isa>, 32> {
  using WrittenFor<QuantInput<Isa>, 32>::kGroup;

  template <class Value>
  static void write(std::byte* row, uint32_t k, uint32_t begin, uint32_t end, const Value& value) {
    int8_t* q = reinterpret_cast<int8_t*>(row);
    float* scales = reinterpret_cast<float*>(row + k);
    int16_t* sums = reinterpret_cast<int16_t*>(row + k + uint64_t{4} * (k / kGroup));
    for (uint32_t i = begin; i < end; i += kGroup) {
      typename Isa::Vector values[4];
      for (uint32_t j = 0; j < 4; ++j) values[j] = value(i + 8 * j, Isa::kLanes);
      scales[i / kGroup] = quantize8<Isa>(values, q + i, sums + i / 16);
    }
  }
};

template <class Isa>
struct Q16Activation : WrittenFor<Quant16Input<Isa>, 32> {
  using WrittenFor<Quant16Input<Isa>, 32>::kGroup;

  template <class Value>
  static void write(std::byte* row, uint32_t k, uint32_t begin, uint32_t end, const Value& value) {
    int16_t* const q = reinterpret_cast<int16_t*>(row);
    float* const scales = reinterpret_cast<float*>(q + Quant16Input<Isa>::whole(k));
    for (uint32_t i = begin; i < end; i += kGroup) {
      typename Isa::Vector values[4];
      for (uint32_t j = 0; j < 4; ++j) {
        const uint32_t from = i + j * Isa::kLanes, left = from < end ? end - from : 0;
        values[j] = left == 0 ? Isa::zero() : value(from, left < Isa::kLanes ? left : Isa::kLanes);
      }
      quantize16<Isa>(values, q + i, scales + i / kGroup);
    }
  }
};

// An activation kind as data, for producers whose results are in memory before they are written: the rest of
// their code is then compiled once for all kinds.
struct ActivationWriter {
  uint32_t group;
  uint64_t (*row_bytes)(uint32_t k);
  void (*write)(std::byte* row, uint32_t k, uint32_t begin, uint32_t end, const float* values);
};
template <class Isa, class Activation>
struct WriteStored {
  static void write(std::byte* row, uint32_t k, uint32_t begin, uint32_t end, const float* values) {
    Activation::write(row, k, begin, end,
                      [&](uint32_t i, uint32_t n) { return Isa::load(values + (i - begin), n); });
  }
  static constexpr ActivationWriter kWriter = {Activation::kGroup, Activation::row_bytes, write};
};

}  // namespace akunu::cpu
