// ldmatrix: a warp loads COUNT 8 x 8 matrices of 16-bit elements from shared memory, in the layout of mma_sync.cuh.
//
// Lane 8 i + r gives the address of row r of matrix i: 16 bytes, aligned to 16. Lane l receives, in word i, the elements
// 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of matrix i, or of its column l / 4 where TRANSPOSED. A row may also be 16 bytes of
// any type: untransposed, lane l receives its bytes 4 (l % 4) to 4 (l % 4) + 3. Eight rows in different banks take one
// wavefront. All lanes must call it. sm_75 and later.
#pragma once
#include <cuda_runtime.h>

#ifdef __CUDACC__

template <bool TRANSPOSED> __device__ __forceinline__ void ldmatrix(unsigned (&to)[4], const void* row) {
    const unsigned from = unsigned(__cvta_generic_to_shared(row));
    if constexpr (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
}

template <bool TRANSPOSED> __device__ __forceinline__ void ldmatrix(unsigned (&to)[2], const void* row) {
    const unsigned from = unsigned(__cvta_generic_to_shared(row));
    if constexpr (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(to[0]), "=r"(to[1])
                     : "r"(from)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(to[0]), "=r"(to[1])
                     : "r"(from)
                     : "memory");
}

template <bool TRANSPOSED> __device__ __forceinline__ void ldmatrix(unsigned (&to)[1], const void* row) {
    const unsigned from = unsigned(__cvta_generic_to_shared(row));
    if constexpr (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(to[0]) : "r"(from) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(to[0]) : "r"(from) : "memory");
}

#else
#include "../simt/ldmatrix.h"
#endif
