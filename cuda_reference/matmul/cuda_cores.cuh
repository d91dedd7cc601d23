// Matrix product of fp32 in IEEE arithmetic, cuda_cores: the tiles of gemm's `rasterized` for a batch, with matmul's epilogue.
//
// Tensor cores cannot multiply fp32, so the products are FFMA. In addition to gemm either operand may be transposed, as the weight
// of a linear layer is: slices of B may be read along K, as A's are there, and A's across K, as B's; each in vectors of 16 bytes.
//
// There are two loops over K. Large tiles are bound by FFMA, and have gemm's (gemm/parts/double_buffer.cuh): operands along
// K are transposed on their way through registers. Thin tiles wait for memory: with ASYNC slices come by cp.async, several ahead,
// and stay as they lie (parts/fp32_slices.cuh). 24 x 64 x 336896, both along K, took 103 us in the first way, and takes 68 in this
// one (H100). Products of few columns or rows have tiles of 8 or 16, in which a warp has more lanes the other way (gemm's Shape).
//
// With SPLIT gridDim.y blocks share a tile, each with its range of K, and the last to arrive adds up their sums and has the
// epilogue (add_splits.cuh; gemm/split_k.cuh says what it costs): 256 x 40 x 32768 has 16 tiles of 32 x 32 for 132 SMs.
// Mirrors tritonkernels/matmul/cuda_cores.py.
#pragma once
#include "../common/add_splits.cuh"
#include "../common/overlap.cuh"
#include "../common/raster.cuh"
#include "../common/shared.cuh"
#include "../gemm/parts/double_buffer.cuh"
#include "parts/epilogue.cuh"
#include "parts/fp32_slices.cuh"
#include "parts/pairs.cuh"
#include "parts/store_run.cuh"

namespace matmul {

// gemm's slices of the other operand, applied to the transposed matrix.
template <class Slices> struct Transposed : Slices {
    __device__ __forceinline__ Transposed(const float* matrix, int first, int span, MatrixStrides stride)
        : Slices(matrix, first, span, {stride.col, stride.row}) {}
};

// Slices that are read along K, and transposed on the way to shared memory, or across K: gemm's loop in two buffers.
template <int BM, int BN, int BK, int THREADS, bool A_ALONG_K, bool B_ALONG_K, bool VECTOR_A, bool VECTOR_B>
struct EitherWay {
    using A = std::conditional_t<A_ALONG_K, gemm::SlicesOfA<gemm::PaddedTile<BM>, BM, BK, THREADS, VECTOR_A>,
                                 Transposed<gemm::SlicesOfB<BM, BK, THREADS, VECTOR_A>>>;
    using B = std::conditional_t<B_ALONG_K, Transposed<gemm::SlicesOfA<gemm::PaddedTile<BN>, BN, BK, THREADS, VECTOR_B>>,
                                 gemm::SlicesOfB<BN, BK, THREADS, VECTOR_B>>;
};

// Two fewer of those with 64 threads on Blackwell, for which ptxas spills a word or two at 128 registers: three warps a scheduler.
template <class Shape> constexpr int blocks_per_sm(bool vector) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
    if (vector && Shape::THREADS == 64) return Shape::blocks_per_sm(vector) - 2;
#endif
    return Shape::blocks_per_sm(vector);
}

// SHIFTED: gemm/parts/shifted_rows.cuh. `split_size` is whole slices of K, of which no block has none: vectors stay aligned.
template <int BM, int BN, int BK, int TM, int TN, int STAGES, bool ASYNC, bool SPLIT, bool SHIFTED, bool A_ALONG_K,
          bool B_ALONG_K, bool VECTOR_A, bool VECTOR_B, bool GATED = false>
__global__ void __launch_bounds__(gemm::Shape<BM, BN, TM, TN>::THREADS,
                                  blocks_per_sm<gemm::Shape<BM, BN, TM, TN>>(VECTOR_A&& VECTOR_B))
