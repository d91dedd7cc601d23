// Matrix product on tensor cores, mma_async: mma.sync on fragments from swizzled shared memory, STAGES slices deep in cp.async.
//
// Over `wmma`, which reloads operands for every 16 x 16 tile, a warp owns WM x WN of C in registers and a block BM x BN. Per 16
// of k a 64 x 64 warp tile reads (64 + 64) * 32 bytes of shared memory for 32 mma, 1/16 byte a multiply-add; in a 128 x 256
// block copies write 3/128 more. At 128 bytes a clock that allows 1490 multiply-adds a clock and SM, and mma.sync is reported
// to give 62 % of wgmma on Hopper, some 1280 of 2048, and 1024 on an A100: tiles must be this large, and banks must not
// conflict (swizzled_tile.cuh).
//
// Slices are STAGES - 1 ahead of the multiplication, fragments one k step ahead, and there is one barrier a slice. The last
// slice, the only one that may stick out of K, is copied first: guarded, outside the loop, which then knows no edge of K.
// Glossary: BM x BN x BK is the block tile, WM x WN the warp tile; a step is 32 bytes along k.
#pragma once
#include "../common/index.cuh"
#include "../common/mma_sync.cuh"
#include "../common/raster.cuh"
#include "../common/shared.cuh"
#include "lane_sums.cuh"
#include "swizzled_tile.cuh"

namespace matmul {

template <class ATile, class BTile, int WM, int WN> struct Fragments {
    unsigned a[WM / 16][4], b[WN / 16][4];

    template <class T> __device__ __forceinline__ void load(const T* a_tile, const T* b_tile, int a_place, int b_place, int k) {
#pragma unroll
        for (int m = 0; m < WM / 16; ++m) ATile::load(a[m], a_tile, a_place, m, k);
#pragma unroll
        for (int n = 0; n < WN / 16; ++n) BTile::load(b[n], b_tile, b_place, n, k);
        if constexpr (std::is_same_v<T, float>) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int m = 0; m < WM / 16; ++m) a[m][i] = round_to_tf32(a[m][i]);
#pragma unroll
                for (int n = 0; n < WN / 16; ++n) b[n][i] = round_to_tf32(b[n][i]);
            }
        }
    }

    template <class T, class Sum> __device__ __forceinline__ void multiply_add(LaneSums<Sum> (&sum)[WM / 16][WN / 8]) const {
#pragma unroll
        for (int m = 0; m < WM / 16; ++m)
#pragma unroll
            for (int n = 0; n < WN / 8; ++n) mma_sync<T>(sum[m][n].x, a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
    }
};

template <class T, class Out, class Sum, int BM, int BN, int BK, int WM, int WN, int STAGES, bool A_K_MAJOR,
          bool B_K_MAJOR>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32)
mma_async(const T* __restrict__ a, const T* __restrict__ b, const Out* __restrict__ c, const Out* __restrict__ bias,
          Out* __restrict__ out, int M, int N, int K, Scalar<Sum> alpha, Scalar<Sum> beta, int activation, Strides stride,
          int group) {
    static_assert(STAGES >= 3, "one is read, one has landed, one is under way");
    static_assert(BM % WM == 0 && BN % WN == 0, "warp tiles cover the block tile exactly");
    static_assert((WM & (WM - 1)) == 0 && (WN & (WN - 1)) == 0, "SwizzledTile::load adds by XOR");
    constexpr int THREADS = BM / WM * (BN / WN) * 32, STEPS = BK * sizeof(T) / 32;
    static_assert(STEPS % 2 == 0, "k steps use two sets of fragments in turn, across slices too");
    using ATile = SwizzledTile<T, true, BM, BK, A_K_MAJOR>;
    using BTile = SwizzledTile<T, false, BN, BK, B_K_MAJOR>;
    T* const a_tiles = dynamic_shared<T>();  // STAGES of each
    T* const b_tiles = a_tiles + STAGES * ATile::SIZE;

    const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), batch = blockIdx.x / (tiles_m * tiles_n);
    const TileIndex tile = rasterize(blockIdx.x % (tiles_m * tiles_n), tiles_m, tiles_n, group);
    const int first_row = tile.m * BM, first_col = tile.n * BN, warp = threadIdx.x / 32;
    const int row = warp / (BN / WN) * WM, col = warp % (BN / WN) * WN;  // of the warp tile in the block tile
    TileCopies<ATile, THREADS, STEPS - 1> a_copies(a + batch * stride.ab, first_row, M, stride.am, stride.ak);
    TileCopies<BTile, THREADS, STEPS - 1> b_copies(b + batch * stride.bb, first_col, N, stride.bn, stride.bk);
    const auto copy = [&](int stage, int part) {
        a_copies.copy(a_tiles + stage * ATile::SIZE, part);
        b_copies.copy(b_tiles + stage * BTile::SIZE, part);
    };
    const auto advance = [&] {
        a_copies.advance();
        b_copies.advance();
    };

    const int last = max(K - 1, 0) / BK, slices = last + 1;
    a_copies.copy_tail(a_tiles, last * BK, K);
    b_copies.copy_tail(b_tiles, last * BK, K);
    cp_async_commit();
#pragma unroll
    for (int stage = 1; stage < STAGES - 1; ++stage) {
        if (stage < slices) {
#pragma unroll
            for (int part = 0; part < STEPS - 1; ++part) copy(stage, part);
            advance();
        }
        cp_async_commit();  // of nothing where there is no slice, so that waits can count groups
    }
    cp_async_wait<STAGES - 2>();
    __syncthreads();

    const int a_place = ATile::fragment(row), b_place = BTile::fragment(col);
    Fragments<ATile, BTile, WM, WN> fragments[2];
    LaneSums<Sum> sum[WM / 16][WN / 8] = {};
    int now = 0, free = STAGES - 1;  // the stage that is read, and the one that nobody reads any more
    fragments[0].load(a_tiles, b_tiles, a_place, b_place, 0);
    for (int slice = 0; slice < slices; ++slice) {
        const bool more = slice + STAGES - 1 < slices;
#pragma unroll
        for (int k = 0; k < STEPS; ++k) {
            if (more && k < STEPS - 1) copy(free, k);
            if (k == STEPS - 1) {
                advance();
                cp_async_commit();
                cp_async_wait<STAGES - 2>();  // for the next slice; after the last, what is loaded below is never used
                __syncthreads();
                free = now;
                now = now + 1 == STAGES ? 0 : now + 1;
            }
            const T *const a_tile = a_tiles + now * ATile::SIZE, *const b_tile = b_tiles + now * BTile::SIZE;
            fragments[(k + 1) % 2].load(a_tile, b_tile, a_place, b_place, (k + 1) % STEPS);
            fragments[k % 2].template multiply_add<T>(sum);
        }
    }
    const Epilogue<Sum, Out> epilogue(c, bias, out, alpha, beta, activation, stride, batch);
    store_tile(sum, epilogue, first_row + row, first_col + col, M, N);
}

}  // namespace matmul
