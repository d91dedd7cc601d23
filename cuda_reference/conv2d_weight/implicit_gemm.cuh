// conv2d_weight, implicit_gemm: a block owns BM x BN elements of a group's weight as a matrix and sums over its share of positions.
//
// The matrix has K / groups rows and C / groups * R * S columns (c, r, s): a product of grad_output and of the im2col matrix of
// the input, which is never written; its elements are gathered where they are. Rows of the product are as long as there are
// positions, N P Q, and its tiles few; so the positions are split over blocks (conv2d/splits.cuh).
//
// Slices of BL positions are staged: where the positions lie is computed once for a slice, by a warp, while the others still
// multiply the slice before; what a column is, once for all. A thread has TM x TN sums. A small tile takes fewer threads than a
// block has: the others take their own positions of a slice (PARTS of them), and the parts are added up at the end, in order.
// Mirrors tritonkernels/conv2d_weight/implicit_gemm.py.
#pragma once
#include "../conv2d/splits.cuh"

namespace conv2d_weight {

using conv2d::Geometry;
using conv2d::Position;
using conv2d::Strides;
using conv2d::Sum;

constexpr int THREADS = 128, BL = 32;

// Where the positions of a slice lie: offsets into grad_output and input, and the input's row and column of tap (0, 0).
struct Positions {
    int64_t of_grad[BL], of_input[BL];
    int h[BL], w[BL];

    __device__ __forceinline__ void locate(int64_t first, int64_t end, const Geometry& g, const Strides& stride) {
        if (threadIdx.x >= BL) return;
        const int64_t index = first + threadIdx.x;
        const Position at(index < end ? index : 0, g.P, g.Q);
        h[threadIdx.x] = index < end ? at.p * g.step_h - g.padding_h : -(1 << 30);  // no tap meets an input there
        w[threadIdx.x] = at.q * g.step_w - g.padding_w;
        of_grad[threadIdx.x] = index < end ? at.image * stride.on + at.p * stride.op + at.q * stride.oq : -1;
        of_input[threadIdx.x] = at.image * stride.in;
    }
};

template <int BN> struct Columns {
    int64_t of_input[BN], of_weight[BN];
    int h[BN], w[BN];

    // `inside`: channels lie side by side in memory, so columns are (r, s, c).
    __device__ __forceinline__ void locate(int first, int count, bool inside, const Geometry& g, const Strides& stride) {
        const int c_per_group = g.C / g.groups;
        for (int i = threadIdx.x; i < count; i += THREADS) {
            const int column = first + i, taps = g.R * g.S;
            const int c = inside ? column % c_per_group : column / taps, tap = inside ? column / c_per_group : column % taps;
            h[i] = tap / g.S * g.dilation_h, w[i] = tap % g.S * g.dilation_w;
            of_input[i] = c * stride.ic;
            of_weight[i] = c * stride.wc + tap / g.S * stride.wr + tap % g.S * stride.ws;
        }
    }
};

// Element e of a staged slice of BL positions by `count`: lanes along positions, or along what lies side by side.
struct Element {
    int position, other;

