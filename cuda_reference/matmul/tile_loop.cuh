// Matrix product on Hopper, tile_loop: a block per SM walks the tiles, so that the slices of the next tile land while one is written.
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

constexpr int CONSUMERS = 2;

template <class T, class Out, int BM, int BN, int STAGES>
__global__ void __launch_bounds__((CONSUMERS + 1) * 128)
tile_loop(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, const Out* c, Out* out, int M,
          int N, int K, float alpha, float beta, MatrixStrides of_c, MatrixStrides of_out, int group) {
    constexpr int ROWS = BM / CONSUMERS;  // of a consumer
    static_assert(ROWS % 64 == 0 && ROWS * BN <= 128 * 128, "a wgmma has 64 rows, a thread registers for 128 sums");
    T *const a_slices = dynamic_shared<T>(), *const b_slices = a_slices + STAGES * BM * BK;
    uint64_t* const full = reinterpret_cast<uint64_t*>(b_slices + STAGES * BN * BK);  // a stage's slices have landed
    uint64_t* const empty = full + STAGES;                                            // its readers have read them
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(full + stage, 1);
            mbarrier_init(empty + stage, CONSUMERS);
        }
        mbarrier_init_fence();
    }
    __syncthreads();
    const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), tiles = tiles_m * tiles_n;
    const int slices = ceil_div(K, BK), warpgroup = own_warpgroup(), first = blockIdx.x, step = gridDim.x;

    Ring<STAGES> ring;
    if (warpgroup == CONSUMERS) {
        give_up_registers<40>();
        if (threadIdx.x / 32 == CONSUMERS * 4 && elect_lane()) {
            for (int i = first; i < tiles; i += step) {
                const TileIndex tile = rasterize(i, tiles_m, tiles_n, group);
                for (int slice = 0; slice < slices; ++slice) {
                    mbarrier_wait(empty + ring.stage, ring.parity ^ 1);  // of the round before; in the first it returns at once
                    mbarrier_arrive_expect(full + ring.stage, (BM + BN) * BK * int(sizeof(T)));
                    tma_load(a_slices + ring.stage * BM * BK, a_map, full + ring.stage, slice * BK, tile.m * BM, 0);
                    tma_load(b_slices + ring.stage * BN * BK, b_map, full + ring.stage, slice * BK, tile.n * BN, 0);
                    ring.advance();
                }
            }
        }
    } else {
        take_registers<232>();
        const PlainResult<Out> result{c, out, M, N, alpha, beta, of_c, of_out};
        const auto give_back = [&](int stage) {
            if (threadIdx.x % 128 == 0) mbarrier_arrive(empty + stage);
        };
        const uint64_t of_a = wgmma_descriptor(shared_address(a_slices + warpgroup * ROWS * BK), 0);
        const uint64_t of_b = wgmma_descriptor(shared_address(b_slices), 0);
        for (int i = first; i < tiles; i += step) {
            const TileIndex tile = rasterize(i, tiles_m, tiles_n, group);
            Sums sum[ROWS / 64][BN / 8] = {};
            int last = 0;  // the stage before
            for (int slice = 0; slice < slices; ++slice) {
                mbarrier_wait(full + ring.stage, ring.parity);
                multiply<T>(sum, of_a + ring.stage * (BM * 128 / 16), of_b + ring.stage * (BN * 128 / 16));
                wgmma_wait<1>();  // the slice before has been multiplied
                if (slice > 0) give_back(last);
                last = ring.stage;
                ring.advance();
            }
            wgmma_wait<0>();
            if (slices > 0) give_back(last);
#pragma unroll
            for (int m = 0; m < ROWS / 64; ++m) result.store(sum[m], tile.m * BM + warpgroup * ROWS + m * 64, tile.n * BN);
        }
    }
}

}  // namespace matmul
