// Asynchronous copies from global to shared memory, without registers: cp.async, sm_80 and later.
//
// A thread starts copies, commits those since its last commit as a group, and waits until all but its PENDING youngest groups
// have landed. The wait is for its own copies; other threads of the block see them after a barrier. Before sm_80 it is a trap.
// In the emulation a copy is done as late as allowed, in its wait, so that a missing wait shows.
#pragma once
#include <cstdint>

#include <cuda_runtime.h>

#ifdef __CUDACC__

// BYTES (4, 8 or 16, of an address aligned to them) from `from`, of which only the first `valid` are read; zeros after them.
template <int BYTES> __device__ __forceinline__ void cp_async(void* to_shared, const void* from, int valid) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "4 or 8 bytes through L1, or 16 past it");
#if __CUDA_ARCH__ >= 800
    const unsigned to = unsigned(__cvta_generic_to_shared(to_shared));
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from), "r"(valid), "n"(BYTES) : "memory");
#else
    __trap();
#endif
}

template <int BYTES> __device__ __forceinline__ void cp_async(void* to_shared, const void* from) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "4 or 8 bytes through L1, or 16 past it");
#if __CUDA_ARCH__ >= 800
    const unsigned to = unsigned(__cvta_generic_to_shared(to_shared));
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES) : "memory");
#else
    __trap();
#endif
}

__device__ __forceinline__ void cp_async_commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int PENDING> __device__ __forceinline__ void cp_async_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

#else
#include <cstring>

namespace simt {

struct AsyncCopy {
    void* to;
    const void* from;
    int bytes, valid;

    void land() const {
        std::memcpy(to, from, valid);
        std::memset(static_cast<char*>(to) + valid, 0, bytes - valid);
    }
};

// In simt/cp_async.cpp: what is no template is compiled once, not in each module.
void issue(const AsyncCopy& copy);
void wait_copies(size_t pending);

}  // namespace simt

// Inlined, so that a trace has the caller's line; the memcpy is not traced again.
template <int BYTES> __forceinline__ void cp_async(void* to_shared, const void* from, int valid = BYTES) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "4 or 8 bytes through L1, or 16 past it");
    if (reinterpret_cast<uintptr_t>(to_shared) % BYTES != 0 || reinterpret_cast<uintptr_t>(from) % BYTES != 0)
        simt::fail("cp.async with a misaligned address");
    if (valid > 0) simt::check_inside("the whole chunk of a cp.async", from, BYTES);
    simt::trace_copy(to_shared, BYTES, from, valid);
    const simt::AsyncCopy copy{to_shared, from, BYTES, valid};
    if (simt::Block::current->flip()) copy.land();  // at once, while wgmmas in flight still read what was there
    simt::issue(copy);
}

void cp_async_commit();
template <int PENDING> void cp_async_wait() { simt::wait_copies(PENDING); }

#endif
