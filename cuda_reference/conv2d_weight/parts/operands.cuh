// Parameters of every kernel of the gradient besides its tensors, and the bounds of an image.
#pragma once
#include "../../conv2d/parts/common.cuh"

namespace conv2d_weight {

using conv2d::Geometry;
using conv2d::Sum;

struct Strides {
    ImagesStrides input, grad;
    FiltersStrides weight;
};

__device__ __forceinline__ bool is_inside(int h, int w, const Geometry& g) {
    return unsigned(h) < unsigned(g.H) && unsigned(w) < unsigned(g.W);
}

}  // namespace conv2d_weight
