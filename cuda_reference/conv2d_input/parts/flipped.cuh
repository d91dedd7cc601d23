// The filters of the gradient: input and output channels of each group swapped, taps from the last to the first; a copy of a few
// megabytes at most. Mirrors tritonkernels/conv2d_input/parts/flipped.py.
#pragma once
#include "../../common/overlap.cuh"
#include "../../conv2d/parts/common.cuh"

namespace conv2d_input {

// The flipped filter's element (c, k, r, s) in the filter.
__device__ __forceinline__ int64_t place_of(int c, int k, int r, int s, const conv2d::Geometry& g, const FiltersStrides& from) {
    const int group = c / g.c_per_group();
    return (int64_t(group) * g.k_per_group() + k) * from.k + (c - group * g.c_per_group()) * from.c + (g.R - 1 - r) * from.r +
           (g.S - 1 - s) * from.s;
}

// weight (K, C / groups, R, S), filters (C, K / groups, R, S): `to.k` is the step from one c to the next. An element a thread, s
// fastest.
template <class T, int THREADS>
__global__ void __launch_bounds__(THREADS)
flipped(const T* __restrict__ weight, T* __restrict__ filters, conv2d::Geometry g, FiltersStrides from, FiltersStrides to) {
    wait_for_earlier_kernels();
    const int k_per_group = g.k_per_group();
    int64_t index = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    const int s = index % g.S;
    index /= g.S;
    const int r = index % g.R;
    index /= g.R;
    const int k = index % k_per_group, c = index / k_per_group;
    if (c >= g.C) return;
    filters[c * to.k + k * to.c + r * to.r + s * to.s] = weight[place_of(c, k, r, s, g, from)];
}

// The same where channels lie inside: c there, k here. A block has SIDE of both of a tap; lanes read along c and write along k.
template <class T, int SIDE, int THREADS>
__global__ void __launch_bounds__(THREADS) flipped_inside(const T* __restrict__ weight, T* __restrict__ filters,
                                                          conv2d::Geometry g, FiltersStrides from, FiltersStrides to) {
    wait_for_earlier_kernels();
    __shared__ T tile[SIDE][SIDE + 1];  // by k and c; rows begin in other banks
    const int k_per_group = g.k_per_group(), of_k = ceil_div(k_per_group, SIDE), of_c = ceil_div(g.C, SIDE);
    const int tap = blockIdx.x / (of_k * of_c), first_k = blockIdx.x / of_c % of_k * SIDE, first_c = blockIdx.x % of_c * SIDE;
    const int r = tap / g.S, s = tap % g.S, lane = threadIdx.x % SIDE;
#pragma unroll
    for (int i = threadIdx.x / SIDE; i < SIDE; i += THREADS / SIDE)
        if (first_k + i < k_per_group && first_c + lane < g.C)
            tile[i][lane] = weight[place_of(first_c + lane, first_k + i, r, s, g, from)];
    __syncthreads();
#pragma unroll
    for (int i = threadIdx.x / SIDE; i < SIDE; i += THREADS / SIDE)
        if (first_k + lane < k_per_group && first_c + i < g.C)
            filters[(first_c + i) * to.k + (first_k + lane) * to.c + r * to.r + s * to.s] = tile[lane][i];
}

}  // namespace conv2d_input
