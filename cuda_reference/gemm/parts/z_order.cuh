// The places of threads in a block tile, in Z order, for tiles of any shape; the lesson z_order.cuh says why.
#pragma once
#include "shifted_rows.cuh"
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

    // The bits of a lane's number that count columns of quads; the others count rows. Of 4 x 8 lanes bits 0, 2 and 4 count columns,
    // bits 1 and 3 rows. Of other warps the bits alternate, too, until there are all of one kind.
    __device__ static constexpr int column_bits() {
        int bits = 0, across = 1, down = 1;
        for (int bit = 0; bit < 5; ++bit)
            if (down == Own::DOWN || (bit % 2 == 0 && across < Own::ACROSS))
                bits |= 1 << bit, across *= 2;
            else
                down *= 2;
        return bits;
    }

    // The lane's column of quads, or its row.
    __device__ __forceinline__ static int of_lane(bool columns) {
        constexpr int BITS = column_bits();
        int place = 0, weight = 1;
#pragma unroll
        for (int bit = 0; bit < 5; ++bit)
            if ((BITS >> bit & 1) == columns) place += (int(threadIdx.x) >> bit & 1) * weight, weight *= 2;
        return place;
    }

    // The lane with the next quad of the same row; the row's first one after its last.
    __device__ __forceinline__ static int next_lane() {
        constexpr int BITS = column_bits();
        const int lane = threadIdx.x % 32;
        return ((lane | ~BITS) + 1 & BITS) | (lane & ~BITS);
    }

    // SHIFTED: shifted_rows.cuh.
    template <bool SHIFTED, int ROWS>
    __device__ __forceinline__ static void store(const float (&sum)[ROWS][TN], const float* c, float* out, int first_row,
                                                 int first_col, int M, int N, float alpha, float beta, const Strides& stride) {
        if constexpr (SHIFTED)
            store_shifted<ZOrder>(sum, out, stride.out.row, first_row, first_col, M, N, WithC{c, alpha, beta, stride.c});
        else
            store_tile<GAP_M, GAP_N>(sum, c, out, first_row + row(), first_col + col(), M, N, alpha, beta, stride);
    }
};

}  // namespace gemm
