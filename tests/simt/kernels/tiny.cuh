// The least that can be built. N tells builds apart.
#pragma once
#include <cuda_runtime.h>

namespace tiny {

template <int N> __global__ void fill(int* out) { out[threadIdx.x] = N; }

}  // namespace tiny
