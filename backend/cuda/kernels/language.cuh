// The words of MSL, in which the kernels that all GPUs share are written, as CUDA has them: a SIMD-group is a
// warp, a threadgroup a block, threadgroup memory shared memory. translate.py has taken address spaces
// and attributes out of those and made every function a __device__ function. And PTX instructions that kernels of NVIDIA's
// GPUs use.
//
// Nothing is contracted (-fmad=false), divisions and square roots are rounded correctly and small
// numbers stay what they are: arithmetic gives the bits that it gives on other GPUs.
#pragma once

#include <stdint.h>

#define AKUNU_DEVICE __device__ __forceinline__

namespace gpu {

using uchar = uint8_t;
using ushort = uint16_t;
using uint = uint32_t;
using ulong = uint64_t;

// --- Numbers ---------------------------------------------------------------------------------------

template <class To, class From>
AKUNU_DEVICE To as_type(From from) {
  static_assert(sizeof(To) == sizeof(From), "as_type keeps the size");
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

struct half {
  uint16_t bits;
  half() = default;
  AKUNU_DEVICE half(float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); }
  AKUNU_DEVICE operator float() const {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
};

AKUNU_DEVICE float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
AKUNU_DEVICE uint popcount(uint x) { return uint(__popc(x)); }
AKUNU_DEVICE float sqrt(float x) { return __fsqrt_rn(x); }
AKUNU_DEVICE float fabs(float x) { return ::fabsf(x); }
AKUNU_DEVICE float abs(float x) { return ::fabsf(x); }
AKUNU_DEVICE bool isnan(float x) { return x != x; }
AKUNU_DEVICE uint mulhi(uint a, uint b) { return __umulhi(a, b); }
// One number that is not a number gives the other.
template <class T>
AKUNU_DEVICE T min(T x, T y) {
  return (y < x || x != x) ? y : x;
}
template <class T>
AKUNU_DEVICE T max(T x, T y) {
  return (x < y || x != x) ? y : x;
}

// --- Vectors ---------------------------------------------------------------------------------------

template <class T, int N>
struct vec;

template <class T>
struct alignas(2 * sizeof(T)) vec<T, 2> {
  T x, y;
  vec() = default;
  AKUNU_DEVICE explicit vec(T all) : x(all), y(all) {}
  AKUNU_DEVICE vec(T a, T b) : x(a), y(b) {}
  template <class U>
  AKUNU_DEVICE explicit vec(vec<U, 2> v) : x(T(v.x)), y(T(v.y)) {}
  AKUNU_DEVICE T operator[](uint i) const { return i == 0 ? x : y; }
};
template <class T>
struct alignas(4 * sizeof(T)) vec<T, 3> {
  T x, y, z;
  vec() = default;
  AKUNU_DEVICE vec(T a, T b, T c) : x(a), y(b), z(c) {}
};
template <class T>
struct alignas(4 * sizeof(T)) vec<T, 4> {
  T x, y, z, w;
  vec() = default;
  AKUNU_DEVICE explicit vec(T all) : x(all), y(all), z(all), w(all) {}
  AKUNU_DEVICE vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
  template <class U>
  AKUNU_DEVICE explicit vec(vec<U, 4> v) : x(T(v.x)), y(T(v.y)), z(T(v.z)), w(T(v.w)) {}
  AKUNU_DEVICE T operator[](uint i) const { return i == 0 ? x : i == 1 ? y : i == 2 ? z : w; }
  AKUNU_DEVICE T& operator[](uint i) { return i == 0 ? x : i == 1 ? y : i == 2 ? z : w; }
};

using float2 = vec<float, 2>;
using float4 = vec<float, 4>;
using half2 = vec<half, 2>;
using half4 = vec<half, 4>;
using ushort4 = vec<ushort, 4>;
using uint2 = vec<uint, 2>;
using uint3 = vec<uint, 3>;
using uint4 = vec<uint, 4>;
using ulong2 = vec<ulong, 2>;

// A type that is not deduced: a number beside a vector becomes its element.
template <class T>
struct same_as {
  using type = T;
};
template <class T>
using element = typename same_as<T>::type;

#define AKUNU_VECTOR_OPERATOR(op)                                                 \
  template <class T>                                                              \
  AKUNU_DEVICE vec<T, 2> operator op(vec<T, 2> a, vec<T, 2> b) {                  \
    return vec<T, 2>(T(a.x op b.x), T(a.y op b.y));                               \
  }                                                                               \
  template <class T>                                                              \
  AKUNU_DEVICE vec<T, 4> operator op(vec<T, 4> a, vec<T, 4> b) {                  \
    return vec<T, 4>(T(a.x op b.x), T(a.y op b.y), T(a.z op b.z), T(a.w op b.w)); \
  }                                                                               \
  template <class T>                                                              \
  AKUNU_DEVICE vec<T, 4> operator op(vec<T, 4> a, element<T> b) {                 \
    return a op vec<T, 4>(b);                                                     \
  }
AKUNU_VECTOR_OPERATOR(+)
AKUNU_VECTOR_OPERATOR(-)
AKUNU_VECTOR_OPERATOR(*)
AKUNU_VECTOR_OPERATOR(/)
AKUNU_VECTOR_OPERATOR(&)
AKUNU_VECTOR_OPERATOR(|)
AKUNU_VECTOR_OPERATOR(^)
AKUNU_VECTOR_OPERATOR(<<)
AKUNU_VECTOR_OPERATOR(>>)
#undef AKUNU_VECTOR_OPERATOR
template <class T>
AKUNU_DEVICE vec<T, 2> operator-(vec<T, 2> a) {
  return vec<T, 2>(-a.x, -a.y);
}
AKUNU_DEVICE float4 fma(float4 a, float4 b, float4 c) {
  return float4(fma(a.x, b.x, c.x), fma(a.y, b.y, c.y), fma(a.z, b.z, c.z), fma(a.w, b.w, c.w));
}

// The bytes of a word, each less `offset`: one instruction puts a byte where 2^23 + byte has it.
AKUNU_DEVICE float4 bytes_less(uint word, float offset) {
  const float less = 8388608.0f + offset;
  return float4(as_type<float>(__byte_perm(word, 0x4b000000u, 0x7440)) - less,
                as_type<float>(__byte_perm(word, 0x4b000000u, 0x7441)) - less,
                as_type<float>(__byte_perm(word, 0x4b000000u, 0x7442)) - less,
                as_type<float>(__byte_perm(word, 0x4b000000u, 0x7443)) - less);
}

// --- SIMD-groups and threadgroups ------------------------------------------------------------------

enum class mem_flags : uint { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
AKUNU_DEVICE mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(uint(a) | uint(b)); }
// Both also order the device's memory among the threads that meet.
AKUNU_DEVICE void threadgroup_barrier(mem_flags) { __syncthreads(); }
AKUNU_DEVICE void simdgroup_barrier(mem_flags) { __syncwarp(); }

constexpr uint32_t kAllLanes = 0xffffffffu;

template <class T>
AKUNU_DEVICE T simd_shuffle_xor(T value, uint mask) {
  return __shfl_xor_sync(kAllLanes, value, int(mask));
}
template <class T>
AKUNU_DEVICE T simd_shuffle(T value, uint lane) {
  return __shfl_sync(kAllLanes, value, int(lane));
}
template <class T>
AKUNU_DEVICE T simd_broadcast_first(T value) {
  return __shfl_sync(kAllLanes, value, 0);
}
// The lanes meet pairwise, so that all of them have the same bits: a + b is b + a.
template <class T>
AKUNU_DEVICE T simd_sum(T value) {
#pragma unroll
  for (uint step = 16; step > 0; step /= 2) value += simd_shuffle_xor(value, step);
  return value;
}
template <class T>
AKUNU_DEVICE T simd_max(T value) {
#pragma unroll
  for (uint step = 16; step > 0; step /= 2) value = max(value, simd_shuffle_xor(value, step));
  return value;
}
AKUNU_DEVICE uint simd_max(uint value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(kAllLanes, value);
#else
  return value;
#endif
}
template <class T>
AKUNU_DEVICE T simd_min(T value) {
#pragma unroll
  for (uint step = 16; step > 0; step /= 2) value = min(value, simd_shuffle_xor(value, step));
  return value;
}
template <class T>
AKUNU_DEVICE T simd_prefix_exclusive_sum(T value) {
  const uint lane = threadIdx.x % 32;
  T sum = value;
#pragma unroll
  for (uint step = 1; step < 32; step *= 2) {
    const T before = __shfl_up_sync(kAllLanes, sum, step);
    if (lane >= step) sum += before;
  }
  return sum - value;
}
AKUNU_DEVICE bool simd_any(bool value) { return __any_sync(kAllLanes, value) != 0; }

// --- Launches ----------------------------------------------------------------------------------------

// A launch begins before the one before it has ended, so that its first instructions, and bytes of weights, are there in
// time (programmatic dependent launch). What that one wrote it reads behind `inputs_ready`, which lets the next one begin. So
// what is older may be read at once: it has ended. Each launch has a block that comes here; else it could end before the one
// before it, and the next one's wait would not be for that.
//
// (Letting the next one begin at once made tokens 5 to 12 % slower: more weights were under way than the launch in turn had
// use for.)
AKUNU_DEVICE void inputs_ready() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// --- Loads -------------------------------------------------------------------------------------------

// 16 bytes from an address that is a multiple of two, in loads of whole words: five where they lie
// across words, whose first and last hold two bytes of neighbours. Buffers begin at and are as long as multiples of 16.
AKUNU_DEVICE uint4 load_words(const uchar* p) {
  const uint odd = uint(reinterpret_cast<ulong>(p)) & 2u;
  const uint* words = reinterpret_cast<const uint*>(p - odd);
  const uint last = odd != 0 ? words[4] : 0u;
  const uint shift = 8 * odd;
  return uint4(__funnelshift_r(words[0], words[1], shift),
               __funnelshift_r(words[1], words[2], shift),
               __funnelshift_r(words[2], words[3], shift), __funnelshift_r(words[3], last, shift));
}

// Bytes that are wanted soon go to the L2 cache, those of whole pieces of 16 that they touch.
AKUNU_DEVICE void fetch_to_cache(const uchar* from, ulong n_bytes) {
#if __CUDA_ARCH__ >= 900
  const ulong before = reinterpret_cast<ulong>(from) % 16;
  const uint n_pieces = uint((before + n_bytes + 15) / 16);
  if (n_pieces > 0)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from - before),
                 "r"(16 * n_pieces)
                 : "memory");
#endif
}

