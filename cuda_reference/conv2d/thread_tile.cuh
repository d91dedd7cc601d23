// A warp's tile on CUDA cores: its lanes own every 8th row and every 4th column of it, and read both operands from swizzled tiles.
//
// A step is a chunk of 16 bytes along the reduction: a lane reads WM / 8 chunks of A, each for all of its columns, and one of B
// at a time. Eight lanes side by side read eight rows in a row: all banks.
#pragma once
#include "../matmul/swizzled_tile.cuh"

namespace conv2d {

constexpr int ROWS_OF_LANES = 8, COLS_OF_LANES = 4;

__device__ __forceinline__ int lane_row() { return threadIdx.x % 32 % ROWS_OF_LANES; }
__device__ __forceinline__ int lane_col() { return threadIdx.x % 32 / ROWS_OF_LANES; }

template <class Tile> __device__ __forceinline__ void load_chunk(typename Tile::Element (&to)[Tile::CHUNK],
                                                                 const typename Tile::Element* tile, int row, int chunk) {
    const uint4 bits = *reinterpret_cast<const uint4*>(tile + Tile::at(row, chunk));
    std::memcpy(to, &bits, sizeof bits);
}

// sum[m][n] is that of row `row` + 8 m and column `col` + 4 n.
template <class ATile, class BTile, class Number, int TM, int TN>
__device__ __forceinline__ void multiply_add(Number (&sum)[TM][TN], const Number* a_tile, const Number* b_tile, int row, int col,
                                             int chunk) {
    Number a[TM][ATile::CHUNK];
#pragma unroll
    for (int m = 0; m < TM; ++m) load_chunk<ATile>(a[m], a_tile, row + m * ROWS_OF_LANES, chunk);
#pragma unroll
    for (int n = 0; n < TN; ++n) {
        Number b[BTile::CHUNK];
        load_chunk<BTile>(b, b_tile, col + n * COLS_OF_LANES, chunk);
#pragma unroll
        for (int k = 0; k < ATile::CHUNK; ++k)
#pragma unroll
            for (int m = 0; m < TM; ++m) sum[m][n] += a[m][k] * b[k];
    }
}

}  // namespace conv2d
