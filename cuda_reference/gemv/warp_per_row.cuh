// GEMV, a warp per row: the lanes walk one row of A together, then reduce their partial sums by shuffles.
//
// Over `naive`, neighbouring lanes read neighbouring elements: 4 sectors a request where a thread per row touches 32. Blocks
// are (32, ROWS); four loads are in flight a lane. Mirrors tritonkernels/gemv/warp_per_row.py, and the write-up's design for
// N = 32, for any N.
#pragma once
#include "../common/structs.cuh"

namespace gemv {

// y is null where beta is 0: it is never read then.
template <int ROWS>
__global__ void __launch_bounds__(32 * ROWS)
warp_per_row(const float* __restrict__ a, const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, int M,
             int N, float alpha, float beta, MatrixStrides of_a, VectorStrides of_x, VectorStrides of_y, VectorStrides of_out) {
    const int m = blockIdx.x * ROWS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (m >= M) return;  // the same for the whole warp, so the shuffles below stay convergent
    const float* row = a + m * of_a.row;
    float sum = 0.0f;
#pragma unroll 4
    for (int n = lane; n < N; n += 32) sum += row[n * of_a.col] * x[n * of_x.step];
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_down_sync(0xffffffffu, sum, apart);
    if (lane > 0) return;  // the first lane has the sum of all
    sum *= alpha;
    if (y != nullptr) sum += beta * y[m * of_y.step];
    out[m * of_out.step] = sum;
}

}  // namespace gemv
