// stmatrix: a warp stores four 8 x 8 matrices of 16-bit elements to shared memory, from the layout of mma_sync.cuh. It undoes
// the untransposed ldmatrix of four.
//
// Lane 8 i + r gives the address of row r of matrix i: 16 bytes, aligned to 16. Word i of lane l holds the elements 2 (l % 4)
// and 2 (l % 4) + 1 of row l / 4 of matrix i; TRANSPOSED, of column l / 4. Eight rows in different banks take one wavefront. All
// lanes must call it. sm_90 and later.
#pragma once
#include <cuda_runtime.h>

#ifdef __CUDACC__

#if __CUDA_ARCH__ >= 900
#define STMATRIX(LAYOUT)                                                                                             \
    asm volatile("stmatrix.sync.aligned.m8n8.x4" LAYOUT ".shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(                 \
                     unsigned(__cvta_generic_to_shared(row))),                                                       \
                 "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])                                              \
                 : "memory")
#endif

template <bool TRANSPOSED = false> __device__ __forceinline__ void stmatrix(void* row, const unsigned (&from)[4]) {
#if __CUDA_ARCH__ >= 900
    if constexpr (TRANSPOSED)
        STMATRIX(".trans");
    else
        STMATRIX("");
#else
    __trap();
#endif
}

#undef STMATRIX

#else
#include "../simt/stmatrix.h"
#endif
