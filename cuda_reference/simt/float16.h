// The 16-bit floating types in software, correctly rounded (to nearest, ties to even) whatever the CPU: one template
// for the number, one for its pair; cuda_fp16.h and cuda_bf16.h name them.
//
// Sums, differences, products and quotients are computed in float, which has more than twice the digits of half or bfloat16, so
// that rounding twice equals rounding once. A fused multiply-add lacks that margin and uses round_to_odd instead.
#pragma once
#include "intrinsics.h"
#include "vector_types.h"

namespace simt {

// To float, with the last bit of inexact results made odd, so that a second rounding to fewer digits knows on which side of a
// tie the value was.
inline float round_to_odd(double value) {
    const float nearest = float(value);
    const uint32_t pattern = bits<uint32_t>(nearest);
    if (double(nearest) == value || (pattern & 1) || !std::isfinite(value)) return nearest;
    return bits<float>(std::fabs(double(nearest)) < std::fabs(value) ? pattern + 1 : pattern - 1);
}

// a * b + c with the product exact in double and the sum rounded to odd.
inline float fma_to_odd(float a, float b, float c) {
    const double product = double(a) * b, sum = product + c;
    const double back = sum - product, error = (product - (sum - back)) + (c - back);  // TwoSum: sum + error is exact
    uint64_t pattern = bits<uint64_t>(sum);
    if (std::isfinite(sum) && error != 0 && !(pattern & 1)) pattern += (error > 0) == (sum > 0) ? 1 : -1;
    return round_to_odd(bits<double>(pattern));
}

// Drops `count` low bits, rounding to nearest even; a carry runs into the exponent as it should.
inline uint32_t round_bits(uint32_t pattern, int count) {
    return (pattern + ((1u << (count - 1)) - 1) + (pattern >> count & 1)) >> count;
}

struct HalfFormat {
    static constexpr uint16_t INFINITE = 0x7C00;

    static float widen(uint16_t half) {
        const uint32_t sign = uint32_t(half & 0x8000) << 16, rest = half & 0x7FFF;
        if (rest >= INFINITE) return bits<float>(sign | 0x7F800000 | (rest & 0x3FF) << 13);
        return bits<float>(sign | bits<uint32_t>(bits<float>(rest << 13) * 0x1p112f));  // exact, denormals too
    }

    static uint16_t round(float value) {
        const uint32_t pattern = bits<uint32_t>(value), rest = pattern & 0x7FFFFFFF;
        const uint16_t sign = pattern >> 16 & 0x8000;
        if (rest > 0x7F800000) return 0x7FFF;  // every NaN, as CUDA's conversion does
        if (rest >= 0x47800000) return sign | INFINITE;
        if (rest < 0x38800000)
            return sign | (bits<uint32_t>(bits<float>(rest) + 0.5f) & 0x7FF);  // denormal: the sum's ulp is a half's
        return sign | round_bits(rest - 0x38000000, 13);
    }
};

struct BFloat16Format {
    static float widen(uint16_t value) { return bits<float>(uint32_t(value) << 16); }

