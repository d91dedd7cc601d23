// FP32 GEMM, split_k: `rasterized` with K cut into parts that different blocks work on, for products with few tiles and a
// long K.
//
// 256 x 256 x 16384 has 4 tiles of 128 x 128: they would keep 4 SMs busy. With S splits 4 S blocks run, each K / S long.
// Their partial sums go through a workspace and are added by a second kernel in the order of K: the same bits every time,
// which float atomics would not give. Costs S M N floats written and read again and one more launch.
#pragma once
#include "rasterized.cuh"

namespace gemm {

template <int BM, int BN, int BK, int TM, int TN, bool VECTOR>
__global__ void __launch_bounds__(Shape<BM, BN, TM, TN>::THREADS, Shape<BM, BN, TM, TN>::blocks_per_sm(VECTOR))
split_k(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ partial,  // (splits, M, N): stride.out
        int M, int N, int K, Strides stride, int group, int split_size) {
    using Buffer = DoubleBuffer<BM, BN, BK, TM, TN, VECTOR>;
    using Place = typename Buffer::Place;
    __shared__ typename Buffer::Slice buffers[2];

    const TileIndex tile = rasterize(blockIdx.x, ceil_div(M, BM), ceil_div(N, BN), group);
    const int first_row = tile.m * BM, first_col = tile.n * BN;
    const int64_t split = blockIdx.y;
    const int64_t first_k = split * split_size;  // split_size is a multiple of 4, so quads stay aligned
    const int length = int(max(min(K - first_k, int64_t(split_size)), int64_t(0)));

    float sum[TM][TN] = {};
    a += first_k * stride.a.col, b += first_k * stride.b.row;
    Buffer::accumulate(sum, buffers, a, b, first_row, first_col, M, N, length, stride);
    Place::store(sum, nullptr, partial + split * M * N, first_row, first_col, M, N, 1.0f, 0.0f, stride);
}

// out = alpha * (the sum of the partial products) + beta * C, an element a thread.
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
add_splits(const float* __restrict__ partial, const float* __restrict__ c, float* __restrict__ out,
           int M, int N, int splits, float alpha, float beta, Strides stride) {
    const int blocks_n = ceil_div(N, THREADS);
    const int row = blockIdx.x / blocks_n, col = blockIdx.x % blocks_n * THREADS + threadIdx.x;
    if (col >= N) return;
    float sum = 0.0f;
    for (int64_t split = 0; split < splits; ++split) sum += partial[(split * M + row) * N + col];
    store_element(sum, c, out, row, col, alpha, beta, stride);
}

}  // namespace gemm
