// GEMV, vectorized: `warp_per_row` with 128-bit loads of A, and of x where its address allows.
//
// A load instruction reads 512 bytes per warp, for any type, where 4-byte loads read 128: a quarter of the instructions
// (an eighth of fp16's, a sixteenth of int8's) keeps the same bytes in flight. UNROLL of them are, for each lane.
// Mirrors tritonkernels/gemv/vectorized.py, and the write-up's design for N >= 128, without its limits on N.
#pragma once
#include "../common/overlap.cuh"
#include "parts/vector_row.cuh"

namespace gemv {

template <class A, class X, int ROWS, int UNROLL, bool SHIFTED>
__global__ void __launch_bounds__(32 * ROWS)
vectorized(const A* __restrict__ a, const X* __restrict__ x, const X* __restrict__ y, const float* __restrict__ scale,
           X* __restrict__ out, int rows, int M, int N, Sum<X> alpha, Sum<X> beta, Strides stride, bool streams) {
    const int index = blockIdx.x * ROWS + threadIdx.x / 32, lane = threadIdx.x % 32;
    wait_for_earlier_kernels();
    if (index >= rows) return;  // the same for the whole warp, so the shuffles below stay convergent
    const Row row(index, M);
    const Sum<X> partial =
        row_sum<UNROLL, SHIFTED>(row.of(a, stride.a), stride.a.col, row.of(x, stride.x), stride.x.step, N, lane, 32, Loader(streams));
    const Sum<X> sum = warp_sum(partial);
    if (lane == 0) store(sum, row, y, scale, out, alpha, beta, stride);
}

}  // namespace gemv
