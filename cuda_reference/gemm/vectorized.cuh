// FP32 GEMM, vectorized: `warp_tiled` with 128-bit accesses of global and of shared memory.
//
// A quad of floats costs one instruction instead of four: per k and thread 4 shared loads instead of 16 for the 64
// multiply-adds of an 8 x 8 tile (nvcc 13 fuses those of `tiled` too, where it can prove them aligned; here they are explicit).
// Global memory gains little as long as each instruction is contiguous across the warp; four strided scalar loads in place of a
// quad cost about 10 % (the seed's figure). The price: 16-byte alignment. The launcher knows whether A and B have it and picks
// VECTOR; C and out are asked on the device, once per thread. A's quads lie along K and are stored transposed, scalar by
// scalar.
#pragma once
#include "../common/overlap.cuh"
#include "parts/tile_io.cuh"

namespace gemm {

template <int BM, int BN, int BK, int TM, int TN, bool VECTOR>
__global__ void __launch_bounds__(Shape<BM, BN, TM, TN>::THREADS)
vectorized(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ out,
           int M, int N, int K, float alpha, float beta, Strides stride) {
    wait_for_earlier_kernels();
    constexpr int THREADS = Shape<BM, BN, TM, TN>::THREADS, WM = 4 * TM, WN = 8 * TN;
    using ATile = PlainTile<BM>;
    using A = SlicesOfA<ATile, BM, BK, THREADS, VECTOR>;
    using B = SlicesOfB<BN, BK, THREADS, VECTOR>;
    __shared__ __align__(16) float a_tile[BK * ATile::PITCH];
    __shared__ __align__(16) float b_tile[BK * BN];

    const int tiles_n = ceil_div(N, BN);
    const int first_row = blockIdx.x / tiles_n * BM, first_col = blockIdx.x % tiles_n * BN;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = warp / (BN / WN) * WM + lane / 8 * TM;  // of the thread tile in the block tile
    const int col = warp % (BN / WN) * WN + lane % 8 * TN;

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
