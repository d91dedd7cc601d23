// Blocks that share a result: each leaves its part in a workspace, and the last to arrive puts them together, in one launch.
#pragma once
#include <cuda_runtime.h>

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