// --- Atomics ---------------------------------------------------------------------------------------

enum memory_order { memory_order_relaxed };
struct atomic_uint {
  uint value;
};
AKUNU_DEVICE uint atomic_load_explicit(const atomic_uint* at, memory_order) {
  return *static_cast<const volatile uint*>(&at->value);
}
AKUNU_DEVICE void atomic_store_explicit(atomic_uint* at, uint value, memory_order) {
  *static_cast<volatile uint*>(&at->value) = value;
}
AKUNU_DEVICE uint atomic_fetch_add_explicit(atomic_uint* at, uint operand, memory_order) {
  return atomicAdd(&at->value, operand);
}
AKUNU_DEVICE uint atomic_fetch_max_explicit(atomic_uint* at, uint operand, memory_order) {
  return atomicMax(&at->value, operand);
}

// Blocks that have arrived at each place of a launch; 0 between launches.
constexpr uint kPlaces = 4096;
static __device__ uint arrivals[kPlaces];

// Of the `n` blocks of a launch that come to a place, the last one gets true, and reads what the others
// wrote before they came. All threads of a block come.
AKUNU_DEVICE bool last_to_arrive(uint place, uint n) {
  static __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(&arrivals[place], 1u) == n - 1;
    if (is_last) arrivals[place] = 0;
  }
  __syncthreads();
  if (is_last) __threadfence();
  return is_last;
}

