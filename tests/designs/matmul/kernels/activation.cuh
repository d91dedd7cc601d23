// The activations of epilogues, and what they are made of, of numbers that are not rounded after it.
#pragma once
#include <cuda_fp16.h>

#include "../../../../cuda_reference/common/approximate.cuh"
#include "../../../../cuda_reference/matmul/parts/activation.cuh"

namespace activation {

template <class Out, matmul::Activation ACTIVATION> __global__ void apply(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = matmul::activate<Out>(x[i], ACTIVATION);
}

__global__ void exp2(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = approximate_exp2(x[i]);
}

__global__ void reciprocal(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = approximate_reciprocal(x[i]);
}

}  // namespace activation
