// implicit_gemm on tensor cores: fp16, bf16 and tf32 by mma.sync, on Hopper the 16-bit types by wgmma.
//
// Over the tile on CUDA cores, slices of BL positions are copied STAGES - 1 ahead by cp.async, without registers, and multiplied
// as they lie (slice_copies.cuh, position_tile.cuh). 128 x 128 x 64 products take 512 clocks on Hopper's tensor cores; for them 8
// warps copy 8 chunks a thread, in some 450 clocks of each scheduler.
// Glossary: BM x BN x BL is the block tile, WM x WN the warp tile; of wgmma, a warp's 16 rows and all columns.
#pragma once
#include "../../common/overlap.cuh"
#include "../../common/shared.cuh"
#include "../../common/tma.cuh"
#include "../../common/wgmma.cuh"
#include "../../matmul/parts/warp_tile.cuh"
#include "position_tile.cuh"
#include "slice_copies.cuh"

namespace conv2d_weight {

using matmul::LaneSums;

// Adds the products of a slice to a warp tile's sums. The fragments of a step are loaded before the step before is multiplied.
template <class ATile, class BTile, int STEPS, int MS, int NS, class T>
__device__ __forceinline__ void multiply_by_mma(LaneSums<float> (&sum)[MS][NS], const T* a_tile, const T* b_tile, int a_place,
                                                int b_place) {
    matmul::Fragments<ATile, BTile, MS * 16, NS * 8> fragments[2];
    const auto load = [&](int step) {
        fragments[step % 2].load(a_tile, b_tile, a_place, b_place, step);
        if constexpr (std::is_same_v<T, float>) fragments[step % 2].to_tf32();
    };
    load(0);
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        if (step + 1 < STEPS) load(step + 1);
        matmul::multiply_add<T>(sum, fragments[step % 2].a, fragments[step % 2].b);
    }
}

// Starts them by wgmma, of a warpgroup's 64 rows and all columns, from descriptors of the slice's first positions.
template <class T, int STEPS, int NS>
__device__ __forceinline__ void start_wgmma(LaneSums<float> (&sum)[1][NS], uint64_t a, uint64_t b) {
    constexpr int STEP_BYTES = 16 * 128;  // 16 positions of a panel
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < STEPS; ++step)
        wgmma<T, false, false>(sum[0], a + (step * STEP_BYTES >> 4), b + (step * STEP_BYTES >> 4));
    wgmma_commit();
}

// Where a pair of columns is in a filter, and how many of its tap's channels there are from it on: none where there is no tap.
struct alignas(16) Pair {
    int64_t place;
    int channels;
};

// Stores a warp tile's sums, the first at (row, col) of the block tile, in runs of a tap's channels. Every thread must call it,
// when the slices have been read: their memory is that of the pairs, which are located once for the block.
template <int BN, class Out, int MS, int NS>
__device__ __forceinline__ void store(const LaneSums<float> (&sum)[MS][NS], Out* out, const FiltersStrides& stride,
                                      const Tile& tile, int row, int col, int padded_channels, const Geometry& g) {
    Pair* const pairs = dynamic_shared<Pair>();
    for (int i = threadIdx.x; i < BN / 2; i += blockDim.x) {
        const int n = tile.first_n + 2 * i, c = n % padded_channels, r = n / padded_channels / g.S, s = n / padded_channels % g.S;
        pairs[i] = {c * stride.c + r * stride.r + s * stride.s, r < g.R ? g.c_per_group() - c : 0};
    }
    __syncthreads();  // all pairs are located
    float results[MS][NS][4];
    matmul::for_all(results, [&](float& result, int r, int c) { result = sum[r / 16][c / 8].x[r % 16 / 8 * 2 + c % 2]; });
    out += (int64_t(tile.group) * g.k_per_group() + tile.first_m) * stride.k;
    matmul::for_runs<Out, NS>(results, 0, [&](const auto& run, int r, int c) {
        const Pair pair = pairs[(col + c) / 2];
        matmul::store_run(run, out + (row + r) * stride.k + pair.place, row + r, 0, tile.count_m, pair.channels, 0, stride.c);
    });
}

