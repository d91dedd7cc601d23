// Parameters of every kernel of the gradient besides its tensors.
#pragma once
#include "../../conv2d/parts/geometry.cuh"

namespace conv2d_weight {

using conv2d::Geometry;

struct Strides {
    ImagesStrides input, grad;
    FiltersStrides weight;
};

}  // namespace conv2d_weight