    static uint16_t round(float value) {
        const uint32_t pattern = bits<uint32_t>(value);
        return (pattern & 0x7FFFFFFF) > 0x7F800000 ? 0x7FFF : round_bits(pattern, 16);
    }
};

template <class Format> struct Float16 {
    uint16_t pattern;

    Float16() = default;
    Float16(float value) : pattern(Format::round(value)) {}
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    Float16(T value) : pattern(Format::round(round_to_odd(double(value)))) {}
    operator float() const { return Format::widen(pattern); }

    static Float16 from_pattern(uint16_t pattern) {
        Float16 result;
        result.pattern = pattern;
        return result;
    }

    friend Float16 operator+(Float16 a, Float16 b) { return float(a) + float(b); }
    friend Float16 operator-(Float16 a, Float16 b) { return float(a) - float(b); }
    friend Float16 operator*(Float16 a, Float16 b) { return float(a) * float(b); }
    friend Float16 operator/(Float16 a, Float16 b) { return float(a) / float(b); }
    friend Float16 operator-(Float16 a) { return from_pattern(a.pattern ^ 0x8000); }
    friend Float16& operator+=(Float16& a, Float16 b) { return a = a + b; }
    friend Float16& operator-=(Float16& a, Float16 b) { return a = a - b; }
    friend Float16& operator*=(Float16& a, Float16 b) { return a = a * b; }
    friend Float16& operator/=(Float16& a, Float16 b) { return a = a / b; }
    friend bool operator==(Float16 a, Float16 b) { return float(a) == float(b); }
    friend bool operator!=(Float16 a, Float16 b) { return float(a) != float(b); }
    friend bool operator<(Float16 a, Float16 b) { return float(a) < float(b); }
    friend bool operator>(Float16 a, Float16 b) { return float(a) > float(b); }
    friend bool operator<=(Float16 a, Float16 b) { return float(a) <= float(b); }
    friend bool operator>=(Float16 a, Float16 b) { return float(a) >= float(b); }
};

template <class Format> struct alignas(4) Pair16 {
    Float16<Format> x, y;

    friend Pair16 operator+(Pair16 a, Pair16 b) { return {a.x + b.x, a.y + b.y}; }
    friend Pair16 operator-(Pair16 a, Pair16 b) { return {a.x - b.x, a.y - b.y}; }
    friend Pair16 operator*(Pair16 a, Pair16 b) { return {a.x * b.x, a.y * b.y}; }
    friend Pair16 operator/(Pair16 a, Pair16 b) { return {a.x / b.x, a.y / b.y}; }
    friend Pair16& operator+=(Pair16& a, Pair16 b) { return a = a + b; }
    friend Pair16& operator*=(Pair16& a, Pair16 b) { return a = a * b; }
};

}  // namespace simt

template <class F> simt::Float16<F> __hadd(simt::Float16<F> a, simt::Float16<F> b) { return a + b; }
template <class F> simt::Float16<F> __hsub(simt::Float16<F> a, simt::Float16<F> b) { return a - b; }
template <class F> simt::Float16<F> __hmul(simt::Float16<F> a, simt::Float16<F> b) { return a * b; }
template <class F> simt::Float16<F> __hdiv(simt::Float16<F> a, simt::Float16<F> b) { return a / b; }
template <class F> simt::Float16<F> __hneg(simt::Float16<F> a) { return -a; }
template <class F> simt::Float16<F> __habs(simt::Float16<F> a) {
    return simt::Float16<F>::from_pattern(a.pattern & 0x7FFF);
}
template <class F> simt::Float16<F> __hmax(simt::Float16<F> a, simt::Float16<F> b) { return max(float(a), float(b)); }
template <class F> simt::Float16<F> __hmin(simt::Float16<F> a, simt::Float16<F> b) { return min(float(a), float(b)); }
template <class F> bool __heq(simt::Float16<F> a, simt::Float16<F> b) { return a == b; }
template <class F> bool __hlt(simt::Float16<F> a, simt::Float16<F> b) { return a < b; }
template <class F> bool __hgt(simt::Float16<F> a, simt::Float16<F> b) { return a > b; }
template <class F> bool __hisnan(simt::Float16<F> a) { return std::isnan(float(a)); }
template <class F> simt::Float16<F> __hfma(simt::Float16<F> a, simt::Float16<F> b, simt::Float16<F> c) {
    return simt::fma_to_odd(a, b, c);
}

template <class F> simt::Pair16<F> __hadd2(simt::Pair16<F> a, simt::Pair16<F> b) { return a + b; }
template <class F> simt::Pair16<F> __hsub2(simt::Pair16<F> a, simt::Pair16<F> b) { return a - b; }
template <class F> simt::Pair16<F> __hmul2(simt::Pair16<F> a, simt::Pair16<F> b) { return a * b; }
template <class F> simt::Pair16<F> __hfma2(simt::Pair16<F> a, simt::Pair16<F> b, simt::Pair16<F> c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
template <class F> float __low2float(simt::Pair16<F> a) { return a.x; }
template <class F> float __high2float(simt::Pair16<F> a) { return a.y; }
