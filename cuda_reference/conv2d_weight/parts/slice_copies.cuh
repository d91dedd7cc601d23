// The slices of both operands of a tile, copied by cp.async in chunks of 16 bytes, as they lie: a row per position, of the
// operand's channels or columns.
//
// Both operands have their channels side by side, in whole chunks for each group, or are copied into that layout first
// (channels_last.cuh); so a chunk of columns belongs to one tap. Columns are (r, s, c), with those of the padding of channels,
// which are not stored. A chunk needs its position's place and whether its tap is inside the image. The places of a slice are
// counted on from those of the slice before, once for the block, by a thread each. That leaves 13 instructions a chunk.
#pragma once
#include "../../common/cp_async.cuh"
#include "tile.cuh"

namespace conv2d_weight {

// Channels with their padding.
template <class T> __device__ __forceinline__ int in_whole_chunks(int channels) {
    constexpr int CHUNK = 16 / sizeof(T);
    return ceil_div(channels, CHUNK) * CHUNK;
}

// The chunks of a slice that a thread copies, all of one column of chunks.
template <class Tile, int THREADS> struct ChunkCopies {
    using T = typename Tile::Element;
    static constexpr int APART = THREADS / Tile::CHUNKS, COUNT = Tile::SIZE / Tile::CHUNK / THREADS;  // rows
    static_assert(APART * Tile::CHUNKS == THREADS && COUNT * THREADS * Tile::CHUNK == Tile::SIZE, "a column, whole rounds");

    __device__ __forceinline__ static int chunk() { return threadIdx.x % Tile::CHUNKS; }

    // copy(to, position) for each.
    template <class Copy> __device__ __forceinline__ static void for_each(T* tile, const Copy& copy) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int row = threadIdx.x / Tile::CHUNKS + i * APART;
            copy(tile + Tile::at(row, chunk()), row);
        }
    }
};

// Into STAGES slices of each operand, in turn. Where the elements of a slice lie is ATile::at, BTile::at.
template <class ATile, class BTile, int BL, int STAGES, int THREADS> struct SliceCopies {
    using T = typename ATile::Element;
    using ACopies = ChunkCopies<ATile, THREADS>;
    using BCopies = ChunkCopies<BTile, THREADS>;
    static_assert(BL <= THREADS, "a thread per position");

    const Geometry& g;
    const Strides& stride;
    const Moves& moves;             // from a slice to the next
    Positions<BL>* const positions;  // two, in shared memory
    T *const a_tiles, *const b_tiles;
    int rows_left, tap_h, tap_w;  // from this thread's chunk of rows on; where its chunk of columns reads
    const T *grad, *tap;
    int64_t left;      // positions from the slice on that is copied next
    int parity, free;  // where its places are, and the stage for it

    __device__ __forceinline__ SliceCopies(const T* input, const T* grad_output, const Tile& tile, Positions<BL>* positions,
                                           T* a_tiles, T* b_tiles, const Geometry& g, const Strides& stride,
                                           const Moves& moves)
        : g(g), stride(stride), moves(moves), positions(positions), a_tiles(a_tiles), b_tiles(b_tiles),
          left(tile.end - tile.first), parity(0), free(0) {
        const int channels = in_whole_chunks<T>(g.c_per_group()), rows = in_whole_chunks<T>(g.k_per_group());
        const int m = tile.first_m + ACopies::chunk() * ATile::CHUNK, n = tile.first_n + BCopies::chunk() * BTile::CHUNK;
        const int r = n / channels / g.S, s = n / channels % g.S;
        rows_left = rows - m;
        tap_h = r < g.R ? r * g.dilation_h : FAR, tap_w = r < g.R ? s * g.dilation_w : FAR;
        grad = grad_output + int64_t(tile.group) * rows + m;
        tap = input + int64_t(tile.group) * channels + n % channels + tap_h * stride.input.h + tap_w * stride.input.w;
        positions[0].locate(tile.first, tile.end, g, stride);
    }

    // The next slice, whose places are known to the block. What is not there is copied as zeros, from an aligned address, which is
    // not read.
    __device__ __forceinline__ void copy_next() {
        if (left > 0) {
            const Positions<BL>& at = positions[parity];
            const int count = rows_left > 0 ? int(min(left, int64_t(BL))) : 0;
            ACopies::for_each(a_tiles + free * ATile::SIZE, [&](T* to, int i) {
                cp_async<16>(to, grad + at.of_grad[i], i < count ? 16 : 0);
            });
            BCopies::for_each(b_tiles + free * BTile::SIZE, [&](T* to, int i) {
                const Place from = at.input[i];
                cp_async<16>(to, tap + from.of_input, is_inside(from, tap_h, tap_w, g) ? 16 : 0);
            });
            left -= BL, parity ^= 1, free = free + 1 == STAGES ? 0 : free + 1;
            positions[parity].advance(at, moves, left, g);
        }
        cp_async_commit();  // of nothing where there is no slice, so that waits can count groups
    }

    // The first slices. Every thread must call it.
    __device__ __forceinline__ void copy_ahead(int slices) {
        for (int slice = 0; slice < slices; ++slice) {
            __syncthreads();  // its places are known
            copy_next();
        }
    }
};

}  // namespace conv2d_weight
