// Blocks that share a result: each writes its part to a workspace, and the last to arrive combines them, in one launch.
#pragma once
#include <cuda_runtime.h>

// Adds 1 and returns what was there. All stores that these threads made before are then visible to whoever adds later, in their
// loads. One instruction says so: a __threadfence() on either side of a relaxed atomicAdd would each wait for memory once more.
__device__ __forceinline__ int arrive_at(int* counter) {
#ifdef __CUDACC__
    int before;
    asm volatile("atom.global.gpu.acq_rel.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
    return before;
#else
    __threadfence();
    const int before = atomicAdd(counter, 1);
    __threadfence();
    return before;
#endif
}

// Whether these threads are the last of `splits` to arrive at the counter. Then they see the others' earlier stores. The counter
// is zero before the first arrival and after the last. `wait()` is a barrier of the threads, one of which leads; `last` is
// theirs, in shared memory.
template <class Wait>
__device__ __forceinline__ bool last_to_arrive(int* counter, int splits, bool leads, bool* last, const Wait& wait) {
    wait();  // they have written their partial sums; one thread's arrival is then enough for all
    if (leads) {
        *last = arrive_at(counter) == splits - 1;
        if (*last) atomicExch(counter, 0);  // nobody waits for it: the next launch is the first to look
    }
    wait();  // everyone may read `last`
    return *last;
}

// All threads of the block.
__device__ __forceinline__ bool last_to_arrive(int* counter, int splits) {
    __shared__ bool last;
    return last_to_arrive(counter, splits, threadIdx.x == 0, &last, [] { __syncthreads(); });
}
