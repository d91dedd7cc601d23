// One access beyond each kind of memory, for AddressSanitizer to find; `beyond` = 0 stays inside.
#pragma once
#include "common/shared.cuh"

namespace memory {

__global__ void global_read(const float* in, float* out, int beyond) { out[threadIdx.x] = in[threadIdx.x + beyond]; }
__global__ void global_write(float* out, int beyond) { out[threadIdx.x + beyond] = 1; }

template <int SIZE> __global__ void shared_write(float* out, int beyond) {
    __shared__ float tile[SIZE];
    tile[threadIdx.x + beyond] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[SIZE - 1 - threadIdx.x];
}

__global__ void dynamic_write(float* out, int beyond) {
    float* tile = dynamic_shared<float>();
    tile[threadIdx.x + beyond] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}

template <int SIZE> __global__ void local_write(float* out, int beyond) {
    float local[SIZE];
    for (int i = 0; i < SIZE; ++i) local[i] = i;
    __syncthreads();  // after a switch of fibers
    volatile float* opaque = local;
    opaque[threadIdx.x + beyond] = 1;
    out[threadIdx.x] = opaque[0];
}

__global__ void throws(int which) {
    __syncthreads();
    if (threadIdx.x == unsigned(which)) __trap();
}

}  // namespace memory
