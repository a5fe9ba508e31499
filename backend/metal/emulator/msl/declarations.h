// MSL's vocabulary as declarations only, for check_msl.py: clang reads kernels with the address
// spaces as attributes, which makes a missing `device` an error. Nothing of this is ever run.
// check_msl.py has renamed float4(...) to make_float4(...): vectors are clang's own here.
#pragma once

#define AKUNU_DEVICE __attribute__((address_space(1)))
#define AKUNU_CONSTANT_SPACE __attribute__((address_space(2)))
#define AKUNU_THREADGROUP __attribute__((address_space(3)))

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef _Float16 half;

namespace metal {

template <class T>
struct element_of {
  typedef T type;
};
template <>
struct element_of<bool> {
  typedef int type;  // clang has no vectors of bool
};
template <class T, int N>
using vec = typename element_of<T>::type __attribute__((ext_vector_type(N)));
template <class V>
struct scalar_of {
  typedef V type;
};
template <class T, int N>
struct scalar_of<T __attribute__((ext_vector_type(N)))> {
  typedef T type;
};
template <class V>
using scalar = typename scalar_of<V>::type;

template <class To, class From>
To as_type(From);

}  // namespace metal
using metal::as_type;

#define AKUNU_VECTOR(T, name, n)              \
  typedef metal::vec<T, n> name##n;           \
  typedef name##n packed_##name##n;           \
  template <class... Parts>                   \
  constexpr name##n make_##name##n(Parts...); \
  template <class... Parts>                   \
  constexpr name##n make_packed_##name##n(Parts...);
#define AKUNU_VECTORS(T, name) \
  AKUNU_VECTOR(T, name, 2)     \
  AKUNU_VECTOR(T, name, 3)     \
  AKUNU_VECTOR(T, name, 4)
AKUNU_VECTORS(bool, bool)
AKUNU_VECTORS(char, char)
AKUNU_VECTORS(uchar, uchar)
AKUNU_VECTORS(short, short)
AKUNU_VECTORS(ushort, ushort)
AKUNU_VECTORS(int, int)
AKUNU_VECTORS(uint, uint)
AKUNU_VECTORS(long, long)
AKUNU_VECTORS(ulong, ulong)
AKUNU_VECTORS(half, half)
AKUNU_VECTORS(float, float)

