// Emulates on the CPU the functions of backend/cuda/kernels/warpgroup.cuh and language.cuh that warpgroup_tile.cuh and
// warpgroup_attention.cuh use, for a block as emulated_block.h has it. Written from the PTX ISA (9.7.14 and 9.7.15 of version 8.x:
// mbarrier, cp.async.bulk, wgmma with its register fragments, matrix descriptors and swizzles), not from the kernels.
//
// What it does not show: the order between proxies, except that there is a fence between them; speed; how tensor cores round (here
// the 16 products and the accumulator are added exactly, and rounded once).
#pragma once

#include "emulated_block.h"

namespace gpu {

// --- language.cuh ----------------------------------------------------------------------------------------

#define AKUNU_DEVICE inline

struct uint4 {
  uint x, y, z, w;
  uint4(uint a, uint b, uint c, uint d) : x(a), y(b), z(c), w(d) {}
};
struct alignas(16) float4 {
  float x, y, z, w;
  float4() = default;
  explicit float4(float all) : float4(all, all, all, all) {}
  float4(float a, float b, float c, float d) : x(a), y(b), z(c), w(d) {}
};
template <class To, class From>
To as_type(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}
inline float fabs(float x) { return std::fabs(x); }
inline float fma(float a, float b, float c) { return std::fma(a, b, c); }
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}

struct alignas(8) float2 {
  float x, y;
  float2() = default;
  float2(float a, float b) : x(a), y(b) {}
};

enum class mem_flags : uint { mem_none = 0 };
// Before a thread tells others that wgmma may read what it wrote, a fence has to come.
inline void must_be_ordered() {
  if (this_thread().is_unordered) throw Misuse("copies that are not ordered before products");
}
// All lanes of a warp come; each gets the value of lane `from`.
inline uint meet_warp(uint value, uint from) {
  must_be_ordered();
  Block& block = *the_block;
  Thread& own = this_thread();
  Meeting& meeting = block.warps[block.current / kWarp];
  const uint64_t round = meeting.n_arrived / kWarp;
  if (own.n_met > round) throw Misuse("a lane comes twice");
  meeting.values[round % 2][block.current % kWarp] = value;
  own.n_met = round + 1;
  ++meeting.n_arrived;
  block.wait([&] { return meeting.n_arrived >= (round + 1) * kWarp; });
  return meeting.values[round % 2][from];
}
inline void simdgroup_barrier(mem_flags) { meet_warp(0, 0); }
inline float simd_shuffle_xor(float value, uint mask) {
  return as_type<float>(meet_warp(as_type<uint>(value), the_block->current % kWarp ^ mask));
}
template <class T, class Operation>
T over_warp(T value, const Operation& operation) {
  for (uint step = 16; step > 0; step /= 2)
    value = operation(
        value, as_type<T>(meet_warp(as_type<uint>(value), the_block->current % kWarp ^ step)));
  return value;
}
template <class T>
T simd_max(T value) {
  return over_warp(value, max<T>);
}
template <class T>
T simd_min(T value) {
  return over_warp(value, min<T>);
}
inline bool simd_any(bool value) { return simd_max(uint(value)) != 0; }
// Whether what copies of 16 bytes bring is for wgmma, which reads it asynchronously.
inline bool copies_are_for_wgmma = true;
// A copy of 16 bytes happens as late as it may; what is there until then is NaN.
inline void copy_16_bytes(void* to, const void* from, bool is_there) {
  const uint place = shared_address(to);
  if (place % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0 || place + 16 > Block::kShared)
    throw Misuse("a copy of 16 bytes off its alignment, or past the end");
  std::memset(to, 0xff, 16);
  this_thread().copies.push_back({to, is_there ? from : nullptr, 16, nullptr});
}
inline void end_copies() { this_thread().copy_groups.push_back(this_thread().copies.size()); }
template <uint kPending>
void wait_for_copies() {
  Thread& own = this_thread();
  const size_t n_groups = own.copy_groups.size();
  const size_t n_over = n_groups > kPending ? own.copy_groups[n_groups - kPending - 1] : 0;
  for (size_t i = 0; i < n_over; ++i) {
    Copy& copy = own.copies[i];
    if (copy.to == nullptr) continue;
    if (copy.from == nullptr)
      std::memset(copy.to, 0, 16);
    else
      std::memcpy(copy.to, copy.from, 16);
    copy.to = nullptr;
    own.is_unordered = copies_are_for_wgmma;
  }
}
inline void meet_block() {
  Block& block = *the_block;
  const uint64_t round = block.n_met / block.threads.size();
  ++block.n_met;
  block.wait([&] { return block.n_met >= (round + 1) * block.threads.size(); });
}
inline void threadgroup_barrier(mem_flags) { meet_block(); }

