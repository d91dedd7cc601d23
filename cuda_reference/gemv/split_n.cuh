// GEMV, N split over blocks: `block_per_row` with several blocks a row, for fewer rows than SMs.
//
// The last block of a row to arrive adds the partial sums up in a fixed order, so the bits do not depend on which block that
// is. It costs an atomic a block and one round trip through L2 at the end; all threads take part, as a single one would wait
// for hundreds of partial sums in turn, longer than the whole row takes. Mirrors tritonkernels/gemv/split_n.py.
#pragma once
#include "../common/overlap.cuh"
#include "parts/splits.cuh"
#include "parts/vector_row.cuh"

namespace gemv {

// Grid (rows, splits); workspace is (rows, splits), counters (rows,). All splits but the last take `columns`.
template <class A, class X, int WARPS, int UNROLL, bool SHIFTED>
__global__ void __launch_bounds__(32 * WARPS)
split_n(const A* __restrict__ a, const X* __restrict__ x, const X* __restrict__ y, const float* __restrict__ scale,
        X* __restrict__ out, Sum<X>* workspace, int* counters, int rows, int M, int N, int columns, Sum<X> alpha, Sum<X> beta,
        Strides stride, bool streams) {
    wait_for_earlier_kernels();
    const int index = blockIdx.x, split = blockIdx.y, splits = gridDim.y;
    const Row row(index, M);
    const int64_t first = min(int64_t(split) * columns, int64_t(N));
    const Sum<X> partial = row_sum<UNROLL, SHIFTED>(row.of(a, stride.a) + first * stride.a.col, stride.a.col,
                                           row.of(x, stride.x) + first * stride.x.step, stride.x.step,
                                           min(columns, int(N - first)), threadIdx.x, 32 * WARPS, Loader(streams));
    const Sum<X> sum = block_sum<WARPS>(partial);
    Sum<X>* of_row = workspace + int64_t(index) * splits;
    if (threadIdx.x == 0) of_row[split] = sum;
    if (!last_to_arrive(counters + index, splits)) return;
    const Sum<X> total = sum_of_splits<WARPS>(of_row, splits);
    if (threadIdx.x == 0) store(total, row, y, scale, out, alpha, beta, stride);
}

}  // namespace gemv
