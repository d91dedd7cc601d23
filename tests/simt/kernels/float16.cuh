// Conversions and arithmetic of the 16-bit types; patterns go in and come out as integers.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace float16 {

__device__ inline float widen(half x) { return __half2float(x); }
__device__ inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T> __global__ void to_float(const T* in, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = widen(in[i]);
}

template <class T, class From> __global__ void from(const From* in, T* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = T(in[i]);
}

template <class T> __global__ void arithmetic(const T* a, const T* b, const T* c, T* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[0 * n + i] = a[i] + b[i];
    out[1 * n + i] = a[i] - b[i];
    out[2 * n + i] = __hmul(a[i], b[i]);
    out[3 * n + i] = a[i] / b[i];
    out[4 * n + i] = __hfma(a[i], b[i], c[i]);
    out[5 * n + i] = __hmax(a[i], b[i]);
    out[6 * n + i] = -a[i];
}

__global__ void pairs(const float2* in, half2* halves, __nv_bfloat162* bfloats, float2* sums) {
    const int i = threadIdx.x;
    halves[i] = __float22half2_rn(in[i]);
    bfloats[i] = __floats2bfloat162_rn(in[i].x, in[i].y);
    const float2 twice = __half22float2(__hfma2(halves[i], __float2half2_rn(2), __float2half2_rn(1)));
    sums[i] = make_float2(twice.x + __low2float(bfloats[i]), twice.y + __high2float(bfloats[i]));
}

}  // namespace float16
