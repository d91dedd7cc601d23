// conv2d, register_blocked: a thread owns 2 x 4 neighbouring outputs of KT output channels; a block of 128, 16 x 64 outputs.
//
// Over `direct` (one position a thread: an input and a filter tap for every multiply-add) both operands are reused in registers:
//
//   - four neighbouring outputs need S + 3 inputs of a row, not 4 S: they slide through a window of 8 registers, 4 per 128-bit
//     load.
//   - a filter tap, KT values in a row in shared memory, is a broadcast that serves 8 outputs.
//
// For 3 x 3 and KT = 4, 7 loads of shared memory for 96 FFMA a thread, row of taps and channel. Filters with taps next to each
// other and outputs next to each other (UNIT) are walked 4 taps at a time, and the remainder in one piece. Otherwise windows
// cannot slide: a thread owns every 16th output of a row, so that neighbouring lanes read contiguously, with a load for each.
//
// As many channels as fit are staged together: fewer barriers, more loads in flight. Aligned rows are loaded in 128-bit pieces,
// distributed evenly; other rows element by element, with neighbouring lanes contiguous; and channels_last with channels
// innermost. Mirrors tritonkernels/conv2d/register_blocked.py.
#pragma once
#include "../common/overlap.cuh"
#include "../common/shared.cuh"
#include "parts/residual.cuh"

namespace conv2d {

constexpr int PT = 2, QT = 4;  // outputs of a thread: rows, columns
constexpr int LANES_W = 16, LANES_H = 8, BIG_THREADS = LANES_W * LANES_H;
constexpr int BIG_TILE_H = LANES_H * PT, BIG_TILE_W = LANES_W * QT;

template <class T> constexpr int SECTOR = 32 / sizeof(T);  // elements that memory moves together

// Rows of whole sectors: eight lanes with a 128-bit piece each then share out whole sectors, whichever rows they are in.
struct HaloShape {
    int rows, cols, pitch;  // of one channel

