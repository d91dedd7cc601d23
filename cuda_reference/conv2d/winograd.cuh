// conv2d, winograd: tiles of M x M outputs of a 3 x 3 filter from (M + 2)^2 products a channel instead of 9 M^2: 2.25 times
// fewer for M = 2, 4 times for M = 4.
//
// These are the transforms: a thread holds a filter, a tile of inputs or a tile of outputs of one channel in its registers.
// Between them is a matrix product for each of the (M + 2)^2 points (parts/winograd_product.cuh), in which rows of B and of the
// result have `pitch` elements, a multiple of 128 bits.
//
// In NCHW the product is U (K, C) times V (C, tiles), with channels_last V (tiles, C) times U (C, K), so that neighbouring lanes
// read and write neighbouring elements. Mirrors tritonkernels/conv2d/winograd.py.
#pragma once
#include "../common/overlap.cuh"
#include "parts/common.cuh"
#include "parts/transforms.cuh"

namespace conv2d {

// A thread's element: the same index at every point.
template <int THREADS> __device__ __forceinline__ unsigned element_of_thread() {
    return blockIdx.x * unsigned(THREADS) + threadIdx.x;
}

// The tiles of M x M outputs of an image.
struct TilesOf {
    int rows, cols;

    __device__ __forceinline__ TilesOf(const Geometry& g, int M) : rows(ceil_div(g.P, M)), cols(ceil_div(g.Q, M)) {}
};

struct TileOf {
    int image, p, q;  // the first output

