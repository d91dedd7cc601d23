// conv2d, naive: a thread per output, its whole inner product straight from the caches.
//
// Neighbouring lanes own neighbouring outputs of a row, so they read neighbouring inputs, and the same filter tap: a broadcast.
// A multiply-add takes two loads, and each input is loaded K / groups * R * S times: it is the baseline of the others.
// No lane is idle, however few outputs a plane has. Mirrors tritonkernels/conv2d/naive.py.
#pragma once
#include "../common/overlap.cuh"
#include "parts/common.cuh"

namespace conv2d {

template <class T, int THREADS>
__global__ void __launch_bounds__(THREADS)
naive(const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ out, Geometry g,
      Strides stride) {
    wait_for_earlier_kernels();
    int64_t index = int64_t(blockIdx.x) * THREADS + threadIdx.x;  // of the output, q fastest
    const int q = index % g.Q;
    index /= g.Q;
    const int p = index % g.P;
    index /= g.P;
    const int k = index % g.K, image = index / g.K;
    if (image >= g.N) return;

    const int c_per_group = g.c_per_group(), group = k / g.k_per_group();
    const T* plane = input + image * stride.input.n + group * c_per_group * stride.input.c;
    const T* filter = weight + k * stride.weight.k;
    Sum<T> sum = bias_or_zero(bias, k, stride);
    for (int c = 0; c < c_per_group; ++c, plane += stride.input.c, filter += stride.weight.c)
        for (int r = 0; r < g.R; ++r)
            for (int s = 0; s < g.S; ++s) {
                const int h = p * g.step_h - g.padding_h + r * g.dilation_h, w = q * g.step_w - g.padding_w + s * g.dilation_w;
                sum += Sum<T>(filter[r * stride.weight.r + s * stride.weight.s]) * input_or_zero(plane, h, w, g, stride);
            }
    out[image * stride.out.n + k * stride.out.c + p * stride.out.h + q * stride.out.w] = T(sum);
}

}  // namespace conv2d
