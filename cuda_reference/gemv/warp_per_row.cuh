// GEMV, a warp per row: the lanes walk one row of A together, then reduce their partial sums by shuffles.
//
// Neighbouring lanes read neighbouring elements: 4 sectors a request where a thread per row would touch 32. Blocks are (32, ROWS).
// Mirrors tritonkernels/gemv/warp_per_row.py, and the seed's design for N = 32, for any N.
#pragma once
#include "../common/index.cuh"
#include "../common/reduce.cuh"

namespace gemv {

// In elements; 0 repeats one element.
struct Strides {
    int64_t am, an, x, y, o;
};

template <int ROWS>
__global__ void __launch_bounds__(32 * ROWS)
warp_per_row(const float* __restrict__ a, const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out,
             int M, int N, float alpha, float beta, Strides stride) {
    const int row = blockIdx.x * ROWS + threadIdx.y;
    const int lane = threadIdx.x;
    if (row >= M) return;  // the same for the whole warp, so the shuffles below stay convergent

    const float* a_row = a + row * stride.am;
    float partial = 0.0f;
    for (int n = lane; n < N; n += 32) partial += a_row[n * stride.an] * x[n * stride.x];
    const float sum = warp_sum(partial);
    if (lane == 0) {
        float result = alpha * sum;
        if (y != nullptr) result += beta * y[row * stride.y];  // null where beta is 0: y is never read
        out[row * stride.o] = result;
    }
}

}  // namespace gemv
