// GEMV, transposed: A with contiguous columns, as a.t() of a row-major matrix has them.
//
// Neighbouring lanes own neighbouring rows, WIDTH each, and walk the columns with one x for all: coalesced 128-bit loads, and
// no sum crosses lanes. N is split over the warps of a block and, where there are few tiles of rows, over blocks: the last to
// arrive adds the partial sums up in the order of N, as in `split_n`. Mirrors tritonkernels/gemv/transposed.py.
#pragma once
#include "splits.cuh"
#include "vector_row.cuh"

namespace gemv {

// WIDTH neighbouring rows of one column, of which the first `count` exist: one 128-bit load where WIDTH is a vector and they
// all do.
template <int WIDTH, class A>
__device__ __forceinline__ void load_rows(A (&to)[WIDTH], const A* column, int64_t stride_m, int count) {
    if (WIDTH == FULL<A> && count >= WIDTH) {  // the launcher knows that the addresses allow it
        const uint4 quad = *reinterpret_cast<const uint4*>(column);
        std::memcpy(to, &quad, sizeof to);
    } else {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) to[i] = i < count ? column[i * stride_m] : A(0.0f);
    }
}

// Grid (tiles of 32 * WIDTH rows, splits); workspace is (splits, rows of all tiles), counters (tiles,).
template <class A, class X, int WIDTH, int WARPS, int UNROLL>
__global__ void __launch_bounds__(32 * WARPS)
transposed(const A* __restrict__ a, const X* __restrict__ x, const X* __restrict__ y, const float* __restrict__ scale,
           X* __restrict__ out, float* workspace, int* counters, int M, int N, int columns, float alpha, float beta,
           Strides stride) {
    constexpr int ROWS = 32 * WIDTH;
    __shared__ float of_warp[WARPS][ROWS];
    const int tiles = ceil_div(M, ROWS), batch = blockIdx.x / tiles, first_row = blockIdx.x % tiles * ROWS;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, m = first_row + lane * WIDTH;
    const int64_t first = min(int64_t(blockIdx.y) * columns, int64_t(N));
    const int last = int(min(first + columns, int64_t(N)));

    a += batch * stride.ab + m * stride.am;
    x += batch * stride.xb;
    float sum[WIDTH] = {};
    for (int n = int(first) + warp; n < last; n += UNROLL * WARPS) {
        A of_a[UNROLL][WIDTH];
        float of_x[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const int at = min(n + u * WARPS, last - 1);  // past the last column: that one again, times zero
            load_rows(of_a[u], a + at * stride.an, stride.am, M - m);
            of_x[u] = float(x[at * stride.x]);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
            if (n + u * WARPS < last)
#pragma unroll
                for (int i = 0; i < WIDTH; ++i) sum[i] += float(of_a[u][i]) * of_x[u];
    }

#pragma unroll
    for (int i = 0; i < WIDTH; ++i) of_warp[warp][i * 32 + lane] = sum[i];  // without bank conflicts
    __syncthreads();  // all warps' sums are there
    float* partial = workspace + int64_t(blockIdx.x) * ROWS;
    const int64_t width = int64_t(gridDim.x) * ROWS;
    const bool split = gridDim.y > 1;
    for (int i = threadIdx.x; i < ROWS; i += 32 * WARPS) {
        const int row = first_row + i % 32 * WIDTH + i / 32;
        float total = of_warp[0][i];
        for (int w = 1; w < WARPS; ++w) total += of_warp[w][i];
        if (split)
            partial[blockIdx.y * width + i] = total;
        else if (row < M)
            store(total, Row(batch, row, 0), y, scale, out, alpha, beta, stride);
    }
    if (!split || !last_to_arrive(counters + blockIdx.x, gridDim.y)) return;
    for (int i = threadIdx.x; i < ROWS; i += 32 * WARPS) {
        const int row = first_row + i % 32 * WIDTH + i / 32;
        if (row < M)
            store(sum_of_splits(partial + i, gridDim.y, width), Row(batch, row, 0), y, scale, out, alpha, beta, stride);
    }
}

}  // namespace gemv
