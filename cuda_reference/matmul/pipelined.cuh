// Matrix product on tensor cores, pipelined (cp.async, ldmatrix, mma.sync): STAGES slices in swizzled shared memory at a time.
//
// In `tiled` one slice is in flight, through registers, and two barriers per slice separate copies and products. Here cp.async
// keeps STAGES - 1 slices in flight without registers, with one barrier per slice, so registers hold a larger WM x WN tile per
// warp. Per 16 of k a 64 x 64 warp tile reads (64 + 64) * 32 bytes of shared memory for 32 mma, 1/16 byte per multiply-add; in a
// 128 x 256 block copies write 3/128 byte more. At 128 bytes per clock that allows 1490 multiply-adds per clock and SM. mma.sync
// reaches about 1280 on Hopper (62 % of wgmma's 2048) and 1024 on an A100, so tiles must be this large, and free of bank
// conflicts (swizzled_tile.cuh).
//
// slices.cuh has the loop over K, warp_tile.cuh the fragments and products of a warp, products.cuh both together,
// tile_rows.cuh how results leave a block, and lane_tile.cuh what is different where ldmatrix does not help: in fp64, and in
// tf32 that lies along M or N.
// Glossary: BM x BN x BK is the block tile, WM x WN the warp tile; a step is 32 bytes along k, 64 of fp64.
// Mirrors tritonkernels/matmul/pipelined.py.
#pragma once
#include "../common/index.cuh"
#include "../common/overlap.cuh"
#include "../common/raster.cuh"
#include "parts/products.cuh"
#include "parts/tile_rows.cuh"

namespace matmul {

template <class T, class Out, class Sum, int BM, int BN, int BK, int WM, int WN, int STAGES, bool A_K_MAJOR,
          bool B_K_MAJOR, int A_PIECE, int B_PIECE, bool SCALED, bool BY_ROWS,
          bool GATED = false>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32)
pipelined(const T* __restrict__ a, const T* __restrict__ b, const Out* __restrict__ c, const Out* __restrict__ bias,
          Out* __restrict__ out, int M, int N, int K, Scalar<Sum> alpha, Scalar<Sum> beta, int activation, Strides stride,
          int group) {
    static_assert(BM % WM == 0 && BN % WN == 0, "warp tiles cover the block tile exactly");
    constexpr int THREADS = BM / WM * (BN / WN) * 32, STEPS = BK * sizeof(T) / MMA_BYTES<T>;
    using ATile = MmaTile<T, true, BM, BK, A_K_MAJOR, A_PIECE>;
    using BTile = MmaTile<T, false, BN, BK, B_K_MAJOR, B_PIECE>;
    const Place tile = place_of(blockIdx.x, ceil_div(M, BM), ceil_div(N, BN), group);
    const int batch = tile.matrix, first_row = tile.m * BM, first_col = tile.n * BN, warp = threadIdx.x / 32;
    const int row = warp / (BN / WN) * WM, col = warp % (BN / WN) * WN;  // of the warp tile in the block tile
    wait_for_earlier_kernels();
    LaneSums<Sum> sum[WM / 16][WN / 8] = {};
    Slices<ATile, BTile, 1, STAGES, STEPS, THREADS> slices(
        {a + batch * stride.a.batch, first_row, M, stride.a.row, stride.a.col, 0},
        {b + batch * stride.b.batch, first_col, N, stride.b.col, stride.b.row, 0});
    multiply_by_mma(sum, slices, K, row, col);
    const auto epilogue = epilogue_of<Sum, SCALED>(c, bias, out, alpha, beta, activation, stride, batch);
    store_block<BY_ROWS, GATED>(sum, epilogue, first_row + row, first_col + col, M, N);
}

}  // namespace matmul
