// FP32 GEMM, conflict_free: `vectorized` without bank conflicts in the slice loop.
//
// Shared memory has 32 banks of 4 bytes; lanes that access different words of one bank are served one after the other,
// 128-bit accesses in 4 phases of 8 lanes each. `vectorized` has conflicts in two places:
//   store of A  a warp stores 16 rows x 2 quads of k, and k and k + 4 lie 4 BM floats = 0 banks apart: 2 lanes a bank.
//               Here rows of the slice are 4 floats longer, so that they lie 16 banks apart, for 16 BK bytes of shared memory.
//   load of B   the 8 lanes of a phase were side by side and read quads TN = 8 floats apart, at 0, 8, .. 56, of which the last
//               four are in the banks of the first four. Here a phase is 4 x 2 lanes and reads 4 quads of A or 2 of B, 24
//               floats at most from the first to the last, all in different banks.
// Mirrors tritonkernels/gemm/conflict_free.py.
#pragma once
#include "parts/common.cuh"

namespace gemm {

template <int BM, int BN, int BK, int TM, int TN, bool VECTOR>
__global__ void __launch_bounds__((BM / TM) * (BN / TN), 2) conflict_free(  // 2 blocks an SM: 128 registers a thread
    const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ out,
    int M, int N, int K, float alpha, float beta, Strides stride) {
    constexpr int THREADS = (BM / TM) * (BN / TN);
    constexpr int WM = 4 * TM, WN = 8 * TN;
    static_assert(BM % WM == 0 && BN % WN == 0, "warp tiles cover the block tile exactly");
    static_assert(BM * BK == 4 * THREADS && BN * BK == 4 * THREADS, "every thread loads one quad of A and one of B");
    __shared__ __align__(16) float a_tile[BK][BM + 4];  // transposed: a thread's elements of one k are neighbours
    __shared__ __align__(16) float b_tile[BK][BN];

    const int tiles_n = ceil_div(N, BN);
    const int first_row = blockIdx.x / tiles_n * BM, first_col = blockIdx.x % tiles_n * BN;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = warp / (BN / WN) * WM + lane / 2 % 4 * TM;  // of the thread tile in the block tile
    const int col = warp % (BN / WN) * WN + (lane / 8 * 2 + lane % 2) * TN;

    // Four neighbours in a row of a matrix, `left` of them before its edge. The others are zeros: they add nothing to a sum.
    const auto load_quad = [](const float* from, int64_t step, int left) -> float4 {
        if (VECTOR) return left > 0 ? *reinterpret_cast<const float4*>(from) : make_float4(0, 0, 0, 0);
        return {left > 0 ? from[0] : 0, left > 1 ? from[step] : 0,
                left > 2 ? from[2 * step] : 0, left > 3 ? from[3 * step] : 0};
    };
    const auto store_quad = [](float4 quad, float* to, int64_t step, int left) {
        if (VECTOR && left > 0) *reinterpret_cast<float4*>(to) = quad;
        if (!VECTOR && left > 0) to[0] = quad.x;
        if (!VECTOR && left > 1) to[step] = quad.y;
        if (!VECTOR && left > 2) to[2 * step] = quad.z;
        if (!VECTOR && left > 3) to[3 * step] = quad.w;
    };

    // The quads that this thread loads: two threads 8 floats of a row of A, a sector of 32 bytes; a warp 128 columns of B.
    const int a_row = threadIdx.x / 2 % BM, a_k = threadIdx.x / 2 / BM * 8 + threadIdx.x % 2 * 4;
    const int b_k = threadIdx.x / (BN / 4), b_col = threadIdx.x % (BN / 4) * 4;
    const float* const a_from = a + (first_row + a_row) * stride.a.row + a_k * stride.a.col;
    const float* const b_from = b + b_k * stride.b.row + (first_col + b_col) * stride.b.col;
    const int a_left = first_row + a_row < M ? K - a_k : 0, b_left = N - first_col - b_col;  // of their rows

    float sum[TM][TN] = {};
    for (int first_k = 0; first_k < K; first_k += BK) {
        const float4 a_quad = load_quad(a_from + first_k * stride.a.col, stride.a.col, a_left - first_k);
        const float4 b_quad = load_quad(b_from + first_k * stride.b.row, stride.b.col, first_k + b_k < K ? b_left : 0);
        a_tile[a_k][a_row] = a_quad.x, a_tile[a_k + 1][a_row] = a_quad.y;
        a_tile[a_k + 2][a_row] = a_quad.z, a_tile[a_k + 3][a_row] = a_quad.w;
        *reinterpret_cast<float4*>(&b_tile[b_k][b_col]) = b_quad;
        __syncthreads();  // the slice is complete
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            __align__(16) float a_part[TM], b_part[TN];
#pragma unroll
            for (int m = 0; m < TM; m += 4)
                *reinterpret_cast<float4*>(&a_part[m]) = *reinterpret_cast<const float4*>(&a_tile[k][row + m]);
#pragma unroll
            for (int n = 0; n < TN; n += 4)
                *reinterpret_cast<float4*>(&b_part[n]) = *reinterpret_cast<const float4*>(&b_tile[k][col + n]);
#pragma unroll
            for (int n = 0; n < TN; ++n)
#pragma unroll
                for (int i = 0; i < TM; ++i) {  // to and fro: each FFMA has a factor of the one before, in the reuse cache
                    const int m = n % 2 ? TM - 1 - i : i;
                    sum[m][n] += a_part[m] * b_part[n];
                }
        }
        __syncthreads();  // all threads have read it, the next may overwrite it
    }

#pragma unroll
    for (int m = 0; m < TM; ++m)
#pragma unroll
        for (int n = 0; n < TN; n += 4) {
            const int i = first_row + row + m, j = first_col + col + n;
            const int left = i < M ? N - j : 0;
            float4 quad = make_float4(alpha * sum[m][n], alpha * sum[m][n + 1], alpha * sum[m][n + 2], alpha * sum[m][n + 3]);
            if (c != nullptr) {
                const float4 old = load_quad(c + i * stride.c.row + j * stride.c.col, stride.c.col, left);
                quad.x += beta * old.x, quad.y += beta * old.y, quad.z += beta * old.z, quad.w += beta * old.w;
            }
            store_quad(quad, out + i * stride.out.row + j * stride.out.col, stride.out.col, left);
        }
}

}  // namespace gemm
