// Stream-K's line of slices, cut into equal runs.
#pragma once
#include <cuda_runtime.h>

// `count` slices of a tile, from the first-th on.
struct Piece { int tile, first, count; };

// The blocks `first` to `last` share a tile. Each has two slots of workspace: its run ends in one tile and begins in another.
struct Sharers {
    int first, last;
    bool first_ends;  // the run of the first does not begin with this tile: only it has the tile in its second slot
    __device__ __forceinline__ int slot_of(int block) const { return 2 * block + (block == first && first_ends); }
};

// The slices of the tiles that are shared, numbered through; block i of `blocks` takes begin(i) up to begin(i + 1).
struct Runs {
    int64_t slices;
    int blocks;
    __device__ __forceinline__ int64_t begin(int block) const { return slices * block / blocks; }
    __device__ __forceinline__ int block_of(int64_t slice) const { return int(((slice + 1) * blocks - 1) / slices); }

    __device__ __forceinline__ Sharers sharers_of(int64_t tile, int of_tile) const {
        const int first = block_of(tile * of_tile);
        return {first, block_of((tile + 1) * of_tile - 1), begin(first) < tile * of_tile};
    }

    // What the run from slice `at` to `end` has of the tile that it begins with.
    __device__ __forceinline__ Piece shared(int64_t at, int64_t end, int whole_tiles, int of_tile) const {
        const int first = int(at % of_tile);
        return {whole_tiles + int(at / of_tile), first, int(min(int64_t(of_tile - first), end - at))};
    }

    // Calls compute(Piece) for every gridDim.x-th of the whole tiles, then for what this block's run has of those that follow,
    // of `of_tile` slices each. The blocks of a CLUSTER are one here.
    template <int CLUSTER = 1, class Compute>
    __device__ __forceinline__ void for_pieces(int whole_tiles, int of_tile, const Compute& compute) const {
        const int own = blockIdx.x / CLUSTER;
        const bool shares = own < blocks;
        int64_t at = shares ? begin(own) : 0;
        const int64_t end = shares ? begin(own + 1) : 0;
        for (int whole = own; whole < whole_tiles || at < end;) {
            Piece piece{whole, 0, of_tile};
            if (whole < whole_tiles) {
                whole += gridDim.x / CLUSTER;
            } else {
                piece = shared(at, end, whole_tiles, of_tile);
                at += piece.count;
            }
            compute(piece);
        }
    }
};
