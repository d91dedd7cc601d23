// FP32 GEMM, stream_k: `rasterized` with as many blocks as fit on the GPU, which share the tiles evenly, to the slice.
//
// The tail effect: 140 tiles on 132 SMs take two waves, the second with 8 blocks: 53 % of the GPU at best. Here whole waves of
// tiles are computed as before, and the rest, between one and two waves, is cut into equal runs of slices, one per block,
// wherever tiles begin and end. A run that ends inside a tile stores a partial sum in a workspace, at most two per block; a
// second kernel adds those of a tile in the order of K, with the same bits every time for the same number of blocks. It costs 2
// tiles of workspace per block, and one more launch. After Osama, Merrill, Cecka, Garland, Owens: Stream-K (PPoPP 2023), the
// variant called "two-tile".
#pragma once
#include "../common/runs.cuh"
#include "rasterized.cuh"

namespace gemm {

// A quad of the sums of a block's partial tile: those of all threads side by side, each access contiguous across the warp.
template <int THREADS, int TM, int TN>
__device__ __forceinline__ float4& partial_quad(float* workspace, int block, bool first_of_run, int m, int n) {
    const int64_t slot = 2 * block + !first_of_run;
    return reinterpret_cast<float4*>(workspace)[((slot * TM + m) * TN + n) / 4 * THREADS + threadIdx.x];
}

template <int BM, int BN, int BK, int TM, int TN, bool VECTOR>
__global__ void __launch_bounds__(Shape<BM, BN, TM, TN>::THREADS, Shape<BM, BN, TM, TN>::blocks_per_sm(VECTOR))
stream_k(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ out,
         float* __restrict__ workspace, int M, int N, int K, float alpha, float beta, Strides stride,
         int group, int whole_tiles) {
    using Buffer = DoubleBuffer<BM, BN, BK, TM, TN, VECTOR>;
    using Place = typename Buffer::Place;
    __shared__ typename Buffer::Slice buffers[2];

    const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), slices = max(ceil_div(K, BK), 1);
    const Runs runs{int64_t(tiles_m * tiles_n - whole_tiles) * slices, int(gridDim.x)};
    const int64_t begin = runs.begin(blockIdx.x), end = runs.begin(blockIdx.x + 1);

    int whole = blockIdx.x;
    for (int64_t at = begin; whole < whole_tiles || at < end;) {
        int number = whole, first = 0, count = slices;  // the tile, and the slices of it to do
        if (whole < whole_tiles) {
            whole += gridDim.x;
        } else {
            number = whole_tiles + int(at / slices);
            first = int(at % slices);
            count = int(min(int64_t(slices - first), end - at));
        }
        const TileIndex tile = rasterize(number, tiles_m, tiles_n, group);
        const int first_row = tile.m * BM, first_col = tile.n * BN;
        const int64_t first_k = int64_t(first) * BK;
        const int length = int(min(K - first_k, int64_t(count) * BK));

        float sum[TM][TN] = {};
        const float *a_part = a + first_k * stride.a.col, *b_part = b + first_k * stride.b.row;
        Buffer::accumulate(sum, buffers, a_part, b_part, first_row, first_col, M, N, length, stride);
        if (count == slices) {
            Place::store(sum, c, out, first_row, first_col, M, N, alpha, beta, stride);
        } else {
#pragma unroll
            for (int m = 0; m < TM; ++m)
#pragma unroll
                for (int n = 0; n < TN; n += 4)
                    partial_quad<Buffer::THREADS, TM, TN>(workspace, blockIdx.x, at == begin, m, n) =
                        make_float4(sum[m][n], sum[m][n + 1], sum[m][n + 2], sum[m][n + 3]);
        }
        if (number >= whole_tiles) at += count;
        __syncthreads();  // all threads have read the buffers, the next tile may overwrite them
    }
}

// Adds the partial sums of a tile that is left, if it has any, in the order of K. A block per tile and row of thread tiles.
template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(Shape<BM, BN, TM, TN>::THREADS, 1)  // 1: otherwise ptxas spills to fit more blocks on an SM
add_runs(float* __restrict__ workspace, const float* __restrict__ c, float* __restrict__ out,
         int M, int N, int K, float alpha, float beta, Strides stride, int group, int whole_tiles, int blocks) {
    using Place = ZOrder<BM, BN, TM, TN>;
    const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), slices = max(ceil_div(K, BK), 1);
    const Runs runs{int64_t(tiles_m * tiles_n - whole_tiles) * slices, blocks};
    const int64_t begin = int64_t(blockIdx.x) * slices;
    const int first = runs.block_of(begin), last = runs.block_of(begin + slices - 1);
    if (first == last) return;  // that block had the whole tile and stored it

    const int m = blockIdx.y;
    float sum[1][TN] = {};
    for (int block = first; block <= last; ++block) {
        if (runs.begin(block) == runs.begin(block + 1)) continue;  // more blocks than slices: this one had nothing to do
#pragma unroll
        for (int n = 0; n < TN; n += 4) {
            const float4 quad =
                partial_quad<Shape<BM, BN, TM, TN>::THREADS, TM, TN>(workspace, block, runs.begin(block) >= begin, m, n);
            sum[0][n] += quad.x, sum[0][n + 1] += quad.y, sum[0][n + 2] += quad.z, sum[0][n + 3] += quad.w;
        }
    }
    const TileIndex tile = rasterize(whole_tiles + blockIdx.x, tiles_m, tiles_n, group);
    const int first_row = tile.m * BM + m / 4 * Place::GAP_M + m % 4;
    Place::store(sum, c, out, first_row, tile.n * BN, M, N, alpha, beta, stride);
}

}  // namespace gemm
