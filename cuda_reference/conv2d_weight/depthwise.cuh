// conv2d_weight, depthwise: a thread holds all sums of a filter in registers and walks patches of DOWN x ACROSS positions.
//
// The filter has R S taps a channel, and every input meets up to R S gradients. `implicit_gemm` gathers it once for each: R S
// loads for R S multiply-adds. Here a row of a patch's inputs is loaded once, and multiplied with each gradient that it meets:
// 7 x 7 taps take 13 rows of 10 inputs and 28 gradients for 1372 multiply-adds. Lanes lie along patches of a row in NCHW, where
// four neighbours are one load (QUADS), and along channels in channels_last, WIDTH of them a load. Lanes, then warps, add up
// their sums at the end; parts of the positions are added as in conv2d/parts/splits.cuh. A filter of more than 7 x 7 taps is
// several of R x S, each with blocks of its own. Mirrors tritonkernels/conv2d_weight/depthwise.py.
#pragma once
#include "../common/masked_load.cuh"
#include "../common/overlap.cuh"
#include "../conv2d/parts/runs.cuh"
#include "../conv2d/parts/splits.cuh"
#include "parts/operands.cuh"

namespace conv2d_weight {

using conv2d::Sum;

constexpr int PATCH_THREADS = 128, DOWN = 7;  // planes of most networks are 7 * 2^n high

// Which of COUNT pieces, each `apart` from the one before, begin in 0 to size - 1, a bit each.
template <int COUNT> __device__ __forceinline__ unsigned pieces_inside(int first, int apart, int size) {
    static_assert(COUNT <= 32, "a bit each");
    unsigned inside = 0;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) inside |= unsigned(unsigned(first + i * apart) < unsigned(size)) << i;
    return inside;
}

// WIDTH contiguous, aligned elements; zeros where they do not exist.
template <int WIDTH, class T>
__device__ __forceinline__ void load_or_zeros(Sum<T> (&to)[WIDTH], const T* from, unsigned exist) {
    T held[WIDTH];
    if constexpr (WIDTH == 1) {
        held[0] = T(0);
        if (exist) held[0] = *from;
    } else {
        conv2d::Together<WIDTH, T> bits;
        using Piece = typename decltype(bits)::Piece;
#pragma unroll
        for (int i = 0; i < bits.COUNT; ++i) load_or_zero(bits.pieces[i], reinterpret_cast<const Piece*>(from) + i, exist);
        std::memcpy(held, &bits, sizeof bits);
    }
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) to[i] = Sum<T>(held[i]);
}

// WIDTH channels of COUNT neighbours, `apart` elements, in pieces of PIECE; those that are not `inside` are 0.
template <int PIECE, int COUNT, int WIDTH, class T>
__device__ __forceinline__ void load_row(Sum<T> (&row)[COUNT][WIDTH], const T* at, int64_t apart, unsigned inside) {
    static_assert(COUNT % PIECE == 0 && (PIECE == 1 || WIDTH == 1), "whole pieces, of pixels or of channels");
#pragma unroll
    for (int i = 0; i < COUNT / PIECE; ++i) {
        Sum<T> piece[PIECE * WIDTH];
        load_or_zeros(piece, PIECE > 1 ? at + i * PIECE : at + i * apart, inside & 1u << i);
#pragma unroll
        for (int j = 0; j < PIECE * WIDTH; ++j) row[i * PIECE + j / WIDTH][j % WIDTH] = piece[j];
    }
}

template <class T> constexpr int PER_SM = sizeof(Sum<T>) > 4 ? 2 : 3;  // blocks