    __device__ __forceinline__ TileOf(unsigned tile, TilesOf tiles, int M)
        : image(tile / tiles.cols / tiles.rows), p(tile / tiles.cols % tiles.rows * M), q(tile % tiles.cols * M) {}
};

// u: (points, K, C / groups), or (points, C, pitch) with channels inside.
template <class T, int M, int THREADS>
__global__ void __launch_bounds__(THREADS)
winograd_filters(const T* __restrict__ weight, Sum<T>* __restrict__ u, Geometry g, Strides stride, int pitch,
                 bool channels_inside) {
    wait_for_earlier_kernels();
    const unsigned at = element_of_thread<THREADS>();
    const unsigned c_per_group = g.c_per_group(), k_per_group = g.k_per_group();
    const unsigned elements = channels_inside ? g.C * unsigned(pitch) : g.K * c_per_group;
    if (at >= elements) return;
    const unsigned k = channels_inside ? at / pitch / c_per_group * k_per_group + min(at % pitch, k_per_group - 1)
                                       : at / c_per_group;
    const unsigned c = channels_inside ? at / pitch % c_per_group : at % c_per_group;
    const T* filter = weight + k * stride.weight.k + c * stride.weight.c;
    Sum<T> columns[3][POINTS<M>];
#pragma unroll
    for (int s = 0; s < 3; ++s) {
        Sum<T> taps[3];
#pragma unroll
        for (int r = 0; r < 3; ++r) taps[r] = Sum<T>(filter[r * stride.weight.r + s * stride.weight.s]);
        of_taps(taps, columns[s]);
    }
    u += at;
#pragma unroll
    for (int i = 0; i < POINTS<M>; ++i) {
        Sum<T> row[3], points[POINTS<M>];
        across(columns, i, row);
        of_taps(row, points);
#pragma unroll
        for (int j = 0; j < POINTS<M>; ++j, u += elements) *u = points[j];
    }
}

// v: (points, C, pitch), or (points, groups, tiles, C / groups) with channels inside.
template <class T, int M, int THREADS>
__global__ void __launch_bounds__(THREADS)
winograd_inputs(const T* __restrict__ input, Sum<T>* __restrict__ v, Geometry g, Strides stride, int pitch, int tiles,
                bool channels_inside) {
    wait_for_earlier_kernels();
    const unsigned at = element_of_thread<THREADS>();
    const unsigned c_per_group = g.c_per_group(), elements = g.C * unsigned(channels_inside ? tiles : pitch);
    if (at >= elements) return;
    const unsigned c = channels_inside ? at / c_per_group / tiles * c_per_group + at % c_per_group : at / pitch;
    const TileOf tile(channels_inside ? at / c_per_group % tiles : at % pitch, TilesOf(g, M), M);
    const int h = tile.p - g.padding_h, w = tile.q - g.padding_w;
    const T* corner = input + tile.image * stride.input.n + c * stride.input.c + h * stride.input.h + w * stride.input.w;
    bool there[POINTS<M>];  // the rows
#pragma unroll
    for (int r = 0; r < POINTS<M>; ++r) there[r] = tile.image < g.N && h + r >= 0 && h + r < g.H;
    Sum<T> columns[POINTS<M>][POINTS<M>];
#pragma unroll
    for (int s = 0; s < POINTS<M>; ++s) {
        Sum<T> pixels[POINTS<M>];
        const T* column = corner + s * stride.input.w;
#pragma unroll
        for (int r = 0; r < POINTS<M>; ++r, column += stride.input.h)
            pixels[r] = there[r] && w + s >= 0 && w + s < g.W ? Sum<T>(*column) : Sum<T>(0);
        of_inputs(pixels, columns[s]);
    }
    v += at;
#pragma unroll
    for (int i = 0; i < POINTS<M>; ++i) {
        Sum<T> row[POINTS<M>], points[POINTS<M>];
        across(columns, i, row);
        of_inputs(row, points);
#pragma unroll
        for (int j = 0; j < POINTS<M>; ++j, v += elements) *v = points[j];
    }
}

// A row of a tile: one store where the outputs are contiguous, aligned and all inside.
template <class T, int M> __device__ __forceinline__ void store_row(T* to, const Sum<T> (&sums)[M], int64_t step, int inside) {
    struct alignas(M * sizeof(T) > 16 ? 16 : M * sizeof(T)) Row {
        T values[M];
    } row;
#pragma unroll
    for (int j = 0; j < M; ++j) row.values[j] = T(sums[j]);
    if (step == 1 && inside >= M && reinterpret_cast<uintptr_t>(to) % alignof(Row) == 0) {
        *reinterpret_cast<Row*>(to) = row;
    } else {
#pragma unroll
        for (int j = 0; j < M; ++j)
            if (j < inside) to[j * step] = row.values[j];
    }
}

// products: (points, K, pitch), or (points, groups, tiles, pitch) with channels inside.
template <class T, int M, int THREADS>
__global__ void __launch_bounds__(THREADS)
winograd_outputs(const Sum<T>* __restrict__ products, const T* __restrict__ bias, T* __restrict__ out, Geometry g,
                 Strides stride, int pitch, int tiles, bool channels_inside) {
    wait_for_earlier_kernels();
    const unsigned at = element_of_thread<THREADS>();
    const unsigned k_per_group = g.k_per_group(), elements = unsigned(channels_inside ? g.groups * tiles : g.K) * pitch;
    if (at >= elements || (channels_inside && at % pitch >= k_per_group)) return;
    const unsigned k = channels_inside ? at / pitch / tiles * k_per_group + at % pitch : at / pitch;
    const TileOf tile(channels_inside ? at / pitch % tiles : at % pitch, TilesOf(g, M), M);
    if (tile.image >= g.N) return;
    products += at;
    Sum<T> columns[POINTS<M>][M];
#pragma unroll
    for (int j = 0; j < POINTS<M>; ++j) {
        Sum<T> points[POINTS<M>];
        const Sum<T>* point = products + j * int64_t(elements);
#pragma unroll
        for (int i = 0; i < POINTS<M>; ++i, point += POINTS<M> * int64_t(elements)) points[i] = *point;
        to_outputs(points, columns[j]);
    }
    const Sum<T> first = bias_or_zero(bias, k, stride);
    T* to = out + tile.image * stride.out.n + k * stride.out.c + tile.p * stride.out.h + tile.q * stride.out.w;
#pragma unroll
    for (int i = 0; i < M; ++i, to += stride.out.h) {
        Sum<T> points[POINTS<M>], row[M];
        across(columns, i, points);
        to_outputs(points, row);
#pragma unroll
        for (int j = 0; j < M; ++j) row[j] += first;
        if (tile.p + i < g.P) store_row<T, M>(to, row, stride.out.w, g.Q - tile.q);
    }
}

}  // namespace conv2d
