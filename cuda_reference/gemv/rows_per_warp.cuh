// GEMV, several rows per warp: LANES lanes walk a row by 128-bit loads, 32 / LANES rows side by side in a warp.
//
// A row of few vectors leaves lanes of a warp of its own idle, and they still pay five shuffles. Here every lane has a
// vector, and log2(LANES) shuffles are enough. Mirrors tritonkernels/gemv/rows_per_warp.py, the write-up's design, N <= 16.
#pragma once
#include "../common/overlap.cuh"
#include "parts/vector_row.cuh"

namespace gemv {

template <class A, class X, int LANES, int THREADS, int UNROLL, bool SHIFTED>
__global__ void __launch_bounds__(THREADS)
rows_per_warp(const A* __restrict__ a, const X* __restrict__ x, const X* __restrict__ y, const float* __restrict__ scale,
              X* __restrict__ out, int rows, int M, int N, Sum<X> alpha, Sum<X> beta, Strides stride, bool streams) {
    static_assert(THREADS % 32 == 0, "whole warps only: warp_sum uses all 32 lanes");
    const int index = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES, lane = threadIdx.x % LANES;
    wait_for_earlier_kernels();
    const Row row(min(index, rows - 1), M);  // past the last row: again, unstored, as the shuffles need every lane
    const Sum<X> partial =
        row_sum<UNROLL, SHIFTED>(row.of(a, stride.a), stride.a.col, row.of(x, stride.x), stride.x.step, N, lane, LANES, Loader(streams));
    const Sum<X> sum = warp_sum<LANES>(partial);
    if (lane == 0 && index < rows) store(sum, row, y, scale, out, alpha, beta, stride);
}

}  // namespace gemv
