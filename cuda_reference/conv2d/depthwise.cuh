// conv2d, depthwise: a thread owns a vertical RUN of outputs of one output channel.
//
// With one input channel per group there is no sum over channels to block for: 2 R S operations per output, on 4 bytes in and 4
// out, are limited by bandwidth. Only loads from L1 can be saved: in a run (parts/runs.cuh) an input serves all taps of a
// column. Lanes lie along W, and taps are a broadcast. TAPS is R, unrolled, where taps of a column are neighbours and outputs
// STEP rows apart; 0 takes any.
//
// It computes every convolution, but with more channels per group it is limited by filter taps, one load for a run's
// multiply-adds: `grouped` has them in shared memory, and in channels_last `depthwise_channels`. Mirrors
// tritonkernels/conv2d/depthwise.py.
#pragma once
#include "../common/overlap.cuh"
#include "parts/runs.cuh"

namespace conv2d {

// FOLLOWS: residual (or null) and activation are not ignored.
// Thread -> (image, channel, run, column), or (image, run, column, channel) where channels lie side by side, the last fastest.
template <class T, int THREADS, int TAPS, int STEP, int RUN, bool FOLLOWS = false>
__global__ void __launch_bounds__(THREADS)
depthwise(const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ out, Geometry g,
          Strides stride, const T* residual, ImagesStrides of_residual, int activation) {
    wait_for_earlier_kernels();
    const bool channels_inside = stride.out.c == 1 && g.K > 1;
    int64_t index = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    int k = channels_inside ? take(index, g.K) : 0;
    const int q = take(index, g.Q), p = take(index, ceil_div(g.P, RUN)) * RUN;
    if (!channels_inside) k = take(index, g.K);
    const int image = int(index);
    if (image >= g.N) return;

    const int c_per_group = g.c_per_group(), group = k / g.k_per_group();
    const T* plane = input + image * stride.input.n + group * c_per_group * stride.input.c;
    const T* filter = weight + k * stride.weight.k;
    Sum<T> sum[RUN][1];
#pragma unroll
    for (int j = 0; j < RUN; ++j) sum[j][0] = bias_or_zero(bias, k, stride);
    const int h = p * g.step_h - g.padding_h, first_w = q * g.step_w - g.padding_w;
    for (int c = 0; c < c_per_group; ++c, plane += stride.input.c, filter += stride.weight.c) {
        const T *at = plane + h * stride.input.h + first_w * stride.input.w, *tap = filter;
        const int64_t right = g.dilation_w * stride.input.w;
        for (int w = first_w, s = 0; s < g.S; ++s, w += g.dilation_w, at += right, tap += stride.weight.s)
            multiply_column<TAPS, STEP>(sum, at, h, unsigned(w) < unsigned(g.W), tap, stride.weight.r, g, stride);
    }
    if constexpr (FOLLOWS) finish_run(sum, Follows<T>{residual, of_residual, activation}, image, k, p, q, g);
    store_run(sum, out + image * stride.out.n + k * stride.out.c + p * stride.out.h + q * stride.out.w, p, g, stride);
}

}  // namespace conv2d
