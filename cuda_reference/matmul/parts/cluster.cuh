// A cluster of blocks, which have neighbouring tiles and share slices of operands.
#pragma once
#include "../../common/index.cuh"
#include "../../common/mbarrier.cuh"
#include "../../common/raster.cuh"

namespace matmul {

// The blocks of a cluster: SHARE_A along N share slices of A, SHARE_B along M those of B.
template <int SHARE_A_, int SHARE_B_> struct ClusterOf {
    static constexpr int SHARE_A = SHARE_A_, SHARE_B = SHARE_B_;
    static constexpr int SIZE = SHARE_A * SHARE_B, SHARERS = SHARE_A + SHARE_B - 1;  // of a block, itself among them

    __device__ __forceinline__ static int rank() { return SIZE > 1 ? blockIdx.x % SIZE : 0; }
    __device__ __forceinline__ static int across() { return SHARE_A > 1 ? rank() % SHARE_A : 0; }
    __device__ __forceinline__ static int down() { return SHARE_B > 1 ? rank() / SHARE_A : 0; }

    // A bit for each block that has the same rows, or columns.
    __device__ __forceinline__ static unsigned sharers_of_a() { return ((1u << SHARE_A) - 1) << down() * SHARE_A; }
    __device__ __forceinline__ static unsigned sharers_of_b() { return ((1u << SIZE) - 1) / ((1u << SHARE_A) - 1) << across(); }

    // The block that this thread of a consumer tells that a stage has been read, of those that write to it, or -1. One thread of
    // the warpgroup tells a block, since its wgmmas end together; they are of different warps.
    __device__ __forceinline__ static int told() {
        const int block = threadIdx.x % 32;
        const bool tells = block < SIZE && threadIdx.x / 32 % 4 == block % 4 && (sharers_of_a() | sharers_of_b()) >> block & 1;
        int told = tells ? block : -1;
        asm volatile("" : "+r"(told));  // else the compiler finds it out anew for every slice
        return told;
    }

    __device__ __forceinline__ static void give_back(uint64_t* empty, int told) {
        if (told < 0) return;
        if constexpr (SIZE > 1)
            mbarrier_arrive_at(empty, told);
        else
            mbarrier_arrive(empty);
    }
};

// The tiles of clusters: SHARE_B x SHARE_A of block tiles, of which some may lie outside of the result. They are computed of zeros
// and not written.
template <class Cluster, int BM, int BN> struct ClusterTiles {
    int tiles_m, tiles_n, count, group;  // of a matrix of the batch; rows of a band (raster.cuh)

    __device__ __forceinline__ ClusterTiles(int M, int N, int group)
        : tiles_m(ceil_div(M, BM * Cluster::SHARE_B)),
          tiles_n(ceil_div(N, BN * Cluster::SHARE_A)),
          count(tiles_m * tiles_n),
          group(group) {}

    // Where this block's tile of the i-th is.
    __device__ __forceinline__ Place place(int i) const {
        const Place tile = place_of(i, tiles_m, tiles_n, group);
        return {tile.matrix, tile.m * Cluster::SHARE_B + Cluster::down(), tile.n * Cluster::SHARE_A + Cluster::across()};
    }
};

}  // namespace matmul
