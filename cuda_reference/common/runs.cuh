// Stream-K's line of slices, cut into equal runs.
#pragma once
#include <cuda_runtime.h>

// `count` slices of a tile, from the first-th on.
struct Piece { int tile, first, count; };

// The slices of the tiles that are shared, numbered through; block i of `blocks` takes begin(i) up to begin(i + 1).
struct Runs {
    int64_t slices;
    int blocks;
    __device__ __forceinline__ int64_t begin(int block) const { return slices * block / blocks; }
    __device__ __forceinline__ int block_of(int64_t slice) const { return int(((slice + 1) * blocks - 1) / slices); }

    // Calls compute(Piece) for every gridDim.x-th of the whole tiles, then for what this block's run has of those that follow,
    // of `of_tile` slices each.
    template <class Compute>
    __device__ __forceinline__ void for_pieces(int whole_tiles, int of_tile, const Compute& compute) const {
        const bool shares = blockIdx.x < blocks;
        int64_t at = shares ? begin(blockIdx.x) : 0;
        const int64_t end = shares ? begin(blockIdx.x + 1) : 0;
        for (int whole = blockIdx.x; whole < whole_tiles || at < end;) {
            Piece piece{whole, 0, of_tile};
            if (whole < whole_tiles) {
                whole += gridDim.x;
            } else {
                const int first = int(at % of_tile);
                piece = {whole_tiles + int(at / of_tile), first, int(min(int64_t(of_tile - first), end - at))};
                at += piece.count;
            }
            compute(piece);
        }
    }
};
