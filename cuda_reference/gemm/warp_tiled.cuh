// FP32 GEMM, warp_tiled: the 32 lanes of a warp own a 4 x 8 grid of thread tiles, so a warp owns WM x WN of C.
//
// In `tiled` a warp's 32 thread tiles form two rows of 16: per k it reads 2 TM + 16 TN floats from shared memory. A WM
// x WN warp tile reads WM + WN = 4 TM + 8 TN for the same multiply-adds: 96 instead of 144 at 8 x 8. Lanes that read the same
// word share one broadcast, so only distinct words cost, and 4 x 8 has the fewest of all splits of 32. It only changes two
// index formulas.
#pragma once
#include "../common/overlap.cuh"
#include "tiled.cuh"  // load_a, load_b, multiply_add

namespace gemm {

template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), TM * TN > 16 ? 2 : 4)  // blocks an SM: 128 or 64 registers a thread
warp_tiled(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ out,
           int M, int N, int K, float alpha, float beta, Strides stride) {
    wait_for_earlier_kernels();
    constexpr int THREADS = (BM / TM) * (BN / TN);
    constexpr int WM = 4 * TM, WN = 8 * TN;
    static_assert(BM % WM == 0 && BN % WN == 0, "warp tiles cover the block tile exactly");
    __shared__ float a_tile[BK][BM];
    __shared__ float b_tile[BK][BN];

    const int tiles_n = ceil_div(N, BN);
    const int first_row = blockIdx.x / tiles_n * BM, first_col = blockIdx.x % tiles_n * BN;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = warp / (BN / WN) * WM + lane / 8 * TM;  // of the thread tile in the block tile
    const int col = warp % (BN / WN) * WN + lane % 8 * TN;

    float sum[TM][TN] = {};
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
