// A block's dynamic shared memory, as an array of any type: extern arrays of two types cannot share the one name.
// It is aligned to 1024 bytes, after which the 128-byte swizzle repeats (tma.cuh).
#pragma once
#include <cuda_runtime.h>

#ifdef __CUDACC__  // on the CPU the launch defines it, and poisons what lies beyond the size launched with
extern __shared__ __align__(1024) unsigned char dynamic_shared_memory[];
#endif

template <class T> __device__ __forceinline__ T* dynamic_shared() {
    static_assert(alignof(T) <= 1024, "dynamic shared memory is aligned to 1024 bytes");
    return reinterpret_cast<T*>(dynamic_shared_memory);
}
