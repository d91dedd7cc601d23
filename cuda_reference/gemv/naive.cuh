// GEMV, naive: a thread per row.
//
// Neighbouring lanes read neighbouring rows: 32 sectors a request where rows are contiguous, of which it uses an element
// each; the caches must keep the rest until it is needed. Contiguous columns it reads well. It is the baseline of the
// others. Mirrors tritonkernels/gemv/naive.py.
#pragma once
#include "../common/overlap.cuh"
#include "parts/row.cuh"

namespace gemv {

template <class A, class X, int THREADS>
__global__ void __launch_bounds__(THREADS)
naive(const A* __restrict__ a, const X* __restrict__ x, const X* __restrict__ y, const float* __restrict__ scale,
      X* __restrict__ out, int rows, int M, int N, Sum<X> alpha, Sum<X> beta, Strides stride) {
    wait_for_earlier_kernels();
    const int index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= rows) return;
    const Row row(index, M);
    const A* a_row = row.of(a, stride.a);
    const X* x_row = row.of(x, stride.x);
    Sum<X> sum = 0;
    for (int n = 0; n < N; ++n) sum += Sum<X>(a_row[n * stride.a.col]) * Sum<X>(x_row[n * stride.x.step]);
    store(sum, row, y, scale, out, alpha, beta, stride);
}

}  // namespace gemv
