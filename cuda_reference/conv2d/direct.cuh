// conv2d, direct: a block of 32 threads owns 8 x 4 output positions and KT output channels of one image and group.
//
// Each thread owns one position and keeps its KT sums in registers. Per input channel the tile needs a halo of
// (7 step_w + (S-1) dilation_w + 1) x (3 step_h + (R-1) dilation_h + 1) inputs. They are loaded into shared memory once and read
// R * S * KT times. If each thread fetched its own element and the edge threads the rest, one of them would fetch 9 for a 3 x 3
// filter. Instead 128-bit pieces are distributed evenly: 60 elements are 1.9 per thread, and an aligned piece is one load. With
// padding a tile's inputs begin one or more columns after an aligned address; its pieces begin at that address.
// A halo that does not fit in shared memory (huge steps or dilations) is not staged: STAGED = false reads global memory instead.
// Mirrors tritonkernels/conv2d/direct.py.
#pragma once
#include "../common/overlap.cuh"
#include "../common/shared.cuh"
#include "parts/halo.cuh"

namespace conv2d {

template <class T>
__device__ void stage_halo(Sum<T>* halo, Halo<T> shape, const T* plane, int first_h, int first_w, const Geometry& g,
                           const Strides& stride) {
    const int pieces_per_row = shape.pitch / PIECE<T>;
    for (int piece = threadIdx.x; piece < shape.rows * pieces_per_row; piece += THREADS) {
        const int row = piece / pieces_per_row, col = piece % pieces_per_row * PIECE<T>;
        stage_piece(halo + row * shape.pitch + col, plane, first_h + row, first_w - shape.before + col, g, stride);
    }
}

template <class T, int KT, bool STAGED>
__global__ void __launch_bounds__(THREADS, 8)  // 8 blocks: otherwise ptxas spills to fit 32 on an SM
direct(const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ out, Geometry g,
       Strides stride) {
    wait_for_earlier_kernels();
    const Tile tile(blockIdx.x, g, TILE_H, TILE_W, KT);
    const int c_per_group = g.c_per_group(), k_per_group = g.k_per_group();
    const int first_k = tile.k, group = tile.group;

    const int x = threadIdx.x % TILE_W, y = threadIdx.x / TILE_W;  // this thread's position in the tile
    const int first_h = tile.p * g.step_h - g.padding_h, first_w = tile.q * g.step_w - g.padding_w;
    const T* plane = input + tile.image * stride.input.n + group * c_per_group * stride.input.c;
    const Halo<T> shape(plane, first_w, g, stride);
    Sum<T>* const halo = dynamic_shared<Sum<T>>();

    Sum<T> sum[KT];
#pragma unroll
    for (int k = 0; k < KT; ++k)
        sum[k] = first_k + k < k_per_group ? bias_or_zero(bias, group * k_per_group + first_k + k, stride) : Sum<T>(0);

    const T* filter = weight + (group * k_per_group + first_k) * stride.weight.k;
    for (int c = 0; c < c_per_group; ++c, plane += stride.input.c, filter += stride.weight.c) {
        if (STAGED) {
            __syncthreads();  // all threads have read the previous channel
            stage_halo(halo, shape, plane, first_h, first_w, g, stride);
            __syncthreads();  // the halo is complete
        }
        for (int r = 0; r < g.R; ++r) {
            for (int s = 0; s < g.S; ++s) {
                const int h = y * g.step_h + r * g.dilation_h, w = x * g.step_w + s * g.dilation_w;  // within the halo
                const Sum<T> value = STAGED ? halo[h * shape.pitch + shape.before + w]
                                            : input_or_zero(plane, first_h + h, first_w + w, g, stride);
                const T* tap = filter + r * stride.weight.r + s * stride.weight.s;  // the same for all threads: a broadcast
#pragma unroll
                for (int k = 0; k < KT; ++k)
                    if (first_k + k < k_per_group) sum[k] += Sum<T>(tap[k * stride.weight.k]) * value;
            }
        }
    }

    const int p = tile.p + y, q = tile.q + x;
    if (p >= g.P || q >= g.Q) return;
    T* at = out + tile.image * stride.out.n + p * stride.out.h + q * stride.out.w;
#pragma unroll
    for (int k = 0; k < KT; ++k)
        if (first_k + k < k_per_group) at[(group * k_per_group + first_k + k) * stride.out.c] = T(sum[k]);
}

}  // namespace conv2d
