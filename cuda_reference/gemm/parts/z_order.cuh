// The places of threads in a block tile, in Z order, for tiles of any shape; the lesson z_order.cuh says why.
#pragma once
#include "tile_io.cuh"

namespace gemm {

template <int BM, int BN, int TM, int TN> struct ZOrder {
    using Own = Shape<BM, BN, TM, TN>;
    static constexpr int GAP_M = Own::DOWN * 4, GAP_N = Own::ACROSS * 4;  // what the quads of a warp's lanes span side by side

    // Of the thread's first quad in the block tile.
    __device__ __forceinline__ static int row() {
        return int(threadIdx.x) / 32 / (BN / Own::WN) * Own::WM + of_lane(false) * 4;
    }
    __device__ __forceinline__ static int col() {
        return int(threadIdx.x) / 32 % (BN / Own::WN) * Own::WN + of_lane(true) * 4;
    }

    // The lane's column of quads, or its row: of 4 x 8 lanes bits 0, 2 and 4 count columns, bits 1 and 3 rows. Of other warps the
    // bits alternate, too, until there are all of one kind.
    __device__ __forceinline__ static int of_lane(bool columns) {
        const int lane = threadIdx.x % 32;
        int across = 1, down = 1, col = 0, row = 0;
#pragma unroll
        for (int bit = 0; bit < 5; ++bit) {
            const int is_set = lane >> bit & 1;
            if (down == Own::DOWN || (bit % 2 == 0 && across < Own::ACROSS))
                col += is_set * across, across *= 2;
            else
                row += is_set * down, down *= 2;
        }
        return columns ? col : row;
    }

    template <int ROWS>
    __device__ __forceinline__ static void store(const float (&sum)[ROWS][TN], const float* c, float* out, int first_row,
                                                 int first_col, int M, int N, float alpha, float beta, const Strides& stride) {
        store_tile<GAP_M, GAP_N>(sum, c, out, first_row + row(), first_col + col(), M, N, alpha, beta, stride);
    }
};

}  // namespace gemm
