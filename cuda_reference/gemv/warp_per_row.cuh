// GEMV, a warp per row: the lanes walk one row of A together, then reduce their partial sums by shuffles.
//
// Neighbouring lanes read neighbouring elements: 4 sectors a request of fp32 where a thread per row would touch 32. Blocks are
// (32, ROWS); four loads are in flight a lane. Mirrors tritonkernels/gemv/warp_per_row.py, and the seed's design for N = 32,
// for any N.
#pragma once
#include "../common/overlap.cuh"
#include "parts/row.cuh"

namespace gemv {

template <class A, class X, int ROWS>
__global__ void __launch_bounds__(32 * ROWS)
warp_per_row(const A* __restrict__ a, const X* __restrict__ x, const X* __restrict__ y, const float* __restrict__ scale,
             X* __restrict__ out, int rows, int M, int N, Sum<X> alpha, Sum<X> beta, Strides stride) {
    const int index = blockIdx.x * ROWS + threadIdx.x / 32, lane = threadIdx.x % 32;
    wait_for_earlier_kernels();
    if (index >= rows) return;  // the same for the whole warp, so the shuffles below stay convergent
    const Row row(index, M);
    const Sum<X> partial = scalar_sum(row.of(a, stride.a), stride.a.col, row.of(x, stride.x), stride.x.step, N, lane, 32);
    const Sum<X> sum = warp_sum(partial);
    if (lane == 0) store(sum, row, y, scale, out, alpha, beta, stride);
}

}  // namespace gemv