// The same of the first `n_threads` threads of each block, which have a barrier of their own; `is_last` is in shared memory.
AKUNU_DEVICE bool last_to_meet(uint place, uint n, uint barrier, uint n_threads, uint thread_index,
                               uint* is_last) {
  __threadfence();
  asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "r"(n_threads) : "memory");
  if (thread_index == 0) {
    *is_last = atomicAdd(&arrivals[place], 1u) == n - 1 ? 1 : 0;
    if (*is_last != 0) arrivals[place] = 0;
  }
  asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "r"(n_threads) : "memory");
  if (*is_last != 0) __threadfence();
  return *is_last != 0;
}

// --- Other GPUs --------------------------------------------------------------------------------------

// Words of 16 bytes that another GPU reads while this kernel runs, or writes. Each half of a word arrives whole.
AKUNU_DEVICE void put_word(uint4* at, uint4 word) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(word.x),
               "r"(word.y), "r"(word.z), "r"(word.w)
               : "memory");
}
AKUNU_DEVICE uint4 look_at_word(const uint4* at) {
  uint4 word;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
               : "l"(at)
               : "memory");
  return word;
}
AKUNU_DEVICE ulong nanoseconds() {
  ulong time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}
// Aborts the kernel with an error. The CUDA context is lost: nothing runs in it any more.
AKUNU_DEVICE void give_up() { asm volatile("trap;"); }

// --- Tensor cores ------------------------------------------------------------------------------------

// Two numbers, each rounded to bfloat16; the first in the lower half.
AKUNU_DEVICE uint pack_bfloat16(float first, float second) {
  uint both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return both;
}
// Four matrices of 8 x 8 numbers of two bytes; lane l says where row l % 8 of matrix l / 8 lies in
// shared memory, at a multiple of 16 bytes. A lane gets two numbers of row l / 4 of each.
AKUNU_DEVICE void load_matrices(uint (&matrices)[4], const void* row) {
  const uint address = uint(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(address)
               : "memory");
}
// The same of matrices that are to be read by columns.
AKUNU_DEVICE void load_matrices_transposed(uint (&matrices)[4], const void* row) {
  const uint address = uint(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(address)
               : "memory");
}
// sums [16 x 8] += a [16 x 16] b [16 x 8], of bfloat16 numbers: their products are exact.
AKUNU_DEVICE void multiply_bfloat16(float (&sums)[4], const uint (&a)[4], uint b_upper,
                                    uint b_lower) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_upper), "r"(b_lower));
}