// `sums`, where there are splits, are (splits, K, R, S, C / groups).
template <class T, bool WGMMA, int BM, int BN, int BL, int WM, int WN, int STAGES>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32, WGMMA && BN <= 128 ? 256 / BM : 1)
tensor_cores(const T* __restrict__ input, const T* __restrict__ grad_output, T* __restrict__ weight, float* __restrict__ sums,
             Geometry g, Strides stride, Moves moves, int64_t positions_per_split) {
    wait_for_earlier_kernels();
    static_assert(BM % WM == 0 && BN % WN == 0, "warp tiles cover the block tile exactly");
    static_assert((WM & (WM - 1)) == 0 && (WN & (WN - 1)) == 0, "PositionTile::load adds by XOR");
    static_assert(!WGMMA || (WM == 16 && WN == BN && sizeof(T) == 2), "wgmma's rows; across the reduction it reads 16 bits only");
    constexpr int THREADS = BM / WM * (BN / WN) * 32, STEPS = BL * sizeof(T) / 32;
    // When the block meets, products of the slice before are done: by mma.sync all, by wgmma all but those of the last one.
    constexpr int AHEAD = WGMMA ? STAGES - 2 : STAGES - 1;
    static_assert(AHEAD >= 1, "slices are copied while others are multiplied");
    using ATile = PositionTile<T, true, BM, BL>;
    using BTile = PositionTile<T, false, BN, BL>;
    __shared__ Positions<BL> positions[2];
    T* const a_tiles = dynamic_shared<T>();
    T* const b_tiles = a_tiles + STAGES * ATile::SIZE;

    const int channels = in_whole_chunks<T>(g.c_per_group());
    const Tile tile(g, g.R * g.S * channels, BM, BN, positions_per_split);
    const int warp = threadIdx.x / 32, row = warp / (BN / WN) * WM, col = warp % (BN / WN) * WN;
    SliceCopies<ATile, BTile, BL, STAGES, THREADS> copies(input, grad_output, tile, positions, a_tiles, b_tiles, g, stride, moves);
    copies.copy_ahead(AHEAD);

    LaneSums<float> sum[WM / 16][WN / 8] = {};
    const int a_place = ATile::fragment(row), b_place = BTile::fragment(col);
    const uint64_t a_first = wgmma_descriptor(shared_address(a_tiles + row / 64 * ATile::PANEL), 0);
    const uint64_t b_first = wgmma_descriptor(shared_address(b_tiles), BTile::PANEL * sizeof(T));
    int now = 0;
#pragma unroll 1
    for (int64_t l = tile.first; l < tile.end; l += BL) {
        cp_async_wait<AHEAD - 1>();
        if constexpr (WGMMA) tma_store_fence();  // all writes to the slice are visible to wgmma
        __syncthreads();                         // it has landed; the places of the next are known, and its stage is free
        if constexpr (WGMMA) {
            start_wgmma<T, STEPS>(sum, a_first + (now * ATile::SIZE * int(sizeof(T)) >> 4),
                                  b_first + (now * BTile::SIZE * int(sizeof(T)) >> 4));
            copies.copy_next();
            wgmma_wait<1>();
        } else {
            copies.copy_next();
            multiply_by_mma<ATile, BTile, STEPS>(sum, a_tiles + now * ATile::SIZE, b_tiles + now * BTile::SIZE, a_place, b_place);
        }
        now = now + 1 == STAGES ? 0 : now + 1;
    }
    if constexpr (WGMMA) {
        wgmma_wait<0>();
        wgmma_results(sum[0]);
    }

    __syncthreads();  // all slices have been read
    if (sums == nullptr) {
        store<BN>(sum, weight, stride.weight, tile, row, col, channels, g);
    } else {
        const int64_t filter = int64_t(g.c_per_group()) * g.R * g.S;
        const FiltersStrides contiguous{filter, 1, int64_t(g.c_per_group()) * g.S, g.c_per_group()};
        store<BN>(sum, sums + blockIdx.y * g.K * filter, contiguous, tile, row, col, channels, g);
    }
}

}  // namespace conv2d_weight
