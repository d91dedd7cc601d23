// Built-in functions of one thread: bits, casts, arithmetic, loads.
#pragma once
#include <cmath>
#include <cstring>
#include <type_traits>

#include "fail.h"

namespace simt {

template <class To, class From> To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "reinterprets, does not convert");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

template <class A, class B>
using Arithmetic = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, std::common_type_t<A, B>>;

}  // namespace simt

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)(x)); }
// The 32 bits of (high, low) from bit `shift` % 32 on.
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return unsigned(((unsigned long long)(high) << 32 | low) >> (shift & 31));
}

inline int __float_as_int(float x) { return simt::bits<int>(x); }
inline unsigned __float_as_uint(float x) { return simt::bits<unsigned>(x); }
inline float __int_as_float(int x) { return simt::bits<float>(x); }
inline float __uint_as_float(unsigned x) { return simt::bits<float>(x); }
inline long long __double_as_longlong(double x) { return simt::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return simt::bits<double>(x); }

inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }

// As CUDA's: of a NaN, signalling or not, and a number, the number is returned.
template <class A, class B> simt::Arithmetic<A, B> min(A a, B b) {
    const std::common_type_t<A, B> x = a, y = b;
    return x < y || y != y ? x : y;
}

template <class A, class B> simt::Arithmetic<A, B> max(A a, B b) {
    const std::common_type_t<A, B> x = a, y = b;
    return x > y || y != y ? x : y;
}

template <class T> T __ldg(const T* p) { return *p; }
template <class T> T __ldcg(const T* p) { return *p; }
template <class T> void __stcg(T* p, T value) { *p = value; }
template <class T> void __stcs(T* p, T value) { *p = value; }

[[noreturn]] inline void __trap() { simt::fail("__trap()"); }
