// GEMV, a block per row: `vectorized` with all warps of a block on one row.
//
// With fewer rows than the GPU has warps, a warp per row keeps too little in flight; WARPS of them keep WARPS times that. The
// price is a reduction across warps, through shared memory and a barrier, once a row. Mirrors
// tritonkernels/gemv/block_per_row.py.
#pragma once
#include "../common/overlap.cuh"
#include "parts/vector_row.cuh"

namespace gemv {

template <class A, class X, int WARPS, int UNROLL, bool SHIFTED>
__global__ void __launch_bounds__(32 * WARPS)
block_per_row(const A* __restrict__ a, const X* __restrict__ x, const X* __restrict__ y, const float* __restrict__ scale,
              X* __restrict__ out, int rows, int M, int N, Sum<X> alpha, Sum<X> beta, Strides stride, bool streams) {
    wait_for_earlier_kernels();
    const Row row(blockIdx.x, M);
    const Sum<X> partial = row_sum<UNROLL, SHIFTED>(row.of(a, stride.a), stride.a.col, row.of(x, stride.x), stride.x.step, N,
                                           threadIdx.x, 32 * WARPS, Loader(streams));
    const Sum<X> sum = block_sum<WARPS>(partial);
    if (threadIdx.x == 0) store(sum, row, y, scale, out, alpha, beta, stride);
}

}  // namespace gemv
