// The planes of FP32 numbers, by type, and the powers of two by which fp16x3 scales rows of A and columns of B.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../../common/mma_sync.cuh"

namespace matmul {

// COUNT planes, each lower one times STEP. SMALLEST and LIMIT are the type's own; tf32 is held in FP32. SHIFTED: rows are.
template <class Plane> struct Planes;
template <> struct Planes<float> {
    static constexpr int COUNT = 2;
    static constexpr bool SHIFTED = false;
    static constexpr float SMALLEST = 0x1p-136f, LIMIT = 0x1.ffcp127f, STEP = 1.0f;
    __device__ __forceinline__ static float rounded(float x) { return __uint_as_float(round_to_tf32(__float_as_uint(x))); }
    // The same of what is finite: before Hopper in two instructions, halves of a step away from 0, by the number's bits.
    __device__ __forceinline__ static float rounded_ordinary(float x) {
#if __CUDA_ARCH__ >= 900
        return rounded(x);
#else
        return __uint_as_float((__float_as_uint(x) + 0x1000) & ~0x1fffu);
#endif
    }
    __device__ __forceinline__ static float widened(float x) { return x; }
};
template <> struct Planes<__half> {
    static constexpr int COUNT = 2;
    static constexpr bool SHIFTED = true;
    static constexpr float SMALLEST = 0x1p-24f, LIMIT = 65504.0f, STEP = 2048.0f;
    __device__ __forceinline__ static __half rounded(float x) { return __float2half(x); }
    __device__ __forceinline__ static float widened(__half x) { return __half2float(x); }
};
template <> struct Planes<__nv_bfloat16> {
    static constexpr int COUNT = 3;
    static constexpr bool SHIFTED = false;
    static constexpr float SMALLEST = 0x1p-133f, LIMIT = 0x1.fep127f, STEP = 1.0f;
    __device__ __forceinline__ static __nv_bfloat16 rounded(float x) { return __float2bfloat16(x); }
    __device__ __forceinline__ static __nv_bfloat16 rounded_ordinary(float x) { return rounded(x); }
    __device__ __forceinline__ static float widened(__nv_bfloat16 x) { return __bfloat162float(x); }
};

// The planes of a number: of `rest`, which is `whole` or that shifted.
template <class Plane>
__device__ __forceinline__ void split_number(Plane (&planes)[Planes<Plane>::COUNT], float whole, float rest) {
    using Of = Planes<Plane>;
    const bool finite = fabsf(whole) < INFINITY;
#pragma unroll
    for (int i = 0; i < Of::COUNT; ++i) {
        float part = rest;
        if (i == 0 && finite && whole != 0) part = copysignf(fminf(fmaxf(fabsf(rest), Of::SMALLEST), Of::LIMIT), whole);
        planes[i] = Of::rounded(part);
        rest = finite ? (rest - Of::widened(planes[i])) * Of::STEP : 0.0f;
    }
}

// The same planes of an ordinary number that is not shifted, in half the instructions: for others than infinities, NaN and what
// rounds to infinity. Returns what the first plane leaves, which is not finite for these. A tiny number's planes may all be 0,
// which is as near to it, but times infinity would be NaN.
template <class Plane> __device__ __forceinline__ float split_ordinary(Plane (&planes)[Planes<Plane>::COUNT], float whole) {
    using Of = Planes<Plane>;
    planes[0] = Of::rounded_ordinary(whole);
    const float left = whole - Of::widened(planes[0]);
    float rest = left;
#pragma unroll
    for (int i = 1; i < Of::COUNT; ++i) {
        planes[i] = Of::rounded_ordinary(rest);
        rest -= Of::widened(planes[i]);
    }
    return left;
}

// 2^n, n from -126 to 127.
__device__ __forceinline__ float power_of_two(int n) { return __int_as_float((n + 127) << 23); }

// x 2^n for n up to 254, |x| < 2^100 where n < -252; in two steps, as 2^n may be no FP32 number. Rounded once at most: the
// first step is exact, or its result becomes 0 in the second.
__device__ __forceinline__ float shifted(float x, int n) {
    n = max(n, -252);  // such an x becomes 0 all the same
    return x * power_of_two(n >> 1) * power_of_two(n - (n >> 1));
}

// The exponent that brings a number to [2^14, 2^15), given its bits; that of 2^-126 for what is below.
__device__ __forceinline__ int shift_of(int largest) { return 141 - max(largest >> 23, 1); }

// In elements, from the ranges of one matrix of the batch to those of the next.
struct RangeStrides {
    int64_t a, b;
};

// How many counted elements of another row, which are below `small`, it takes to refuse a product, given the bits of a row's
// extremes; 0 if it may have its own. A row of zeros refuses nothing: its products are 0.
__device__ __forceinline__ int needed_to_refuse(int largest, int smallest, float small) {
    const float most = __int_as_float(largest), least = __int_as_float(smallest);
    if (largest == 0) return 1 << 30;
    return shifted(least, shift_of(largest)) >= small ? int(fminf(least / most * 0x1p37f, 0x1p30f)) : 0;
}

// A sum of products of a row shifted by `a_shift` and a column by `b_shift`, shifted back; NaN where too much may be lost, of
// which the third row of the ranges counts elements: docs/numerics.md has the rule.
__device__ __forceinline__ float shifted_back(float sum, int a_shift, float a_counted, int b_shift, float b_counted) {
    const bool many = fmaxf(a_counted, 0) + fmaxf(b_counted, 0) > fabsf(sum) * 0x1p8f;
    if (many && a_counted + b_counted > 0) sum = NAN;
    return shifted(sum, -(a_shift + b_shift));
}

}  // namespace matmul
