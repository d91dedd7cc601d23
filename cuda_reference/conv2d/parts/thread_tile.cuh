// A warp tile on CUDA cores: a lane owns every 8th row and every 4th column of it and reads both operands from swizzled tiles.
//
// A step is a chunk of 16 bytes along the reduction: a lane reads WM / 8 chunks of A, each for all of its columns, and one of B
// at a time. Eight neighbouring lanes read eight consecutive rows: all banks.
#pragma once
#include <cstring>

#include "../../matmul/parts/swizzled_tile.cuh"

namespace conv2d {

constexpr int ROWS_OF_LANES = 8, COLS_OF_LANES = 4;

// In Z order: the row is bits 1, 3 and 4 of the lane, the column bits 0 and 2. In a phase of a 128-bit load neighbouring lanes
// then share a row of A, and every other lane a column of B: each is read once for all of them.
__device__ __forceinline__ int lane_row() { return threadIdx.x >> 1 & 1 | threadIdx.x >> 2 & 6; }
__device__ __forceinline__ int lane_col() { return threadIdx.x & 1 | threadIdx.x >> 1 & 2; }

// Where a lane's first row of A and its first two columns of B begin in their tiles. XOR leads to other chunks; 8 rows are a
// constant distance.
template <class ATile, class BTile> struct LanePlaces {
    int a, b[2];

    __device__ __forceinline__ LanePlaces(int row, int col)
        : a(ATile::at(row + lane_row(), 0)),
          b{BTile::at(col + lane_col(), 0), BTile::at(col + lane_col() + COLS_OF_LANES, 0)} {}
};

template <class Number, int COUNT> __device__ __forceinline__ void load_chunk(Number (&to)[COUNT], const Number* from) {
    const uint4 bits = *reinterpret_cast<const uint4*>(from);
    static_assert(sizeof to == sizeof bits, "a chunk is 16 bytes");
    std::memcpy(to, &bits, sizeof bits);
}

// sum[m][n] is that of the lane's row 8 m and its column 4 n.
template <class ATile, class BTile, class Number, int TM, int TN>
__device__ __forceinline__ void multiply_add(Number (&sum)[TM][TN], const Number* a_tile, const Number* b_tile,
                                             const LanePlaces<ATile, BTile>& places, int chunk) {
    static_assert(2 * COLS_OF_LANES == ROWS_OF_LANES && ATile::NEAR <= 8, "the swizzle repeats after 8 rows");
    constexpr int CHUNK = ATile::CHUNK;
    Number a[TM][CHUNK];
#pragma unroll
    for (int m = 0; m < TM; ++m) load_chunk(a[m], a_tile + (places.a ^ chunk * CHUNK) + m * ROWS_OF_LANES * ATile::PITCH);
#pragma unroll
    for (int n = 0; n < TN; ++n) {
        Number b[CHUNK];
        load_chunk(b, b_tile + (places.b[n % 2] ^ chunk * CHUNK) + n / 2 * ROWS_OF_LANES * BTile::PITCH);
#pragma unroll
        for (int k = 0; k < CHUNK; ++k)
#pragma unroll
            for (int m = 0; m < TM; ++m) sum[m][n] += a[m][k] * b[k];
    }
}

}  // namespace conv2d
