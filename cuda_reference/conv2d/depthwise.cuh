// conv2d, depthwise: a thread owns a RUN of outputs of a column, below each other, of WIDTH channels.
//
// With one input channel per group there is no sum over channels to block for: 2 R S operations an output, on 4 bytes in and 4
// out, leave it to bandwidth. What is to be saved are loads from L1: by runs (runs.cuh) an input serves all taps of a column.
//
// WIDTH is 1 in NCHW, where lanes lie along W and taps are broadcast. In channels_last lanes lie along the channels, each loads
// WIDTH of them at once, 128 bits of fp32, and a block has its 8 * WIDTH filters in shared memory, tap by tap.
// TAPS is R, unrolled, and S of the latter kernel, where rows of taps are neighbours and outputs STEP rows apart; 0 takes any.
// WIDTH 1 computes every convolution, but with more channels per group its filter taps, a load for a run's multiply-adds, hold
// it up: `grouped` has them in shared memory. Mirrors tritonkernels/conv2d/depthwise.py.
#pragma once
#include "parts/filters.cuh"
#include "parts/runs.cuh"

namespace conv2d {

constexpr int LANES = 8;

// sum += a column of taps times the inputs that it meets, from `at` in row h on; `tap` steps from one tap to the next.
template <int TAPS, int STEP, int RUN, int WIDTH, class T, class Tap>
__device__ __forceinline__ void multiply_column(Sum<T> (&sum)[RUN][WIDTH], const T* at, int h, bool inside, const Tap* tap,
                                                int64_t tap_step, const Geometry& g, const Strides& stride) {
    constexpr int COUNT = TAPS > 0 ? ROWS<RUN, TAPS, STEP> : RUN;
    Sum<T> column[COUNT][WIDTH], of_tap[WIDTH];
    const auto multiply = [&](int first) {
        load_together(of_tap, tap);
        tap += tap_step;
#pragma unroll
        for (int j = 0; j < RUN; ++j)
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) sum[j][i] += of_tap[i] * column[first + j * (TAPS > 0 ? STEP : 1)][i];
    };
    if constexpr (TAPS > 0) {
        load_column(column, at, int(stride.input.h * sizeof(T)), inside ? rows_inside<COUNT>(h, 1, g) : 0);
#pragma unroll
        for (int r = 0; r < TAPS; ++r) multiply(r);
    } else {
        const int64_t next_tap = g.dilation_h * stride.input.h, next_output = g.step_h * stride.input.h * sizeof(T);
        for (int r = 0; r < g.R; ++r, h += g.dilation_h, at += next_tap) {
            load_column(column, at, next_output, inside ? rows_inside<COUNT>(h, g.step_h, g) : 0);
            multiply(0);
        }
    }
}

// Thread -> (image, channel, run, column), or (image, run, column, channel) where channels lie side by side, the last fastest.
template <class T, int THREADS, int TAPS, int STEP, int RUN>
__global__ void __launch_bounds__(THREADS)
depthwise(const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ out, Geometry g,
          Strides stride) {
    const bool channels_inside = stride.out.c == 1 && g.K > 1;
    int64_t index = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    int k = channels_inside ? take(index, g.K) : 0;
    const int q = take(index, g.Q), p = take(index, ceil_div(g.P, RUN)) * RUN;
    if (!channels_inside) k = take(index, g.K);
    const int image = int(index);
    if (image >= g.N) return;

    const int c_per_group = g.C / g.groups, group = k / (g.K / g.groups);
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
    store_run(sum, out + image * stride.out.n + k * stride.out.c + p * stride.out.h + q * stride.out.w, p, g, stride);
}

// One filter a channel, channels side by side, pixels aligned to WIDTH of them, which divides their number.
// Block -> (positions (image, run, column), LANES * WIDTH channels), the last fastest.
template <class T, int THREADS, int TAPS, int STEP, int RUN, int WIDTH>
__global__ void __launch_bounds__(THREADS, 3)  // with registers for three columns of inputs under way
depthwise_channels(const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ out,
                   Geometry g, Strides stride) {
    using Layout = Filters<WIDTH, LANES>;
    Sum<T>* const filters = dynamic_shared<Sum<T>>();
    const int blocks_k = ceil_div(g.K, Layout::CHANNELS), first = blockIdx.x % blocks_k * Layout::CHANNELS;
    stage_filters<Layout, TAPS>(filters, weight, 1, first, g, stride);
    __syncthreads();

    const int lane = threadIdx.x % LANES * WIDTH, k = first + lane;
    int64_t index = int64_t(blockIdx.x / blocks_k) * (THREADS / LANES) + threadIdx.x / LANES;
    const int q = take(index, g.Q), p = take(index, ceil_div(g.P, RUN)) * RUN, image = int(index);
    if (image >= g.N || k >= g.K) return;

    const T* plane = input + image * stride.input.n + k;
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
    store_run(sum, out + image * stride.out.n + k + p * stride.out.h + q * stride.out.w, p, g, stride);
}

}  // namespace conv2d
