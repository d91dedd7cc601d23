// The tiles of a result as stream-K's blocks walk them: whole ones, then runs of slices of those that several blocks share.
//
// A run that covers a tile is written at once. Of a tile that is cut each block writes its sums to a workspace, and the last to
// arrive adds them up, in the order of K: the same bits every time, in one launch. Each warpgroup arrives for its own rows, so that
// nobody waits for the other, or for the producer, which is at the next piece. A run begins inside one tile and ends inside
// another, so that a block has 2 tiles of workspace.
//
// Source: M. Osama et al., Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication on the GPU (2023).
#pragma once
#include "../../common/runs.cuh"
#include "sums_of_others.cuh"

namespace matmul {

// A walk: every gridDim.x-th of the whole tiles, then this block's run of the slices of the others. A cluster counts as one block:
// its blocks walk alike, each with its own tile of every pair, and add up apart.
template <int CONSUMERS, int CLUSTER = 1> struct SharedTiles {
    int whole_tiles, slices;  // slices of a tile
    Runs runs;
    float* parts;  // (cluster, beginning or end of its run, block, consumer, 64 rows, sums of 128 threads)
    int* counters;  // (cluster, beginning or end of its run), which groups of parts use, then (shared tile); a consumer's each

    template <class Compute> __device__ __forceinline__ void for_pieces(const Compute& compute) const {
        runs.for_pieces<CLUSTER>(whole_tiles, slices, compute);
    }

    // Whether this warpgroup has the sums of all of K: of a piece it has if it is the last, and adds the others'. `rows` of its
    // rows are in the result: for few of them most warps have nothing to exchange.
    template <int BLOCKS, int TILES>
    __device__ __forceinline__ bool add_others(LaneSums<float> (&sum)[BLOCKS][1][TILES], const Piece& piece, int rows,
                                               bool* last) const {
        if (piece.count == slices) return true;
        const int shared_tile = piece.tile - whole_tiles;
        const int own = blockIdx.x / CLUSTER, consumer = blockIdx.x % CLUSTER * CONSUMERS + threadIdx.x / 128;  // of the cluster
        const Sharers sharers = runs.sharers_of(shared_tile, slices);
        const auto slot_of = [&](int cluster) { return int64_t(sharers.slot_of(cluster)) * CLUSTER * CONSUMERS + consumer; };
        const auto counter_of = [&](int group) {
            const int counter = group < 0 ? 2 * runs.blocks + shared_tile : sharers.slot_of(group);
            return counters + counter * CLUSTER * CONSUMERS + consumer;
        };
        return add_sums_of_others(sum, rows, own, sharers.first, sharers.last, parts, slot_of, counter_of, last);
    }
};

}  // namespace matmul