    __device__ __forceinline__ Element(int e, int count, bool inside)
        : position(inside ? e / count : e % BL), other(inside ? e % count : e / BL) {}
};

// Blocks on an SM that the sums leave registers for: left to itself ptxas spills a few words to fit more of the small tiles.
constexpr int resident(int sums) { return sums > 16 ? 3 : 6; }

template <class T, int BM, int BN, int TM, int TN>
__global__ void __launch_bounds__(THREADS, resident(TM * TN))
implicit_gemm(const T* __restrict__ input, const T* __restrict__ grad_output, T* __restrict__ weight, Sum<T>* __restrict__ sums,
              Geometry g, Strides stride, int64_t positions_per_split) {
    constexpr int PER_PART = BM / TM * (BN / TN), PARTS = THREADS / PER_PART;
    static_assert(BM % TM == 0 && BN % TN == 0 && THREADS % PER_PART == 0, "whole parts of a block");
    static_assert(PARTS <= BL, "each part has a position of a slice");
    constexpr int PAD = 16 / sizeof(Sum<T>);  // rows stay aligned, and lanes along positions store to several banks
    __shared__ __align__(16) Sum<T> grads[BL][BM + PAD], inputs[BL][BN + PAD];
    __shared__ Positions slices[2];
    __shared__ Columns<BN> columns;

    // block -> (group, tile of rows, tile of columns), the last fastest; and the split
    const int rows = g.K / g.groups, width = g.C / g.groups * g.R * g.S;
    const int tiles_n = ceil_div(width, BN), tiles_m = ceil_div(rows, BM);
    const int first_n = blockIdx.x % tiles_n * BN, first_m = blockIdx.x / tiles_n % tiles_m * BM, group = blockIdx.x / tiles_n / tiles_m;
    const int count_m = min(BM, rows - first_m), count_n = min(BN, width - first_n);
    const int64_t positions = int64_t(g.N) * g.P * g.Q;
    const int64_t first = blockIdx.y * positions_per_split, end = min(first + positions_per_split, positions);
    const bool channels_inside = stride.ic == 1 && stride.ok == 1;
    const T* const grad = grad_output + int64_t(group * rows + first_m) * stride.ok;
    const T* const plane = input + int64_t(group) * (g.C / g.groups) * stride.ic;

    const int part = threadIdx.x / PER_PART, m = threadIdx.x % PER_PART / (BN / TN) * TM, n = threadIdx.x % (BN / TN) * TN;
    Sum<T> sum[TM][TN] = {};
    columns.locate(first_n, count_n, channels_inside, g, stride);
    slices[0].locate(first, end, g, stride);
    for (int e = threadIdx.x; e < BL * (BM + BN); e += THREADS)  // what no row or column of the weight fills is 0
        (e < BL * BM ? grads[e / BM][e % BM] : inputs[(e - BL * BM) / BN][(e - BL * BM) % BN]) = Sum<T>(0);
    for (int64_t l = first, parity = 0; l < end; l += BL, parity ^= 1) {
        const Positions& at = slices[parity];
        __syncthreads();  // the positions are located, and nobody reads the slice before any more
        for (int e = threadIdx.x; e < BL * count_m; e += THREADS) {
            const Element i(e, count_m, channels_inside);
            const int64_t offset = at.of_grad[i.position];
            grads[i.position][i.other] = offset >= 0 ? Sum<T>(grad[offset + i.other * stride.ok]) : Sum<T>(0);
        }
        for (int e = threadIdx.x; e < BL * count_n; e += THREADS) {
            const Element i(e, count_n, channels_inside);
            const int h = at.h[i.position] + columns.h[i.other], w = at.w[i.position] + columns.w[i.other];
            const T* of_image = plane + at.of_input[i.position] + columns.of_input[i.other];
            inputs[i.position][i.other] = input_or_zero(of_image, h, w, g, stride);
        }
        __syncthreads();  // the slice is complete
        slices[parity ^ 1].locate(l + BL, end, g, stride);
#pragma unroll
        for (int i = part; i < BL; i += PARTS) {
            Sum<T> a[TM], b[TN];
#pragma unroll
            for (int x = 0; x < TM; ++x) a[x] = grads[i][m + x];
#pragma unroll
            for (int y = 0; y < TN; ++y) b[y] = inputs[i][n + y];
#pragma unroll
            for (int x = 0; x < TM; ++x)
#pragma unroll
                for (int y = 0; y < TN; ++y) sum[x][y] += a[x] * b[y];
        }
    }

    for (int other = 1; other < PARTS; ++other) {  // through shared memory, to the first part
        __syncthreads();  // nobody reads what is there any more
#pragma unroll
        for (int x = 0; x < TM; ++x)
#pragma unroll
            for (int y = 0; y < TN; ++y)
                if (part == other) inputs[m + x][n + y] = sum[x][y];
        __syncthreads();  // the part has put its sums
#pragma unroll
        for (int x = 0; x < TM; ++x)
#pragma unroll
            for (int y = 0; y < TN; ++y)
                if (part == 0) sum[x][y] += inputs[m + x][n + y];
    }
    static_assert(PARTS == 1 || BM <= BL, "the sums of a part fit where inputs were");
    if (part > 0) return;
#pragma unroll
    for (int x = 0; x < TM; ++x)
#pragma unroll
        for (int y = 0; y < TN; ++y) {
            if (m + x >= count_m || n + y >= count_n) continue;
            const int64_t k = group * rows + first_m + m + x;
            if (sums == nullptr) {
                weight[k * stride.wk + columns.of_weight[n + y]] = T(sum[x][y]);
            } else {  // contiguous (splits, K, C / groups, R, S)
                const int column = first_n + n + y, c_per_group = g.C / g.groups, taps = g.R * g.S;
                const int place = channels_inside ? column % c_per_group * taps + column / c_per_group : column;
                sums[(int64_t(blockIdx.y) * g.K + k) * width + place] = sum[x][y];
            }
        }
}

}  // namespace conv2d_weight
