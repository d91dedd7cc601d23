// Matrix product on Hopper, in_turn: each consumer has a tile of its own, and writes its result while the other one multiplies.
//
// TODO
#pragma once
#include "../common/index.cuh"
#include "../common/raster.cuh"
#include "../common/shared.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "parts/plain_result.cuh"

namespace matmul {

constexpr int BK = 64;  // elements of k in a slice: 128 bytes, the width of the swizzle

// Starts the products of a slice, of descriptors a and b: 64 rows of A for each of BLOCKS, in steps of 32 bytes along k.
template <class T, int BLOCKS, int TILES>
__device__ __forceinline__ void multiply(Sums (&sum)[BLOCKS][TILES], uint64_t a, uint64_t b) {
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step)
#pragma unroll
        for (int m = 0; m < BLOCKS; ++m)
            ::wgmma<T, true, true>(sum[m], a + (m * 64 * 128 + step * 32) / 16, b + step * 32 / 16);
    wgmma_commit();
}

// A place in the ring of stages, and the parity of its barriers, which changes in every round.
template <int STAGES> struct Ring {
    unsigned stage = 0, parity = 0;
    __device__ __forceinline__ void advance(unsigned slices = 1) {
        stage += slices;
        parity ^= stage / STAGES & 1;
        stage %= STAGES;
    }
};

constexpr int CONSUMERS = 2, CLUSTER = 2;  // blocks of a cluster, one above the other

template <class T, class Out, int BM, int BN, int STAGES>
__global__ void __launch_bounds__((CONSUMERS + 1) * 128) __cluster_dims__(CLUSTER, 1, 1)
in_turn(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, const Out* c, Out* out, int M,
          int N, int K, float alpha, float beta, MatrixStrides of_c, MatrixStrides of_out, int group) {
    constexpr int PART = BN / CLUSTER;  // columns of B that a block requests
    static_assert(BM % 64 == 0 && BM * BN <= 128 * 128, "a wgmma has 64 rows, a thread registers for 128 sums");
    static_assert(PART % 8 == 0, "a part is whole periods of the swizzle");
    T *const a_slices = dynamic_shared<T>(), *const b_slices = a_slices + STAGES * BM * BK;
    uint64_t* const full = reinterpret_cast<uint64_t*>(b_slices + STAGES * BN * BK);  // a stage's slices have landed
    uint64_t* const empty = full + STAGES;                                            // its readers have read them
    uint64_t* const turns = empty + STAGES;                                           // a consumer may multiply
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(full + stage, 1);
            mbarrier_init(empty + stage, CLUSTER);
        }
        for (int consumer = 0; consumer < CONSUMERS; ++consumer) mbarrier_init(turns + consumer, 4);
        mbarrier_init_fence();
    }
    cluster_barrier();  // the other block's barriers are there, too
    const int tiles_m = ceil_div(M, CLUSTER * BM), tiles_n = ceil_div(N, BN), tiles = tiles_m * tiles_n;
    const int slices = ceil_div(K, BK), warpgroup = own_warpgroup();
    const int rank = blockIdx.x % CLUSTER, first = blockIdx.x / CLUSTER, step = gridDim.x / CLUSTER;

    Ring<STAGES> ring;
    if (warpgroup == CONSUMERS) {
        give_up_registers<40>();
        if (threadIdx.x / 32 == CONSUMERS * 4 && elect_lane()) {
            for (int i = first; i < tiles; i += step) {
                const TileIndex tile = rasterize(i, tiles_m, tiles_n, group);
                for (int slice = 0; slice < slices; ++slice) {
                    mbarrier_wait(empty + ring.stage, ring.parity ^ 1);  // of the round before; in the first it returns at once
                    mbarrier_arrive_expect(full + ring.stage, (BM + BN) * BK * int(sizeof(T)));
                    tma_load(a_slices + ring.stage * BM * BK, a_map, full + ring.stage, slice * BK, (tile.m * CLUSTER + rank) * BM, 0);
                    tma_load_multicast(b_slices + (ring.stage * BN + rank * PART) * BK, b_map, full + ring.stage, slice * BK,
                                       tile.n * BN + rank * PART, 0, (1 << CLUSTER) - 1);
                    ring.advance();
                }
            }
        }
    } else {
        take_registers<232>();
        const PlainResult<Out> result{c, out, M, N, alpha, beta, of_c, of_out};
        const auto give_back = [&](int stage) {
            if (threadIdx.x % 128 < CLUSTER) mbarrier_arrive_at(empty + stage, threadIdx.x % 128);
        };
        const uint64_t of_a = wgmma_descriptor(shared_address(a_slices), 0);
        const uint64_t of_b = wgmma_descriptor(shared_address(b_slices), 0);
        ring.advance(warpgroup * slices);  // past the first tile's, which is the other's
        unsigned turn = warpgroup == 0;    // the parity of the own turn's phase: the first one comes at once
        for (int i = first + warpgroup * step; i < tiles; i += CONSUMERS * step) {
            const TileIndex tile = rasterize(i, tiles_m, tiles_n, group);
            const int row = (tile.m * CLUSTER + rank) * BM;
            Sums sum[BM / 64][BN / 8] = {};
            int last = 0;  // the stage before
            mbarrier_wait(turns + warpgroup, turn);
            turn ^= 1;
            for (int slice = 0; slice < slices; ++slice) {
                mbarrier_wait(full + ring.stage, ring.parity);
                multiply<T>(sum, of_a + ring.stage * (BM * 128 / 16), of_b + ring.stage * (BN * 128 / 16));
                wgmma_wait<1>();  // the slice before has been multiplied
                if (slice > 0) give_back(last);
                last = ring.stage;
                ring.advance();
            }
            if (threadIdx.x % 32 == 0) mbarrier_arrive(turns + (1 - warpgroup));  // all products are started
            wgmma_wait<0>();
            if (slices > 0) give_back(last);
            ring.advance(slices);  // past the other's
#pragma unroll
            for (int m = 0; m < BM / 64; ++m) result.store(sum[m], row + m * 64, tile.n * BN);
        }
    }
    __syncwarp();
    cluster_barrier();  // no block ends while the other one may arrive at its barriers
}

}  // namespace matmul
