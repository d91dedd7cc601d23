// FP32 GEMM, split_k: `rasterized` with K cut into parts that different blocks work on, for products with few tiles and a
// long K.
//
// 256 x 256 x 16384 has 16 tiles of 64 x 64: they would keep 16 SMs busy. With S splits 16 S blocks run, each K / S long. Each
// writes its partial sums to a workspace, and the last of a tile to arrive adds them in the order of K: the same bits every time,
// which float atomics would not give, and no second launch.
//
// It costs S M N floats, written and read again through L2. The last block alone reads S BM BN of them: of 16 splits of 64 x 64
// 256 KB, which are 4096 clocks at the 64 bytes a clock that an SM gets from L2, or 2 us, as long as a launch. So there are no
// more than that (split_k.py), and more splits are added up in groups first (add_splits.cuh).
// Mirrors tritonkernels/gemm/split_k.py.
#pragma once
#include "../common/add_splits.cuh"
#include "../common/overlap.cuh"
#include "rasterized.cuh"

namespace gemm {

// A block of gridDim.y takes `split_size` of K, whole slices, of which none is empty: quads stay aligned.
template <int BM, int BN, int BK, int TM, int TN, bool VECTOR, bool SHIFTED>
__global__ void __launch_bounds__(Shape<BM, BN, TM, TN>::THREADS, Shape<BM, BN, TM, TN>::blocks_per_sm(VECTOR))
split_k(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ out,
        int M, int N, int K, float alpha, float beta, Strides stride, int group, float* partial, int* counters,
        int split_size) {
    wait_for_earlier_kernels();
    using Own = Shape<BM, BN, TM, TN>;
    using Buffer = DoubleBuffer<BM, BN, BK, TM, TN, VECTOR>;
    using Place = typename Buffer::Place;
    __shared__ typename Buffer::Slice buffers[2];

    const TileIndex tile = rasterize(blockIdx.x, ceil_div(M, BM), ceil_div(N, BN), group);
    const int first_row = tile.m * BM, first_col = tile.n * BN;
    const int first_k = blockIdx.y * split_size, length = min(K - first_k, split_size);

    float sum[TM][TN] = {};
    a += first_k * stride.a.col, b += first_k * stride.b.row;
    Buffer::accumulate(sum, buffers, a, b, first_row, first_col, M, N, length, stride);
    if (!add_splits<Own::THREADS, Own::PARTS_AT_ONCE, Own::SUMS_AT_ONCE>(sum, partial, counters)) return;
    Place::template store<SHIFTED>(sum, c, out, first_row, first_col, M, N, alpha, beta, stride);
}

}  // namespace gemm
