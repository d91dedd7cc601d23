// conv2d, depthwise_channels: `depthwise` with lanes along channels, which are contiguous in channels_last.
//
// A thread owns a RUN of outputs of a column of WIDTH channels and loads these at once, 128 bits of fp32; WIDTH is 1 where
// channels are not contiguous and aligned. Each lane needs its own taps, so a block has its LANES * WIDTH filters in shared
// memory, tap by tap. TAPS is R and S, unrolled, where taps of a column are neighbours and outputs STEP rows apart; 0 takes
// any. For one filter a channel. Mirrors tritonkernels/conv2d/depthwise_channels.py.
#pragma once
#include "../common/overlap.cuh"
#include "parts/filters.cuh"
#include "parts/runs.cuh"

namespace conv2d {

constexpr int LANES = 8;

// Block -> (positions (image, run, column), LANES * WIDTH channels), the last fastest. WIDTH divides the number of channels.
// FOLLOWS: residual (or null) and activation are not ignored.
template <class T, int THREADS, int TAPS, int STEP, int RUN, int WIDTH, bool FOLLOWS = false>
__global__ void __launch_bounds__(THREADS, 3)  // with registers for three columns of inputs under way
depthwise_channels(const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ out,
                   Geometry g, Strides stride, const T* residual, ImagesStrides of_residual, int activation) {
    wait_for_earlier_kernels();
    using Layout = Filters<WIDTH, LANES>;
    Sum<T>* const filters = dynamic_shared<Sum<T>>();
    const int blocks_k = ceil_div(g.K, Layout::CHANNELS), first = blockIdx.x % blocks_k * Layout::CHANNELS;
    stage_filters<Layout, TAPS>(filters, weight, 1, first, g, stride);
    __syncthreads();

    const int lane = threadIdx.x % LANES * WIDTH, k = first + lane;
    int64_t index = int64_t(blockIdx.x / blocks_k) * (THREADS / LANES) + threadIdx.x / LANES;
    const int q = take(index, g.Q), p = take(index, ceil_div(g.P, RUN)) * RUN, image = int(index);
    if (image >= g.N || k >= g.K) return;

    const T* plane = input + image * stride.input.n + k * (WIDTH > 1 ? 1 : stride.input.c);
    Sum<T> sum[RUN][WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        const Sum<T> first_term = bias_or_zero(bias, k + i, stride);
#pragma unroll
        for (int j = 0; j < RUN; ++j) sum[j][i] = first_term;
    }
    const int h = p * g.step_h - g.padding_h, first_w = q * g.step_w - g.padding_w;
    const T* at = plane + h * stride.input.h + first_w * stride.input.w;
    const Sum<T>* tap = filters + lane;
    const int S = TAPS > 0 ? TAPS : g.S;
#pragma unroll(TAPS == 3 ? TAPS : 1)
    for (int w = first_w, s = 0; s < S; ++s, w += g.dilation_w, at += g.dilation_w * stride.input.w, tap += Layout::PITCH)
        multiply_column<TAPS, STEP>(sum, at, h, unsigned(w) < unsigned(g.W), tap, S * Layout::PITCH, g, stride);
    if constexpr (FOLLOWS) finish_run(sum, Follows<T>{residual, of_residual, activation}, image, k, p, q, g);
    T* const to = out + image * stride.out.n + k * (WIDTH > 1 ? 1 : stride.out.c);
    store_run(sum, to + p * stride.out.h + q * stride.out.w, p, g, stride);
}

}  // namespace conv2d
