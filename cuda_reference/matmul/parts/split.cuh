// Splits FP32 matrices into planes that tensor cores multiply exactly: x = high + low (+ lowest).
//
// Each plane is what the planes before leave of x, rounded to nearest. Infinities and NaN are in the high plane, with 0 in the
// others. The high plane of a number other than 0 is not 0, so that infinity times it is infinity and not NaN. fp16 planes are
// those of x 2^s, with a shift s for each row; the low plane is multiplied by 2^11.
//
// The kernel reads 4 bytes per element and writes 4 (tf32: 8, bf16: 6), with K contiguous and padded with zeros: 0.25 ms for both
// operands at 8192^2 and 4.3 TB/s. Shifts need a first pass over the matrix (`extremes`).
// Mirrors tritonkernels/matmul/parts/fp32_planes.py, which has the theory.
#pragma once
#include "../../common/overlap.cuh"
#include "../../common/patch.cuh"
#include "scheme.cuh"
#include "store_run.cuh"

namespace matmul {

// Writes the first two rows of the ranges (schemes.room): the largest and smallest |x| of each row, as ints of the same bits,
// which have the same order. A template, so that modules without shifts do not compile it.
template <class Float>
__global__ void __launch_bounds__(PATCH_THREADS) extremes(const Float* __restrict__ x, int* __restrict__ ranges, int R,
                                                          int K, OperandStrides stride) {
    wait_for_earlier_kernels();
    __shared__ PatchTile<Float> tile;
    const Patch patch(R, K);
    patch.load(tile, x, R, K, stride);
    const int row = threadIdx.x % PATCH;  // shared by four threads
    int largest = 0, smallest = 0;        // `smallest` has its bits flipped, so that atomicMax finds it
#pragma unroll
    for (int k = threadIdx.x / PATCH; k < PATCH; k += LINES) {
        const int bits = __float_as_int(tile[row][k]) & 0x7fffffff;
        largest = max(largest, bits < 0x7f800000 ? bits : 0);
        if (patch.first_k + k < K) smallest = max(smallest, bits ^ 0x7fffffff);
    }
    if (patch.first + row < R) {
        ranges += int64_t(patch.batch) * 3 * R + patch.first + row;
        atomicMax(ranges, largest);  // gives the same result in any order
        atomicMax(ranges + R, smallest);
    }
}

// Elements below `small`, shifted, are what a row may lose; each is counted as `weight` (schemes.Scheme, docs/numerics.md).
// Planes are `plane_stride` from each other, which may be negative, and their rows, padded to padded_k, `row_stride`.
template <class Plane>
__global__ void __launch_bounds__(PATCH_THREADS) split(const float* __restrict__ x, int* __restrict__ ranges,
                                                       Plane* __restrict__ planes, int R, int K, int padded_k,
                                                       OperandStrides stride, int64_t plane_stride, int64_t row_stride,
                                                       float small, int weight) {
    wait_for_earlier_kernels();
    using Of = Planes<Plane>;
    constexpr int RUN = 4;
    __shared__ PatchTile<float> tile;
    const Patch patch(R, K);
    patch.load(tile, x, R, K, stride);
    planes += int64_t(patch.batch) * R * row_stride;
    if (Of::SHIFTED) ranges += int64_t(patch.batch) * 3 * R;
#pragma unroll 1
    for (int i = threadIdx.x; i < PATCH * PATCH / RUN; i += PATCH_THREADS) {
        const int s = i / (PATCH / RUN), k = i % (PATCH / RUN) * RUN, row = patch.first + s;
        const int largest = Of::SHIFTED && row < R ? ranges[row] : 0, shift = Of::SHIFTED ? shift_of(largest) : 0;
        __align__(16) Plane runs[Of::COUNT][RUN];
        int counted = 0;
#pragma unroll
        for (int j = 0; j < RUN; ++j) {
            const float whole = tile[s][k + j];
            const float rest = shifted(whole, shift);
            counted += fabsf(rest) < small && whole != 0 ? weight : 0;
            Plane parts[Of::COUNT];
            split_number(parts, whole, rest);
#pragma unroll
            for (int plane = 0; plane < Of::COUNT; ++plane) runs[plane][j] = parts[plane];
        }
        if (Of::SHIFTED && row < R) {
            if (patch.first_k + k == 0) counted -= needed_to_refuse(largest, ranges[R + row] ^ 0x7fffffff, small);
            if (counted != 0) atomicAdd(ranges + 2 * R + row, counted);
        }
#pragma unroll
        for (int plane = 0; plane < Of::COUNT; ++plane)
            store_run(runs[plane], planes + plane * plane_stride, row, patch.first_k + k, R, padded_k, row_stride, 1);
    }
}

}  // namespace matmul
