// The gradient filled with zeros, or with a bias, where some of its phases are reached by no tap. Mirrors tritonkernels/conv2d_input/parts/cleared.py.
#pragma once
#include "../../common/overlap.cuh"
#include "../../conv2d/parts/common.cuh"

namespace conv2d_input {

// out (N, C, H, W) of `total` elements, EACH a thread. DENSE: they follow each other in some order, and there is no bias.
template <class T, int THREADS, int EACH, bool DENSE>
__global__ void __launch_bounds__(THREADS) cleared(const T* __restrict__ bias, int64_t step, T* __restrict__ out, int64_t total, int C, int H, int W, ImagesStrides stride) {
    wait_for_earlier_kernels();
    const int64_t first = int64_t(blockIdx.x) * THREADS * EACH + threadIdx.x;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int64_t index = first + i * THREADS, row = index / W, plane = row / H;
        if (index >= total) return;
        const int64_t apart = plane / C * stride.n + plane % C * stride.c + row % H * stride.h + index % W * stride.w;
        out[DENSE ? index : apart] = !DENSE && bias ? bias[plane % C * step] : T(0.f);
    }
}

}  // namespace conv2d_input
