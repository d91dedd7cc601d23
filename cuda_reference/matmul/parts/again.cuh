// What precision "fp32" computes again, in IEEE arithmetic: the results that its planes refuse.
//
// Planes lose bits of elements far below the largest of their row or column (split.cuh). Where that may cost a result more than
// IEEE arithmetic would, it is NaN; fp16x3 leaves it so. Few rows of usual operands have such elements, and hardly a result is
// refused for them. So a block looks at the counts of a tile's rows and columns first, then for NaN in the tile, and multiplies
// if there is any: as a rule the kernel reads counts and nothing else. What is NaN for other reasons is NaN again.
//
// Mirrors tritonkernels/matmul/parts/again.py.
#pragma once
#include "../../common/index.cuh"
#include "../../common/overlap.cuh"
#include "../../common/raster.cuh"
#include "epilogue.cuh"
#include "scheme.cuh"

namespace matmul {

constexpr int AGAIN = 64, AGAIN_THREADS = 256;  // rows and columns of a tile (schemes.AGAIN); threads, with 4 x 4 results each

// The third row of the ranges of A and B counts what may lose bits.
template <class Float>
__global__ void __launch_bounds__(AGAIN_THREADS)
again(const Float* __restrict__ a, const Float* __restrict__ b, const Float* __restrict__ c, const Float* __restrict__ bias,
      Float* __restrict__ out, int M, int N, int K, Float alpha, Float beta, int activation, Strides stride,
      const int* __restrict__ a_ranges, const int* __restrict__ b_ranges, RangeStrides ranges) {
    constexpr int BK = 16, EACH = 4, LANES = AGAIN / EACH;
    __shared__ Float a_slice[BK][AGAIN + 1], b_slice[BK][AGAIN + 1];
    const Place tile = place_of(blockIdx.x, ceil_div(M, AGAIN), ceil_div(N, AGAIN), 1);
    const int first_row = tile.m * AGAIN, first_col = tile.n * AGAIN;
    const int row = first_row + threadIdx.x / LANES * EACH, col = first_col + threadIdx.x % LANES * EACH;
    wait_for_earlier_kernels();
    const int line = threadIdx.x % AGAIN, at = (threadIdx.x < AGAIN ? first_row : first_col) + line;
    bool counted = false;
    if (threadIdx.x < AGAIN) counted = at < M && a_ranges[tile.matrix * ranges.a + 2 * int64_t(M) + at] > 0;
    else if (threadIdx.x < 2 * AGAIN) counted = at < N && b_ranges[tile.matrix * ranges.b + 2 * int64_t(N) + at] > 0;
    if (!__syncthreads_or(counted)) return;

    const Epilogue<Float, Float> epilogue(c, bias, out, alpha, beta, activation, stride, tile.matrix);
    unsigned refused = 0;  // a bit for each of the thread's results
    for (int i = 0; i < EACH * EACH; ++i) {
        const int m = row + i / EACH, n = col + i % EACH;
        if (m < M && n < N && isnan(epilogue.out[m * stride.out.row + n * stride.out.col])) refused |= 1u << i;
    }
    if (!__syncthreads_or(refused != 0)) return;

    a += tile.matrix * stride.a.batch;
    b += tile.matrix * stride.b.batch;
    Float sums[EACH][EACH] = {};
    for (int first = 0; first < K; first += BK) {
        for (int i = threadIdx.x; i < AGAIN * BK; i += AGAIN_THREADS) {
            const int side = i / BK, k = first + i % BK, m = first_row + side, n = first_col + side;
            a_slice[i % BK][side] = m < M && k < K ? a[m * stride.a.row + k * stride.a.col] : Float(0);
            b_slice[i % BK][side] = n < N && k < K ? b[k * stride.b.row + n * stride.b.col] : Float(0);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k)
#pragma unroll
            for (int i = 0; i < EACH * EACH; ++i)
                sums[i / EACH][i % EACH] += a_slice[k][row - first_row + i / EACH] * b_slice[k][col - first_col + i % EACH];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < EACH * EACH; ++i)
        if (refused >> i & 1) epilogue.store(sums[i / EACH][i % EACH], row + i / EACH, col + i % EACH);
}

}  // namespace matmul