    __device__ explicit HaloShape(const Geometry& g, int sector)
        : rows((BIG_TILE_H - 1) * g.step_h + (g.R - 1) * g.dilation_h + 1),
          cols((BIG_TILE_W - 1) * g.step_w + (g.S - 1) * g.dilation_w + 1),
          pitch(ceil_div(cols, sector) * sector) {}
};

// The halos of `channels` channels, of which `planes` is the first, from input position (h, w) on.
template <class T>
__device__ void stage_halos(float* halos, HaloShape shape, const T* planes, int channels, int h, int w, const Geometry& g,
                            const Strides& stride) {
    const int lines = channels * shape.rows, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bool aligned = stride.input.w == 1 && stride.input.h % PIECE<T> == 0 && stride.input.c % PIECE<T> == 0 &&
                         is_aligned16(planes + w);
    if (aligned) {
        const int pieces_per_line = shape.pitch / PIECE<T>;
        for (int piece = threadIdx.x; piece < lines * pieces_per_line; piece += BIG_THREADS) {
            const int line = piece / pieces_per_line, col = piece % pieces_per_line * PIECE<T>;
            const T* plane = planes + line / shape.rows * stride.input.c;
            stage_piece(halos + line * shape.pitch + col, plane, h + line % shape.rows, w + col, g, stride);
        }
    } else if (stride.input.c == 1 && stride.input.w > 1) {  // channels inside of columns
        for (int row = warp; row < shape.rows; row += BIG_THREADS / 32)
            for (int i = lane; i < shape.cols * channels; i += 32) {
                const int col = i / channels, c = i % channels;
                halos[(c * shape.rows + row) * shape.pitch + col] = input_or_zero(planes + c, h + row, w + col, g, stride);
            }
    } else {
        for (int line = warp; line < lines; line += BIG_THREADS / 32) {
            const T* plane = planes + line / shape.rows * stride.input.c;
            const int row = h + line % shape.rows;
            const auto first = reinterpret_cast<uintptr_t>(plane + row * stride.input.h + w);
            const int before = stride.input.w == 1 ? first % 32 / sizeof(T) : 0;  // lane 0 begins a sector
            for (int col = lane - before; col < shape.cols; col += 32)
                if (col >= 0) halos[line * shape.pitch + col] = input_or_zero(plane, row, w + col, g, stride);
        }
    }
}

// The taps of `channels` channels as (channel, r, s, k), k innermost and padded to whole quads; zeros where there is no k.
template <class T, int KT, int PITCH>
__device__ void stage_filters(float* filters, const T* weight, int channels, int left_k, const Geometry& g, const Strides& stride) {
    const int taps = g.R * g.S;
    for (int i = threadIdx.x; i < channels * PITCH * taps; i += BIG_THREADS) {
        const int tap = i % taps, k = i / taps % PITCH, c = i / taps / PITCH;
        const T* from = weight + k * stride.weight.k + c * stride.weight.c + tap / g.S * stride.weight.r +
                        tap % g.S * stride.weight.s;
        filters[(c * taps + tap) * PITCH + k] = k < KT && k < left_k ? float(*from) : 0.0f;
    }
}

__device__ __forceinline__ void load_quad(float* to, const float* from) {
    const float4 quad = *reinterpret_cast<const float4*>(from);
    to[0] = quad.x, to[1] = quad.y, to[2] = quad.z, to[3] = quad.w;
}

// sum[i][k][j] += filter[s][k] * window[i][s + j] over TAPS taps.
template <int TAPS, int KT, int PITCH>
__device__ __forceinline__ void multiply_taps(float (&sum)[PT][KT][QT], const float (&window)[PT][2 * QT], const float* filter) {
    static_assert(TAPS + QT - 1 <= 2 * QT, "a window holds what its taps need");
#pragma unroll
    for (int s = 0; s < TAPS; ++s) {
        float tap[PITCH];
#pragma unroll
        for (int k = 0; k < PITCH; k += 4) load_quad(tap + k, filter + s * PITCH + k);
#pragma unroll
        for (int k = 0; k < KT; ++k)
#pragma unroll
            for (int i = 0; i < PT; ++i)
#pragma unroll
                for (int j = 0; j < QT; ++j) sum[i][k][j] += tap[k] * window[i][s + j];
    }
}

// One row of taps of one channel, walked along W. `row` is that of the thread's first output, `below` apart from the next.
template <int KT, int PITCH>
__device__ __forceinline__ void multiply_unit_row(float (&sum)[PT][KT][QT], const float* row, int below, const float* filter, int S) {
    float window[PT][2 * QT];
    const auto load = [&](int half) {
#pragma unroll
        for (int i = 0; i < PT; ++i) load_quad(&window[i][half * QT], row + i * below + half * QT);
    };
    load(0);
    int left = S;
    for (; left >= QT; left -= QT) {
        load(1);
        multiply_taps<QT, KT, PITCH>(sum, window, filter);
        filter += QT * PITCH, row += QT;
#pragma unroll
        for (int i = 0; i < PT; ++i)
#pragma unroll
            for (int j = 0; j < QT; ++j) window[i][j] = window[i][QT + j];
    }
    if (left > 1) load(1);
    if (left == 1) multiply_taps<1, KT, PITCH>(sum, window, filter);
    if (left == 2) multiply_taps<2, KT, PITCH>(sum, window, filter);
    if (left == 3) multiply_taps<3, KT, PITCH>(sum, window, filter);
}

// The same, a tap at a time, for outputs 16 columns apart.
template <int KT, int PITCH>
__device__ __forceinline__ void multiply_row(float (&sum)[PT][KT][QT], const float* row, int below, const float* filter,
                                             const Geometry& g) {
#pragma unroll 1
    for (int s = 0; s < g.S; ++s, filter += PITCH, row += g.dilation_w) {
        float window[PT][2 * QT];
#pragma unroll
        for (int i = 0; i < PT; ++i)
#pragma unroll
            for (int j = 0; j < QT; ++j) window[i][j] = row[i * below + j * LANES_W * g.step_w];
        multiply_taps<1, KT, PITCH>(sum, window, filter);
    }
}

// Four results side by side, as one access where all are inside and aligned.
template <class T> __device__ __forceinline__ void store_quad(T* at, const float (&sum)[QT], int left_q, const Strides& stride) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint4, uint2>;
    static_assert(sizeof(Bits) == QT * sizeof(T), "four results");
    T results[QT];
#pragma unroll
    for (int j = 0; j < QT; ++j) results[j] = T(sum[j]);
    if (left_q >= QT && stride.out.w == 1 && reinterpret_cast<uintptr_t>(at) % sizeof(Bits) == 0) {
        Bits bits;
        std::memcpy(&bits, results, sizeof bits);
        *reinterpret_cast<Bits*>(at) = bits;
    } else {
#pragma unroll
        for (int j = 0; j < QT; ++j)
            if (j < left_q) at[j * stride.out.w] = results[j];
    }
}

// The 4 rows of results of a warp's two lines of lanes, of one k, through shared memory: neighbouring lanes then write
// neighbouring results, where rows begin at no multiple of 16 bytes and a thread would write its four one by one.
template <class T>
__device__ __forceinline__ void store_through_shared(T* of_k, const float (&sum)[PT][QT], float* staging, const Tile& tile,
                                                     const Geometry& g, const Strides& stride) {
    constexpr int ROWS = 32 / LANES_W * PT;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float* const rows = staging + warp * ROWS * BIG_TILE_W;
    __syncwarp();  // all lanes have read the previous results
#pragma unroll
    for (int i = 0; i < PT; ++i)
        *reinterpret_cast<float4*>(rows + (lane / LANES_W * PT + i) * BIG_TILE_W + lane % LANES_W * QT) =
            make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
    __syncwarp();  // all results are stored
#pragma unroll
    for (int i = 0; i < ROWS * BIG_TILE_W; i += 32) {
        const int p = tile.p + warp * ROWS + i / BIG_TILE_W, q = tile.q + i % BIG_TILE_W + lane;
        if (p < g.P && q < g.Q) of_k[p * stride.out.h + q] = T(rows[i + lane]);
    }
}

