// Blocks that share a result: each writes its part to a workspace, and the last to arrive combines them, in one launch.
#pragma once
#include <cuda_runtime.h>

// Whether these threads are the last of `splits` to arrive at the counter. Then they see the others' earlier stores. The counter
// is zero before the first arrival and after the last. `wait()` is a barrier of the threads, one of which leads; `last` is
// theirs, in shared memory.
template <class Wait>
__device__ __forceinline__ bool last_to_arrive(int* counter, int splits, bool leads, bool* last, const Wait& wait) {
    wait();  // they have written their partial sums; one thread's fence is then enough for all
    if (leads) {
        __threadfence();  // the stores come before the arrival
        *last = atomicAdd(counter, 1) == splits - 1;
        if (*last) {
            atomicExch(counter, 0);
            __threadfence();  // and the loads after it
        }
    }
    wait();  // everyone may read `last`
    return *last;
}

// All threads of the block.
__device__ __forceinline__ bool last_to_arrive(int* counter, int splits) {
    __shared__ bool last;
    return last_to_arrive(counter, splits, threadIdx.x == 0, &last, [] { __syncthreads(); });
}
