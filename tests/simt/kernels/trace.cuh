// Accesses whose sectors, bank conflicts and races are known. The test finds lines by the names in their comments.
#pragma once
#include <cuda_runtime.h>

#include "common/shared.cuh"

namespace trace {

template <int STRIDE> __global__ void strided(const float* in, float* out) {
    const float x = in[threadIdx.x * STRIDE];  // strided
    out[threadIdx.x] = x;
}

template <class T> __global__ void copy(const T* in, T* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];  // copy
}

__global__ void lower_half(const float* in, float* out) {
    if (threadIdx.x % 32 < 16) out[threadIdx.x] = __ldg(in + threadIdx.x);  // lower half
}

// A warp reads a column of a tile whose rows are PITCH floats long, `rounds` times.
template <int PITCH> __global__ void column(float* out, int rounds) {
    __shared__ float tile[32 * PITCH];
    for (int i = threadIdx.x; i < 32 * PITCH; i += 32) tile[i] = i;
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < rounds; ++i) sum += tile[threadIdx.x * PITCH + i];  // column
    out[threadIdx.x] = sum;
}

// Lane i reads quad i * STEP.
template <int STEP> __global__ void quads(float4* out) {
    float4* tile = dynamic_shared<float4>();
    for (int i = 0; i < STEP; ++i) tile[i * 32 + threadIdx.x] = make_float4(i, i, i, i);
    __syncthreads();
    const float4 quad = tile[threadIdx.x * STEP];  // quads
    out[threadIdx.x] = quad;
}

template <bool BARRIER> __global__ void neighbour(int* out) {
    __shared__ int tile[64];
    tile[threadIdx.x] = threadIdx.x;  // put
    if (BARRIER) __syncthreads();
    out[threadIdx.x] = tile[(threadIdx.x + 32) % 64];  // take
}

// As `neighbour`, inside of a warp.
template <bool BARRIER> __global__ void lane(int* out) {
    __shared__ int tile[64];
    tile[threadIdx.x] = threadIdx.x;  // lane puts
    if (BARRIER) __syncwarp();
    out[threadIdx.x] = tile[threadIdx.x ^ 1];  // lane takes
}

// A barrier between the rounds of a loop is missing: what a round reads, the next overwrites.
template <bool BARRIER> __global__ void rounds(int* out) {
    __shared__ int tile[64];
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
        tile[threadIdx.x] = threadIdx.x + i;  // overwrite
        __syncthreads();
        sum += tile[63 - threadIdx.x];  // reread
        if (BARRIER) __syncthreads();
    }
    out[threadIdx.x] = sum;
}

__global__ void histogram(const int* in, int* out) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    atomicAdd(&count, in[threadIdx.x]);  // add
    __syncthreads();
    if (threadIdx.x == 0) *out = count;
}

// As cp.async: a quad of which only the first three elements are read.
__global__ void past_registers(const float* in, int* out) {
    __shared__ __align__(16) float tile[4 * 32];
    simt::trace_copy(tile + 4 * threadIdx.x, 16, in + 4 * threadIdx.x, 12);  // past registers
    out[threadIdx.x] = 0;
}

// All threads of a block write one word of global memory.
__global__ void same(int* out) { out[blockIdx.x] = threadIdx.x; }  // same

}  // namespace trace
