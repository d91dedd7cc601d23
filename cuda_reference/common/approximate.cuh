// ex2.approx and rcp.approx: 2^x and 1 / x in one instruction each, where exp2f takes 4 and a division 8 and a branch.
//
// With .ftz: subnormal numbers are taken, and given, as zeros. The PTX ISA bounds their errors: 2^x is at most 2 ulp from the
// correctly rounded power, 1 / x at most 1 ulp. Infinities, zeros and NaN go to what they should.
#pragma once
#include <cuda_runtime.h>

#ifdef __CUDACC__

__device__ __forceinline__ float approximate_exp2(float x) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

__device__ __forceinline__ float approximate_reciprocal(float x) {
    float reciprocal;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(x));
    return reciprocal;
}

#else
#include "../simt/approximate.h"
#endif
