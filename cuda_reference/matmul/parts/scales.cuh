// The scales of operands of fp8 in a tile's sums: one for each matrix, which alpha takes in, or one for each row of A and column
// of B.
#pragma once
#include "../../common/wgmma.cuh"
#include "lane_sums.cuh"

namespace matmul {

enum Scales { NO_SCALES, MATRIX_SCALES, ROW_SCALES };

struct ScaleStrides {
    int64_t a_batch, a_row, b_batch, b_col;  // 0 where one repeats
};

// Of a warp's rows, 16 of each of BLOCKS blocks of 64, and of all BN columns. A null pointer stands for 1.
template <Scales SCALES, int BLOCKS, int BN> struct TileScales {
    __device__ __forceinline__ void load(const float*, const float*, const ScaleStrides&, int, int, int, int, int) {}
    template <class Number> __device__ __forceinline__ Number times(Number alpha) const { return alpha; }
    template <class Sums> __device__ __forceinline__ void apply(Sums&) const {}
};

template <int BLOCKS, int BN> struct TileScales<MATRIX_SCALES, BLOCKS, BN> {
    float of_tile;

    __device__ __forceinline__ void load(const float* a, const float* b, const ScaleStrides& stride, int batch, int, int, int,
                                         int) {
        of_tile = (a == nullptr ? 1.0f : a[batch * stride.a_batch]) * (b == nullptr ? 1.0f : b[batch * stride.b_batch]);
    }
    __device__ __forceinline__ float times(float alpha) const { return alpha * of_tile; }
    template <class Sums> __device__ __forceinline__ void apply(Sums&) const {}
};

template <int BLOCKS, int BN> struct TileScales<ROW_SCALES, BLOCKS, BN> {
    static_assert(BN % 32 == 0, "a lane loads the scale of every 32nd column");
    float of_row[BLOCKS][2], of_column[BN / 32];

    __device__ __forceinline__ void load(const float* a, const float* b, const ScaleStrides& stride, int batch, int first_row,
                                         int first_col, int M, int N) {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 2 * BLOCKS; ++i) {
            const int row = first_row + i / 2 * 64 + i % 2 * 8 + lane / 4;
            of_row[i / 2][i % 2] = a != nullptr && row < M ? a[batch * stride.a_batch + row * stride.a_row] : 1.0f;
        }
#pragma unroll
        for (int i = 0; i < BN / 32; ++i) {
            const int col = first_col + i * 32 + lane;
            of_column[i] = b != nullptr && col < N ? b[batch * stride.b_batch + col * stride.b_col] : 1.0f;
        }
    }
    template <class Number> __device__ __forceinline__ Number times(Number alpha) const { return alpha; }

    // A lane's columns lane % 4 * 2 and the next of each 8 come from the lanes that have loaded them.
    __device__ __forceinline__ void apply(LaneSums<float> (&sum)[BLOCKS][1][BN / 8]) const {
#pragma unroll
        for (int m = 0; m < BLOCKS; ++m) wgmma_results(sum[m][0]);
#pragma unroll
        for (int i = 0; i < BN / 4; ++i) {
            const int col = i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2;
            const float scale = __shfl_sync(0xffffffffu, of_column[i / 8], col % 32);
#pragma unroll
            for (int j = 0; j < 2 * BLOCKS; ++j) sum[j / 2][0][i / 2].x[j % 2 * 2 + i % 2] *= of_row[j / 2][j % 2] * scale;
        }
    }
};

}  // namespace matmul
