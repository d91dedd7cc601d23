// FP32 matrices written once more as planes that tensor cores multiply exactly: x = high + low (+ lowest).
//
// Each plane is what is left of x, rounded to nearest. Infinities and NaN stand in the high plane, with 0 below them; the high
// plane of a number that is not 0 is not 0 either, so that infinity times it is infinity and not NaN. fp16 planes are those of
// x 2^s, with a shift s for each row, the low one times 2^11.
//
// It reads 4 bytes of each element and writes 4 (tf32: 8, bf16: 6), K contiguous and padded with zeros: at 4.3 TB/s 0.25 ms for
// both operands at 8192^2. The shifts read the matrix a second time.
// Mirrors tritonkernels/matmul/split.py, which has the theory.
#pragma once
#include "patch.cuh"
#include "scheme.cuh"
#include "store_run.cuh"

namespace matmul {

// Bits of the largest finite |x| of each row, which are in the order of the numbers; zeros before.
// A template, so that a module without shifts has no code of it.
template <class Float>
__global__ void __launch_bounds__(256) largest_of_rows(const Float* __restrict__ x, int* __restrict__ largest, int R, int K,
                                                       OperandStrides stride) {
    __shared__ PatchTile<Float> tile;
    const Patch patch(R, K);
    patch.load(tile, x, R, K, stride);
    const int row = threadIdx.x % PATCH;  // four threads share it
    int found = 0;
#pragma unroll
    for (int k = threadIdx.x / PATCH; k < PATCH; k += 256 / PATCH) {
        const int bits = __float_as_int(tile[row][k]) & 0x7fffffff;
        found = max(found, bits < 0x7f800000 ? bits : 0);
    }
    if (patch.first + row < R) atomicMax(largest + int64_t(patch.batch) * R + patch.first + row, found);  // same in any order
}

template <class Plane>
__global__ void __launch_bounds__(256) split(const float* __restrict__ x, const int* __restrict__ largest,
                                             Plane* __restrict__ planes, int R, int K, int padded_k, OperandStrides stride,
                                             int64_t plane_stride) {
    using Of = Planes<Plane>;
    constexpr int RUN = 4;
    __shared__ PatchTile<float> tile;
    const Patch patch(R, K);
    patch.load(tile, x, R, K, stride);
    planes += int64_t(patch.batch) * R * padded_k;
#pragma unroll 1
    for (int i = threadIdx.x; i < PATCH * PATCH / RUN; i += 256) {
        const int s = i / (PATCH / RUN), k = i % (PATCH / RUN) * RUN, row = patch.first + s;
        const int shift = largest != nullptr && row < R ? shift_of(largest[int64_t(patch.batch) * R + row]) : 0;
        __align__(16) Plane runs[Of::COUNT][RUN];
#pragma unroll
        for (int j = 0; j < RUN; ++j) {
            const float whole = tile[s][k + j];
            const bool finite = fabsf(whole) < INFINITY;
            float rest = shifted(whole, shift);
#pragma unroll
            for (int plane = 0; plane < Of::COUNT; ++plane) {
                float part = rest;
                if (plane == 0 && finite && whole != 0)
                    part = copysignf(fminf(fmaxf(fabsf(rest), Of::SMALLEST), Of::LIMIT), whole);
                runs[plane][j] = Of::rounded(part);
                rest = finite ? (rest - Of::widened(runs[plane][j])) * Of::STEP : 0.0f;
            }
        }
#pragma unroll
        for (int plane = 0; plane < Of::COUNT; ++plane)
            store_run(runs[plane], planes + plane * plane_stride, row, patch.first_k + k, R, padded_k, padded_k, 1);
    }
}

}  // namespace matmul
