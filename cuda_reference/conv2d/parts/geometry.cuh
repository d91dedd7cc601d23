// Sizes and strides of a convolution: out (N, K, P, Q) = input (N, C, H, W) * weight (K, C / groups, R, S).
#pragma once
#include "../../common/index.cuh"
#include "../../common/structs.cuh"

namespace conv2d {

struct Geometry {
    int N, C, H, W, K, R, S, P, Q;
    int step_h, step_w, padding_h, padding_w, dilation_h, dilation_w, groups;

    __device__ __forceinline__ int c_per_group() const { return C / groups; }
    __device__ __forceinline__ int k_per_group() const { return K / groups; }
};

// NCHW, NHWC and CHWN are three sets of strides.
struct Strides {
    ImagesStrides input;
    FiltersStrides weight;
    VectorStrides bias;
    ImagesStrides out;
};

// Where the taps of a convolution are among those of the filter that it is given (operations/conv2d/taps.py).
struct Taps {
    int first, down, right;

    __device__ __forceinline__ int at(int r, int s) const { return first + r * down + s * right; }
};

}  // namespace conv2d
