// conv2d_weight, naive: a thread per element of the weight, which walks all positions of the output.
//
// Two loads for a multiply-add, straight from the caches; neighbouring lanes own neighbouring taps, so they read the same
// grad_output and neighbouring inputs. A small filter keeps only a few lanes busy, each with millions of products: it is the
// baseline of the other designs. Mirrors tritonkernels/conv2d_weight/naive.py.
#pragma once
#include "parts/operands.cuh"

namespace conv2d_weight {

// input (N, C, H, W), grad_output (N, K, P, Q), the result weight (K, C, R, S).
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
naive(const float* __restrict__ input, const float* __restrict__ grad_output, float* __restrict__ weight, Geometry g,
      Strides stride) {
    const int64_t index = int64_t(blockIdx.x) * THREADS + threadIdx.x;  // of the weight, s fastest
    const int s = index % g.S, r = index / g.S % g.R, c = index / g.S / g.R % g.C, k = index / g.S / g.R / g.C;
    if (k >= g.K) return;
    float sum = 0.0f;
    for (int image = 0; image < g.N; ++image) {
        const float* plane = input + image * stride.input.n + c * stride.input.c;
        const float* grad = grad_output + image * stride.grad.n + k * stride.grad.c;
        for (int p = 0; p < g.P; ++p)
            for (int q = 0; q < g.Q; ++q) {
                const int h = p * g.step_h - g.padding_h + r * g.dilation_h, w = q * g.step_w - g.padding_w + s * g.dilation_w;
                const bool inside = h >= 0 && h < g.H && w >= 0 && w < g.W;  // the padding is zeros
                const float x = inside ? plane[h * stride.input.h + w * stride.input.w] : 0.0f;
                sum += grad[p * stride.grad.h + q * stride.grad.w] * x;
            }
    }
    weight[k * stride.weight.k + c * stride.weight.c + r * stride.weight.r + s * stride.weight.s] = sum;
}

}  // namespace conv2d_weight
