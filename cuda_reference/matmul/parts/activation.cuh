// The activations of an epilogue, as torch has them.
//
// Results of 16 bits need no erf that is exact to 24: there a GELU takes 10 instructions, and a SiLU 5, where erff and a
// division take 26 and 25, some of them in branches that keep one number from the next. docs/numerics.md derives their errors.
#pragma once
#include <type_traits>

#include "../../common/approximate.cuh"

namespace matmul {

enum Activation { NONE, RELU, GELU, SILU };  // as the launcher numbers them

template <class Out> constexpr bool IS_QUICK = sizeof(Out) == 2;

// x Phi(x) = max(x, 0) - |x| erfc(|x| / sqrt(2)) / 2. With half = x / 2 that erfc is 2^p, where p is a polynomial of |half|, fitted
// to its logarithm. From |half| = 8 on 2^p is 0. The maximum is half + |half|, which is NaN where torch's GELU is, at -inf.
__device__ __forceinline__ float quick_gelu(float x) {
    const float half = 0.5f * x, size = fminf(fabsf(half), 8.0f);
    float p = -0.016654357f;
    p = p * size + 0.11835943f;
    p = p * size - 0.42048934f;
    p = p * size - 1.8370188f;
    p = p * size - 2.3021827f;
    return (half + fabsf(half)) - size * approximate_exp2(p * size);
}

__device__ __forceinline__ float quick_silu(float x) {
    constexpr float LOG2_E = 1.442695040888963f;
    return x * approximate_reciprocal(1 + approximate_exp2(-LOG2_E * x));
}

__device__ __forceinline__ float erf_of(float x) { return erff(x); }
__device__ __forceinline__ double erf_of(double x) { return erf(x); }
__device__ __forceinline__ float exp_of(float x) { return expf(x); }
__device__ __forceinline__ double exp_of(double x) { return exp(x); }

// Of what will be rounded to Out.
template <class Out, class Number> __device__ __forceinline__ Number activate(Number x, Activation activation) {
    constexpr Number ROOT_OF_HALF = Number(0.70710678118654752440);
    if (activation == RELU) return x < 0 ? Number(0) : x;  // NaN stays
    if (activation == GELU) {
        if constexpr (IS_QUICK<Out>) return quick_gelu(x);
        return Number(0.5) * x * (1 + erf_of(x * ROOT_OF_HALF));
    }
    if (activation == SILU) {
        if constexpr (IS_QUICK<Out>) return quick_silu(x);
        return x / (1 + exp_of(-x));
    }
    return x;
}
template <> __device__ __forceinline__ unsigned activate<int>(unsigned x, Activation activation) {
    return activation == RELU && int(x) < 0 ? 0 : x;
}

}  // namespace matmul
