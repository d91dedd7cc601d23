// conv2d, depthwise: a thread owns a RUN of outputs of a column, below each other, of WIDTH channels.
//
// With one input channel per group there is no sum over channels to block for: 2 R S operations an output, on 4 bytes in and 4
// out, leave it to bandwidth. What is to be saved are loads from L1: a run of 8 needs R + 7 rows of a column of taps, not 8 R,
// each in a register that serves up to R outputs. Runs go down, so that neighbouring lanes stay neighbours in memory.
//
// WIDTH is 1 in NCHW, where lanes lie along W and taps are broadcast. In channels_last lanes lie along the channels, each loads
// WIDTH of them at once, 128 bits of fp32, and a block has its 8 * WIDTH filters in shared memory, tap by tap.
// TAPS is R, unrolled, where rows of taps and outputs are neighbours; 0 takes any. WIDTH 1 computes every convolution, but with
// more channels per group its filter taps, a load for 4 multiply-adds, hold it up. Mirrors tritonkernels/conv2d/depthwise.py.
#pragma once
#include "../common/shared.cuh"
#include "common.cuh"

namespace conv2d {

constexpr int LANES = 8;
template <int TAPS> constexpr int RUN = TAPS > 0 ? 8 : 4;  // inputs that slide cost a register each, others one per output

// index % size, and index / size left in it; 32-bit division, several times as fast, wherever it will do.
__device__ __forceinline__ int take(int64_t& index, int size) {
    const bool is_short = index >> 32 == 0;
    const int64_t rest = is_short ? unsigned(index) / unsigned(size) : index / size;
    const int digit = int(index - rest * size);
    index = rest;
    return digit;
}

// WIDTH elements side by side, by one load: 128 or 64 bits, aligned.
template <int WIDTH, class From, class To> __device__ __forceinline__ void load_together(To (&to)[WIDTH], const From* from) {
    From held[WIDTH];
    if constexpr (WIDTH == 1) {
        held[0] = *from;
    } else {
        using Piece = std::conditional_t<WIDTH * sizeof(From) == 16, uint4, uint2>;
        static_assert(WIDTH * sizeof(From) == sizeof(Piece), "128 or 64 bits");
        const Piece bits = *reinterpret_cast<const Piece*>(from);
        std::memcpy(held, &bits, sizeof bits);
    }
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) to[i] = To(held[i]);
}

// The same of a pixel, whose padding around the image is 0.
template <int WIDTH, class From, class To>
__device__ __forceinline__ void load_pixel(To (&to)[WIDTH], const From* from, bool inside) {
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) to[i] = To(0);
    if (inside) load_together(to, from);
}

// sum += a column of taps times the inputs that it meets, from `at` in row h on; `tap` steps from one tap to the next. Pointers
// step too: an address from scratch takes as many instructions as all that is done with what it holds.
template <int TAPS, int WIDTH, class T, class Tap>
__device__ __forceinline__ void multiply_column(Sum<T> (&sum)[RUN<TAPS>][WIDTH], const T* at, int h, bool inside, const Tap* tap,
                                                int64_t tap_step, const Geometry& g, const Strides& stride) {
    const auto multiply = [&](int j, const Sum<T> (&of_tap)[WIDTH], const Sum<T> (&input)[WIDTH]) {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) sum[j][i] += of_tap[i] * input[i];
    };
    Sum<T> of_tap[WIDTH];
    if constexpr (TAPS > 0) {
        Sum<T> window[TAPS + RUN<TAPS> - 1][WIDTH];
#pragma unroll
        for (int i = 0; i < TAPS + RUN<TAPS> - 1; ++i, at += stride.ih)
            load_pixel(window[i], at, inside && unsigned(h + i) < unsigned(g.H));
#pragma unroll
        for (int r = 0; r < TAPS; ++r, tap += tap_step) {
            load_together(of_tap, tap);
#pragma unroll
            for (int j = 0; j < RUN<TAPS>; ++j) multiply(j, of_tap, window[r + j]);
        }
    } else {
        const int64_t next_tap = g.dilation_h * stride.ih, next_output = g.step_h * stride.ih;
        for (int r = 0; r < g.R; ++r, h += g.dilation_h, at += next_tap, tap += tap_step) {
            Sum<T> input[RUN<TAPS>][WIDTH];
#pragma unroll
            for (int j = 0; j < RUN<TAPS>; ++j)
                load_pixel(input[j], at + j * next_output, inside && unsigned(h + j * g.step_h) < unsigned(g.H));
            load_together(of_tap, tap);
#pragma unroll
            for (int j = 0; j < RUN<TAPS>; ++j) multiply(j, of_tap, input[j]);
        }
    }
}

