// Matrix product on Hopper, in_turn: each consumer has a tile of its own, and writes it while the other multiplies (ping-pong).
//
// In `multicast` both consumers write results at the same time, and nothing is multiplied: with K = 768, 12 slices, for a tenth of
// the time. Here they multiply in turn. A consumer that has started its tile's last products passes the turn, waits for them, and
// writes; the other's products follow at once. Each skips the slices of the other's tile in the ring. The turn also keeps it from
// waiting too early: an mbarrier distinguishes a phase only from the one before, and its next slices may be two phases away.
//
// The price is the tile, which must fit in the registers of one consumer. For 128 x 128 in pairs a block requests 128 + 64 rows of
// a slice; for 128 x 256, twice as many products, it was 128 + 128. So L2 sends half as much again for each product. 128 x 192 is
// between them.
//
// Both operands lie along k, in rows of whole chunks of 16 bytes; the launcher packs others first.
// BM x BN is the tile of a block, BK the depth of a slice (STAGES of them).
// Mirrors tritonkernels/matmul/in_turn.py.
#pragma once
#include "../common/index.cuh"
#include "../common/raster.cuh"
#include "../common/shared.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "parts/plain_result.cuh"

namespace matmul {

constexpr int CONSUMERS = 2, CLUSTER = 2;  // warpgroups of a block, blocks of a cluster
constexpr int BK = 64;  // elements of k in a slice: 128 bytes, the width of the swizzle

// Starts the products of a slice, given descriptors: 64 rows of A for each of BLOCKS, in steps of 32 bytes along k.
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

template <class T, class Out, int BM, int BN, int STAGES>
__global__ void __launch_bounds__((CONSUMERS + 1) * 128) __cluster_dims__(CLUSTER, 1, 1)
in_turn(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, int group,
        const Out* c, Out* out, int M, int N, int K, float alpha, float beta, MatrixStrides of_c, MatrixStrides of_out) {
    constexpr int PART = BN / CLUSTER;  // columns of B that a block requests
    static_assert(BM % 64 == 0 && BM * BN <= 128 * 192, "a wgmma has 64 rows, a thread registers for 192 sums");
    static_assert(PART % 8 == 0, "a part is whole periods of the swizzle");
    T *const a_slices = dynamic_shared<T>(), *const b_slices = a_slices + STAGES * BM * BK;
    uint64_t* const full = reinterpret_cast<uint64_t*>(b_slices + STAGES * BN * BK);  // a stage's slices have landed
    uint64_t* const empty = full + STAGES;                                            // its readers have read them
    uint64_t* const turns = empty + STAGES;                                           // a consumer may multiply
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) mbarrier_init(full + stage, 1);
        for (int stage = 0; stage < STAGES; ++stage) mbarrier_init(empty + stage, CLUSTER);
        for (int consumer = 0; consumer < CONSUMERS; ++consumer) mbarrier_init(turns + consumer, 4);  // warps
        mbarrier_init_fence();
    }
    cluster_barrier();  // also for the other block's barriers
    const int tiles_m = ceil_div(M, CLUSTER * BM), tiles_n = ceil_div(N, BN), tiles = tiles_m * tiles_n;
    const int rank = blockIdx.x % CLUSTER, first = blockIdx.x / CLUSTER, step = gridDim.x / CLUSTER;
    const int slices = ceil_div(K, BK), warpgroup = own_warpgroup();

    const auto request = [&](unsigned n, int slice, TileIndex tile) {  // the n-th slice of all tiles
        const int stage = n % STAGES;
        mbarrier_wait(empty + stage, n / STAGES % 2 ^ 1);  // of the round before; in the first it returns at once
        mbarrier_arrive_expect(full + stage, (BM + BN) * BK * int(sizeof(T)));
        tma_load(a_slices + stage * BM * BK, a_map, full + stage, slice * BK, (tile.m * CLUSTER + rank) * BM, 0);
        T* const part = b_slices + (stage * BN + rank * PART) * BK;  // the same place in both blocks
        tma_load_multicast(part, b_map, full + stage, slice * BK, tile.n * BN + rank * PART, 0, (1 << CLUSTER) - 1);
    };
    if (warpgroup == CONSUMERS) {
        give_up_registers<40>();
        if (threadIdx.x / 32 == CONSUMERS * 4 && elect_lane()) {
            unsigned n = 0;
            for (int i = first; i < tiles; i += step) {
                const TileIndex tile = rasterize(i, tiles_m, tiles_n, group);
#pragma unroll 1  // unrolled it wants more registers than are left
                for (int slice = 0; slice < slices; ++slice) request(n++, slice, tile);
            }
        }
    } else {
        take_registers<232>();
        const auto give_back = [&](int stage) {
            if (threadIdx.x % 128 < CLUSTER) mbarrier_arrive_at(empty + stage, threadIdx.x % 128);
        };
        const uint64_t of_a = wgmma_descriptor(shared_address(a_slices), 0);
        const uint64_t of_b = wgmma_descriptor(shared_address(b_slices), 0);
        const PlainResult<Out> result{c, out, M, N, alpha, beta, of_c, of_out};
        unsigned n = warpgroup * slices, turn = warpgroup == 0;  // the parity of its turns: the first one's first comes at once
        for (int i = first + warpgroup * step; i < tiles; i += CONSUMERS * step) {
            const TileIndex tile = rasterize(i, tiles_m, tiles_n, group);
            const int row = (tile.m * CLUSTER + rank) * BM, col = tile.n * BN;
            Sums sum[BM / 64][BN / 8] = {};
            mbarrier_wait(turns + warpgroup, turn);
            turn ^= 1;
            for (int slice = 0; slice < slices; ++slice, ++n) {
                const int stage = n % STAGES;
                mbarrier_wait(full + stage, n / STAGES % 2);
                multiply<T>(sum, of_a + stage * (BM * 128 / 16), of_b + stage * (BN * 128 / 16));
                wgmma_wait<1>();  // the slice before has been multiplied
                if (slice > 0) give_back((n - 1) % STAGES);
            }
            if (threadIdx.x % 32 == 0) mbarrier_arrive(turns + (1 - warpgroup));  // all products are started
            wgmma_wait<0>();
            give_back((n - 1) % STAGES);  // where K is 0 a stage that nobody waits for
            n += slices;  // past those of the other's tile
#pragma unroll
            for (int m = 0; m < BM / 64; ++m) result.store(sum[m], row + m * 64, col);
        }
    }
    __syncwarp();
    cluster_barrier();  // the other block may still arrive at this one's barriers
}

}  // namespace matmul
