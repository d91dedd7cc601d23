// The tiles of a result as stream-K's blocks walk them: whole ones, then runs of slices of those that several blocks share.
#pragma once
#include "../../common/runs.cuh"
#include "sums_of_others.cuh"

namespace matmul {

// A walk: every gridDim.x-th of the whole tiles, then this block's run of the slices of the others. A cluster counts as one block:
// its blocks walk alike, each with its own tile of every pair, and add up apart.
template <class Sum, int CONSUMERS, int CLUSTER = 1> struct SharedTiles {
    static constexpr bool CUTS = true;
    static constexpr int SPLITS = 1;
    using Number = Scalar<Sum>;
    int whole_tiles, slices;  // slices of a tile
    Runs runs;
    Number* parts;  // (cluster, beginning or end of its run, block, consumer, 64 rows, sums of 128 threads)
    int* counters;  // (cluster, beginning or end of its run), which groups of parts use, then (shared tile); a consumer's each

    template <int OF> __device__ __forceinline__ Piece first() const { return runs.template first<OF>(whole_tiles, slices); }
    template <int OF, class Compute> __device__ __forceinline__ void for_pieces(const Compute& compute) const {
        static_assert(OF == CLUSTER, "runs are those of clusters");
        runs.for_pieces<CLUSTER>(whole_tiles, slices, compute);
    }

    // Whether this warpgroup has the sums of all of K: of a piece it has if it is the last, and adds the others'. `rows` of its
    // rows are in the result: for few of them most warps have nothing to exchange.
    template <int BLOCKS, int TILES>
    __device__ __forceinline__ bool add_others(LaneSums<Sum> (&sum)[BLOCKS][1][TILES], const Piece& piece, int rows,
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