// The same of halves.
AKUNU_DEVICE void multiply_float16(float (&sums)[4], const uint (&a)[4], uint b_upper,
                                   uint b_lower) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_upper), "r"(b_lower));
}

// --- Copies to shared memory beside other work -------------------------------------------------------

// 16 bytes at multiples of 16; zeros where they are not there.
AKUNU_DEVICE void copy_16_bytes(void* to, const void* from, bool is_there) {
  const uint address = uint(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
               "r"(is_there ? 16u : 0u)
               : "memory");
}
// The same of four bytes.
AKUNU_DEVICE void copy_4_bytes(void* to, const void* from, bool is_there) {
  const uint address = uint(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from),
               "r"(is_there ? 4u : 0u)
               : "memory");
}
// What a thread has copied since the last call is one group.
AKUNU_DEVICE void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until all but the last kPending groups of this thread are there.
template <uint kPending>
AKUNU_DEVICE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
// Arrives at an mbarrier, which counts this thread, once all copies that it has begun are there.
AKUNU_DEVICE void arrive_when_copied(ulong* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(
                   uint(__cvta_generic_to_shared(barrier)))
               : "memory");
}
// The first `n_threads` of a block, whole warps, meet.
AKUNU_DEVICE void meet(uint n_threads) {
  asm volatile("barrier.sync 1, %0;" ::"r"(n_threads) : "memory");
}
// Whether it is true for one of the block's threads; all of them meet here.
AKUNU_DEVICE bool any_of_threadgroup(bool value) { return __syncthreads_or(value) != 0; }

// --- Matrices of a SIMD-group ----------------------------------------------------------------------

// Lane l holds elements (l / 4, 2 (l % 4)) and (l / 4, 2 (l % 4) + 1).
struct simdgroup_float8x8 {
  float first, second;
};
template <class T, int Rows, int Columns>
AKUNU_DEVICE simdgroup_float8x8 make_filled_simdgroup_matrix(T value) {
  return simdgroup_float8x8{value, value};
}
AKUNU_DEVICE void simdgroup_load(simdgroup_float8x8& matrix, const float* from, ulong stride,
                                 ulong2 = ulong2(0), bool transpose = false) {
  const uint lane = threadIdx.x % 32, row = lane / 4, column = lane % 4 * 2;
  matrix.first = transpose ? from[column * stride + row] : from[row * stride + column];
  matrix.second = transpose ? from[(column + 1) * stride + row] : from[row * stride + column + 1];
}
AKUNU_DEVICE void simdgroup_store(const simdgroup_float8x8& matrix, float* to, ulong stride) {
  const uint lane = threadIdx.x % 32, row = lane / 4, column = lane % 4 * 2;
  to[row * stride + column] = matrix.first;
  to[row * stride + column + 1] = matrix.second;
}
// A float32 matrix as the sum of three of bfloat16, in which it loses nothing.
struct MatrixParts {
  uint part[3];
};
AKUNU_DEVICE MatrixParts parts_of(const simdgroup_float8x8& matrix) {
  MatrixParts parts;
  float first = matrix.first, second = matrix.second;
#pragma unroll
  for (uint i = 0; i < 3; ++i) {
    parts.part[i] = pack_bfloat16(first, second);
    first -= as_type<float>(parts.part[i] << 16);
    second -= as_type<float>(parts.part[i] & 0xffff0000u);
  }
  return parts;
}
AKUNU_DEVICE uint transposed(uint matrix) {
  uint result;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(matrix));
  return result;
}
// Six products of parts, the smallest first; those that float32 cannot hold beside the largest are
// left out. The lower eight rows of the tensor cores' tile are empty.
AKUNU_DEVICE void simdgroup_multiply_accumulate(simdgroup_float8x8& product,
                                                const simdgroup_float8x8& a,
                                                const simdgroup_float8x8& b,
                                                const simdgroup_float8x8& addend) {
  const MatrixParts x = parts_of(a), y = parts_of(b);
  uint columns[3];
#pragma unroll
  for (uint i = 0; i < 3; ++i) columns[i] = transposed(y.part[i]);
  float sums[4] = {addend.first, addend.second, 0.0f, 0.0f};
#pragma unroll
  for (uint both = 3; both-- > 0;)
#pragma unroll
    for (uint i = 0; i <= both; ++i)
      asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 "
          "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(x.part[both - i]), "r"(0u), "r"(columns[i]));
  product.first = sums[0];
  product.second = sums[1];
}

}  // namespace gpu