// Blocks per SM for which the sums fit in registers: otherwise ptxas spills a few words to fit one more.
constexpr int resident(int KT) { return KT <= 4 ? 5 : KT <= 8 ? 4 : 2; }

// FOLLOWS: residual (or null) and activation are not ignored.
template <class T, int KT, bool UNIT, bool FOLLOWS = false>
__global__ void __launch_bounds__(BIG_THREADS, resident(KT))
register_blocked(const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ out,
                 Geometry g, Strides stride, int channels, const T* residual, ImagesStrides of_residual, int activation) {
    wait_for_earlier_kernels();
    constexpr int PITCH = ceil_div(KT, 4) * 4;  // of a tap's values
    const Tile tile(blockIdx.x, g, BIG_TILE_H, BIG_TILE_W, KT);
    const int c_per_group = g.c_per_group(), left_k = g.k_per_group() - tile.k;
    const int first_k = tile.group * g.k_per_group() + tile.k;
    const int x = threadIdx.x % LANES_W, y = threadIdx.x / LANES_W * PT;  // first output in the tile: x * QT, or x and every 16th
    const HaloShape shape(g, SECTOR<T>);
    float* const halos = dynamic_shared<float>();
    float* const filters = halos + channels * shape.rows * shape.pitch;

    float sum[PT][KT][QT];
#pragma unroll
    for (int k = 0; k < KT; ++k) {
        const float first = k < left_k ? bias_or_zero(bias, first_k + k, stride) : 0.0f;
#pragma unroll
        for (int i = 0; i < PT; ++i)
#pragma unroll
            for (int j = 0; j < QT; ++j) sum[i][k][j] = first;
    }

    const T* planes = input + tile.image * stride.input.n + tile.group * c_per_group * stride.input.c;
    const T* from = weight + first_k * stride.weight.k;
    const int h = tile.p * g.step_h - g.padding_h, w = tile.q * g.step_w - g.padding_w;
    for (int c = 0; c < c_per_group; c += channels, planes += channels * stride.input.c, from += channels * stride.weight.c) {
        const int staged = min(channels, c_per_group - c);
        __syncthreads();  // all threads have read the previous channels
        stage_halos(halos, shape, planes, staged, h, w, g, stride);
        stage_filters<T, KT, PITCH>(filters, from, staged, left_k, g, stride);
        __syncthreads();  // halos and filters are complete
        const float* row = halos + y * g.step_h * shape.pitch + x * (UNIT ? QT : g.step_w);
        const float* filter = filters;
        const int below = g.step_h * shape.pitch;
        for (int of = 0; of < staged; ++of) {
            const float* tap_row = row + of * shape.rows * shape.pitch;
            for (int r = 0; r < g.R; ++r, tap_row += g.dilation_h * shape.pitch, filter += g.S * PITCH) {
                if (UNIT)
                    multiply_unit_row<KT, PITCH>(sum, tap_row, below, filter, g.S);
                else
                    multiply_row<KT, PITCH>(sum, tap_row, below, filter, g);
            }
        }
    }

    if constexpr (FOLLOWS) {
        const auto for_all = [&](const auto& change) {
#pragma unroll
            for (int i = 0; i < PT; ++i)
#pragma unroll
                for (int k = 0; k < KT; ++k)
#pragma unroll
                    for (int j = 0; j < QT; ++j) change(sum[i][k][j], k, i, UNIT ? j : j * LANES_W);
        };
        const Follows<T> follows{residual, of_residual, activation, 0, first_k + left_k, g.P, g.Q};
        follows.finish(for_all, tile.image, first_k, tile.p + y, tile.q + x * (UNIT ? QT : 1));
    }

    T* const image = out + tile.image * stride.out.n;
    const bool aligned = (stride.out.n | stride.out.c | stride.out.h) % QT == 0 && is_aligned16(out);
    if (UNIT && stride.out.w == 1 && !aligned) {
        __syncthreads();  // all threads have read the halos
#pragma unroll
        for (int k = 0; k < KT; ++k) {
            if (k >= left_k) return;
            float of_k[PT][QT];
#pragma unroll
            for (int i = 0; i < PT; ++i)
#pragma unroll
                for (int j = 0; j < QT; ++j) of_k[i][j] = sum[i][k][j];
            store_through_shared(image + (first_k + k) * stride.out.c, of_k, halos, tile, g, stride);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < PT; ++i) {
        const int p = tile.p + y + i, q = tile.q + x * (UNIT ? QT : 1);
        if (p >= g.P || q >= g.Q) continue;
        T* at = image + p * stride.out.h + q * stride.out.w;
#pragma unroll
        for (int k = 0; k < KT; ++k) {
            if (k >= left_k) continue;
            T* of_k = at + (first_k + k) * stride.out.c;
            if (UNIT) {
                store_quad(of_k, sum[i][k], g.Q - q, stride);
            } else {
#pragma unroll
                for (int j = 0; j < QT; ++j)
                    if (q + j * LANES_W < g.Q) of_k[j * LANES_W * stride.out.w] = T(sum[i][k][j]);
            }
        }
    }
}

}  // namespace conv2d
