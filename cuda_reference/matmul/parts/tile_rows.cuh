// The results of a block whose slices nobody needs any more, written row by row from where these were (warp_rows.cuh).
#pragma once
#include "../../common/shared.cuh"
#include "pairs.cuh"
#include "warp_rows.cuh"

namespace matmul {

// store_tile, of all warps of the block: BY_ROWS where rows are no whole chunks, but columns are neighbours. GATED: pairs.cuh
template <bool BY_ROWS, bool GATED = false, class Sum, class Out, int MS, int NS>
__device__ __forceinline__ void store_block(const LaneSums<Sum> (&sum)[MS][NS], const Epilogue<Sum, Out>& epilogue, int first_row,
                                            int first_col, int M, int N) {
    if constexpr (GATED && !BY_ROWS) {
        Scalar<Sum> results[MS][NS / 2][4];
        finish_pairs(results, sum, epilogue, first_row + threadIdx.x % 32 / 4, first_col + threadIdx.x % 4 * 2, M, N);
        store_results(results, epilogue, first_row, first_col / 2, M, N / 2);
    } else if constexpr (!BY_ROWS) {
        store_tile(sum, epilogue, first_row, first_col, M, N);
    } else {
        using Rows = WarpRows<Out>;
        const Rows rows{dynamic_shared<unsigned char>() + threadIdx.x / 32 * (Rows::ROWS * SLICE)};
        const int lane_row = threadIdx.x % 32 / 4, lane_col = threadIdx.x % 4 * 2;
        __syncthreads();  // all have read their slices
#pragma unroll
        for (int m = 0; m < MS; ++m) {
            const int row = first_row + m * Rows::ROWS;
            const auto& of_rows = reinterpret_cast<const LaneSums<Sum>(&)[1][NS]>(sum[m]);
            if constexpr (GATED) {
                Scalar<Sum> results[1][NS / 2][4];
                finish_pairs(results, of_rows, epilogue, row + lane_row, first_col + lane_col, M, N);
                rows.store(results, epilogue, row, first_col / 2, M, N / 2);
            } else {
                Scalar<Sum> results[1][NS][4];
                finish(results, of_rows, epilogue, row + lane_row, first_col + lane_col, M, N);
                rows.store(results, epilogue, row, first_col, M, N);
            }
        }
    }
}

}  // namespace matmul
