// GEMV, x staged: `warp_per_row` with x loaded through shared memory, once per block instead of once per warp.
//
// The write-up found no gain: the barriers cost as much as the saved loads of x, which came from L1 anyway. It is here to be
// measured. Mirrors tritonkernels/gemv/staged_x.py.
#pragma once
#include "../common/structs.cuh"

namespace gemv {

// y is null where beta is 0: it is never read then.
template <int ROWS, int STAGE>
__global__ void __launch_bounds__(32 * ROWS)
staged_x(const float* __restrict__ a, const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, int M,
         int N, float alpha, float beta, MatrixStrides of_a, VectorStrides of_x, VectorStrides of_y, VectorStrides of_out) {
    __shared__ float staged[STAGE];
    const int m = blockIdx.x * ROWS + threadIdx.x / 32, lane = threadIdx.x % 32;
    const float* row = a + min(m, M - 1) * of_a.row;  // past the end: the last row, unstored, as barriers need every warp
    float sum = 0.0f;
    for (int first = 0; first < N; first += STAGE) {
        const int count = min(STAGE, N - first);
        for (int i = threadIdx.x; i < count; i += 32 * ROWS) staged[i] = x[(first + i) * of_x.step];
        __syncthreads();  // the piece of x is complete
#pragma unroll 4
        for (int i = lane; i < count; i += 32) sum += row[(first + i) * of_a.col] * staged[i];
        __syncthreads();  // all warps have read it, the next may overwrite it
    }
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_down_sync(0xffffffffu, sum, apart);
    if (lane > 0 || m >= M) return;  // the first lane has the sum of all
    sum *= alpha;
    if (y != nullptr) sum += beta * y[m * of_y.step];
    out[m * of_out.step] = sum;
}

}  // namespace gemv
