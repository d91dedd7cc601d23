// Reductions over the lanes of a warp.
#pragma once
#include <cuda_runtime.h>

// The sum of `value` over groups of LANES neighbouring lanes, in the first lane of each. Each step halves the lanes that count:
// 16, 8, 4, 2, 1. Every lane of the warp must call it.
template <int LANES = 32, class T> __device__ __forceinline__ T warp_sum(T value) {
    static_assert(LANES >= 1 && LANES <= 32 && (LANES & (LANES - 1)) == 0, "shuffles work in powers of two");
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset, LANES);
    return value;
}

// The sum over a block of WARPS warps, in its first thread: by shuffles in each warp, then over the warps in their order.
template <int WARPS, class T> __device__ __forceinline__ T block_sum(T value) {
    __shared__ T of_warp[WARPS];
    value = warp_sum(value);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();  // all warps have stored their sums
    if (threadIdx.x == 0)
        for (int warp = 1; warp < WARPS; ++warp) value += of_warp[warp];
    return value;
}
