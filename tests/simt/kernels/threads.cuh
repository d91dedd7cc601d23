// Kernels that exercise one thing each: barriers, warps, atomics, shared memory, and every way to get them wrong.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cassert>
#include <stdexcept>

#include "common/shared.cuh"

namespace threads {

// out[global thread] = its coordinates, packed.
__global__ void coordinates(int* out) {
    const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[block * (blockDim.x * blockDim.y * blockDim.z) + thread] =
        ((((blockIdx.z * 10 + blockIdx.y) * 10 + blockIdx.x) * 10 + threadIdx.z) * 10 + threadIdx.y) * 10 + threadIdx.x;
}

// Sums blockDim.x numbers by a tree.
__global__ void tree_sum(const int* in, int* out) {
    __shared__ int partial[256];
    partial[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (unsigned stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

// Each thread reads what its left neighbour wrote: in thread order this passes even without the barrier.
template <bool BARRIER> __global__ void left_neighbour(int* out, int base) {
    __shared__ int value[256];
    value[threadIdx.x] = base + threadIdx.x;
    if (BARRIER) __syncthreads();
    out[threadIdx.x] = threadIdx.x == 0 ? base : value[threadIdx.x - 1];
}

// Each block reads what the block before it wrote: no barrier can make that right.
__global__ void left_block(int* out) { out[blockIdx.x + 1] = out[blockIdx.x] + 1; }

__global__ void block_votes(const int* in, int* out) {
    const int i = threadIdx.x;
    out[i * 3 + 0] = __syncthreads_count(in[i]);
    out[i * 3 + 1] = __syncthreads_or(in[i]);
    out[i * 3 + 2] = __syncthreads_and(in[i]);
}

template <class T> __global__ void shuffles(const T* in, T* out, int amount, int width) {
    const int i = threadIdx.x, n = blockDim.x;
    out[0 * n + i] = __shfl_sync(0xffffffff, in[i], amount, width);
    out[1 * n + i] = __shfl_up_sync(0xffffffff, in[i], amount, width);
    out[2 * n + i] = __shfl_down_sync(0xffffffff, in[i], amount, width);
    out[3 * n + i] = __shfl_xor_sync(0xffffffff, in[i], amount, width);
}

__global__ void votes(const int* in, unsigned* out) {
    const int i = threadIdx.x;
    out[i * 4 + 0] = __ballot_sync(0xffffffff, in[i]);
    out[i * 4 + 1] = __any_sync(0xffffffff, in[i]);
    out[i * 4 + 2] = __all_sync(0xffffffff, in[i]);
    out[i * 4 + 3] = __activemask();
}

// The halves of a warp, each by its own mask and at its own pace.
__global__ void half_warps(int* out) {
    const int i = threadIdx.x;
    int sum = i;
    if (i < 16) {
        for (int d = 8; d > 0; d /= 2) sum += __shfl_xor_sync(0x0000ffffu, sum, d);
    } else {
        for (int d = 8; d > 0; d /= 2) sum += __shfl_xor_sync(0xffff0000u, sum, d);
        __syncwarp(0xffff0000u);
    }
    out[i] = sum;
}

__global__ void bits(const int* in, int* out) {
    const int i = threadIdx.x;
    out[i * 4 + 0] = __popc(in[i]);
    out[i * 4 + 1] = __ffs(in[i]);
    out[i * 4 + 2] = __clz(in[i]);
    out[i * 4 + 3] = __float_as_int(__int_as_float(in[i]));
}

template <class T> __global__ void atomic_add(T* sum) { atomicAdd(sum, T(threadIdx.x)); }

__global__ void atomics(int* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicMax(&out[0], i);
    atomicMin(&out[1], -i);
    atomicOr(&out[2], 1 << i % 31);
    atomicAnd(&out[3], ~(1 << i % 31));
    __threadfence();  // what an atomic found is used
    if (atomicCAS(&out[4], 0, 7) == 0) atomicAdd(&out[5], 1);  // one winner
    atomicExch(&out[6], 5);
}

// The block that arrives last reads what the others left; without the fence it may not see it. Two threads that write, so that
// what another thread of the block wrote is to be seen too.
template <bool FENCE, bool BEFORE_THE_BARRIER> __global__ void arrive(int* parts, int* counter, int* out) {
    parts[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    if (BEFORE_THE_BARRIER) __threadfence();
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (FENCE) __threadfence();
    if (atomicAdd(counter, 1) != int(gridDim.x) - 1) return;
    for (unsigned i = 0; i < gridDim.x * blockDim.x; ++i) *out += parts[i];
}

// Atomics on both kinds of shared memory.
__global__ void count_in_shared(int* out) {
    __shared__ int count;
    int* const dynamic = dynamic_shared<int>();
    if (threadIdx.x == 0) count = *dynamic = 0;
    __syncthreads();
    atomicAdd(&count, 1);
    atomicAdd(dynamic, 1);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = count + *dynamic;
}

template <int THREADS> __global__ void __launch_bounds__(THREADS / 2 * 2, 2)  // a comment, as some kernels have one
bounded(int* out) {
    out[threadIdx.x] = THREADS;
}

// Reverses a row through dynamic shared memory of two types; the last number written to `out` is one that nobody
// stored.
__global__ void dynamic(const float* in, float* out, int n) {
    float* values = dynamic_shared<float>();
    for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = in[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = values[n - 1 - i];
    out[n] = values[n];
    assert(reinterpret_cast<uintptr_t>(dynamic_shared<double>()) % 128 == 0);
}

__constant__ float table[4] = {1, 2, 4, 8};

__global__ void vectors(const float4* in, float4* out, float2* halves) {
    const float4 v = __ldg(&in[threadIdx.x]);
    out[threadIdx.x] = make_float4(v.x * table[0], v.y * table[1], v.z * table[2], v.w * table[3]);
    halves[threadIdx.x] = make_float2(max(v.x, v.y), min(v.z, v.w));
}

struct Sizes {
    int m, n;
};
struct Strides {
    int64_t row, col;
};

__global__ void arguments(double* out, int a, int64_t b, float c, bool d, Sizes sizes,
                          __grid_constant__ const Strides strides, uint8_t e) {
    const double all[] = {double(a),           double(b),           c,
                          double(d),           double(sizes.m),     double(sizes.n),
                          double(strides.row), double(strides.col), double(e)};
    for (int i = 0; i < 9; ++i) out[i] = all[i];
}

// --- errors: each `which` is one way to go wrong
// ----------------------------------------------------------------------------

__global__ void wrong(int which, int* out) {
    const int i = threadIdx.x;
    if (blockIdx.x != 1) return;
    if (which == 0 && i % 2 == 0) __syncthreads();                           // the others exit
    if (which == 1) i < 3 ? __syncthreads() : void(__syncthreads_count(1));  // two kinds
    if (which == 2 && i != 5) __syncwarp();                                  // lane 5 exits
    if (which == 3) out[i] = __shfl_sync(0x0000ffffu, i, 0);                 // lanes 16.. are not named
    if (which == 4) i == 7 ? __syncthreads() : __syncwarp();                 // each waits for the other
    if (which == 5) i == 9 ? __syncwarp(0x00000200u) : __syncwarp();         // masks that disagree
    if (which == 6 && i == 2) __trap();
    if (which == 7) assert(i != 3);
#ifndef __CUDACC__  // device code cannot throw, but a helper that a kernel shares with the host can on the CPU
    if (which == 8 && i == 1) throw std::out_of_range("thrown in a kernel");
#endif
    if (which == 9) out[i] = __shfl_sync(0xffffffffu, i, 0, 12);  // not a power of two
    if (which == 10) out[i] = 7 / (i - 5);                           // thread 5's is by zero
    if (which == 11) out[i] = int64_t(which) % int64_t(i - 5);
}

}  // namespace threads
