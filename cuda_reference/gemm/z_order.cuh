// FP32 GEMM, z_order: `conflict_free` with the thread tile split in quadrants and the lanes of a warp laid out in Z order.
//
// At 8 x 8 a thread owns a quad of 4 x 4 in each quadrant of its warp tile instead of one square (GAP_M and GAP_N floats
// lie between its quads; wider tiles have more than four), so neighbouring lanes own neighbouring quads. A lane's bits
// alternate between column and row. In a phase its 8 lanes then read 2 neighbouring quads of A or 4 of B, 8 or 16 banks; and a
// warp stores 4 rows of 128 bytes of C at a time, 16 full sectors, where tiles 8 wide wrote 32 halves. Costs nothing. The seed
// found it faster and left open why.
#pragma once
#include "../common/overlap.cuh"
#include "conflict_free.cuh"  // PaddedTile

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

template <int BM, int BN, int BK, int TM, int TN, bool VECTOR>
__global__ void __launch_bounds__(Shape<BM, BN, TM, TN>::THREADS)
z_order(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ out,
        int M, int N, int K, float alpha, float beta, Strides stride) {
    wait_for_earlier_kernels();
    constexpr int THREADS = Shape<BM, BN, TM, TN>::THREADS;
    using Place = ZOrder<BM, BN, TM, TN>;
    using ATile = PaddedTile<BM>;
    using A = SlicesOfA<ATile, BM, BK, THREADS, VECTOR>;
    using B = SlicesOfB<BN, BK, THREADS, VECTOR>;
    __shared__ __align__(16) float a_tile[BK * ATile::PITCH];
    __shared__ __align__(16) float b_tile[BK * BN];

    const int tiles_n = ceil_div(N, BN);
    const int first_row = blockIdx.x / tiles_n * BM, first_col = blockIdx.x % tiles_n * BN;
    const int row = Place::row(), col = Place::col();

    const A a_slices(a, first_row, M, stride.a);
    const B b_slices(b, first_col, N, stride.b);
    float sum[TM][TN] = {};
    for (int k = 0; k < K; k += BK) {
        float4 a_quads[A::QUADS], b_quads[B::QUADS];
        a_slices.fetch_tail(a_quads, k, K);
        b_slices.fetch_tail(b_quads, k, K);
        A::put(a_tile, a_quads);
        B::put(b_tile, b_quads);
        __syncthreads();  // the slice is complete
        multiply_add<ATile, BN, BK, Place::GAP_M, Place::GAP_N>(sum, a_tile, b_tile, row, col);
        __syncthreads();  // all threads have read it, the next may overwrite it
    }
    Place::store(sum, c, out, first_row, first_col, M, N, alpha, beta, stride);
}

}  // namespace gemm
