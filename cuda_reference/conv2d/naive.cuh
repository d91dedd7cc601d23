// conv2d, naive: a thread per output, its whole inner product straight from the caches.
//
// Neighbouring lanes own neighbouring outputs of a row, so they read neighbouring inputs, and the same filter tap: a broadcast.
// A multiply-add takes two loads, and each input is loaded K R S times: it is the baseline of the others.
// Mirrors tritonkernels/conv2d/naive.py.
#pragma once
#include "parts/geometry.cuh"

namespace conv2d {

// input (N, C, H, W), weight (K, C, R, S), bias (K) or null, out (N, K, P, Q).
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
naive(const float* __restrict__ input, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ out,
      Geometry g, Strides stride) {
    const int64_t index = int64_t(blockIdx.x) * THREADS + threadIdx.x;  // of the output, q fastest
    const int q = index % g.Q, p = index / g.Q % g.P, k = index / g.Q / g.P % g.K, image = index / g.Q / g.P / g.K;
    if (image >= g.N) return;
    float sum = bias != nullptr ? bias[k * stride.bias.step] : 0.0f;
    for (int c = 0; c < g.C; ++c) {
        const float* plane = input + image * stride.input.n + c * stride.input.c;
        const float* filter = weight + k * stride.weight.k + c * stride.weight.c;
        for (int r = 0; r < g.R; ++r)
            for (int s = 0; s < g.S; ++s) {
                const int h = p * g.step_h - g.padding_h + r * g.dilation_h, w = q * g.step_w - g.padding_w + s * g.dilation_w;
                const bool inside = h >= 0 && h < g.H && w >= 0 && w < g.W;  // the padding is zeros
                const float x = inside ? plane[h * stride.input.h + w * stride.input.w] : 0.0f;
                sum += filter[r * stride.weight.r + s * stride.weight.s] * x;
            }
    }
    out[image * stride.out.n + k * stride.out.c + p * stride.out.h + q * stride.out.w] = sum;
}

}  // namespace conv2d
