// implicit_gemm for few output channels per group: each thread has its own positions and keeps all sums of the tile in registers.
// That is BM BN multiply-adds for BM + BN loads, straight from L1, where neighbouring taps read the same inputs. Nothing is
// staged, and the loop has no barrier. The threads' sums are added at the end, once: by shuffles, then over the warps in order.
#pragma once
#include "../../common/reduce.cuh"  // warp_sum
#include "../../common/overlap.cuh"
#include "tile.cuh"

namespace conv2d_weight {

template <class T, int BM, int BN>
__global__ void __launch_bounds__(THREADS, BM * BN > 64 ? 2 : 4)
thin(const T* __restrict__ input, const T* __restrict__ grad_output, T* __restrict__ weight, Sum<T>* __restrict__ sums, Geometry g,
     Strides stride, int64_t positions_per_split) {
    wait_for_earlier_kernels();
    __shared__ Columns<BN> columns;
    __shared__ Sum<T> of_warp[THREADS / 32][BM * BN];
    const Tile tile(g, g.c_per_group() * g.R * g.S, BM, BN, positions_per_split);
    const T* const grad = tile.rows(grad_output, g, stride);
    const T* const planes = tile.planes(input, g, stride);
    columns.locate(tile, false, sums != nullptr, g, stride);
    __syncthreads();  // all columns are located

    Sum<T> sum[BM][BN] = {};
    for (int64_t l = tile.first; l < tile.end; l += THREADS) {
        __syncwarp();  // or the compiler would keep all columns in registers, which the sums need
        const bool is_there = l + threadIdx.x < tile.end;
        const Position at(is_there ? l + threadIdx.x : 0, g.P, g.Q);
        const int64_t offset = at.image * stride.grad.n + at.p * stride.grad.h + at.q * stride.grad.w;
        Sum<T> a[BM];
#pragma unroll
        for (int m = 0; m < BM; ++m) a[m] = is_there && m < tile.count_m ? Sum<T>(grad[offset + m * stride.grad.c]) : Sum<T>(0);
        const int h = at.p * g.step_h - g.padding_h, w = at.q * g.step_w - g.padding_w;
        const T* const from = planes + at.image * stride.input.n + h * stride.input.h + w * stride.input.w;
#pragma unroll
        for (int n = 0; n < BN; ++n) {
            const Place column = columns.column[n];
            const bool inside = is_there && conv2d::is_inside(h, w, column.h, column.w, g.H, g.W);
            const T value = *(inside ? from + column.of_input : grad);  // always some element: no branch around the load
            const Sum<T> x = inside ? Sum<T>(value) : Sum<T>(0);
#pragma unroll
            for (int m = 0; m < BM; ++m) sum[m][n] += a[m] * x;
        }
    }

#pragma unroll
    for (int m = 0; m < BM; ++m)
#pragma unroll
        for (int n = 0; n < BN; ++n) {
            if (n >= tile.count_n) continue;
            const Sum<T> of_lanes = warp_sum(sum[m][n]);
            if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32][m * BN + n] = of_lanes;
        }
    __syncthreads();  // all warps have stored theirs
    for (int i = threadIdx.x; i < BM * BN; i += THREADS) {
        if (i % BN >= tile.count_n) continue;
        Sum<T> total = of_warp[0][i];
        for (int warp = 1; warp < THREADS / 32; ++warp) total += of_warp[warp][i];
        columns.store(total, i / BN, i % BN, weight, sums, tile, g, stride);
    }
}

}  // namespace conv2d_weight
