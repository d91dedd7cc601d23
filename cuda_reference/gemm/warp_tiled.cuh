// FP32 GEMM, warp_tiled: `tiled` with the 32 lanes of a warp as a grid of 4 x 8 thread tiles, so a warp owns WM x WN of C.
//
// In `tiled` a warp's 32 thread tiles form two rows of 16: per k it reads 2 TM + 16 TN floats from shared memory. A warp tile
// of WM x WN reads WM + WN = 4 TM + 8 TN for the same multiply-adds: 96 instead of 144 at 8 x 8. Lanes that read the same word
// share a broadcast, so only distinct words cost, and 4 x 8 has the fewest of all splits of 32. Only two index formulas change.
// Mirrors tritonkernels/gemm/warp_tiled.py.
#pragma once
#include "parts/common.cuh"

namespace gemm {

template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), 2) warp_tiled(  // 2 blocks an SM: 128 registers a thread
    const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ out,
    int M, int N, int K, float alpha, float beta, Strides stride) {
    constexpr int THREADS = (BM / TM) * (BN / TN);
    constexpr int WM = 4 * TM, WN = 8 * TN;
    static_assert(BM % WM == 0 && BN % WN == 0, "warp tiles cover the block tile exactly");
    static_assert(BM * BK % THREADS == 0 && BN * BK % THREADS == 0, "every thread loads the same number of elements");
    __shared__ float a_tile[BK][BM];  // transposed: a thread's elements of one k are neighbours
    __shared__ float b_tile[BK][BN];

    const int tiles_n = ceil_div(N, BN);
    const int first_row = blockIdx.x / tiles_n * BM, first_col = blockIdx.x % tiles_n * BN;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = warp / (BN / WN) * WM + lane / 8 * TM;  // of the thread tile in the block tile
    const int col = warp % (BN / WN) * WN + lane % 8 * TN;

    float sum[TM][TN] = {};
    for (int first_k = 0; first_k < K; first_k += BK) {
        // Zeros past the edges add nothing to a sum. Of A neighbouring threads read along K, where BK = 8 floats are one sector
        // of 32 bytes; of B along N, 4 sectors a request.
#pragma unroll
        for (int i = threadIdx.x; i < BM * BK; i += THREADS) {
            const int m = first_row + i / BK, k = first_k + i % BK;
            a_tile[i % BK][i / BK] = m < M && k < K ? a[m * stride.a.row + k * stride.a.col] : 0;
        }
#pragma unroll
        for (int i = threadIdx.x; i < BN * BK; i += THREADS) {
            const int k = first_k + i / BN, n = first_col + i % BN;
            b_tile[i / BN][i % BN] = k < K && n < N ? b[k * stride.b.row + n * stride.b.col] : 0;
        }
        __syncthreads();  // the slice is complete
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_part[TM], b_part[TN];
#pragma unroll
            for (int m = 0; m < TM; ++m) a_part[m] = a_tile[k][row + m];
#pragma unroll
            for (int n = 0; n < TN; ++n) b_part[n] = b_tile[k][col + n];
#pragma unroll
            for (int n = 0; n < TN; ++n)
#pragma unroll
                for (int i = 0; i < TM; ++i) {  // to and fro: each FFMA has a factor of the one before, in the reuse cache
                    const int m = n % 2 ? TM - 1 - i : i;
                    sum[m][n] += a_part[m] * b_part[n];
                }
        }
        __syncthreads();  // all threads have read it, the next may overwrite it
    }

#pragma unroll
    for (int m = 0; m < TM; ++m)
#pragma unroll
        for (int n = 0; n < TN; ++n) {
            const int i = first_row + row + m, j = first_col + col + n;
            if (i >= M || j >= N) continue;
            float result = alpha * sum[m][n];
            if (c != nullptr) result += beta * c[i * stride.c.row + j * stride.c.col];
            out[i * stride.out.row + j * stride.out.col] = result;
        }
}

}  // namespace gemm
