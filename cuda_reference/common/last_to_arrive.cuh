// Blocks that share a result: each writes its part to a workspace, and the last to arrive combines them, in one launch.
#pragma once
#include <cuda_runtime.h>

// Whether this block is the last of `splits` to arrive at the counter, in all of its threads. Then it sees the others' earlier
// stores. The counter is zero before the first arrival and after the last.
__device__ __forceinline__ bool last_to_arrive(int* counter, int splits) {
    __shared__ bool last;
    __syncthreads();  // the block has written its partial sums; one thread's fence is then enough for all
    if (threadIdx.x == 0) {
        __threadfence();  // the stores come before the arrival
        last = atomicAdd(counter, 1) == splits - 1;
        if (last) {
            atomicExch(counter, 0);
            __threadfence();  // and the loads after it
        }
    }
    __syncthreads();  // everyone may read `last`
    return last;
}