cuda_cores(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c,
           const float* __restrict__ bias, float* __restrict__ out, int M, int N, int K, float alpha, float beta,
           int activation, Strides stride, int group, float* partial, int* counters, int split_size) {
    wait_for_earlier_kernels();
    using Own = gemm::Shape<BM, BN, TM, TN>;
    using Slices = EitherWay<BM, BN, BK, Own::THREADS, A_ALONG_K, B_ALONG_K, VECTOR_A, VECTOR_B>;
    using InTurn = gemm::DoubleBuffer<BM, BN, BK, TM, TN, VECTOR_A && VECTOR_B, Slices>;
    using Loop = std::conditional_t<
        ASYNC, AsTheyLie<BM, BN, BK, TM, TN, STAGES, A_ALONG_K, B_ALONG_K, VECTOR_A, VECTOR_B>, InTurn>;
    using Place = typename Loop::Place;

    const auto tile = place_of(blockIdx.x, ceil_div(M, BM), ceil_div(N, BN), group);
    const int batch = tile.matrix, first_row = tile.m * BM, first_col = tile.n * BN;
    const int first_k = SPLIT ? blockIdx.y * split_size : 0, length = SPLIT ? min(K - first_k, split_size) : K;

    float sum[TM][TN] = {};
    a += batch * stride.a.batch + first_k * stride.a.col, b += batch * stride.b.batch + first_k * stride.b.row;
    Loop::accumulate(sum, dynamic_shared<typename Loop::Slice>(), a, b, first_row, first_col, M, N, length,
                     {stride.a.row, stride.a.col, stride.b.row, stride.b.col});
    if constexpr (SPLIT) {
#ifdef __CUDACC__
        asm volatile("" : "+l"(partial));  // or registers hold its addresses while K is walked, and ptxas spills
#endif
        if (!add_splits<Own::THREADS, Own::PARTS_AT_ONCE, Own::SUMS_AT_ONCE>(sum, partial, counters)) return;
    }

    const Epilogue<float, float> epilogue(c, bias, out, alpha, beta, activation, stride, batch);
    const auto for_all = [&](const auto& change) {
#pragma unroll
        for (int m = 0; m < TM; ++m) {
#pragma unroll
            for (int n = 0; n < TN; ++n)
                change(sum[m][n], m / 4 * Place::GAP_M + m % 4, n / 4 * Place::GAP_N + n % 4);
            asm volatile("" ::: "memory");  // row by row, so that registers do not hold the addresses of all of C at once
        }
    };
    const int row = first_row + Place::row(), col = first_col + Place::col();
    for_all([&](float& result, int, int) { result = epilogue.scaled(result); });
    if (c != nullptr || bias != nullptr)  // together, as registers do not hold the addresses of a step of its own for each
        for_all([&](float& result, int m, int n) {
            if (row + m < M && col + n < N) result = epilogue.with_addends(result, row + m, col + n);
        });
    if constexpr (GATED)
        activate_gates(for_all, epilogue);
    else
        epilogue.activate_all(for_all);
    if constexpr (GATED) {
#pragma unroll
        for (int m = 0; m < TM; ++m)
#pragma unroll
            for (int n = 0; n < TN; n += 4) {
                __align__(8) const float run[] = {sum[m][n] * sum[m][n + 1], sum[m][n + 2] * sum[m][n + 3]};
                store_run(run, epilogue.out, row + m / 4 * Place::GAP_M + m % 4, (col + n / 4 * Place::GAP_N) / 2, M, N / 2,
                          epilogue.stride.out.row, epilogue.stride.out.col);
            }
    } else if constexpr (SHIFTED) {
        gemm::store_shifted<Place>(sum, epilogue.out, epilogue.stride.out.row, first_row, first_col, M, N,
                                   [](const auto&, int, int) {});
    } else {
#pragma unroll
        for (int m = 0; m < TM; ++m)
#pragma unroll
            for (int n = 0; n < TN; n += 4) {
                __align__(16) const float run[] = {sum[m][n], sum[m][n + 1], sum[m][n + 2], sum[m][n + 3]};
                store_run(run, epilogue.out, row + m / 4 * Place::GAP_M + m % 4, col + n / 4 * Place::GAP_N, M, N,
                          epilogue.stride.out.row, epilogue.stride.out.col);
            }
    }
}

}  // namespace matmul
