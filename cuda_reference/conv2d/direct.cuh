// conv2d, direct: a block of 32 threads owns 8 x 4 output positions and KT output channels of one image.
//
// Over `naive`, each thread keeps KT sums in registers, and a channel's inputs are shared. The tile needs a halo of
// (7 step_w + (S-1) dilation_w + 1) x (3 step_h + (R-1) dilation_h + 1) of them. They are loaded into shared memory once and
// read R * S * KT times. If each thread fetched its own element and the edge threads the rest, one of them would fetch 9 for
// a 3 x 3 filter. Instead 128-bit pieces are distributed evenly: 60 elements are 1.9 per thread, and an aligned piece is one
// load. With padding a tile's inputs begin one or more columns after a multiple of four; its pieces begin at that multiple.
// Mirrors tritonkernels/conv2d/direct.py.
#pragma once
#include "../common/shared.cuh"  // dynamic_shared
#include "../common/vector.cuh"  // is_aligned16
#include "parts/geometry.cuh"

namespace conv2d {

// input (N, C, H, W), weight (K, C, R, S), bias (K) or null, out (N, K, P, Q).
template <int KT>
__global__ void __launch_bounds__(32, 8)  // 8 blocks: otherwise ptxas spills to fit 32 on an SM
direct(const float* __restrict__ input, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ out,
       Geometry g, Strides stride) {
    constexpr int TILE_W = 8, TILE_H = 4, THREADS = TILE_W * TILE_H, PIECE = 4;
    static_assert(THREADS == 32, "a thread for each position");
    int block = blockIdx.x;  // the tile's columns of positions are fastest
    const int first_q = block % ceil_div(g.Q, TILE_W) * TILE_W;
    block /= ceil_div(g.Q, TILE_W);
    const int first_p = block % ceil_div(g.P, TILE_H) * TILE_H;
    block /= ceil_div(g.P, TILE_H);
    const int first_k = block % ceil_div(g.K, KT) * KT, image = block / ceil_div(g.K, KT);
    const int x = threadIdx.x % TILE_W, y = threadIdx.x / TILE_W;  // this thread's position in the tile

    // The halo in shared memory, in whole pieces. `before` columns of it are there only to begin at one.
    const int first_h = first_p * g.step_h - g.padding_h, first_w = first_q * g.step_w - g.padding_w;
    const int before = first_w & (PIECE - 1), rows = (TILE_H - 1) * g.step_h + (g.R - 1) * g.dilation_h + 1;
    const int pitch = ceil_div(before + (TILE_W - 1) * g.step_w + (g.S - 1) * g.dilation_w + 1, PIECE) * PIECE;
    float* const halo = dynamic_shared<float>();

    float sum[KT];
#pragma unroll
    for (int k = 0; k < KT; ++k) sum[k] = bias != nullptr && first_k + k < g.K ? bias[(first_k + k) * stride.bias.step] : 0.0f;

    for (int c = 0; c < g.C; ++c) {
        const float* plane = input + image * stride.input.n + c * stride.input.c;
        const float* filter = weight + first_k * stride.weight.k + c * stride.weight.c;
        __syncthreads();  // all threads have read the previous channel
        for (int i = threadIdx.x * PIECE; i < rows * pitch; i += THREADS * PIECE) {
            const int h = first_h + i / pitch, w = first_w - before + i % pitch;
            const float* from = plane + h * stride.input.h + w * stride.input.w;
            const bool in_row = h >= 0 && h < g.H;
            if (in_row && w >= 0 && w + PIECE <= g.W && stride.input.w == 1 && is_aligned16(from)) {
                *reinterpret_cast<float4*>(halo + i) = *reinterpret_cast<const float4*>(from);
            } else {
#pragma unroll
                for (int j = 0; j < PIECE; ++j)  // the padding is zeros
                    halo[i + j] = in_row && w + j >= 0 && w + j < g.W ? from[j * stride.input.w] : 0.0f;
            }
        }
        __syncthreads();  // the halo is complete
        for (int r = 0; r < g.R; ++r)
            for (int s = 0; s < g.S; ++s) {
                const float value = halo[(y * g.step_h + r * g.dilation_h) * pitch + before + x * g.step_w + s * g.dilation_w];
                const float* tap = filter + r * stride.weight.r + s * stride.weight.s;  // the same for all threads: a broadcast
#pragma unroll
                for (int k = 0; k < KT; ++k)
                    if (first_k + k < g.K) sum[k] += tap[k * stride.weight.k] * value;
            }
    }

    const int p = first_p + y, q = first_q + x;
    if (p >= g.P || q >= g.Q) return;
#pragma unroll
    for (int k = 0; k < KT; ++k)
        if (first_k + k < g.K)
            out[image * stride.out.n + (first_k + k) * stride.out.c + p * stride.out.h + q * stride.out.w] = sum[k];
}

}  // namespace conv2d
