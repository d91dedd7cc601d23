// conv2d_weight, naive: a thread per element of the weight, which walks all positions of the output.
//
// Two loads for a multiply-add, straight from the caches; neighbouring lanes own neighbouring taps, so they read the same
// grad_output and neighbouring inputs. A small filter keeps only a few lanes busy, each with millions of products: it is the
// baseline of the other designs. Mirrors tritonkernels/conv2d_weight/naive.py.
#pragma once
#include "../common/overlap.cuh"
#include "parts/operands.cuh"

namespace conv2d_weight {

template <class T, int THREADS>
__global__ void __launch_bounds__(THREADS)
naive(const T* __restrict__ input, const T* __restrict__ grad_output, T* __restrict__ weight, Geometry g, Strides stride) {
    wait_for_earlier_kernels();
    const int c_per_group = g.c_per_group(), k_per_group = g.k_per_group();
    int64_t index = int64_t(blockIdx.x) * THREADS + threadIdx.x;  // of the weight, s fastest
    const int s = index % g.S;
    index /= g.S;
    const int r = index % g.R;
    index /= g.R;
    const int c = index % c_per_group, k = index / c_per_group;
    if (k >= g.K) return;

    const T* plane = input + (k / k_per_group * c_per_group + c) * stride.input.c;
    const T* grad = grad_output + k * stride.grad.c;
    Sum<T> sum(0);
    for (int image = 0; image < g.N; ++image, plane += stride.input.n, grad += stride.grad.n)
        for (int p = 0; p < g.P; ++p)
            for (int q = 0; q < g.Q; ++q) {
                const int h = p * g.step_h - g.padding_h + r * g.dilation_h, w = q * g.step_w - g.padding_w + s * g.dilation_w;
                const bool inside = h >= 0 && h < g.H && w >= 0 && w < g.W;
                sum += Sum<T>(grad[p * stride.grad.h + q * stride.grad.w]) *
                       (inside ? Sum<T>(plane[h * stride.input.h + w * stride.input.w]) : Sum<T>(0));
            }
    weight[k * stride.weight.k + c * stride.weight.c + r * stride.weight.r + s * stride.weight.s] = T(sum);
}

}  // namespace conv2d_weight
