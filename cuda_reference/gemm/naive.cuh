// FP32 GEMM, naive: one thread per element of C, its row of A times its column of B, alpha and beta applied once at the end.
//
// A warp owns 32 neighbouring elements of a row of C: per k it reads 1 element of A (broadcast) and 32 of B and does 64 FLOP,
// an intensity of 64 / 132 = 0.48 FLOP per byte read from the caches. With an L2 of 1.9 TB/s (Titan V) that is 0.912 TFLOP/s at
// most. Mirrors tritonkernels/gemm/naive.py.
#pragma once
#include "parts/common.cuh"

namespace gemm {

template <int BM, int BN>
__global__ void __launch_bounds__(BM * BN) naive(
    const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ out,
    int M, int N, int K, float alpha, float beta, Strides stride) {
    static_assert(BN % 32 == 0, "a warp stays within one row of C, or its reads of A would not be broadcasts");
    const int tiles_n = ceil_div(N, BN);
    const int row = blockIdx.x / tiles_n * BM + threadIdx.x / BN;
    const int col = blockIdx.x % tiles_n * BN + threadIdx.x % BN;
    if (row >= M || col >= N) return;

    float sum = 0;
    for (int k = 0; k < K; ++k)
        sum += a[row * stride.a.row + k * stride.a.col] * b[k * stride.b.row + col * stride.b.col];

    float result = alpha * sum;
    if (c != nullptr) result += beta * c[row * stride.c.row + col * stride.c.col];  // null where beta is 0: a NaN is not read
    out[row * stride.out.row + col * stride.out.col] = result;
}

}  // namespace gemm
