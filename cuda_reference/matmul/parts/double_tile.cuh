// An fp64 operand's slices in shared memory: ldmatrix does not transpose 64-bit elements, so each lane loads its own.
//
// A load serves 16 lanes at a time, 8 bytes each: two neighbouring chunks of each of 4 rows, along k or along SPAN. Chunk c of
// a row is stored at c XOR 2 (row % 4), so that the 8 chunks are in different banks. Loads of 16 bytes would be half as many,
// but an mma wants numbers in neighbouring registers that are not neighbours along k: each would be moved once more.
#pragma once
#include <type_traits>

#include "swizzled_tile.cuh"

namespace matmul {

template <bool OF_A, int SPAN, int BK, bool K_MAJOR_> struct DoubleTile {
    using Element = double;
    static constexpr bool K_MAJOR = K_MAJOR_;
    static_assert(BK == 16 && SPAN % 16 == 0, "rows are 128 bytes or a multiple");
    static constexpr int CHUNK = 2, ROWS = K_MAJOR ? SPAN : BK, CHUNKS = (K_MAJOR ? BK : SPAN) / CHUNK;
    static constexpr int PITCH = CHUNKS * CHUNK, SIZE = ROWS * PITCH, DEPTH = BK;  // as of other types

    __device__ __forceinline__ static int at(int row, int chunk) { return row * PITCH + (chunk ^ row % 4 * 2) * CHUNK; }

    // The offset of this lane's first number of a fragment: 16 rows of A or columns of B from `first` on, 8 of k.
    __device__ __forceinline__ static int fragment(int first) {
        const int g = first + threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        return K_MAJOR ? at(g, t / CHUNK) + t % CHUNK : at(t, g / CHUNK) + g % CHUNK;
    }

    // Loads the fragment i * 16 rows or columns and step * 8 of k further. XOR adds to the chunk before the swizzle, where those
    // bits are 0 in `fragment`.
    __device__ __forceinline__ static void load(double (&numbers)[4], const double* tile, int fragment, int i, int step) {
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int quarter = 0; quarter < 2; ++quarter) {
                const int span = i * 16 + half * 8, k = step * 8 + quarter * 4;
                numbers[OF_A ? half + quarter * 2 : half * 2 + quarter] =
                    tile[K_MAJOR ? (fragment ^ k) + span * PITCH : (fragment ^ span % 16) + i * 16 + k * PITCH];
            }
    }
};

// What mma_sync<T> multiplies.
template <class T, bool OF_A, int SPAN, int BK, bool K_MAJOR>
using MmaTile = std::conditional_t<std::is_same_v<T, double>, DoubleTile<OF_A, SPAN, BK, K_MAJOR>,
                                   SwizzledTile<T, OF_A, SPAN, BK, K_MAJOR>>;

}  // namespace matmul
