// Matrix product on Hopper, tile_loop: a block per SM walks the tiles, so that slices of the next one land while one is written.
//
// In `specialized` a block has one tile: it waits for its first slices, and at the end it writes 64 KB of results. Its stages take
// 192 KB, so there is no other block on the SM to multiply meanwhile. Here the producer goes on with the next tile's slices at
// once, as far as stages are empty; the ring and its parities know of no tiles. The field calls this a persistent kernel.
//
// Tiles are walked in bands of `group` rows, column by column (raster.cuh). At 8192 x 8192 x 8192 the 132 tiles of a moment are
// then 8 rows by 17 columns, which need 8 * 128 + 17 * 256 = 5376 rows of the operands from DRAM, 16 KB each. Without bands they
// are 64 rows by 3 columns: 64 * 128 + 3 * 256 = 8960.
//
// Both operands lie along k, in rows of whole chunks of 16 bytes; the launcher packs others first.
// BM x BN is the tile of a block, BK the depth of a slice (STAGES of them), ROWS a consumer's part of BM.
// Mirrors tritonkernels/matmul/tile_loop.py.
#pragma once
#include "../common/index.cuh"
#include "../common/raster.cuh"
#include "../common/shared.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "parts/plain_result.cuh"

namespace matmul {

constexpr int CONSUMERS = 2;
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
__global__ void __launch_bounds__((CONSUMERS + 1) * 128)
tile_loop(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, int group,
          const Out* c, Out* out, int M, int N, int K, float alpha, float beta, MatrixStrides of_c, MatrixStrides of_out) {
    constexpr int ROWS = BM / CONSUMERS;
    static_assert(ROWS % 64 == 0 && ROWS * BN <= 128 * 128, "a wgmma has 64 rows, a thread registers for 128 sums");
    T *const a_slices = dynamic_shared<T>(), *const b_slices = a_slices + STAGES * BM * BK;
    uint64_t* const full = reinterpret_cast<uint64_t*>(b_slices + STAGES * BN * BK);  // a stage's slices have landed
    uint64_t* const empty = full + STAGES;                                            // its readers have read them
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) mbarrier_init(full + stage, 1);
        for (int stage = 0; stage < STAGES; ++stage) mbarrier_init(empty + stage, CONSUMERS);
        mbarrier_init_fence();
    }
    __syncthreads();
    const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), tiles = tiles_m * tiles_n;
    const int first = blockIdx.x, step = gridDim.x;
    const int slices = ceil_div(K, BK), warpgroup = own_warpgroup();

    const auto request = [&](unsigned n, int slice, TileIndex tile) {  // the n-th slice of all tiles
        const int stage = n % STAGES;
        mbarrier_wait(empty + stage, n / STAGES % 2 ^ 1);  // of the round before; in the first it returns at once
        mbarrier_arrive_expect(full + stage, (BM + BN) * BK * int(sizeof(T)));
        tma_load(a_slices + stage * BM * BK, a_map, full + stage, slice * BK, tile.m * BM, 0);
        tma_load(b_slices + stage * BN * BK, b_map, full + stage, slice * BK, tile.n * BN, 0);
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
            if (threadIdx.x % 128 == 0) mbarrier_arrive(empty + stage);
        };
        const uint64_t of_a = wgmma_descriptor(shared_address(a_slices + warpgroup * ROWS * BK), 0);
        const uint64_t of_b = wgmma_descriptor(shared_address(b_slices), 0);
        const PlainResult<Out> result{c, out, M, N, alpha, beta, of_c, of_out};
        unsigned n = 0;
        for (int i = first; i < tiles; i += step) {
            const TileIndex tile = rasterize(i, tiles_m, tiles_n, group);
            const int row = tile.m * BM + warpgroup * ROWS, col = tile.n * BN;
            Sums sum[ROWS / 64][BN / 8] = {};
            for (int slice = 0; slice < slices; ++slice, ++n) {
                const int stage = n % STAGES;
                mbarrier_wait(full + stage, n / STAGES % 2);
                multiply<T>(sum, of_a + stage * (BM * 128 / 16), of_b + stage * (BN * 128 / 16));
                wgmma_wait<1>();  // the slice before has been multiplied
                if (slice > 0) give_back((n - 1) % STAGES);
            }
            wgmma_wait<0>();
            give_back((n - 1) % STAGES);  // where K is 0 a stage that nobody waits for
#pragma unroll
            for (int m = 0; m < ROWS / 64; ++m) result.store(sum[m], row + m * 64, col);
        }
    }
}

}  // namespace matmul
