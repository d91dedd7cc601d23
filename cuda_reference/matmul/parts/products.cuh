// The products of a block's slices (slices.cuh), added up in a warp's lanes: by mma.sync or by wgmma.
#pragma once
#include "slices.cuh"
#include "warp_tile.cuh"

namespace matmul {

// mma.sync, of the warp tile at (row, col) of the block tile: a step's fragments are loaded while the step before is multiplied.
template <class ATile, class BTile, int STAGES, int STEPS, int THREADS, class ACopies, class Sum, int MS, int NS>
__device__ __forceinline__ void multiply_by_mma(LaneSums<Sum> (&sum)[MS][NS],
                                                Slices<ATile, BTile, 1, STAGES, STEPS, THREADS, ACopies>& slices, int K, int row,
                                                int col) {
    static_assert((MS & (MS - 1)) == 0 && (NS & (NS - 1)) == 0, "SwizzledTile::load adds by XOR");
    using T = typename ATile::Element;
    const int a_place = ATile::fragment(row), b_place = BTile::fragment(col);
    Fragments<ATile, BTile, MS * 16, NS * 8> fragments[2];
    slices.walk(
        K,
        [&](int which, int stage, int step) {
            fragments[which].load(slices.a_tile(stage, 0), slices.b_tile(stage, 0), a_place, b_place, step);
            if constexpr (std::is_same_v<T, float>) fragments[which].to_tf32();
        },
        [&](int which, int) { multiply_add<T>(sum, fragments[which].a, fragments[which].b); });
}

// Hopper's wgmma, of a warp's 16 rows and all columns of the block tile, both along K, in the layout of TMA's 128-byte swizzle.
template <class ATile, class BTile, int STAGES, int STEPS, int THREADS, class ACopies, class Sum, int NS>
__device__ __forceinline__ void multiply_by_wgmma(LaneSums<Sum> (&sum)[1][NS],
                                                  Slices<ATile, BTile, 1, STAGES, STEPS, THREADS, ACopies>& slices, int K,
                                                  int row) {
    using T = typename ATile::Element;
    static_assert(ATile::K_MAJOR && BTile::K_MAJOR && ATile::PITCH * sizeof(T) == 128, "its swizzle");
    static_assert(BTile::ROWS == NS * 8, "a warp has all columns");
    const uint64_t a_first = wgmma_descriptor(shared_address(slices.a_tile(0, 0) + row / 64 * 64 * ATile::PITCH), 0);
    const uint64_t b_first = wgmma_descriptor(shared_address(slices.b_tile(0, 0)), 0);
    slices.walk_behind(K, [&](int stage) {
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < STEPS; ++step)
            wgmma<T, true, true>(sum[0], a_first + ((stage * ATile::SIZE * int(sizeof(T)) + step * 32) >> 4),
                                 b_first + ((stage * BTile::SIZE * int(sizeof(T)) + step * 32) >> 4));
        wgmma_commit();
    });
    wgmma_results(sum[0]);
}

}  // namespace matmul
