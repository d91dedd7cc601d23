// A slice of an operand in shared memory: a row per position, of SPAN of the operand's channels or columns. The reduction runs
// over positions, so the tensor cores read it across its rows.
//
// Rows are cut into panels of 128 bytes, each with the layout of TMA's 128-byte swizzle: chunk c of 16 bytes is stored at
// c XOR row. wgmma multiplies that as it is, where elements have 16 bits; ldmatrix transposes these for mma.sync. tf32 it cannot
// transpose: a lane reads its elements one by one. As A's and B's order along the reduction is the same, any order will do, and
// of eight positions lane t takes 2 t and 2 t + 1, not t and t + 4: so a warp's 32 words are in 32 banks.
#pragma once
#include "../../common/ldmatrix.cuh"

namespace conv2d_weight {

template <class T, bool OF_A, int SPAN, int BL> struct PositionTile {
    using Element = T;
    static constexpr int CHUNK = 16 / sizeof(T), CHUNKS = SPAN / CHUNK;  // elements of a chunk, chunks of a row
    static constexpr int WIDTH = 8 * CHUNK, PANEL = BL * WIDTH;          // elements of a panel's row, and of a panel
    static constexpr int SIZE = SPAN * BL, STEP = 32 / sizeof(T);        // STEP: positions of a product
    static_assert(SPAN % WIDTH == 0 && BL % STEP == 0, "whole panels, whole products");

    __device__ __forceinline__ static int at(int row, int chunk) {
        return chunk / 8 * PANEL + row * WIDTH + (chunk % 8 ^ row % 8) * CHUNK;
    }

    // Where this lane reads the fragment of 16 channels from `first` on, of the slice's first positions. ldmatrix's four matrices
    // are in the order of 8-channel halves first for A, of 8-position halves first for B (mma_sync.cuh).
    __device__ __forceinline__ static int fragment(int first) {
        const int lane = threadIdx.x % 32;
        if constexpr (sizeof(T) == 2) {
            const int row = OF_A ? lane % 8 + lane / 16 * 8 : lane % 16, chunk = OF_A ? lane / 8 % 2 : lane / 16;
            return at(row, first / CHUNK + chunk);
        } else {
            return at(lane % 4 * 2, (first + lane / 4) / CHUNK) + lane / 4 % CHUNK;
        }
    }

    // Loads the fragment i * 16 channels and k products further. XOR adds here, as those bits of the chunk are 0 before the
    // swizzle, an XOR itself: a warp tile begins at a multiple of its size, a power of two. Of the odd position it is the swizzle.
    __device__ __forceinline__ static void load(unsigned (&words)[4], const T* tile, int fragment, int i, int k) {
        constexpr int FRAGMENTS = WIDTH / 16;  // of a panel
        const T* const panel = tile + i / FRAGMENTS * PANEL + k * STEP * WIDTH;
        const int chunk = i % FRAGMENTS * (16 / CHUNK);
        if constexpr (sizeof(T) == 2) {
            ldmatrix<true>(words, panel + (fragment ^ chunk * CHUNK));
        } else {
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                const int half = OF_A ? word % 2 : word / 2, odd = OF_A ? word / 2 : word % 2;  // of channels, of positions
                words[word] = __float_as_uint(panel[(fragment ^ (chunk + 2 * half + odd) * CHUNK) + odd * WIDTH]);
            }
        }
    }
};

}  // namespace conv2d_weight
