// conv2d, prefetched: `direct`, but the next channel's inputs and filters are loaded while the present channel is multiplied.
//
// In `direct` a block of one warp loads a halo, waits for it (about 600 ns from DRAM), and reads every filter tap from global
// memory. Here two stages of shared memory alternate, each with a channel's halo and its filters for KT output channels, which
// cp.async copies without registers. There is one barrier per channel instead of two, and a tap's KT values are loads of
// 128 bits. It costs twice the shared memory. Mirrors tritonkernels/conv2d/prefetched.py.
#pragma once
#include "../common/cp_async.cuh"
#include "../common/shared.cuh"  // dynamic_shared
#include "../common/vector.cuh"  // is_aligned16
#include "parts/geometry.cuh"

namespace conv2d {

// input (N, C, H, W), weight (K, C, R, S), bias (K) or null, out (N, K, P, Q).
template <int KT>
__global__ void __launch_bounds__(32, 8)  // 8 blocks: otherwise ptxas spills to fit 32 on an SM
prefetched(const float* __restrict__ input, const float* __restrict__ weight, const float* __restrict__ bias,
           float* __restrict__ out, Geometry g, Strides stride) {
    constexpr int TILE_W = 8, TILE_H = 4, THREADS = TILE_W * TILE_H, PIECE = 4;
    static_assert(THREADS == 32, "a thread for each position");
    static_assert(KT % PIECE == 0, "a tap's values are whole pieces");
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
    const int halo_size = rows * pitch, filters_size = g.R * g.S * KT;  // of a stage: the filters lie behind the halo

    float sum[KT];
#pragma unroll
    for (int k = 0; k < KT; ++k) sum[k] = bias != nullptr && first_k + k < g.K ? bias[(first_k + k) * stride.bias.step] : 0.0f;

    const auto stage_of = [&](int c) { return dynamic_shared<float>() + c % 2 * (halo_size + filters_size); };
    const auto copy_element = [](float* to, const float* from, bool exists, const float* somewhere) {  // or a zero
        cp_async<4>(to, exists ? from : somewhere, exists ? 4 : 0);
    };
    const auto start = [&](int c) {  // the copies of a channel
        const float* plane = input + image * stride.input.n + c * stride.input.c;
        const float* filter = weight + first_k * stride.weight.k + c * stride.weight.c;
        float* const halo = stage_of(c);
        for (int i = threadIdx.x * PIECE; i < halo_size; i += THREADS * PIECE) {
            const int h = first_h + i / pitch, w = first_w - before + i % pitch;
            const float* from = plane + h * stride.input.h + w * stride.input.w;
            const bool in_row = h >= 0 && h < g.H;
            if (in_row && w >= 0 && w + PIECE <= g.W && stride.input.w == 1 && is_aligned16(from)) {
                cp_async<16>(halo + i, from);
            } else {
#pragma unroll
                for (int j = 0; j < PIECE; ++j)  // the padding is zeros
                    copy_element(halo + i + j, from + j * stride.input.w, in_row && w + j >= 0 && w + j < g.W, plane);
            }
        }
        for (int i = threadIdx.x; i < filters_size; i += THREADS) {  // (tap, k), k fastest
            const int tap = i / KT, k = i % KT;
            const float* from = filter + k * stride.weight.k + tap / g.S * stride.weight.r + tap % g.S * stride.weight.s;
            copy_element(halo + halo_size + i, from, first_k + k < g.K, filter);
        }
        cp_async_commit();
    };

    if (g.C > 0) start(0);
    for (int c = 0; c < g.C; ++c) {
        cp_async_wait<0>();
        __syncthreads();  // this channel has landed for all threads, which have read the previous one
        if (c + 1 < g.C) start(c + 1);
        const float *halo = stage_of(c), *tap = halo + halo_size;
        for (int r = 0; r < g.R; ++r)
            for (int s = 0; s < g.S; ++s, tap += KT) {
                const float value = halo[(y * g.step_h + r * g.dilation_h) * pitch + before + x * g.step_w + s * g.dilation_w];
#pragma unroll
                for (int k = 0; k < KT; k += PIECE) {
                    const float4 of_k = *reinterpret_cast<const float4*>(tap + k);  // the same for all threads: a broadcast
                    sum[k] += of_k.x * value, sum[k + 1] += of_k.y * value;
                    sum[k + 2] += of_k.z * value, sum[k + 3] += of_k.w * value;
                }
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
