// GEMV, transposed: A with contiguous columns, as a.t() of a row-major matrix has them.
//
// A thread owns WIDTH neighbouring rows and walks columns with one x for all: 128-bit loads, UNROLL of them in flight, and no
// sum crosses threads until the end. LANES threads side by side own a tile of rows; the other threads of the block take
// every DEPTH-th column of it each. Narrow tiles make many blocks and few partial sums; 8 lanes read a line of 128 bytes. If
// there are still few tiles, N is split over blocks too, and the last to arrive adds the partial sums up in a fixed order, as
// in `split_n`.
//
// Columns of an odd length begin anywhere within 16 bytes: a thread reads the two aligned words that hold its rows, and shifts
// them. The second is a neighbour's first, and comes from L1. Mirrors tritonkernels/gemv/transposed.py.
#pragma once
#include "../common/overlap.cuh"
#include "parts/splits.cuh"
#include "parts/vector_row.cuh"

namespace gemv {

// WIDTH neighbouring rows of a column: a vector, which the launcher knows to be aligned and whole, or one.
template <int WIDTH, class A> __device__ __forceinline__ void load_rows(A (&to)[WIDTH], const A* column, const Loader& loader) {
    static_assert(WIDTH == FULL<A> || WIDTH == 1, "128 bits or an element");
    if constexpr (WIDTH == FULL<A>)
        load_vector(to, column, loader);
    else
        to[0] = *column;
}

template <int WIDTH, class A> struct AlignedRows {
    A x[WIDTH];
    __device__ __forceinline__ void load(const A* column, const Loader& loader) { load_rows<WIDTH>(x, column, loader); }
    __device__ __forceinline__ const AlignedRows& shifted() const { return *this; }
};

// The same of a column that begins anywhere: two words, which must be in memory.
template <int WIDTH, class A> struct ShiftedRows {
    unsigned words[8];
    int bytes;
    __device__ __forceinline__ void load(const A* column, const Loader& loader) {
        bytes = reinterpret_cast<uintptr_t>(column) % 16;
        const auto from = reinterpret_cast<const unsigned char*>(column) - bytes;
        const uint4 pair[] = {loader.load(from), loader.load(from + 16)};
        std::memcpy(words, pair, sizeof words);
    }
    __device__ __forceinline__ AlignedRows<WIDTH, A> shifted() { return gemv::shifted<AlignedRows<WIDTH, A>>(words, bytes); }
};

// A thread's place in its block: `lane` of LANES along the rows, WIDTH each, and `depth` of DEPTH along what is summed over.
template <class Number, int WIDTH, int LANES, int THREADS> struct Column {
    static constexpr int DEPTH = THREADS / LANES, ROWS = LANES * WIDTH;
    using Sums = Number[DEPTH][ROWS];

    // take(row, sum) of every row of the tile: each thread's sums, added up over depths 0, 1, ...
    template <class Take> static __device__ __forceinline__ void reduce(Sums& sums, const Number (&sum)[WIDTH], Take take) {
        Number* own = &sums[threadIdx.x / LANES][threadIdx.x % LANES * WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) own[i] = sum[i];
        __syncthreads();  // all threads have stored their sums
        for (int row = threadIdx.x; row < ROWS; row += THREADS) {
            Number total = sums[0][row];
#pragma unroll
            for (int depth = 1; depth < DEPTH; ++depth) total += sums[depth][row];
            take(row, total);
        }
    }
};

// SHIFTED: columns are contiguous, but begin anywhere. Grid (tiles of LANES * WIDTH rows, splits); workspace is (splits, rows of all tiles), counters (tiles,).
template <class A, class X, int WIDTH, int LANES, int WARPS, int UNROLL, bool SHIFTED>
__global__ void __launch_bounds__(32 * WARPS)
transposed(const A* __restrict__ a, const X* __restrict__ x, const X* __restrict__ y, const float* __restrict__ scale,
           X* __restrict__ out, Sum<X>* workspace, int* counters, int M, int N, int columns, Sum<X> alpha, Sum<X> beta,
           Strides stride, bool streams) {
    using Place = Column<Sum<X>, WIDTH, LANES, 32 * WARPS>;
    constexpr int ROWS = Place::ROWS, DEPTH = Place::DEPTH;
    __shared__ __align__(16) typename Place::Sums sums;
    wait_for_earlier_kernels();
    const int tiles = ceil_div(M, ROWS), batch = blockIdx.x / tiles, first_row = blockIdx.x % tiles * ROWS;
    const int own = threadIdx.x % LANES * WIDTH, depth = threadIdx.x / LANES;
    const int first = int(min(int64_t(blockIdx.y) * columns, int64_t(N))) + depth;
    const int last = first_row + own < M ? min(int64_t(first) - depth + columns, int64_t(N)) : 0;  // past the last row: none

    const Row top(batch, first_row + own, 0);  // of WIDTH rows
    const A* column = top.of(a, stride.a) + first * stride.a.col;
    const X* factor = top.of(x, stride.x) + first * stride.x.step;
    const Loader loader(streams);
    Sum<X> sum[WIDTH] = {};
    const int rows_left = M - first_row - own;
    const bool by_element = SHIFTED && rows_left < 2 * WIDTH;  // its second word may be past the end of A
    for (int n = first; !by_element && n < last; n += UNROLL * DEPTH) {
        std::conditional_t<SHIFTED, ShiftedRows<WIDTH, A>, AlignedRows<WIDTH, A>> of_a[UNROLL];
        X of_x[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            if (n + u * DEPTH < last) {
                of_a[u].load(column, loader);
                of_x[u] = *factor;
            }
            column += DEPTH * stride.a.col;
            factor += DEPTH * stride.x.step;
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
            if (n + u * DEPTH < last) {
                const auto& rows = of_a[u].shifted();
#pragma unroll
                for (int i = 0; i < WIDTH; ++i) sum[i] += Sum<X>(rows.x[i]) * Sum<X>(of_x[u]);
            }
    }
    if (by_element)
        for (int n = first; n < last; n += DEPTH, column += DEPTH * stride.a.col, factor += DEPTH * stride.x.step)
#pragma unroll
            for (int i = 0; i < WIDTH; ++i)
                if (i < rows_left) sum[i] += Sum<X>(column[i]) * Sum<X>(*factor);

    Sum<X>* of_tile = workspace + int64_t(blockIdx.x) * ROWS;
    const int64_t width = int64_t(gridDim.x) * ROWS;
    const auto finish = [&](int row, Sum<X> total) {
        if (first_row + row < M) store(total, Row(batch, first_row + row, 0), y, scale, out, alpha, beta, stride);
    };
    if (gridDim.y == 1) {
        Place::reduce(sums, sum, finish);
        return;
    }
    Place::reduce(sums, sum, [&](int row, Sum<X> total) { of_tile[blockIdx.y * width + row] = total; });
    if (!last_to_arrive(counters + blockIdx.x, gridDim.y)) return;
    Sum<X> of_splits[WIDTH] = {};
#pragma unroll 4
    for (int split = depth; split < int(gridDim.y); split += DEPTH)
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) of_splits[i] += __ldcg(of_tile + split * width + own + i);
    Place::reduce(sums, of_splits, finish);
}

}  // namespace gemv
