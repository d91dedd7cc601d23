// An mbarrier: 8 bytes of shared memory that count arrivals and bytes in phases: sm_90 and later.
//
// A phase ends when the number of threads given to `mbarrier_init` have arrived and all announced bytes have landed
// (mbarrier_arrive_expect; the copy engine counts them down, tma.cuh). The first phase has parity 0. mbarrier_wait(parity)
// returns once the phase of that parity has ended; on a new barrier, parity 1 counts as ended.
#pragma once
#include <cstdint>

#include <cuda_runtime.h>

#ifdef __CUDACC__

__device__ __forceinline__ unsigned shared_address(const void* pointer) { return unsigned(__cvta_generic_to_shared(pointer)); }

// Called by one thread; the others and the copy engine see it after mbarrier_init_fence and a barrier of the block.
__device__ __forceinline__ void mbarrier_init(uint64_t* barrier, int arrivals) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
#else
    __trap();
#endif
}

__device__ __forceinline__ void mbarrier_init_fence() {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

__device__ __forceinline__ void mbarrier_arrive(uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
#endif
}

// At the barrier in this place of another block of the cluster, or of this one. It names no scope: with .release.cluster each
// arrival would wait until the whole GPU sees the thread's writes (MEMBAR.ALL.GPU), which takes as long as a slice. There are
// none to see: it permits overwriting what wgmma has read.
__device__ __forceinline__ void mbarrier_arrive_at(uint64_t* barrier, int block) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "{\n"
        ".reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
        "}" ::"r"(shared_address(barrier)), "r"(block)
        : "memory");
#endif
}

__device__ __forceinline__ void mbarrier_arrive_expect(uint64_t* barrier, int bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
#endif
}

__device__ __forceinline__ void mbarrier_wait(uint64_t* barrier, unsigned parity) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "{\n"
        ".reg .pred ended;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
        "@!ended bra again;\n"
        "}" ::"r"(shared_address(barrier)), "r"(parity)
        : "memory");
#endif
}

// Waits for all threads of the cluster, whose mbarriers are then known to each other if mbarrier_init_fence came before.
__device__ __forceinline__ void cluster_barrier() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

// The same, and then each sees what the others had written to shared memory.
__device__ __forceinline__ void cluster_exchange() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// The same place in the shared memory of another block of the cluster, or of this one, which must not end before it is read.
template <class T> __device__ __forceinline__ const T* in_block(const T* here, int block) {
    const T* there = here;
#if __CUDA_ARCH__ >= 900
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(here), "r"(block));
#endif
    return there;
}

#else
#include "../simt/mbarrier.h"
#endif
