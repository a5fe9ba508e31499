// Vectors of two, three and four numbers, and their packed forms.
#pragma once

#include "metal/emulator/msl/half.h"

namespace AKUNU_METAL_BUILD {
namespace metal {

template <class T, int N>
struct vec;

// Dense, aligned as its elements. Only stored, loaded, converted and indexed.
template <class T, int N>
struct packed_vec;

#define AKUNU_VECTOR_INDEX                                                           \
  AKUNU_MSL_INLINE T& operator[](size_t i) { return reinterpret_cast<T*>(this)[i]; } \
  AKUNU_MSL_INLINE const T& operator[](size_t i) const {                             \
    return reinterpret_cast<const T*>(this)[i];                                      \
  }
#define AKUNU_IS_SCALAR(U) std::enable_if_t<is_number_v<U>, int> = 0

template <class T>
struct packed_vec<T, 2> {
  T x, y;
  packed_vec() = default;
  AKUNU_MSL_INLINE constexpr packed_vec(T a, T b) : x(a), y(b) {}
  AKUNU_MSL_INLINE constexpr packed_vec(const vec<T, 2>& v) : x(v.x), y(v.y) {}
  AKUNU_VECTOR_INDEX
};

template <class T>
struct packed_vec<T, 3> {
  T x, y, z;
  packed_vec() = default;
  AKUNU_MSL_INLINE constexpr packed_vec(T a, T b, T c) : x(a), y(b), z(c) {}
  AKUNU_MSL_INLINE constexpr packed_vec(const vec<T, 3>& v) : x(v.x), y(v.y), z(v.z) {}
  AKUNU_VECTOR_INDEX
};

template <class T>
struct packed_vec<T, 4> {
  T x, y, z, w;
  packed_vec() = default;
  AKUNU_MSL_INLINE constexpr packed_vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
  AKUNU_MSL_INLINE constexpr packed_vec(const vec<T, 4>& v) : x(v.x), y(v.y), z(v.z), w(v.w) {}
  AKUNU_VECTOR_INDEX
};

template <class T>
struct alignas(2 * sizeof(T)) vec<T, 2> {
  union {
    struct {
      T x, y;
    };
    struct {
      T r, g;
    };
  };
  vec() = default;
  template <class U, AKUNU_IS_SCALAR(U)>
  AKUNU_MSL_INLINE constexpr vec(U s) : x(T(s)), y(T(s)) {}
  AKUNU_MSL_INLINE constexpr vec(T a, T b) : x(a), y(b) {}
  AKUNU_MSL_INLINE constexpr vec(const packed_vec<T, 2>& v) : x(v.x), y(v.y) {}
  template <class U>
  AKUNU_MSL_INLINE constexpr explicit vec(const vec<U, 2>& v) : x(T(v.x)), y(T(v.y)) {}
  AKUNU_VECTOR_INDEX
};

// Takes the room of four, as on the GPU.
template <class T>
struct alignas(4 * sizeof(T)) vec<T, 3> {
  union {
    struct {
      T x, y, z;
    };
    struct {
      T r, g, b;
    };
    vec<T, 2> xy;
  };
  vec() = default;
  template <class U, AKUNU_IS_SCALAR(U)>
  AKUNU_MSL_INLINE constexpr vec(U s) : x(T(s)), y(T(s)), z(T(s)) {}
  AKUNU_MSL_INLINE constexpr vec(T a, T b, T c) : x(a), y(b), z(c) {}
  AKUNU_MSL_INLINE constexpr vec(const vec<T, 2>& ab, T c) : x(ab.x), y(ab.y), z(c) {}
  AKUNU_MSL_INLINE constexpr vec(T a, const vec<T, 2>& bc) : x(a), y(bc.x), z(bc.y) {}
  AKUNU_MSL_INLINE constexpr vec(const packed_vec<T, 3>& v) : x(v.x), y(v.y), z(v.z) {}
  template <class U>
  AKUNU_MSL_INLINE constexpr explicit vec(const vec<U, 3>& v) : x(T(v.x)), y(T(v.y)), z(T(v.z)) {}
  AKUNU_VECTOR_INDEX
};

template <class T>
struct alignas(4 * sizeof(T)) vec<T, 4> {
  union {
    struct {
      T x, y, z, w;
    };
    struct {
      T r, g, b, a;
    };
    struct {
      vec<T, 2> xy, zw;
    };
    struct {
      vec<T, 2> lo, hi;
    };
    packed_vec<T, 3> xyz;
  };
  vec() = default;
  template <class U, AKUNU_IS_SCALAR(U)>
  AKUNU_MSL_INLINE constexpr vec(U s) : x(T(s)), y(T(s)), z(T(s)), w(T(s)) {}
  AKUNU_MSL_INLINE constexpr vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
  AKUNU_MSL_INLINE constexpr vec(const vec<T, 2>& ab, const vec<T, 2>& cd)
      : x(ab.x), y(ab.y), z(cd.x), w(cd.y) {}
  AKUNU_MSL_INLINE constexpr vec(const vec<T, 2>& ab, T c, T d) : x(ab.x), y(ab.y), z(c), w(d) {}
  AKUNU_MSL_INLINE constexpr vec(T a, T b, const vec<T, 2>& cd) : x(a), y(b), z(cd.x), w(cd.y) {}
  AKUNU_MSL_INLINE constexpr vec(const vec<T, 3>& abc, T d) : x(abc.x), y(abc.y), z(abc.z), w(d) {}
  AKUNU_MSL_INLINE constexpr vec(T a, const vec<T, 3>& bcd) : x(a), y(bcd.x), z(bcd.y), w(bcd.z) {}
  AKUNU_MSL_INLINE constexpr vec(const packed_vec<T, 4>& v) : x(v.x), y(v.y), z(v.z), w(v.w) {}
  template <class U>
  AKUNU_MSL_INLINE constexpr explicit vec(const vec<U, 4>& v)
      : x(T(v.x)), y(T(v.y)), z(T(v.z)), w(T(v.w)) {}
  AKUNU_VECTOR_INDEX
};
#undef AKUNU_VECTOR_INDEX
#undef AKUNU_IS_SCALAR

// f of each element, of one vector, two or three.
template <class F, class T, int N, class... Others>
AKUNU_MSL_INLINE constexpr auto for_each_element(F f, const vec<T, N>& v, const Others&... others) {
  using Result = vec<std::remove_cv_t<decltype(f(v.x, others.x...))>, N>;
  if constexpr (N == 2) {
    return Result(f(v.x, others.x...), f(v.y, others.y...));
  } else if constexpr (N == 3) {
    return Result(f(v.x, others.x...), f(v.y, others.y...), f(v.z, others.z...));
  } else {
    return Result(f(v.x, others.x...), f(v.y, others.y...), f(v.z, others.z...),
                  f(v.w, others.w...));
  }
}

// Elements keep their type: a sum of two uchar is a uchar, as on the GPU.
#define AKUNU_VECTOR_OPERATOR(op)                                                                 \
  template <class T, int N>                                                                       \
  AKUNU_MSL_INLINE constexpr vec<T, N> operator op(const vec<T, N>& a, const vec<T, N>& b) {      \
    return for_each_element([](T x, T y) __attribute__((always_inline)) { return T(x op y); }, a, \
                            b);                                                                   \
  }                                                                                               \
  template <class T, int N>                                                                       \
  AKUNU_MSL_INLINE constexpr vec<T, N> operator op(const vec<T, N>& a,                            \
                                                   std::type_identity_t<T> b) {                   \
    return a op vec<T, N>(b);                                                                     \
  }                                                                                               \
  template <class T, int N>                                                                       \
  AKUNU_MSL_INLINE constexpr vec<T, N> operator op(std::type_identity_t<T> a,                     \
                                                   const vec<T, N>& b) {                          \
    return vec<T, N>(a) op b;                                                                     \
  }                                                                                               \
  template <class T, int N, class Other>                                                          \
  AKUNU_MSL_INLINE constexpr vec<T, N>& operator op## = (vec<T, N> & a, const Other& b) {         \
    return a = a op b;                                                                            \
  }
AKUNU_VECTOR_OPERATOR(+)
AKUNU_VECTOR_OPERATOR(-)
AKUNU_VECTOR_OPERATOR(*)
AKUNU_VECTOR_OPERATOR(/)
AKUNU_VECTOR_OPERATOR(%)
AKUNU_VECTOR_OPERATOR(&)
AKUNU_VECTOR_OPERATOR(|)
AKUNU_VECTOR_OPERATOR(^)
AKUNU_VECTOR_OPERATOR(<<)
AKUNU_VECTOR_OPERATOR(>>)
#undef AKUNU_VECTOR_OPERATOR

#define AKUNU_VECTOR_COMPARISON(op)                                                                \
  template <class T, int N>                                                                        \
  AKUNU_MSL_INLINE constexpr vec<bool, N> operator op(const vec<T, N>& a, const vec<T, N>& b) {    \
    return for_each_element([](T x, T y) __attribute__((always_inline)) { return x op y; }, a, b); \
  }                                                                                                \
  template <class T, int N>                                                                        \
  AKUNU_MSL_INLINE constexpr vec<bool, N> operator op(const vec<T, N>& a,                          \
                                                      std::type_identity_t<T> b) {                 \
    return a op vec<T, N>(b);                                                                      \
  }
AKUNU_VECTOR_COMPARISON(==)
AKUNU_VECTOR_COMPARISON(!=)
AKUNU_VECTOR_COMPARISON(<)
AKUNU_VECTOR_COMPARISON(<=)
AKUNU_VECTOR_COMPARISON(>)
AKUNU_VECTOR_COMPARISON(>=)
AKUNU_VECTOR_COMPARISON(&&)
AKUNU_VECTOR_COMPARISON(||)
#undef AKUNU_VECTOR_COMPARISON

template <class T, int N>
AKUNU_MSL_INLINE constexpr vec<T, N> operator-(const vec<T, N>& a) {
  return for_each_element([](T x) __attribute__((always_inline)) { return T(-x); }, a);
}
template <class T, int N>
AKUNU_MSL_INLINE constexpr vec<T, N> operator~(const vec<T, N>& a) {
  return for_each_element([](T x) __attribute__((always_inline)) { return T(~x); }, a);
}
template <int N>
AKUNU_MSL_INLINE constexpr vec<bool, N> operator!(const vec<bool, N>& a) {
  return for_each_element([](bool x) __attribute__((always_inline)) { return !x; }, a);
}

template <class T, int N>
AKUNU_MSL_INLINE T dot(const vec<T, N>& a, const vec<T, N>& b) {
  T sum = a[0] * b[0];
  for (int i = 1; i < N; ++i) sum += a[i] * b[i];
  return sum;
}
template <int N>
AKUNU_MSL_INLINE bool any(const vec<bool, N>& a) {
  bool result = false;
  for (int i = 0; i < N; ++i) result |= a[i];
  return result;
}
template <int N>
AKUNU_MSL_INLINE bool all(const vec<bool, N>& a) {
  bool result = true;
  for (int i = 0; i < N; ++i) result &= a[i];
  return result;
}

}  // namespace metal

#define AKUNU_VECTOR_NAMES(T, name)                 \
  using name##2 = metal::vec<T, 2>;                 \
  using name##3 = metal::vec<T, 3>;                 \
  using name##4 = metal::vec<T, 4>;                 \
  using packed_##name##2 = metal::packed_vec<T, 2>; \
  using packed_##name##3 = metal::packed_vec<T, 3>; \
  using packed_##name##4 = metal::packed_vec<T, 4>;
AKUNU_VECTOR_NAMES(bool, bool)
AKUNU_VECTOR_NAMES(int8_t, char)
AKUNU_VECTOR_NAMES(uint8_t, uchar)
AKUNU_VECTOR_NAMES(int16_t, short)
AKUNU_VECTOR_NAMES(uint16_t, ushort)
AKUNU_VECTOR_NAMES(int32_t, int)
AKUNU_VECTOR_NAMES(uint32_t, uint)
AKUNU_VECTOR_NAMES(int64_t, long)
AKUNU_VECTOR_NAMES(uint64_t, ulong)
AKUNU_VECTOR_NAMES(half, half)
AKUNU_VECTOR_NAMES(float, float)
#undef AKUNU_VECTOR_NAMES

}  // namespace AKUNU_METAL_BUILD
