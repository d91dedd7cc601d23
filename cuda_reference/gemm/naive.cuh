// FP32 GEMM, naive: one thread per element of C, its row of A times its column of B, alpha and beta applied once at the end.
//
// A warp owns 32 neighbouring elements of a row of C: per k it reads 1 element of A (broadcast) and 32 of B and does 64 FLOP, an
// intensity of 64 / 132 = 0.48 FLOP per byte read from the caches. With an L2 of 1.9 TB/s (Titan V) that is 0.912 TFLOP/s at
// most. T is float or double. Mirrors tritonkernels/gemm/naive.py.
#pragma once
#include "../common/overlap.cuh"
#include "parts/common.cuh"

namespace gemm {

template <class T, int BM, int BN>
__global__ void __launch_bounds__(BM * BN)
naive(const T* __restrict__ a, const T* __restrict__ b, const T* __restrict__ c, T* __restrict__ out,
      int M, int N, int K, T alpha, T beta, Strides stride) {
    wait_for_earlier_kernels();
    static_assert(BN % 32 == 0, "a warp stays within one row of C, or its reads of A would not be broadcasts");
    const int tiles_n = ceil_div(N, BN);
    const int row = blockIdx.x / tiles_n * BM + threadIdx.x / BN;
    const int col = blockIdx.x % tiles_n * BN + threadIdx.x % BN;
    if (row >= M || col >= N) return;

    const T* a_row = a + row * stride.a.row;
    const T* b_col = b + col * stride.b.col;
    T sum = 0;
    for (int k = 0; k < K; ++k) sum += a_row[k * stride.a.col] * b_col[k * stride.b.row];
    store_element(sum, c, out, row, col, alpha, beta, stride);
}

}  // namespace gemm
