// conv2d_weight, implicit_gemm: a block sums BM x BN elements of a group's weight, as a matrix, over its share of positions.
//
// The matrix has K / groups rows and C / groups * R * S columns (c, r, s). It is the product of grad_output and the im2col matrix
// of the input, which is never written: its elements are gathered from where they are. The reduction is long, N P Q positions,
// and tiles are few, so the positions are split over blocks (conv2d/parts/splits.cuh).
//
// Slices of BL positions are staged. One warp computes where a slice's positions are while the others still multiply the slice
// before; where columns read is computed once. A thread has TM x TN sums. With few output channels such a tile would be mostly
// padding: parts/thin.cuh is for these. This tile is for CUDA cores, any type and any strides; parts/cuda_cores.cuh has large ones
// for fp32, parts/tensor_cores.cuh those for tensor cores.
// Mirrors tritonkernels/conv2d_weight/implicit_gemm.py.
#pragma once
#include "../common/overlap.cuh"
#include "parts/thin.cuh"
#include "parts/tile.cuh"

namespace conv2d_weight {

constexpr int BL = 32;

// Element e of a slice of BL positions by `count`: lanes along positions, or along channels that lie side by side (`inside`).
struct Element {
    int position, other;

    __device__ __forceinline__ Element(int e, int count, bool inside)
        : position(inside ? e / count : e % BL), other(inside ? e % count : e / BL) {}
};

template <class T, int BM, int BN, int TM, int TN>
__global__ void __launch_bounds__(THREADS, 3)
implicit_gemm(const T* __restrict__ input, const T* __restrict__ grad_output, T* __restrict__ weight, Sum<T>* __restrict__ sums,
              Geometry g, Strides stride, int64_t positions_per_split) {
    wait_for_earlier_kernels();
    static_assert(BM % TM == 0 && BN % TN == 0 && BM / TM * (BN / TN) == THREADS, "a thread per TM x TN sums");
    constexpr int PAD = 16 / sizeof(Sum<T>);  // rows stay aligned, and lanes along positions store to several banks
    __shared__ __align__(16) Sum<T> grads[BL][BM + PAD], inputs[BL][BN + PAD];
    __shared__ Positions<BL> slices[2];
    __shared__ Columns<BN> columns;

    const Tile tile(g, g.c_per_group() * g.R * g.S, BM, BN, positions_per_split);
    const bool inside = stride.input.c == 1 && stride.grad.c == 1;
    const T* const grad = tile.rows(grad_output, g, stride);
    const T* const planes = tile.planes(input, g, stride);
    const int m = threadIdx.x / (BN / TN) * TM, n = threadIdx.x % (BN / TN) * TN;
    Sum<T> sum[TM][TN] = {};
    columns.locate(tile, inside, sums != nullptr, g, stride);
    slices[0].locate(tile.first, tile.end, g, stride);
    for (int e = threadIdx.x; e < BL * (BM + BN); e += THREADS)  // zeros where the weight has no row or column
        (e < BL * BM ? grads[e / BM][e % BM] : inputs[(e - BL * BM) / BN][(e - BL * BM) % BN]) = Sum<T>(0);
    int parity = 0;
    for (int64_t l = tile.first; l < tile.end; l += BL, parity ^= 1) {
        const Positions<BL>& at = slices[parity];
        __syncthreads();  // the positions are located, and the previous slice has been read
        for (int e = threadIdx.x; e < BL * tile.count_m; e += THREADS) {
            const Element i(e, tile.count_m, inside);
            const T value = grad[at.of_grad[i.position] + i.other * stride.grad.c];  // always some element
            grads[i.position][i.other] = l + i.position < tile.end ? Sum<T>(value) : Sum<T>(0);
        }
        for (int e = threadIdx.x; e < BL * tile.count_n; e += THREADS) {
            const Element i(e, tile.count_n, inside);
            const Place position = at.input[i.position], column = columns.column[i.other];
            const bool is_there = is_inside(position, column.h, column.w, g);
            inputs[i.position][i.other] = is_there ? Sum<T>(planes[position.of_input + column.of_input]) : Sum<T>(0);
        }
        __syncthreads();  // the slice is complete
        slices[parity ^ 1].locate(l + BL, tile.end, g, stride);
#pragma unroll
        for (int i = 0; i < BL; ++i) {
            Sum<T> a[TM], b[TN];
#pragma unroll
            for (int x = 0; x < TM; ++x) a[x] = grads[i][m + x];
#pragma unroll
            for (int y = 0; y < TN; ++y) b[y] = inputs[i][n + y];
#pragma unroll
            for (int x = 0; x < TM; ++x)
#pragma unroll
                for (int y = 0; y < TN; ++y) sum[x][y] += a[x] * b[y];
        }
    }
    __syncthreads();  // the columns are located, also where there is no slice
#pragma unroll
    for (int x = 0; x < TM; ++x)
#pragma unroll
        for (int y = 0; y < TN; ++y) columns.store(sum[x][y], m + x, n + y, weight, sums, tile, g, stride);
}

}  // namespace conv2d_weight
