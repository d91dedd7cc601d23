// Parameters of every kernel of the gradient besides its tensors.
#pragma once
#include "../../conv2d/parts/common.cuh"

namespace conv2d_weight {

using conv2d::Geometry;
using conv2d::Sum;

struct Strides {
    ImagesStrides input, grad;
    FiltersStrides weight;
};

}  // namespace conv2d_weight
