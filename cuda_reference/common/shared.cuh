// A block's dynamic shared memory as an array of any type, since extern arrays of two types cannot share a name.
// It is aligned to 1024 bytes, the period of the 128-byte swizzle (tma.cuh).
#pragma once
#include <cuda_runtime.h>

#ifdef __CUDACC__  // on the CPU the launch defines it, and poisons the bytes beyond the launched size
extern __shared__ __align__(1024) unsigned char dynamic_shared_memory[];
#endif

template <class T> __device__ __forceinline__ T* dynamic_shared() {
    static_assert(alignof(T) <= 1024, "dynamic shared memory is aligned to 1024 bytes");
    return reinterpret_cast<T*>(dynamic_shared_memory);
}
