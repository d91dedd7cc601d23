// GEMV, naive: a thread per row, one column after the other. out (M) = alpha A (M, N) x (N) + beta y (M).
//
// Neighbouring lanes read neighbouring rows: where rows are contiguous, a request touches 32 sectors and uses one element of each;
// the caches must keep the rest until it is needed. It reads contiguous columns well. It is the baseline of the others.
// Mirrors tritonkernels/gemv/naive.py.
#pragma once
#include "../common/structs.cuh"

namespace gemv {

// y is null where beta is 0: it is never read then.
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
naive(const float* __restrict__ a, const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, int M, int N,
      float alpha, float beta, MatrixStrides of_a, VectorStrides of_x, VectorStrides of_y, VectorStrides of_out) {
    const int m = blockIdx.x * THREADS + threadIdx.x;
    if (m >= M) return;
    const float* row = a + m * of_a.row;
    float sum = 0.0f;
    for (int n = 0; n < N; ++n) sum += row[n * of_a.col] * x[n * of_x.step];
    sum *= alpha;
    if (y != nullptr) sum += beta * y[m * of_y.step];
    out[m * of_out.step] = sum;
}

}  // namespace gemv
