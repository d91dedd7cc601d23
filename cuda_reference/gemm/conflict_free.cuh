// FP32 GEMM, conflict_free: `vectorized` without bank conflicts in the slice loop.
//
// Shared memory has 32 banks of 4 bytes; lanes that access different words of one bank are served one after the other,
// 128-bit accesses in 4 phases of 8 lanes each. `vectorized` has conflicts in two places:
//   store of A  a warp stores 16 rows x 2 quads of k, and k and k + 4 lie 4 BM floats = 0 banks apart: 2 lanes a bank.
//               PaddedTile makes rows 4 floats longer, so that they lie 16 banks apart, for 16 BK bytes of shared memory.
//               RemappedTile swaps the halves of every 32 rows of A where k & 4: no memory, but a second address to read.
//   load of B   the 8 lanes of a phase stood side by side and read quads TN = 8 floats apart: 0, 8, .. 56, the last four in
//               the banks of the first. Here a phase is 4 x 2 lanes and reads 4 quads of A or 2 of B, 24 floats at most
//               from the first to the last, all in different banks.
#pragma once
#include "../common/overlap.cuh"
#include "parts/tile_io.cuh"

namespace gemm {

template <int BM> struct PaddedTile {
    static constexpr int PITCH = BM + 4;
    __device__ __forceinline__ static int at(int k, int row) { return k * PITCH + row; }
};

template <int BM> struct RemappedTile {
    static constexpr int PITCH = BM;
    __device__ __forceinline__ static int at(int k, int row) { return k * PITCH + (row ^ (k & 4) * 4); }
};

template <int BM, int BN, int BK, int TM, int TN, template <int> class ATileOf, bool VECTOR>
__global__ void __launch_bounds__(Shape<BM, BN, TM, TN>::THREADS)
conflict_free(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ out,
              int M, int N, int K, float alpha, float beta, Strides stride) {
    wait_for_earlier_kernels();
    constexpr int THREADS = Shape<BM, BN, TM, TN>::THREADS, WM = 4 * TM, WN = 8 * TN;
    using ATile = ATileOf<BM>;
    using A = SlicesOfA<ATile, BM, BK, THREADS, VECTOR>;
    using B = SlicesOfB<BN, BK, THREADS, VECTOR>;
    __shared__ __align__(16) float a_tile[BK * ATile::PITCH];
    __shared__ __align__(16) float b_tile[BK * BN];

    const int tiles_n = ceil_div(N, BN);
    const int first_row = blockIdx.x / tiles_n * BM, first_col = blockIdx.x % tiles_n * BN;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = warp / (BN / WN) * WM + lane / 2 % 4 * TM;  // of the thread tile in the block tile
    const int col = warp % (BN / WN) * WN + (lane / 8 * 2 + lane % 2) * TN;

    const A a_slices(a, first_row, M, stride.a);
    const B b_slices(b, first_col, N, stride.b);
    float sum[TM][TN] = {};
    for (int k = 0; k < K; k += BK) {
        float4 a_quads[A::QUADS], b_quads[B::QUADS];
        a_slices.fetch_tail(a_quads, k, K);
        b_slices.fetch_tail(b_quads, k, K);
        A::put(a_tile, a_quads);
        B::put(b_tile, b_quads);
        __syncthreads();  // the slice is complete
        multiply_add<ATile, BN, BK, 4, 4>(sum, a_tile, b_tile, row, col);
        __syncthreads();  // all threads have read it, the next may overwrite it
    }
    store_tile<4, 4>(sum, c, out, first_row + row, first_col + col, M, N, alpha, beta, stride);
}

}  // namespace gemm
