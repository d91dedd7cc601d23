// FP32 GEMM, rasterized: `double_buffered` with the order of tiles of C as a parameter.
//
// The blocks that run at a time, a wave of w, share rows of A and columns of B through L2. Where their tiles form a rectangle of
// R x S (w = R S), L2 serves all but R BM + S BN of the w (BM + BN) rows and columns they read: the squarer in elements, the
// better. `group` is R: blocks walk down a band of that many rows of tiles before they move on to the next column.
//   group = 1        along N, a flat wave: the write-up's choice, 10 % faster than along M (supposedly as it spreads misses of L2)
//   group = tiles_m  along M, a tall wave
//   between          a rectangle; w = 92 blocks of 128 x 128 hit 49.5 % in one row of tiles, 89 % in 8 rows
// Costs a few integer divisions a block.
#pragma once
#include "../common/overlap.cuh"
#include "../common/raster.cuh"
#include "parts/double_buffer.cuh"

namespace gemm {

template <int BM, int BN, int BK, int TM, int TN, bool VECTOR, bool SHIFTED>
__global__ void __launch_bounds__(Shape<BM, BN, TM, TN>::THREADS, Shape<BM, BN, TM, TN>::blocks_per_sm(VECTOR))
rasterized(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ out,
           int M, int N, int K, float alpha, float beta, Strides stride, int group) {
    wait_for_earlier_kernels();
    using Buffer = DoubleBuffer<BM, BN, BK, TM, TN, VECTOR>;
    using Place = typename Buffer::Place;
    __shared__ typename Buffer::Slice buffers[2];

    const TileIndex tile = rasterize(blockIdx.x, ceil_div(M, BM), ceil_div(N, BN), group);
    const int first_row = tile.m * BM, first_col = tile.n * BN;

    float sum[TM][TN] = {};
    Buffer::accumulate(sum, buffers, a, b, first_row, first_col, M, N, K, stride);
    Place::template store<SHIFTED>(sum, c, out, first_row, first_col, M, N, alpha, beta, stride);
}

}  // namespace gemm
