// GEMV, x staged: `warp_per_row` with x loaded through shared memory, once per block instead of once per warp.
//
// The seed found no gain: the barriers cost as much as the saved loads of x, which came from L1 anyway. It is here to be
// measured. A tile of ROWS rows belongs to one matrix of the batch. Mirrors tritonkernels/gemv/staged_x.py.
#pragma once
#include "../common/overlap.cuh"
#include "parts/row.cuh"

namespace gemv {

template <class A, class X, int ROWS, int STAGE>
__global__ void __launch_bounds__(32 * ROWS)
staged_x(const A* __restrict__ a, const X* __restrict__ x, const X* __restrict__ y, const float* __restrict__ scale,
         X* __restrict__ out, int M, int N, Sum<X> alpha, Sum<X> beta, Strides stride) {
    wait_for_earlier_kernels();
    __shared__ Sum<X> staged[STAGE];
    const int tiles = ceil_div(M, ROWS), lane = threadIdx.x % 32;
    const int m = blockIdx.x % tiles * ROWS + threadIdx.x / 32;
    const Row row(blockIdx.x / tiles, min(m, M - 1), 0);  // at the end: the last row, unstored, as barriers need every warp
    const A* a_row = row.of(a, stride.a);
    const X* x_row = row.of(x, stride.x);
    Sum<X> partial = 0;
    for (int first = 0; first < N; first += STAGE) {
        const int count = min(STAGE, N - first);
        for (int i = threadIdx.x; i < count; i += 32 * ROWS) staged[i] = Sum<X>(x_row[(first + i) * stride.x.step]);
        __syncthreads();  // the piece of x is complete
        partial += scalar_sum(a_row + first * stride.a.col, stride.a.col, staged, 1, count, lane, 32);
        __syncthreads();  // all warps have read it, the next may overwrite it
    }
    const Sum<X> sum = warp_sum(partial);
    if (lane == 0 && m < M) store(sum, row, y, scale, out, alpha, beta, stride);
}

}  // namespace gemv