// --- warpgroup.cuh ---------------------------------------------------------------------------------------

inline float value_of_half(uint bits) {
  const uint sign = bits >> 15 & 1, exponent = bits >> 10 & 31, mantissa = bits & 1023;
  float value = exponent == 31  ? (mantissa ? NAN : INFINITY)
                : exponent == 0 ? std::ldexp(float(mantissa), -24)
                                : std::ldexp(float(1024 + mantissa), int(exponent) - 25);
  return sign ? -value : value;
}
inline float half_value(uint bits) {
  static const std::vector<float> values = [] {
    std::vector<float> all(65536);
    for (uint i = 0; i < 65536; ++i) all[i] = value_of_half(i);
    return all;
  }();
  return values[bits];
}
// Of a number that is exact in a double, to nearest even.
inline uint half_bits(double value) {
  const uint sign = std::signbit(value) ? 0x8000u : 0;
  const double size = std::fabs(value);
  if (std::isnan(value)) return 0x7fff;
  if (size >= 65520.0) return sign | 0x7c00;
  if (size < std::ldexp(1.0, -14)) return sign | uint(std::nearbyint(std::ldexp(size, 24)));
  int exponent = 0;
  std::frexp(size, &exponent);  // size in [2^(exponent - 1), 2^exponent)
  const uint mantissa = uint(std::nearbyint(std::ldexp(size, 11 - exponent)));  // 1024 to 2048
  return sign | ((uint(exponent + 13) << 10) + mantissa);
}
template <class Operation>
uint of_halves(const Operation& operation) {
  uint both = 0;
  for (uint shift = 0; shift < 32; shift += 16) both |= half_bits(operation(shift)) << shift;
  return both;
}
inline double half_of(uint both, uint shift) { return half_value(both >> shift & 0xffffu); }
inline uint add_halves(uint a, uint b) {
  return of_halves([&](uint s) { return half_of(a, s) + half_of(b, s); });
}
inline uint multiply_halves(uint a, uint b) {
  return of_halves([&](uint s) { return half_of(a, s) * half_of(b, s); });
}
inline uint fma_halves(uint a, uint b, uint c) {
  return of_halves([&](uint s) { return half_of(a, s) * half_of(b, s) + half_of(c, s); });
}
inline uint pack_halves(float first, float second) {
  return half_bits(first) | half_bits(second) << 16;
}
inline uint pack_halves_down(float first, float second) {
  const auto down = [](float x) {
    const uint bits = half_bits(x);
    return half_value(bits) > x ? bits - 1 : bits;
  };
  return down(first) | down(second) << 16;
}
inline uint bfloat16_bits(float value) {
  const uint bits = as_type<uint>(value);
  if (std::isnan(value)) return 0x7fff;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline uint pack_bfloat16(float first, float second) {
  return bfloat16_bits(first) | bfloat16_bits(second) << 16;
}
inline float low_half(uint both) { return half_value(both & 0xffffu); }
inline float high_half(uint both) { return half_value(both >> 16); }
inline uint put_bits(uint word, uint mask, uint bits) { return (word & mask) | bits; }
inline uint choose_bytes(uint low, uint high, uint which) {
  const ulong all = ulong(high) << 32 | low;
  uint chosen = 0;
  for (uint i = 0; i < 4; ++i) {
    const uint selector = which >> (4 * i) & 15;
    if (selector > 7) throw Misuse("choose_bytes with a sign");
    chosen |= uint(all >> (8 * selector) & 255) << (8 * i);
  }
  return chosen;
}

inline void begin_barrier(ulong* at, uint n_threads) {
  the_block->barriers.push_back(
      {shared_address(at), Barrier{int(n_threads), int(n_threads), 0, 0}});
}
inline void barriers_ready() { meet_block(); }
inline void arrive(ulong* at) {
  must_be_ordered();
  Barrier& own = the_block->barrier(at);
  --own.pending;
  the_block->end_phase(own);
  the_block->wait([] { return true; });
}
inline void arrive_expecting(ulong* at, uint n_bytes) {
  Barrier& own = the_block->barrier(at);
  own.bytes += int(n_bytes);
  arrive(at);
}
inline void wait_for_phase(ulong* at, uint parity) {
  const Barrier& own = the_block->barrier(at);
  if (parity > 1) throw Misuse("a parity that is none");
  the_block->wait([&] { return own.phase != parity; });
}
// Where bulk copies may read, and whether behind inputs_ready only; anywhere where this is empty.
struct Readable {
  const uchar *first, *last;
  bool is_late;
};
inline std::vector<Readable> readable;
inline void copy_bytes(void* to, const void* from, uint n_bytes, ulong* barrier) {
  const uint place = shared_address(to);
  if (place % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0 || n_bytes % 16 != 0)
    throw Misuse("a bulk copy off its alignment");
  if (n_bytes == 0 || place + n_bytes > Block::kShared) throw Misuse("a bulk copy past the end");
  const uchar* const begin = static_cast<const uchar*>(from);
  bool is_readable = readable.empty();
  for (const Readable& own : readable) {
    if (begin < own.first || begin + n_bytes > own.last) continue;
    is_readable = true;
    if (own.is_late && !this_thread().is_ready) throw Misuse("a bulk copy before inputs_ready");
  }
  if (!is_readable) throw Misuse("a bulk copy of what is not there");
  the_block->copies.push_back({to, from, n_bytes, barrier});
}
// At once here: the copies are over when the thread arrives.
inline void arrive_when_copied(ulong* barrier) {
  end_copies();
  wait_for_copies<0>();
  this_thread().is_unordered = false;  // what is copied so is not for wgmma
  arrive(barrier);
}
inline void stores_before_copies() {}
inline void stores_before_products() { this_thread().is_unordered = false; }
// Comes to a named barrier. Returns the round that it waits for.
inline uint64_t come_to(uint barrier, uint n_threads) {
  Block& block = *the_block;
  if (barrier == 0 || barrier > 15 || n_threads % kWarp != 0) throw Misuse("no such barrier");
  NamedBarrier& own = block.named[barrier];
  own.has_come.resize(block.threads.size());
  if (own.has_come[block.current]) throw Misuse("a thread comes twice to a named barrier");
  own.has_come[block.current] = true;
  const uint64_t round = own.round;
  if (++own.n_come == n_threads) {
    own.has_come.assign(block.threads.size(), false);
    own.n_come = 0;
    ++own.round;
  }
  ++block.progress;
  return round;
}
inline void meet_at(uint barrier, uint n_threads) {
  const uint64_t round = come_to(barrier, n_threads);
  the_block->wait([&] { return the_block->named[barrier].round > round; });
}
inline float power_of_two_near(float x) {
  const float power = std::exp2(x);
  return power < std::ldexp(1.0f, -126) ? 0.0f : power;
}
inline float larger_of(float a, float b) { return std::fmax(a, b); }
inline float load_number(const float* at) { return *at; }
inline void store_number(float* at, float value) { *at = value; }
inline float max_of_threadgroup(float value, float*, uint, uint) {
  static float largest;
  meet_block();
  largest = 0.0f;
  meet_block();
  largest = max(largest, value);
  meet_block();
  return largest;
}
template <uint>
void take_registers() {}
template <uint>
void leave_registers() {}

// A matrix descriptor: bits 0-13 address / 16, 16-29 leading and 32-45 stride offset / 16, 49-51 base offset,
// 62-63 swizzle: 1 of 128 bytes, 2 of 64, 3 of 32.
inline ulong descriptor(const void* at, uint stride, uint swizzle, uint leading = 16) {
  return ulong((shared_address(at) & 0x3ffff) >> 4) | ulong(leading / 16) << 16 |
         ulong(stride / 16) << 32 | ulong(swizzle) << 62;
}
inline ulong inputs_at(const void* at) { return descriptor(at, 1024, 1); }
inline ulong middle_inputs_at(const void* at) { return descriptor(at, 512, 2); }
inline ulong values_at(const void* at, uint slab_bytes) {
  return descriptor(at, 1024, 1, slab_bytes);
}
inline ulong further(ulong inputs, uint n_bytes) {
  if (n_bytes % 16 != 0) throw Misuse("a descriptor off its alignment");
  return inputs + n_bytes / 16;
}

// Number (n, k) of an operand in shared memory, 16 numbers of k. K-major: a row's two core matrices of 8 x 16 bytes lie
// 16 bytes apart within the swizzled row, groups of eight rows a stride apart. MN-major: rows are those of k, with 64
// numbers of n; groups of eight rows lie a stride apart, the next 64 numbers of n a leading offset. The swizzle
// exchanges bits of the address: of 128 bytes, bits 4-6 become themselves exclusive or bits 7-9; of 64, bits 4-5 exclusive or bits 7-8; of 32 bytes, bit 4
// exclusive or bit 7.
inline uint shared_operand(ulong inputs, bool is_transposed, uint n, uint k) {
  const uint begin = uint(inputs & 0x3fff) << 4, stride = uint(inputs >> 32 & 0x3fff) << 4;
  const uint leading = uint(inputs >> 16 & 0x3fff) << 4;
  const uint swizzle = uint(inputs >> 62);
  if ((inputs >> 49 & 7) != 0) throw Misuse("a base offset");
  const uint row_bytes = swizzle == 0 ? 0 : 256 >> swizzle;
  if (row_bytes == 0 || stride != 8 * row_bytes || (is_transposed && swizzle != 1))
    throw Misuse("a layout that is not emulated");
  uint at = begin;
  if (is_transposed)
    at += n / 64 * leading + n % 64 * 2 + k / 8 * stride + k % 8 * row_bytes;
  else
    at += n / 8 * stride + n % 8 * row_bytes + 2 * k;
  at ^= (at >> 7 & (8u >> swizzle) * 2 - 1) << 4;
  if (at + 2 > Block::kShared) throw Misuse("a product past the end of shared memory");
  ushort bits;
  std::memcpy(&bits, the_block->base + at, 2);
  return bits;
}
// What was not stored or copied yet has all its bits set.
inline void must_be_there(ulong inputs, bool is_transposed, uint n) {
  for (uint k = 0; k < 16; ++k)
    if (shared_operand(inputs, is_transposed, n, k) == 0xffff)
      throw Misuse("a product of what is not there yet");
}

inline void settle(uint (&)[4]) {}
inline void compute_before_wait(float, uint*) {}
inline void begin_products() { this_thread().is_fenced = true; }
inline void add_product(const Product& product) {
  Thread& own = this_thread();
  if (!own.is_fenced) throw Misuse("a product without a fence before it");
  auto sums = own.sums.begin();
  while (sums != own.sums.end() && sums->at != product.sums) ++sums;
  if (sums == own.sums.end()) {
    own.sums.push_back({product.sums, {product.sums, product.sums + product.count}, 0});
    sums = own.sums.end() - 1;
  }
  ++sums->n_products;
  own.products.push_back(product);
  // It may read what is in shared memory now. A thread looks at one row.
  const uint n = the_block->current % kWarpgroup;
  if (product.own_a == nullptr && n < 64) must_be_there(product.first, false, n);
  if (n < 2 * product.count) must_be_there(product.inputs, product.is_transposed, n);
  std::fill(product.sums, product.sums + product.count, NAN);
}
inline void add_product(float (&sums)[64], const uint (&a)[4], ulong inputs, uint adds,
                        float (*value)(uint) = half_value) {
  add_product({sums, 64, a, {a[0], a[1], a[2], a[3]}, 0, inputs, adds != 0, false, value});
}
template <uint kCount>
  requires(kCount < 64)
void add_product(float (&sums)[kCount], const uint (&a)[4], ulong inputs, uint adds) {
  add_product({sums, kCount, a, {a[0], a[1], a[2], a[3]}, 0, inputs, adds != 0, false, half_value});
}
inline float bfloat16_value(uint bits) { return as_type<float>(bits << 16); }
inline void add_product_bfloat16(float (&sums)[64], const uint (&a)[4], ulong inputs, uint adds) {
  add_product(sums, a, inputs, adds, bfloat16_value);
}
inline void add_scores(float (&sums)[64], ulong queries, ulong keys, uint adds) {
  add_product({sums, 64, nullptr, {}, queries, keys, adds != 0, false, half_value});
}
template <uint kCount>
void add_values(float (&sums)[kCount], const uint (&a)[4], ulong values) {
  add_product({sums, kCount, a, {a[0], a[1], a[2], a[3]}, 0, values, true, true, half_value});
}
inline void end_products() { this_thread().groups.push_back(this_thread().products.size()); }

// What the current thread has of a product's result: rows g and g + 8 of its warp's 16, columns 2 t and 2 t + 1 of each
// eight.
inline void compute(size_t index, std::vector<float>& sums) {
  Block& block = *the_block;
  const Product& product = this_thread().products[index];
  const uint first = block.current / kWarpgroup * kWarpgroup, t = block.current % 4;
  for (uint i = first; i < first + kWarpgroup; ++i) {
    const Product& part = block.threads[i].products[index];
    if (part.inputs != product.inputs || part.first != product.first || part.adds != product.adds ||
        part.value != product.value || part.count != product.count)
      throw Misuse("threads of a warpgroup disagree");
  }
  double rows[2][16];
  if (product.own_a == nullptr) {
    const uint row = block.current % kWarpgroup / kWarp * 16 + block.current % kWarp / 4;
    for (uint part = 0; part < 2; ++part)
      for (uint k = 0; k < 16; ++k)
        rows[part][k] = product.value(shared_operand(product.first, false, row + 8 * part, k));
  } else {
    if (!std::equal(product.a, product.a + 4, product.own_a))
      throw Misuse("registers of a product change under way");
    for (uint other = 0; other < 4; ++other) {  // the lanes that have these rows
      const Product& part = block.threads[block.current - t + other].products[index];
      for (uint i = 0; i < 4; ++i)
        for (uint j = 0; j < 2; ++j)
          rows[i % 2][i / 2 * 8 + 2 * other + j] = product.value(part.a[i] >> (16 * j) & 0xffffu);
    }
  }
  for (uint n = 0; n < 2 * product.count; n += 8)
    for (uint j = 0; j < 2; ++j) {
      double sum[2] = {0.0, 0.0};
      for (uint k = 0; k < 16; ++k) {
        const double x =
            product.value(shared_operand(product.inputs, product.is_transposed, n + 2 * t + j, k));
        sum[0] += rows[0][k] * x;
        sum[1] += rows[1][k] * x;
      }
      for (uint part = 0; part < 2; ++part) {
        float& to = sums[n / 2 + 2 * part + j];
        to = float(sum[part] + (product.adds ? double(to) : 0.0));
      }
    }
}
// All groups but the last kPending are over, and the thread is told of `sums`.
template <uint kPending = 0, uint kCount>
void wait_for_products(float (&sums)[kCount]) {
  Block& block = *the_block;
  Thread& own = this_thread();
  own.is_fenced = false;
  const size_t n_groups = own.groups.size();
  if ((n_groups == 0 ? 0 : own.groups.back()) != own.products.size())
    throw Misuse("a wait for a group that was not ended");
  const size_t n_over = n_groups > kPending ? own.groups[n_groups - kPending - 1] : 0;
  const uint first = block.current / kWarpgroup * kWarpgroup;
  block.wait([&] {
    for (uint i = first; i < first + kWarpgroup; ++i)
      if (block.threads[i].products.size() < n_over) return false;
    return true;
  });
  for (; own.n_seen < n_over; ++own.n_seen) {
    float* const at = own.products[own.n_seen].sums;
    if (at != sums) throw Misuse("sums of which the thread is not told are over");
    for (Sums& one : own.sums)
      if (one.at == at) {
        compute(own.n_seen, one.values);
        --one.n_products;
      }
  }
  for (size_t i = 0; i < own.sums.size(); ++i) {
    if (own.sums[i].at != sums) continue;
    if (own.sums[i].n_products > 0) throw Misuse("a wait for sums that are under way");
    std::copy(own.sums[i].values.begin(), own.sums[i].values.end(), sums);
    own.sums.erase(own.sums.begin() + long(i));
    break;
  }
  meet_warp(0, 0);  // .sync.aligned: the lanes of a warp go on together
}

}  // namespace gpu
