// Matrix product on tensor cores, tiled (nvcuda::wmma): a block owns BM x BN of C and walks K in slices of BK through shared
// memory; a warp owns 32 x 64 of it, 2 x 4 fragments.
//
// In `naive` a warp reads 32 elements per k from global memory for 16 x 16 multiply-adds, one for 8. Here a block of 128 x 128
// reads 256 for 16384, one for 64: an eighth of the traffic. From shared memory a warp reads 96 elements per k for 2048
// multiply-adds, one for 21, because each fragment of A is multiplied by 4 of B, and each of B by 2 of A.
//
// Slices lie in shared memory as their matrices do in global memory, by rows or by columns, and move 16 bytes at a time where
// these are aligned. Each line is 16 bytes longer than the slice: 8 lines of one fragment then begin in different banks, where
// lines of 128 or 256 bytes would all begin in the same one, and a read would take 8 times as long.
// Mirrors tritonkernels/matmul/tiled.py.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <type_traits>

#include "../common/index.cuh"
#include "../common/structs.cuh"
#include "../common/vector.cuh"

namespace matmul {

// ROWS x COLS of a matrix in shared memory: LINES of LENGTH elements, rows or columns.
template <class T, int ROWS, int COLS, bool BY_ROWS, int THREADS> struct Slice {
    static constexpr int LINES = BY_ROWS ? ROWS : COLS, LENGTH = BY_ROWS ? COLS : ROWS, PITCH = LENGTH + 8;
    static constexpr int CHUNK = 16 / sizeof(T);
    static_assert(PITCH * sizeof(T) % 128 == 16, "a line begins 4 banks after the one before");
    static_assert(LENGTH % CHUNK == 0 && LINES * LENGTH % (CHUNK * THREADS) == 0, "every thread copies as many chunks");
    using Layout = std::conditional_t<BY_ROWS, nvcuda::wmma::row_major, nvcuda::wmma::col_major>;

    __align__(32) T elements[LINES][PITCH];

    __device__ const T* at(int row, int col) const { return BY_ROWS ? &elements[row][col] : &elements[col][row]; }

    // Copies what begins at `from`, where the matrix has `rows` x `cols` left; zeros past its edges, which add nothing to a sum.
    __device__ __forceinline__ void load(const T* from, MatrixStrides stride, int rows, int cols) {
        const int64_t line = BY_ROWS ? stride.row : stride.col, step = BY_ROWS ? stride.col : stride.row;
        const int lines = BY_ROWS ? rows : cols, length = BY_ROWS ? cols : rows;
        if (step == 1 && line % CHUNK == 0 && length % CHUNK == 0 && is_aligned16(from)) {
#pragma unroll
            for (int i = threadIdx.x * CHUNK; i < LINES * LENGTH; i += THREADS * CHUNK) {
                const int at_line = i / LENGTH, place = i % LENGTH;
                uint4 chunk = make_uint4(0, 0, 0, 0);
                if (at_line < lines && place < length)
                    chunk = *reinterpret_cast<const uint4*>(from + at_line * line + place);
                *reinterpret_cast<uint4*>(&elements[at_line][place]) = chunk;
            }
        } else {
            for (int i = threadIdx.x; i < LINES * LENGTH; i += THREADS) {
                const int at_line = i / LENGTH, place = i % LENGTH;
                const bool inside = at_line < lines && place < length;
                elements[at_line][place] = inside ? from[at_line * line + place * step] : T(0.0f);
            }
        }
    }
};

template <class T, class Out, int BM, int BN, int BK, bool A_BY_ROWS, bool B_BY_ROWS>
__global__ void __launch_bounds__(BM / 32 * (BN / 64) * 32, 2)  // 2 blocks an SM: 128 registers a thread
tiled(const T* __restrict__ a, const T* __restrict__ b, const Out* __restrict__ c, Out* __restrict__ out, int M, int N, int K,
      float alpha, float beta, MatrixStrides of_a, MatrixStrides of_b, MatrixStrides of_c, MatrixStrides of_out) {
    constexpr int F = 16, WM = 32, WN = 64, WARPS_N = BN / WN, WARPS = BM / WM * WARPS_N;
    static_assert(BM % WM == 0 && BN % WN == 0 && BK % F == 0, "fragments of 16 x 16 x 16 cover the slices");
    using ASlice = Slice<T, BM, BK, A_BY_ROWS, 32 * WARPS>;
    using BSlice = Slice<T, BK, BN, B_BY_ROWS, 32 * WARPS>;
    __shared__ ASlice a_slice;
    __shared__ BSlice b_slice;
    __shared__ __align__(32) float staged[WARPS][F][F];

    const int tiles_n = ceil_div(N, BN), first_row = blockIdx.x / tiles_n * BM, first_col = blockIdx.x % tiles_n * BN;
    const int warp = threadIdx.x / 32, row = warp / WARPS_N * WM, col = warp % WARPS_N * WN;  // of its tile in the block's

    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, F, F, F, float> sum[WM / F][WN / F];
#pragma unroll
    for (int i = 0; i < WM / F * (WN / F); ++i) nvcuda::wmma::fill_fragment(sum[i / (WN / F)][i % (WN / F)], 0.0f);
    for (int k = 0; k < K; k += BK) {
        a_slice.load(a + first_row * of_a.row + k * of_a.col, of_a, M - first_row, K - k);
        b_slice.load(b + k * of_b.row + first_col * of_b.col, of_b, K - k, N - first_col);
        __syncthreads();  // the slices are complete
#pragma unroll 2  // more steps at once do not fit the registers
        for (int step = 0; step < BK; step += F) {
            nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, F, F, F, T, typename ASlice::Layout> a_part[WM / F];
#pragma unroll
            for (int m = 0; m < WM / F; ++m) load_matrix_sync(a_part[m], a_slice.at(row + m * F, step), ASlice::PITCH);
#pragma unroll
            for (int n = 0; n < WN / F; ++n) {
                nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, F, F, F, T, typename BSlice::Layout> b_part;
                load_matrix_sync(b_part, b_slice.at(step, col + n * F), BSlice::PITCH);
#pragma unroll
                for (int m = 0; m < WM / F; ++m) mma_sync(sum[m][n], a_part[m], b_part, sum[m][n]);
            }
        }
        __syncthreads();  // all threads have read them, the next may overwrite them
    }

    // Which lane holds which element of a fragment is not specified: each goes through shared memory.
#pragma unroll
    for (int f = 0; f < WM / F * (WN / F); ++f) {
        const int m = f / (WN / F), n = f % (WN / F);
        store_matrix_sync(&staged[warp][0][0], sum[m][n], F, nvcuda::wmma::mem_row_major);
        __syncwarp();  // the fragment is complete
        for (int e = threadIdx.x % 32; e < F * F; e += 32) {
            const int i = first_row + row + m * F + e / F, j = first_col + col + n * F + e % F;
            if (i >= M || j >= N) continue;
            float result = alpha * staged[warp][e / F][e % F];
            if (c != nullptr) result += beta * float(c[i * of_c.row + j * of_c.col]);
            out[i * of_out.row + j * of_out.col] = Out(result);
        }
        __syncwarp();  // all lanes have read it, the next may overwrite it
    }
}

}  // namespace matmul