namespace metal {
namespace precise {
#define AKUNU_MATH_1(name) \
  float name(float);       \
  half name(half);         \
  float2 name(float2);     \
  float3 name(float3);     \
  float4 name(float4);
#define AKUNU_MATH_2(name)     \
  float name(float, float);    \
  half name(half, half);       \
  float2 name(float2, float2); \
  float3 name(float3, float3); \
  float4 name(float4, float4);
AKUNU_MATH_1(exp)
AKUNU_MATH_1(exp2)
AKUNU_MATH_1(log)
AKUNU_MATH_1(log2)
AKUNU_MATH_1(log10)
AKUNU_MATH_1(sin)
AKUNU_MATH_1(cos)
AKUNU_MATH_1(tan)
AKUNU_MATH_1(sinh)
AKUNU_MATH_1(cosh)
AKUNU_MATH_1(tanh)
AKUNU_MATH_1(sqrt)
AKUNU_MATH_1(rsqrt)
AKUNU_MATH_1(floor)
AKUNU_MATH_1(ceil)
AKUNU_MATH_1(trunc)
AKUNU_MATH_1(round)
AKUNU_MATH_1(rint)
AKUNU_MATH_1(fabs)
AKUNU_MATH_1(saturate)
AKUNU_MATH_1(sign)
AKUNU_MATH_2(divide)
AKUNU_MATH_2(pow)
AKUNU_MATH_2(powr)
AKUNU_MATH_2(fmod)
AKUNU_MATH_2(copysign)
AKUNU_MATH_2(fmin)
AKUNU_MATH_2(fmax)
float fma(float, float, float);
half fma(half, half, half);
float2 fma(float2, float2, float2);
float3 fma(float3, float3, float3);
float4 fma(float4, float4, float4);
}  // namespace precise
using namespace precise;
namespace fast {
using namespace precise;
}

bool isnan(float);
bool isinf(float);
bool isfinite(float);
bool signbit(float);
int2 isnan(float2);
int3 isnan(float3);
int4 isnan(float4);
int2 isinf(float2);
int3 isinf(float3);
int4 isinf(float4);
// Numbers of one type, as on the GPU; a vector and a number of its elements' type.
template <class T>
T min(T, T);
template <class T>
T max(T, T);
template <class T>
T clamp(T, T, T);
template <class T, int N>
using raw_vector = T __attribute__((ext_vector_type(N)));
#define AKUNU_WITH_SCALAR(N)                         \
  template <class T>                                 \
  raw_vector<T, N> min(raw_vector<T, N>, scalar<T>); \
  template <class T>                                 \
  raw_vector<T, N> max(raw_vector<T, N>, scalar<T>); \
  template <class T>                                 \
  raw_vector<T, N> clamp(raw_vector<T, N>, scalar<T>, scalar<T>);
AKUNU_WITH_SCALAR(2)
AKUNU_WITH_SCALAR(3)
AKUNU_WITH_SCALAR(4)
template <class T>
T abs(T);
template <class T>
T mix(T, T, T);
template <class T, class Condition>
T select(T, T, Condition);
template <class V>
scalar<V> dot(V, V);
template <class V>
bool any(V);
template <class V>
bool all(V);
template <class T>
T popcount(T);
template <class T>
T clz(T);
template <class T>
T ctz(T);
uint mulhi(uint, uint);
int mulhi(int, int);

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
mem_flags operator|(mem_flags, mem_flags);
void threadgroup_barrier(mem_flags);
void simdgroup_barrier(mem_flags);

template <class T>
T simd_sum(T);
template <class T>
T simd_product(T);
template <class T>
T simd_max(T);
template <class T>
T simd_min(T);
template <class T>
T simd_and(T);
template <class T>
T simd_or(T);
template <class T>
T simd_xor(T);
template <class T>
T simd_prefix_inclusive_sum(T);
template <class T>
T simd_prefix_exclusive_sum(T);
template <class T>
T simd_shuffle(T, ushort);
template <class T>
T simd_shuffle_xor(T, ushort);
template <class T>
T simd_shuffle_up(T, ushort);
template <class T>
T simd_shuffle_down(T, ushort);
template <class T>
T simd_broadcast(T, ushort);
template <class T>
T simd_broadcast_first(T);
bool simd_any(bool);
bool simd_all(bool);
struct simd_vote {
  typedef ulong vote_t;
  explicit simd_vote(vote_t = 0);
  explicit operator vote_t() const;
  bool any() const;
  bool all() const;
};
simd_vote simd_ballot(bool);

enum memory_order { memory_order_relaxed };
template <class T>
struct atomic {
  T hidden;
};
typedef atomic<uint> atomic_uint;
typedef atomic<int> atomic_int;
#define AKUNU_ATOMIC(name, space) \
  template <class T>              \
  T name(volatile space atomic<T>*, typename element_of<T>::type, memory_order);
#define AKUNU_ATOMICS(space)                                                                    \
  template <class T>                                                                            \
  T atomic_load_explicit(const volatile space atomic<T>*, memory_order);                        \
  template <class T>                                                                            \
  void atomic_store_explicit(volatile space atomic<T>*, typename element_of<T>::type,           \
                             memory_order);                                                     \
  template <class T>                                                                            \
  bool atomic_compare_exchange_weak_explicit(                                                   \
      volatile space atomic<T>*, T*, typename element_of<T>::type, memory_order, memory_order); \
  AKUNU_ATOMIC(atomic_exchange_explicit, space)                                                 \
  AKUNU_ATOMIC(atomic_fetch_add_explicit, space)                                                \
  AKUNU_ATOMIC(atomic_fetch_sub_explicit, space)                                                \
  AKUNU_ATOMIC(atomic_fetch_or_explicit, space)                                                 \
  AKUNU_ATOMIC(atomic_fetch_and_explicit, space)                                                \
  AKUNU_ATOMIC(atomic_fetch_xor_explicit, space)                                                \
  AKUNU_ATOMIC(atomic_fetch_max_explicit, space)                                                \
  AKUNU_ATOMIC(atomic_fetch_min_explicit, space)
AKUNU_ATOMICS(AKUNU_DEVICE)
AKUNU_ATOMICS(AKUNU_THREADGROUP)

template <class T, int Rows, int Columns>
struct simdgroup_matrix {
  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T);
};
template <class T, int Rows, int Columns>
simdgroup_matrix<T, Rows, Columns> make_filled_simdgroup_matrix(typename element_of<T>::type);
#define AKUNU_MATRIX_MEMORY(space)                                                       \
  template <class T>                                                                     \
  void simdgroup_load(simdgroup_matrix<T, 8, 8>&, const space T*, ulong = 8, ulong2 = 0, \
                      bool = false);                                                     \
  template <class T>                                                                     \
  void simdgroup_store(simdgroup_matrix<T, 8, 8>, space T*, ulong = 8, ulong2 = 0, bool = false);
AKUNU_MATRIX_MEMORY(AKUNU_DEVICE)
AKUNU_MATRIX_MEMORY(AKUNU_THREADGROUP)
template <class D, class A, class B, class C>
void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>&, simdgroup_matrix<A, 8, 8>,
                                   simdgroup_matrix<B, 8, 8>, simdgroup_matrix<C, 8, 8>);
template <class D, class A, class B>
void simdgroup_multiply(simdgroup_matrix<D, 8, 8>&, simdgroup_matrix<A, 8, 8>,
                        simdgroup_matrix<B, 8, 8>);

}  // namespace metal

typedef metal::simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef metal::simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
using metal::atomic_int;
using metal::atomic_uint;
