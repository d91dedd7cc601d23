// FP32 matrix product on tensor cores, planes (mma.sync): operands are split once (parts/split.cuh), and all products are
// computed from the same slices.
//
// Unlike in `pipelined`, a step loads fragments of every plane and multiplies plane i of A by plane j of B for i + j <= DEPTH:
// 1 for the 3 products of tf32x3 and fp16x3, 2 for the 6 of bf16x6, 4 for the 9 of bf16x9. A 32 x 32 warp tile then reads
// 1/12, 1/16 or 1/24 byte of shared memory per multiply-add, where a single product reads 1/8. The peak is that of mma.sync
// divided by 3, 6 or 9.
//
// Tensor cores truncate sums where CUDA cores round them, which gives a bias that grows with K. So plane 0 times plane 0 is added
// up over BK products only, and these sums are added to FP32 sums by FADD. The other products are 2^-10 (2^-7) of the result, so
// the truncation of their sums does not matter. That makes three sums per element of C. The sum over BK is short-lived: a warp
// computes its tile PART rows at a time and needs it for these rows only. If the main sum is not finite, it is the result:
// infinity times a low plane may be NaN.
//
// Where tiles are few and K is long, gridDim.y blocks share a tile, and each sums its range of K, as in `split_k`: 28 x 64 is one
// tile, with which one SM of 132 would walk all of K. Main sum and corrections of a range are first made one FP32 number per
// element. The last block of a tile to arrive adds these in the order of K (add_splits.cuh). Infinities and NaN of a range stay.
// What fp16x3 refuses follows from the sum over all of K, so the last block also undoes the shifts, and then has the epilogue.
//
// Mirrors tritonkernels/matmul/planes.py. After H. Ootomo and R. Yokota, Recovering single precision accuracy from Tensor Cores
// while surpassing the FP32 theoretical peak performance, 2022.
#pragma once
#include "../common/add_splits.cuh"
#include "../common/index.cuh"
#include "../common/overlap.cuh"
#include "../common/raster.cuh"
#include "parts/plane_products.cuh"
#include "parts/slices.cuh"