template <int RUN, int WIDTH, class T>
__device__ __forceinline__ void store_run(const Sum<T> (&sum)[RUN][WIDTH], T* at, int p, const Geometry& g,
                                          const Strides& stride) {
#pragma unroll
    for (int j = 0; j < RUN; ++j) {
        T pixel[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) pixel[i] = T(sum[j][i]);
        T* to = at + j * stride.op;
        if (p + j >= g.P) continue;
        if constexpr (WIDTH == 1) {
            *to = pixel[0];
        } else {
            std::conditional_t<WIDTH * sizeof(T) == 16, uint4, uint2> bits;
            std::memcpy(&bits, pixel, sizeof bits);
            *reinterpret_cast<decltype(bits)*>(to) = bits;
        }
    }
}

// Thread -> (image, channel, run, column), or (image, run, column, channel) where channels lie side by side, the last fastest.
template <class T, int THREADS, int TAPS>
__global__ void __launch_bounds__(THREADS)
depthwise(const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ out, Geometry g,
          Strides stride) {
    const bool channels_inside = stride.ok == 1 && g.K > 1;
    int64_t index = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    int k = channels_inside ? take(index, g.K) : 0;
    const int q = take(index, g.Q), p = take(index, ceil_div(g.P, RUN<TAPS>)) * RUN<TAPS>;
    if (!channels_inside) k = take(index, g.K);
    const int image = int(index);
    if (image >= g.N) return;

    const int c_per_group = g.C / g.groups, group = k / (g.K / g.groups);
    const T* plane = input + image * stride.in + group * c_per_group * stride.ic;
    const T* filter = weight + k * stride.wk;
    Sum<T> sum[RUN<TAPS>][1];
#pragma unroll
    for (int j = 0; j < RUN<TAPS>; ++j) sum[j][0] = bias_or_zero(bias, k, stride);
    const int h = p * g.step_h - g.padding_h, first_w = q * g.step_w - g.padding_w;
    for (int c = 0; c < c_per_group; ++c, plane += stride.ic, filter += stride.wc) {
        const T *at = plane + h * stride.ih + first_w * stride.iw, *tap = filter;
        for (int w = first_w, s = 0; s < g.S; ++s, w += g.dilation_w, at += g.dilation_w * stride.iw, tap += stride.ws)
            multiply_column<TAPS>(sum, at, h, unsigned(w) < unsigned(g.W), tap, stride.wr, g, stride);
    }
    store_run(sum, out + image * stride.on + k * stride.ok + p * stride.op + q * stride.oq, p, g, stride);
}

// One filter a channel, channels side by side, pixels aligned to WIDTH of them, which divides their number.
// Block -> (positions (image, run, column), LANES * WIDTH channels), the last fastest.
template <class T, int THREADS, int TAPS, int WIDTH>
__global__ void __launch_bounds__(THREADS)
depthwise_channels(const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ out,
                   Geometry g, Strides stride) {
    constexpr int CHANNELS = LANES * WIDTH;
    Sum<T>* filters = dynamic_shared<Sum<T>>();  // (taps, CHANNELS)
    const int blocks_k = ceil_div(g.K, CHANNELS), first = blockIdx.x % blocks_k * CHANNELS;
    for (int i = threadIdx.x; i < g.R * g.S * CHANNELS; i += THREADS) {
        const int k = min(first + i % CHANNELS, g.K - 1), tap = i / CHANNELS;  // past the last channel: any, unstored
        filters[i] = Sum<T>(weight[k * stride.wk + tap / g.S * stride.wr + tap % g.S * stride.ws]);
    }
    __syncthreads();

    const int lane = threadIdx.x % LANES * WIDTH, k = first + lane;
    int64_t index = int64_t(blockIdx.x / blocks_k) * (THREADS / LANES) + threadIdx.x / LANES;
    const int q = take(index, g.Q), p = take(index, ceil_div(g.P, RUN<TAPS>)) * RUN<TAPS>, image = int(index);
    if (image >= g.N || k >= g.K) return;

    const T* plane = input + image * stride.in + k;
    Sum<T> sum[RUN<TAPS>][WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        const Sum<T> first_term = bias_or_zero(bias, k + i, stride);
#pragma unroll
        for (int j = 0; j < RUN<TAPS>; ++j) sum[j][i] = first_term;
    }
    const int h = p * g.step_h - g.padding_h, first_w = q * g.step_w - g.padding_w;
    const T* at = plane + h * stride.ih + first_w * stride.iw;
    const Sum<T>* tap = filters + lane;
    for (int w = first_w, s = 0; s < g.S; ++s, w += g.dilation_w, at += g.dilation_w * stride.iw, tap += CHANNELS)
        multiply_column<TAPS>(sum, at, h, unsigned(w) < unsigned(g.W), tap, g.S * CHANNELS, g, stride);
    store_run(sum, out + image * stride.on + k + p * stride.op + q * stride.oq, p, g, stride);
}

}  // namespace conv2d
