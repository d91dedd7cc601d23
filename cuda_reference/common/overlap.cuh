// Kernels that begin while the one before them on the stream still runs (programmatic dependent launch, from Hopper on).
//
// A kernel normally begins when all blocks of the one before have ended and their stores have reached memory: 1 us from the
// last block of one to the first instruction of the next, in which no SM works. Launched as one that `overlaps` (launch.cuh), it
// may begin earlier: as soon as each block of the one before has let it, or has ended. What it does before it waits, such as
// initializing barriers and fetching tensor maps, is then done meanwhile, and SMs that have nothing left to do for the one
// before hold blocks of the next.
#pragma once

// Everything before this in the stream has ended and is visible. No thread of such a kernel may read or write global memory
// before, parameters aside, unless a barrier of its block follows the call of another thread. The next kernel may begin from
// here on: it waits for the end of this one in the same way.
__device__ __forceinline__ void wait_for_earlier_kernels() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
