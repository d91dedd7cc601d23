// FP32 GEMM, tiled: a block owns BM x BN of C and walks K in slices of BK through shared memory; a thread owns TM x TN of it.
//
// Over `naive` each element fetched from global memory is used BN (of A) or BM (of B) times: BM * BN / (2 (BM + BN)) FLOP
// per byte, 32 at 128 x 128, whatever BK. In a thread, TM + TN shared loads feed TM * TN multiply-adds per k, an outer product
// in registers: 16 loads instead of 128 at 8 x 8. T is float or double. Mirrors tritonkernels/gemm/tiled.py.
#pragma once
#include "../common/overlap.cuh"
#include "parts/common.cuh"

namespace gemm {

// One BM x BK slice of A, transposed on its way, so that a thread's elements of one k are contiguous. Zeros past the edges:
// they add nothing to a sum. Neighbouring threads read along K: BK = 8 floats are one 32-byte sector of a row-major A.
template <int BM, int BK, int THREADS, class T>
__device__ void load_a(T (&tile)[BK][BM], const T* a, int first_row, int first_k, int M, int K, MatrixStrides stride) {
    static_assert(BM * BK % THREADS == 0, "every thread loads the same number of elements");
    for (int i = threadIdx.x; i < BM * BK; i += THREADS) {
        const int row = first_row + i / BK, k = first_k + i % BK;
        tile[i % BK][i / BK] = row < M && k < K ? a[row * stride.row + k * stride.col] : T(0);
    }
}

// One BK x BN slice of B as it stands. Neighbouring threads read along N: 4 sectors a request where B is row-major.
template <int BN, int BK, int THREADS, class T>
__device__ void load_b(T (&tile)[BK][BN], const T* b, int first_k, int first_col, int K, int N, MatrixStrides stride) {
    static_assert(BN * BK % THREADS == 0, "every thread loads the same number of elements");
    for (int i = threadIdx.x; i < BN * BK; i += THREADS) {
        const int k = first_k + i / BN, col = first_col + i % BN;
        tile[i / BN][i % BN] = k < K && col < N ? b[k * stride.row + col * stride.col] : T(0);
    }
}

template <int BM, int BN, int BK, int TM, int TN, class T>
__device__ __forceinline__ void multiply_add(
    T (&sum)[TM][TN], const T (&a_tile)[BK][BM], const T (&b_tile)[BK][BN], int row, int col) {
#pragma unroll
    for (int k = 0; k < BK; ++k) {
        T a[TM], b[TN];
#pragma unroll
        for (int m = 0; m < TM; ++m) a[m] = a_tile[k][row + m];
#pragma unroll
        for (int n = 0; n < TN; ++n) b[n] = b_tile[k][col + n];
#pragma unroll
        for (int m = 0; m < TM; ++m)
#pragma unroll
            for (int n = 0; n < TN; ++n) sum[m][n] += a[m] * b[n];
    }
}

template <class T, int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__((BM / TM) * (BN / TN))
tiled(const T* __restrict__ a, const T* __restrict__ b, const T* __restrict__ c, T* __restrict__ out,
      int M, int N, int K, T alpha, T beta, Strides stride) {
    wait_for_earlier_kernels();
    static_assert(BM % TM == 0 && BN % TN == 0, "thread tiles cover the block tile exactly");
    constexpr int THREADS = (BM / TM) * (BN / TN);
    __shared__ T a_tile[BK][BM];
    __shared__ T b_tile[BK][BN];

    const int tiles_n = ceil_div(N, BN);
    const int first_row = blockIdx.x / tiles_n * BM, first_col = blockIdx.x % tiles_n * BN;
    const int row = threadIdx.x / (BN / TN) * TM, col = threadIdx.x % (BN / TN) * TN;  // of the thread tile in the block tile

    T sum[TM][TN] = {};
    for (int k = 0; k < K; k += BK) {
        load_a<BM, BK, THREADS>(a_tile, a, first_row, k, M, K, stride.a);
        load_b<BN, BK, THREADS>(b_tile, b, k, first_col, K, N, stride.b);
        __syncthreads();  // the slice is complete
        multiply_add<BM, BN, BK, TM, TN>(sum, a_tile, b_tile, row, col);
        __syncthreads();  // all threads have read it, the next may overwrite it
    }

#pragma unroll
    for (int m = 0; m < TM; ++m)
#pragma unroll
        for (int n = 0; n < TN; ++n)
            if (first_row + row + m < M && first_col + col + n < N)
                store_element(sum[m][n], c, out, first_row + row + m, first_col + col + n, alpha, beta, stride);
}

}  // namespace gemm
