// FP32 GEMM, async_copy: `rasterized` with slices copied by cp.async (sm_80 and later), STAGES of them in shared memory.
//
// A copy goes from global to shared memory asynchronously, without registers, and no warp waits to store it. So slices can be
// STAGES - 1 ahead of the multiplication instead of one: at 3 stages of 128 x 256 x 8, 24 KB are in flight to each of 132 SMs,
// 3.2 MB, where Little's law needs 2.6 MB at 4.3 TB/s and 600 ns. It costs STAGES buffers of shared memory.
//
// A is transposed on the way, so its copies are of 4 bytes: 8 lanes copy the 32 bytes of a row, which in a PaddedTile lie 4
// banks apart, and a warp 4 such rows, 1 bank apart: all 32 banks, no conflict.
#pragma once
#include "../common/cp_async.cuh"
#include "../common/overlap.cuh"
#include "../common/shared.cuh"
#include "rasterized.cuh"

namespace gemm {

template <class Tile, int BM, int BK, int THREADS, bool VECTOR> struct CopiesOfA {
    static_assert(BM * 8 % THREADS == 0 && BK % 8 == 0, "every thread copies the same number of elements");
    static constexpr int ROWS = BM * 8 / THREADS;

    const float* from[ROWS];  // in the next slice
    int64_t step;

    __device__ __forceinline__ static int row(int i) { return threadIdx.x / 8 + i * (THREADS / 8); }
    __device__ __forceinline__ static int k() { return threadIdx.x % 8; }  // and 8 more, and 8 more

    __device__ __forceinline__ CopiesOfA(const float* a, int first_row, int M, const MatrixStrides& stride)
        : step(VECTOR ? 1 : stride.col) {
#pragma unroll
        for (int i = 0; i < ROWS; ++i) from[i] = a + min(first_row + row(i), M - 1) * stride.row + k() * step;
    }

    __device__ __forceinline__ void copy(float* tile, int first_k) const {
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int octet = 0; octet < BK; octet += 8)
                cp_async<4>(tile + Tile::at(octet + k(), row(i)), from[i] + first_k * step + octet * step);
    }

    __device__ __forceinline__ void copy_tail(float* tile, int first_k, int K) const {
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int octet = 0; octet < BK; octet += 8)
                cp_async<4>(tile + Tile::at(octet + k(), row(i)), from[i] + (first_k + octet) * step,
                              first_k + octet + k() < K ? 4 : 0);
    }
};

// The quads of SlicesOfB, copied. What it says of the last row holds here too.
template <int BN, int BK, int THREADS, bool VECTOR> struct CopiesOfB : SlicesOfB<BN, BK, THREADS, VECTOR> {
    using Slices = SlicesOfB<BN, BK, THREADS, VECTOR>;
    using Slices::Slices, Slices::from, Slices::step, Slices::pitch, Slices::columns;
    using Slices::k, Slices::col, Slices::QUADS, Slices::STEP;

    // `count` (4 or more: all) elements `step` apart, then zeros.
    __device__ __forceinline__ static void copy_quad(float* to, const float* from, int64_t step, int count) {
        if constexpr (VECTOR) {
            cp_async<16>(to, from, min(count, 4) * 4);
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j) cp_async<4>(to + j, from + j * step, j < count ? 4 : 0);
        }
    }

    __device__ __forceinline__ void copy(float* tile) {
#pragma unroll
        for (int i = 0; i < QUADS; ++i) {
            if constexpr (VECTOR)
                cp_async<16>(tile + k(i) * BN + col(), from + i * STEP * pitch);
            else
                copy_quad(tile + k(i) * BN + col(), from + i * STEP * pitch, step, columns);
        }
        from += BK * pitch;
    }

    __device__ __forceinline__ void copy_tail(float* tile, int first_k, int K) const {
#pragma unroll
        for (int i = 0; i < QUADS; ++i)
            copy_quad(tile + k(i) * BN + col(), from + (first_k + i * STEP) * pitch, step, first_k + k(i) < K ? columns : 0);
    }
};

template <int BM, int BN, int BK, int TM, int TN, int STAGES, bool VECTOR, bool SHIFTED>
__global__ void __launch_bounds__(Shape<BM, BN, TM, TN>::THREADS, Shape<BM, BN, TM, TN>::blocks_per_sm(VECTOR))
async_copy(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ out,
           int M, int N, int K, float alpha, float beta, Strides stride, int group) {
    wait_for_earlier_kernels();
    static_assert(STAGES >= 3, "one is read, one has landed, one is under way");
    using Buffer = DoubleBuffer<BM, BN, BK, TM, TN, VECTOR>;
    using Place = typename Buffer::Place;
    constexpr int THREADS = Buffer::THREADS;
    auto* buffers = dynamic_shared<typename Buffer::Slice>();  // STAGES of them

    const TileIndex tile = rasterize(blockIdx.x, ceil_div(M, BM), ceil_div(N, BN), group);
    const int first_row = tile.m * BM, first_col = tile.n * BN;
    CopiesOfA<typename Buffer::A::Tile, BM, BK, THREADS, VECTOR> a_copies(a, first_row, M, stride.a);
    CopiesOfB<BN, BK, THREADS, VECTOR> b_copies(b, first_col, N, stride.b);

    // The last slice, which may exceed K, is done first, as in DoubleBuffer.
    const int last = max(K - 1, 0) / BK, slices = last + 1;
    a_copies.copy_tail(buffers[0].a, last * BK, K);
    b_copies.copy_tail(buffers[0].b, last * BK, K);
    cp_async_commit();
#pragma unroll
    for (int stage = 1; stage < STAGES - 1; ++stage) {
        if (stage < slices) {
            a_copies.copy(buffers[stage].a, (stage - 1) * BK);
            b_copies.copy(buffers[stage].b);
        }
        cp_async_commit();  // of nothing where there is no slice, so that waits can count groups
    }
    cp_async_wait<STAGES - 2>();
    __syncthreads();

    typename Buffer::Fragments fragments;
    float sum[TM][TN] = {};
    int now = 0, free = STAGES - 1;  // the stage that is read, and the free one
    fragments.load(buffers[now], 0);
    for (int slice = 0; slice < slices; ++slice) {
        if (slice + STAGES - 1 < slices) {
            a_copies.copy(buffers[free].a, (slice + STAGES - 2) * BK);
            b_copies.copy(buffers[free].b);
        }
        cp_async_commit();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k == BK - 1) {
                cp_async_wait<STAGES - 2>();  // for the next slice; after the last, what is loaded below is never used
                __syncthreads();
                free = now;
                now = now + 1 == STAGES ? 0 : now + 1;
            }
            fragments.load(buffers[now], (k + 1) % BK);
            outer_product(sum, fragments.a[k % 2], fragments.b[k % 2]);
        }
    }
    Place::template store<SHIFTED>(sum, c, out, first_row, first_col, M, N, alpha, beta, stride);
}

}  // namespace gemm
