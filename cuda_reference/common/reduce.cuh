// Reductions over the lanes of a warp.
#pragma once
#include <cuda_runtime.h>

// The sum of `value` over all 32 lanes, in lane 0: 16, 8, 4, 2, 1, so each step halves the lanes that still count. Every lane of
// the warp must call it.
__device__ __forceinline__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}
