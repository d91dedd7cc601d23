// Blocks that share rows: each leaves its partial sums in a workspace, and the last to arrive adds them up, in one launch.
#pragma once
#include <cuda_runtime.h>

#include "../common/reduce.cuh"

// Whether this block is the last of `splits` on the counter, told to all of its threads; the others' stores before are then
// seen after. The counter is zero before the first arrives and after the last.
__device__ __forceinline__ bool last_to_arrive(int* counter, int splits) {
    __shared__ bool last;
    __syncthreads();  // the block has left its partial sums, and one thread's fence is enough for all of them
    if (threadIdx.x == 0) {
        __threadfence();  // they come before the arrival
        last = atomicAdd(counter, 1) == splits - 1;
        if (last) {
            atomicExch(counter, 0);
            __threadfence();  // and the others' after it
        }
    }
    __syncthreads();  // everyone may read `last`
    return last;
}

// The sum of `splits` partial sums side by side, in the block's first thread. All threads share the work, by their numbers:
// the order is fixed. From L2: other blocks wrote them.
template <int WARPS> __device__ __forceinline__ float sum_of_splits(const float* partial, int splits) {
    float sum = 0.0f;
#pragma unroll 4
    for (int split = threadIdx.x; split < splits; split += 32 * WARPS) sum += __ldcg(partial + split);
    return block_sum<WARPS>(sum);
}
