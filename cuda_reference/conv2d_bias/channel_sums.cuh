// conv2d_bias, channel_sums: a block sums its share of the positions of CHANNELS channels; few channels are split over many.
//
// It is limited by reading grad_output once. Threads are CHANNELS x lanes, channels fastest: with 1, lanes lie along positions;
// with 32, along the channels, which are contiguous in channels_last. Mirrors tritonkernels/conv2d_bias/channel_sums.py.
#pragma once
#include "../common/overlap.cuh"
#include "../conv2d/parts/splits.cuh"

namespace conv2d_bias {

using conv2d::Position;
using conv2d::Sum;

struct Strides {
    ImagesStrides grad;
    VectorStrides bias;
};

// grad_output (N, K, P, Q), bias (K,), sums (splits, K) or null: then there is one split, which writes bias.
template <class T, int THREADS, int CHANNELS>
__global__ void __launch_bounds__(THREADS)
channel_sums(const T* __restrict__ grad_output, T* __restrict__ bias, Sum<T>* __restrict__ sums, int N, int K, int P, int Q,
             Strides stride, int64_t positions_per_split) {
    wait_for_earlier_kernels();
    constexpr int LANES = THREADS / CHANNELS;
    const int lane = threadIdx.x / CHANNELS, k = blockIdx.x * CHANNELS + threadIdx.x % CHANNELS;
    const int64_t positions = int64_t(N) * P * Q;
    const int64_t first = blockIdx.y * positions_per_split, end = min(first + positions_per_split, positions);
    Sum<T> sum(0);
    if (k < K)
#pragma unroll 4
        for (int64_t index = first + lane; index < end; index += LANES) {
            const Position at(index, P, Q);
            sum += Sum<T>(
                grad_output[at.image * stride.grad.n + k * stride.grad.c + at.p * stride.grad.h + at.q * stride.grad.w]);
        }
    sum = conv2d::sum_of_rows<CHANNELS, LANES>(sum);
    if (lane > 0 || k >= K) return;
    if (sums == nullptr)
        bias[k * stride.bias.step] = T(sum);
    else
        sums[int64_t(blockIdx.y) * K + k] = sum;
}

}  // namespace conv2d_bias
