// The filters of the gradient: input and output channels of each group swapped, taps from the last to the first; a copy of a
// few kilobytes, an element a thread. Mirrors tritonkernels/conv2d_input/parts/flipped.py.
#pragma once
#include "../../common/overlap.cuh"
#include "../../conv2d/parts/common.cuh"

namespace conv2d_input {

// weight (K, C / groups, R, S), filters (C, K / groups, R, S): `to.k` is the step from one c to the next.
template <class T, int THREADS>
__global__ void __launch_bounds__(THREADS)
flipped(const T* __restrict__ weight, T* __restrict__ filters, conv2d::Geometry g, FiltersStrides from, FiltersStrides to) {
    wait_for_earlier_kernels();
    const int c_per_group = g.c_per_group(), k_per_group = g.k_per_group();
    int64_t index = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    const int s = index % g.S;
    index /= g.S;
    const int r = index % g.R;
    index /= g.R;
    const int k = index % k_per_group, c = index / k_per_group;
    if (c >= g.C) return;
    const T* tap = weight + int64_t(c / c_per_group * k_per_group + k) * from.k + c % c_per_group * from.c;
    filters[c * to.k + k * to.c + r * to.r + s * to.s] = tap[(g.R - 1 - r) * from.r + (g.S - 1 - s) * from.s];
}

}  // namespace conv2d_input
