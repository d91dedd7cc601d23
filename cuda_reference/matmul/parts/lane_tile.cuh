// An operand's slices in shared memory where ldmatrix does not help, as it transposes 16-bit elements only: fp64, and tf32 that
// lies along M or N. Each lane loads its own numbers, one by one.
//
// At a time loads serve 16 lanes of 8 bytes or 32 of 4: two neighbouring chunks of each of 4 rows. Chunk c of a row is stored at
// c XOR 2 (row % 4), so that the 8 chunks are in different banks. (Of rows of 4 chunks, at c XOR 2 (row / 2 % 2).) Loads of 16
// bytes would be fewer, but an mma wants numbers in neighbouring registers that are not neighbours: each would be moved once more.
#pragma once
#include <type_traits>

#include "swizzled_tile.cuh"

namespace matmul {

template <class T, bool OF_A, int SPAN, int BK, bool K_MAJOR_, int PIECE_> struct LaneTile {
    using Element = T;
    static constexpr bool K_MAJOR = K_MAJOR_;
    static constexpr int PIECE = PIECE_;  // as of other types
    static_assert(sizeof(T) == 8 || !K_MAJOR, "ldmatrix reads tf32 along K");
    static constexpr int CHUNK = 16 / sizeof(T), ROWS = K_MAJOR ? SPAN : BK, CHUNKS = (K_MAJOR ? BK : SPAN) / CHUNK;
    static constexpr int PITCH = CHUNKS * CHUNK, SIZE = ROWS * PITCH, DEPTH = BK;  // as of other types
    static constexpr int NEAR = CHUNKS < 8 ? CHUNKS : 8;                           // chunks of a row that change places
    static_assert((CHUNKS & (CHUNKS - 1)) == 0 && CHUNKS >= 4 && SPAN % 16 == 0, "XOR permutes powers of two");

    __device__ __forceinline__ static int at(int row, int chunk) {
        return row * PITCH + (chunk ^ row / (8 / NEAR) % (NEAR / 2) * 2) * CHUNK;
    }

    // The offset of this lane's first number of a fragment: 16 rows of A or columns of B from `first` on, 8 of k.
    __device__ __forceinline__ static int fragment(int first) {
        const int g = first + threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        return K_MAJOR ? at(g, t / CHUNK) + t % CHUNK : at(t, g / CHUNK) + g % CHUNK;
    }

    // Loads the fragment i * 16 rows or columns and step * 8 of k further. XOR adds to the chunk before the swizzle, where those
    // bits are 0 in `fragment`.
    template <class Word>
    __device__ __forceinline__ static void load(Word (&words)[4], const T* tile, int fragment, int i, int step) {
        constexpr int PERIOD = NEAR * CHUNK;
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int quarter = 0; quarter < 2; ++quarter) {
                const int span = i * 16 + half * 8, k = step * 8 + quarter * 4;
                const int along = K_MAJOR ? k : span, down = K_MAJOR ? span : k;
                const T* const number = tile + (fragment ^ along % PERIOD) + along / PERIOD * PERIOD + down * PITCH;
                words[OF_A ? half + quarter * 2 : half * 2 + quarter] = *reinterpret_cast<const Word*>(number);
            }
    }
};

// What mma_sync<T> multiplies.
template <class T, bool OF_A, int SPAN, int BK, bool K_MAJOR, int PIECE>
using MmaTile = std::conditional_t<sizeof(T) == 8 || (sizeof(T) == 4 && !K_MAJOR), LaneTile<T, OF_A, SPAN, BK, K_MAJOR, PIECE>,
                                   SwizzledTile<T, OF_A, SPAN, BK, K_MAJOR, PIECE>>;

}  // namespace matmul
