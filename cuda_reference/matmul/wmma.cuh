// Matrix product on tensor cores through nvcuda::wmma: a warp owns one WM x WN tile of C and walks K, one mma_sync per 16.
//
// half in, float accumulate: products are exact, only the sums round. Operands of any size and strides pass through shared memory,
// padded with zeros, because load_matrix_sync wants whole tiles, 32-byte aligned pointers and a leading dimension that is a multiple
// of 16 bytes. The map from a fragment's elements to lanes is unspecified, so the result leaves through shared memory as well.
// Mirrors tritonkernels/matmul/tensor_core.py.
#pragma once
#include <cuda_fp16.h>
#include <mma.h>

#include "../common/index.cuh"

namespace matmul {

// In elements; ab, bb and ob step from one matrix of the batch to the next, 0 shares it.
struct Strides {
    int64_t ab, am, ak, bb, bk, bn, ob, om, on;
};

__device__ __forceinline__ void convert(float value, float& out) { out = value; }
__device__ __forceinline__ void convert(float value, __half& out) { out = __float2half(value); }

// A ROWS x COLS tile at (first_row, first_col) of a rows x cols matrix, zeros past its edges, which add nothing to a sum.
template <int ROWS, int COLS>
__device__ void load_tile(__half (&tile)[ROWS][COLS], const __half* matrix, int first_row, int first_col, int rows, int cols,
                          int64_t stride_row, int64_t stride_col) {
    for (int i = threadIdx.x; i < ROWS * COLS; i += 32) {
        const int row = first_row + i / COLS, col = first_col + i % COLS;
        tile[i / COLS][i % COLS] =
            row < rows && col < cols ? matrix[row * stride_row + col * stride_col] : __float2half(0.0f);
    }
}

template <typename Out, int WM, int WN>
__global__ void __launch_bounds__(32)
wmma(const __half* __restrict__ a, const __half* __restrict__ b, Out* __restrict__ out, int M, int N, int K, Strides stride) {
    using namespace nvcuda::wmma;
    constexpr int WK = 16;
    static_assert(WM * WN == 256, "the legal shapes with half inputs are 16x16x16, 32x8x16 and 8x32x16");
    __shared__ __align__(32) __half a_tile[WM][WK];
    __shared__ __align__(32) __half b_tile[WK][WN];
    __shared__ __align__(32) float c_tile[WM][WN];

    const int tiles_m = ceil_div(M, WM), tiles_n = ceil_div(N, WN);
    const int tile = blockIdx.x % (tiles_m * tiles_n), batch = blockIdx.x / (tiles_m * tiles_n);
    const int first_row = tile / tiles_n * WM, first_col = tile % tiles_n * WN;
    a += batch * stride.ab;
    b += batch * stride.bb;
    out += batch * stride.ob;

    fragment<accumulator, WM, WN, WK, float> sum;
    fill_fragment(sum, 0.0f);
    for (int k = 0; k < K; k += WK) {
        load_tile(a_tile, a, first_row, k, M, K, stride.am, stride.ak);
        load_tile(b_tile, b, k, first_col, K, N, stride.bk, stride.bn);
        __syncwarp();  // both tiles are complete
        fragment<matrix_a, WM, WN, WK, __half, row_major> a_fragment;
        fragment<matrix_b, WM, WN, WK, __half, row_major> b_fragment;
        load_matrix_sync(a_fragment, &a_tile[0][0], WK);
        load_matrix_sync(b_fragment, &b_tile[0][0], WN);
        mma_sync(sum, a_fragment, b_fragment, sum);
        __syncwarp();  // nobody reads them any more, the next may overwrite them
    }

    store_matrix_sync(&c_tile[0][0], sum, WN, mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < WM * WN; i += 32) {
        const int row = first_row + i / WN, col = first_col + i % WN;
        if (row < M && col < N) convert(c_tile[i / WN][i % WN], out[row * stride.om + col * stride.on]);
    }
}

}  // namespace matmul
