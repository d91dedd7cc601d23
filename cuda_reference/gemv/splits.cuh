// Blocks that share rows: each leaves its partial sums in a workspace, and the last to arrive adds them up, in one launch.
#pragma once
#include <cuda_runtime.h>

// Whether this block is the last of `splits` on the counter, told to all of its threads; the others' stores before are then
// seen after. The counter is zero before the first arrives and after the last.
__device__ __forceinline__ bool last_to_arrive(int* counter, int splits) {
    __shared__ bool last;
    __threadfence();  // this thread's partial sums, before the arrival
    __syncthreads();  // and so for all threads of the block
    if (threadIdx.x == 0) {
        last = atomicAdd(counter, 1) == splits - 1;
        if (last) atomicExch(counter, 0);
    }
    __syncthreads();  // everyone may read `last`
    __threadfence();
    return last;
}

// The partial sums of splits 0, 1, ..., `stride` apart, added up in that order, from L2: other blocks wrote them.
__device__ __forceinline__ float sum_of_splits(const float* partial, int splits, int64_t stride) {
    float sum = 0.0f;
#pragma unroll 4
    for (int split = 0; split < splits; ++split) sum += __ldcg(partial + split * stride);
    return sum;
}