namespace matmul {

// In elements: from one plane to the next, and from the ranges of one matrix of the batch to those of the next.
struct PlaneStrides {
    int64_t a, b, a_ranges, b_ranges;
};

// Calls change(number, index) for each of a lane's sums, in all parts of its warp tile.
template <int PARTS, int MS, int NS, class Do>
__device__ __forceinline__ void for_sums(LaneSums<float> (&sums)[PARTS][MS][NS], const Do& change) {
#pragma unroll
    for (int part = 0; part < PARTS; ++part)
        for_sums(sums[part], [&](float& number, int i) { change(number, part * MS * NS * 4 + i); });
}

// shifted_back of sums over all of K.
template <int MS, int NS>
__device__ __forceinline__ void shift_back(LaneSums<float> (&sums)[MS][NS], const int* a_ranges, const int* b_ranges,
                                           int first_row, int first_col, int M, int N) {
    const int lane_row = first_row + threadIdx.x % 32 / 4, lane_col = first_col + threadIdx.x % 4 * 2;
#pragma unroll
    for (int n = 0; n < NS; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int b = min(lane_col + n * 8 + i, N - 1), b_shift = shift_of(b_ranges[b]);
            const float b_counted = b_ranges[2 * N + b];
#pragma unroll
            for (int m = 0; m < 2 * MS; ++m) {
                const int a = min(lane_row + m * 8, M - 1), a_shift = shift_of(a_ranges[a]);
                const float a_counted = a_ranges[2 * M + a];
                float& sum = sums[m / 2][n].x[m % 2 * 2 + i];
                sum = shifted_back(sum, a_shift, a_counted, b_shift, b_counted);
            }
        }
}

// A block of gridDim.y takes `split_size` of K, whole slices, of which none is empty.
template <class T, int DEPTH, int BM, int BN, int BK, int WM, int WN, int STAGES>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32)
planes(const T* __restrict__ a, const T* __restrict__ b, const float* __restrict__ c, const float* __restrict__ bias,
       float* __restrict__ out, float* partial, int* counters, int M, int N, int K, float alpha, float beta, int activation,
       Strides stride, const int* __restrict__ a_ranges, const int* __restrict__ b_ranges, PlaneStrides planes, int group,
       int split_size) {
    wait_for_earlier_kernels();
    constexpr int PART = 32, PARTS = WM / PART, K_STEPS = BK * sizeof(T) / 32, STEPS = PARTS * K_STEPS;
    constexpr int COUNT = Planes<T>::COUNT, THREADS = BM / WM * (BN / WN) * 32;
    static_assert(BM % WM == 0 && BN % WN == 0 && WM % PART == 0, "parts cover warp tiles, and these the block tile, exactly");
    static_assert((PART & (PART - 1)) == 0 && (WN & (WN - 1)) == 0, "SwizzledTile::load adds by XOR");
    static_assert(BK >= 32 && BK <= 64, "numerics.SLICE: what is added up before it is added to an FP32 sum");
    using ATile = SwizzledTile<T, true, BM, BK, true>;
    using BTile = SwizzledTile<T, false, BN, BK, true>;
    const Place tile = place_of(blockIdx.x, ceil_div(M, BM), ceil_div(N, BN), group);
    const int batch = tile.matrix, first_row = tile.m * BM, first_col = tile.n * BN, warp = threadIdx.x / 32;
    const int row = warp / (BN / WN) * WM, col = warp % (BN / WN) * WN;  // of the warp tile in the block tile
    const int a_place = ATile::fragment(row), b_place = BTile::fragment(col);
    const int first_k = blockIdx.y * split_size;

    Fragments<ATile, BTile, PART, WN> fragments[2][COUNT];
    LaneSums<float> main[PARTS][PART / 16][WN / 8] = {}, corrections[PARTS][PART / 16][WN / 8] = {};
    LaneSums<float> slice_sum[PART / 16][WN / 8] = {};
    Slices<ATile, BTile, COUNT, STAGES, STEPS, THREADS> slices(
        {a + batch * stride.a.batch + first_k, first_row, M, stride.a.row, stride.a.col, planes.a},
        {b + batch * stride.b.batch + first_k, first_col, N, stride.b.col, stride.b.row, planes.b});
    slices.walk(
        min(K - first_k, split_size),
        [&](int which, int stage, int step) {
            const int part = step / K_STEPS * PART * ATile::PITCH, k = step % K_STEPS;
#pragma unroll
            for (int i = 0; i < COUNT; ++i)
                fragments[which][i].load(slices.a_tile(stage, i) + part, slices.b_tile(stage, i), a_place, b_place, k);
        },
        [&](int which, int step) {
            const int part = step / K_STEPS;
            multiply_planes<T, DEPTH>(slice_sum, corrections[part], fragments[which]);
            if (step % K_STEPS == K_STEPS - 1) add_slice(main[part], slice_sum);
        });

#pragma unroll
    for (int part = 0; part < PARTS; ++part) correct<Planes<T>>(main[part], corrections[part]);
    if (!add_splits<THREADS, 4, 64>(main, partial, counters)) return;
    if constexpr (Planes<T>::SHIFTED) {
        a_ranges += batch * planes.a_ranges;
        b_ranges += batch * planes.b_ranges;
    }
    const Epilogue<float, float> epilogue(c, bias, out, alpha, beta, activation, stride, batch);
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
        const int to_row = first_row + row + part * PART, to_col = first_col + col;
        if constexpr (Planes<T>::SHIFTED) shift_back(main[part], a_ranges, b_ranges, to_row, to_col, M, N);
        store_tile(main[part], epilogue, to_row, to_col, M, N);
    }
}

}  // namespace matmul