// Block -> (LANES * WIDTH channels, R x S taps), the last fastest; its range of patches. WIDTH divides the number of channels.
// SHIFT >= 0: quads of neighbours are aligned, and the first input of a patch is the SHIFT-th of one.
template <class T, int R, int S, int STEP_H, int STEP_W, int ACROSS, int LANES, int WIDTH, int SHIFT>
__global__ void __launch_bounds__(PATCH_THREADS, PER_SM<T>)
depthwise(const T* __restrict__ input, const T* __restrict__ grad_output, T* __restrict__ weight, Sum<T>* __restrict__ sums,
          Geometry g, Strides stride, int patches_per_split) {
    wait_for_earlier_kernels();
    constexpr int PIECE = SHIFT >= 0 ? 4 : 1, FIRST = SHIFT >= 0 ? SHIFT : 0;
    constexpr int COLUMNS = ceil_div(FIRST + (ACROSS - 1) * STEP_W + S, PIECE) * PIECE, ROWS = (DOWN - 1) * STEP_H + R;
    constexpr int CHANNELS = LANES * WIDTH, WARPS = PATCH_THREADS / 32;
    static_assert(ACROSS % PIECE == 0, "patches begin with a quad");
    const int tiles_s = ceil_div(g.S, S), tiles_r = ceil_div(g.R, R);
    const int first_s = blockIdx.x % tiles_s * S, first_r = blockIdx.x / tiles_s % tiles_r * R;
    const int first_k = blockIdx.x / tiles_s / tiles_r * CHANNELS, k = first_k + threadIdx.x % LANES * WIDTH;

    Sum<T> sum[R][S][WIDTH] = {};
    const int wide = ceil_div(g.Q, ACROSS), high = ceil_div(g.P, DOWN);
    const int end = min((int(blockIdx.y) + 1) * patches_per_split, g.N * high * wide);
    int patch = k < g.K ? int(blockIdx.y) * patches_per_split + int(threadIdx.x) / LANES : end;
    for (; patch < end; patch += PATCH_THREADS / LANES) {
        const int q = patch % wide * ACROSS, p = patch / wide % high * DOWN, image = patch / wide / high;
        const int h = p * STEP_H - g.padding_h + first_r, w = q * STEP_W - g.padding_w + first_s - FIRST;
        const T* const grads = grad_output + image * stride.grad.n + k * stride.grad.c + p * stride.grad.h + q * stride.grad.w;
        const T* const inputs = input + image * stride.input.n + k / g.k_per_group() * stride.input.c + h * stride.input.h +
                                w * stride.input.w;
        const unsigned of_grads = pieces_inside<ACROSS / PIECE>(q, PIECE, g.Q);
        const unsigned of_inputs = pieces_inside<COLUMNS / PIECE>(w, PIECE, g.W);
        const auto walk = [&](auto whole, auto inside) {
            constexpr bool WHOLE = decltype(whole)::value, INSIDE = decltype(inside)::value;
            Sum<T> grad[DOWN][ACROSS][WIDTH];
#pragma unroll
            for (int row = 0; row < ROWS; ++row) {
                if (row % STEP_H == 0 && row / STEP_H < DOWN) {
                    const int i = row / STEP_H;
                    load_row<PIECE>(grad[i], grads + i * stride.grad.h, stride.grad.w, INSIDE ? ~0u : p + i < g.P ? of_grads : 0);
                }
                Sum<T> x[COLUMNS][WIDTH];
                const unsigned of_row = unsigned(h + row) < unsigned(g.H) ? of_inputs : 0;
                load_row<PIECE>(x, inputs + row * stride.input.h, stride.input.w, INSIDE ? ~0u : of_row);
#pragma unroll
                for (int r = 0; r < R; ++r) {
                    const int i = (row - r) / STEP_H;
                    if (row < r || (row - r) % STEP_H > 0 || i >= DOWN) continue;
#pragma unroll
                    for (int j = 0; j < ACROSS; ++j) {
                        if (!WHOLE && (p + i >= g.P || q + j >= g.Q)) continue;  // 0 times an infinity would be a NaN
#pragma unroll
                        for (int s = 0; s < S; ++s)
#pragma unroll
                            for (int c = 0; c < WIDTH; ++c) sum[r][s][c] += grad[i][j][c] * x[FIRST + j * STEP_W + s][c];
                    }
                }
            }
        };
        using std::false_type, std::true_type;
        const bool whole = p + DOWN <= g.P && q + ACROSS <= g.Q;
        const bool inside = h >= 0 && h + ROWS <= g.H && w >= 0 && w + COLUMNS <= g.W;
        if (LANES > 1 && whole && inside)  // the same for all lanes that load a pixel's channels
            walk(true_type(), true_type());
        else if (whole)
            walk(true_type(), false_type());
        else
            walk(false_type(), false_type());
    }

    __shared__ Sum<T> of_warp[WARPS][R * S * CHANNELS];
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int tap = 0; tap < R * S; ++tap)
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            Sum<T> total = sum[tap / S][tap % S][c];
#pragma unroll
            for (int lanes = 16; lanes >= LANES; lanes /= 2) total += __shfl_down_sync(0xffffffffu, total, lanes);
            if (lane < LANES) of_warp[threadIdx.x / 32][tap * CHANNELS + lane * WIDTH + c] = total;
        }
    __syncthreads();  // all warps have stored theirs
    for (int i = threadIdx.x; i < R * S * CHANNELS; i += PATCH_THREADS) {
        const int of_k = first_k + i % CHANNELS, r = first_r + i / CHANNELS / S, s = first_s + i / CHANNELS % S;
        if (of_k >= g.K || r >= g.R || s >= g.S) continue;
        Sum<T> total = of_warp[0][i];
        for (int warp = 1; warp < WARPS; ++warp) total += of_warp[warp][i];
        if (sums == nullptr)
            weight[of_k * stride.weight.k + r * stride.weight.r + s * stride.weight.s] = T(total);
        else  // (splits, R, S, K), so that neighbouring lanes store side by side
            sums[((int64_t(blockIdx.y) * g.R + r) * g.S + s) * g.K + of_k] = total;
    }
}

}  // namespace conv2d_weight
