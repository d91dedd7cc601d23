// Operands of implicit_gemm besides the input: a table of taps, and filters as rows, each made by a small kernel before it.
//
// The reduction runs over taps (c, r, s), s fastest as filters of NCHW lie, or (r, s, c), c fastest as they lie in NHWC.
#pragma once
#include <climits>

#include "../../common/overlap.cuh"
#include "common.cuh"

namespace conv2d {

// Distance of a tap's input from the first tap's (c = r = s = 0), in elements, rows and columns.
struct alignas(16) Tap {
    int64_t offset;
    int h, w;
};

// A row or column outside of every image, and so is any tap's from there: an image and its padding have less than 2^31. Pixels
// that do not exist have this row, taps that do not exist this column.
constexpr int FAR = INT_MIN;

__device__ __forceinline__ bool is_inside(int h, int w, int tap_h, int tap_w, int H, int W) {
    return unsigned(h) + unsigned(tap_h) < unsigned(H) && unsigned(w) + unsigned(tap_w) < unsigned(W);
}

// taps[i], i = (c * R + r) * S + s; those after the last one, up to `padded`, are outside of every image.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) table_of_taps(Tap* __restrict__ taps, int padded, Geometry g, ImagesStrides input) {
    wait_for_earlier_kernels();
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= padded) return;
    const int s = i % g.S, r = i / g.S % g.R, c = i / g.S / g.R;
    const int h = r * g.dilation_h, w = s * g.dilation_w;
    const bool exists = c < g.c_per_group();
    taps[i] = {exists ? c * input.c + h * input.h + w * input.w : 0, h, exists ? w : FAR};
}

// Filters as rows of `pitch` elements, a multiple of 16 bytes, in one of the two orders.
template <class T, bool C_INSIDE, int THREADS>
__global__ void __launch_bounds__(THREADS)
pack_filters(const T* __restrict__ weight, T* __restrict__ packed, int pitch, Geometry g, FiltersStrides stride) {
    wait_for_earlier_kernels();
    const int k = blockIdx.x / ceil_div(pitch, THREADS), i = blockIdx.x % ceil_div(pitch, THREADS) * THREADS + threadIdx.x;
    const int channels = g.c_per_group(), taps = g.R * g.S;
    if (i >= channels * taps) return;  // the padding of a row is never read
    const int c = C_INSIDE ? i % channels : i / taps, tap = C_INSIDE ? i / channels : i % taps;
    packed[int64_t(k) * pitch + i] = weight[k * stride.k + c * stride.c + tap / g.S * stride.r + tap % g.S * stride.s];
}

}  // namespace conv2d
