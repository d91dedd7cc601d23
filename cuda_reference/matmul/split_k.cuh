// Matrix product on tensor cores, split-K (cp.async; mma.sync or wgmma): gridDim.y blocks share a tile, each sums its range of K.
//
// Where M and N are small and K is large there are fewer tiles than SMs: 128 x 4096 x 16384 in tiles of 128 x 128 is 32 blocks on
// 132 SMs. With S splits it is 32 S, for S partial sums of the tile, written and read once through L2. The last block of a tile
// to arrive adds them in the order of K (add_splits.cuh): the same bits every time, and no second launch. It also has the
// epilogue, so nothing is rounded before all of K is in; fp16 sums are added up in fp32.
//
// Weights that few rows re-use are bound by memory: each SM needs some 30 KB under way to read its share of 4.8 TB/s at 800 ns.
// A block has 2 or 3 slices of 16 to 32 KB under way, or 4 where it has its SM to itself. The loop over slices is pipelined's.
// Where both operands lie along K, slices have TMA's layout, and on Hopper wgmma multiplies them in place: while weights stream
// by at that rate, 128 rows need 1280 multiply-adds per clock and SM, all that mma.sync reaches.
// Mirrors tritonkernels/matmul/split_k.py.
#pragma once
#include "../common/add_splits.cuh"
#include "../common/index.cuh"
#include "../common/overlap.cuh"
#include "../common/raster.cuh"
#include "parts/products.cuh"
#include "parts/tile_rows.cuh"

namespace matmul {

// A block of gridDim.y takes `split_size` of K, whole slices, of which none is empty.
template <class T, class Out, class Sum, bool WGMMA, int BM, int BN, int BK, int WM, int WN, int STAGES, bool A_K_MAJOR,
          bool B_K_MAJOR, int A_PIECE, int B_PIECE, bool SCALED, bool BY_ROWS>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32)
split_k(const T* __restrict__ a, const T* __restrict__ b, const Out* __restrict__ c, const Out* __restrict__ bias,
        Out* __restrict__ out, Scalar<Sum>* partial, int* counters, int M, int N, int K, Scalar<Sum> alpha, Scalar<Sum> beta,
        int activation, Strides stride, int group, int split_size) {
    static_assert(BM % WM == 0 && BN % WN == 0, "warp tiles cover the block tile exactly");
    constexpr int THREADS = BM / WM * (BN / WN) * 32, STEPS = BK * sizeof(T) / MMA_BYTES<T>;
    using ATile = MmaTile<T, true, BM, BK, A_K_MAJOR, A_PIECE>;
    using BTile = MmaTile<T, false, BN, BK, B_K_MAJOR, B_PIECE>;
    const Place tile = place_of(blockIdx.x, ceil_div(M, BM), ceil_div(N, BN), group);
    const int batch = tile.matrix, first_row = tile.m * BM, first_col = tile.n * BN, warp = threadIdx.x / 32;
    const int row = warp / (BN / WN) * WM, col = warp % (BN / WN) * WN;  // of the warp tile in the block tile
    const int first_k = blockIdx.y * split_size, length = min(K - first_k, split_size);
    wait_for_earlier_kernels();

    Slices<ATile, BTile, 1, STAGES, STEPS, THREADS> slices(
        {a + batch * stride.a.batch + first_k * stride.a.col, first_row, M, stride.a.row, stride.a.col, 0},
        {b + batch * stride.b.batch + first_k * stride.b.row, first_col, N, stride.b.col, stride.b.row, 0});
    LaneSums<Sum> sum[WM / 16][WN / 8] = {};
    if constexpr (WGMMA) {
        multiply_by_wgmma(sum, slices, length, row);
    } else {
        multiply_by_mma(sum, slices, length, row, col);
    }

    LaneSums<Scalar<Sum>> total[WM / 16][WN / 8];
    for_sums(total, [&](Scalar<Sum>& number, int i) { number = widen(sum[i / 4 / (WN / 8)][i / 4 % (WN / 8)].at(i % 4)); });
    if (!add_splits<THREADS, 4, 64>(total, partial, counters)) return;
    const auto epilogue = epilogue_of<Scalar<Sum>, SCALED>(c, bias, out, alpha, beta, activation, stride, batch);
    store_block<BY_ROWS>(total, epilogue, first_row + row, first_col + col, M, N);
}

}  // namespace matmul
