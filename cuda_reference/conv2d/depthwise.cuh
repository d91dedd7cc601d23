// conv2d, depthwise: a thread owns RUN outputs of a column, below each other, and one output channel; nothing is staged.
//
// With one input channel per group there is no sum over channels to block for: 2 R S operations an output, on 4 bytes in and 4
// out, leave it to bandwidth. What is to be saved are loads from L1: a run of 4 needs R + 3 rows of a column of taps, not 4 R,
// each in a register that serves up to R outputs. Runs go down, so that neighbouring lanes stay neighbours in memory: along W
// in NCHW, along the channels in channels_last, whole sectors in both.
//
// TAPS is R, unrolled, where rows of taps and outputs are neighbours; 0 takes any. It computes every convolution, but with more
// channels per group its filter taps, a load for 4 multiply-adds, hold it up. Mirrors tritonkernels/conv2d/depthwise.py.
#pragma once
#include "common.cuh"

namespace conv2d {

constexpr int RUN = 4;

template <class T, int TAPS>
__device__ __forceinline__ void multiply_column(Sum<T> (&sum)[RUN], const T* plane, const T* filter, int h, int w, const Geometry& g,
                                                const Strides& stride) {
    if constexpr (TAPS > 0) {
        Sum<T> window[TAPS + RUN - 1];
#pragma unroll
        for (int i = 0; i < TAPS + RUN - 1; ++i) window[i] = input_or_zero(plane, h + i, w, g, stride);
#pragma unroll
        for (int r = 0; r < TAPS; ++r) {
            const Sum<T> tap(filter[r * stride.wr]);
#pragma unroll
            for (int j = 0; j < RUN; ++j) sum[j] += tap * window[r + j];
        }
    } else {
        for (int r = 0; r < g.R; ++r) {
            const Sum<T> tap(filter[r * stride.wr]);
#pragma unroll
            for (int j = 0; j < RUN; ++j)
                sum[j] += tap * input_or_zero(plane, h + r * g.dilation_h + j * g.step_h, w, g, stride);
        }
    }
}

template <class T, int THREADS, int TAPS>
__global__ void __launch_bounds__(THREADS)
depthwise(const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ out, Geometry g,
          Strides stride) {
    // thread -> (image, channel, run, column), or (image, run, column, channel) where channels lie side by side, the last fastest
    const bool channels_inside = stride.ok == 1 && g.K > 1;
    const int runs = ceil_div(g.P, RUN);
    int64_t index = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    const auto take = [&](int size) {
        const int digit = index % size;
        index /= size;
        return digit;
    };
    int k = channels_inside ? take(g.K) : 0;
    const int q = take(g.Q), p = take(runs) * RUN;
    if (!channels_inside) k = take(g.K);
    const int image = index;
    if (image >= g.N) return;

    const int c_per_group = g.C / g.groups, group = k / (g.K / g.groups);
    const T* plane = input + image * stride.in + group * c_per_group * stride.ic;
    const T* filter = weight + k * stride.wk;
    Sum<T> sum[RUN];
#pragma unroll
    for (int j = 0; j < RUN; ++j) sum[j] = bias_or_zero(bias, k, stride);
    const int h = p * g.step_h - g.padding_h, w = q * g.step_w - g.padding_w;
    for (int c = 0; c < c_per_group; ++c, plane += stride.ic, filter += stride.wc)
        for (int s = 0; s < g.S; ++s)
            multiply_column<T, TAPS>(sum, plane, filter + s * stride.ws, h, w + s * g.dilation_w, g, stride);
    T* at = out + image * stride.on + k * stride.ok + q * stride.oq;
#pragma unroll
    for (int j = 0; j < RUN; ++j)
        if (p + j < g.P) at[(p + j) * stride.op] = T(sum[j]);
}

}  // namespace conv2d
