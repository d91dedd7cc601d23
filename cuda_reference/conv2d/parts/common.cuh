// Shared by conv2d's contenders: their tiles, and reading of inputs. Operands and result are all of one type T: float, double,
// __half or __nv_bfloat16.
#pragma once
#include <cstring>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../../common/vector.cuh"
#include "geometry.cuh"

namespace conv2d {

// block -> (image, group, block of KT output channels, tile row, tile column), the last fastest; the first output of each.
struct Tile {
    int image, group, k, p, q;  // k within the group

    __device__ __forceinline__ Tile(int block, const Geometry& g, int tile_h, int tile_w, int KT) {
        const int tiles_q = ceil_div(g.Q, tile_w), tiles_p = ceil_div(g.P, tile_h), blocks_k = ceil_div(g.k_per_group(), KT);
        q = block % tiles_q * tile_w;
        block /= tiles_q;
        p = block % tiles_p * tile_h;
        block /= tiles_p;
        k = block % blocks_k * KT;
        block /= blocks_k;
        group = block % g.groups, image = block / g.groups;
    }
};

// The type of products and sums; a result is rounded to T once.
template <class T> struct SumOf { using type = float; };
template <> struct SumOf<double> { using type = double; };
template <class T> using Sum = typename SumOf<T>::type;

template <class T> constexpr int PIECE = 16 / sizeof(T);  // elements of a 128-bit load

// The input at (h, w) of a channel's plane; the padding around the image is 0.
template <class T>
__device__ __forceinline__ Sum<T> input_or_zero(const T* plane, int h, int w, const Geometry& g, const Strides& stride) {
    return h >= 0 && h < g.H && w >= 0 && w < g.W ? Sum<T>(plane[h * stride.input.h + w * stride.input.w]) : Sum<T>(0);
}

// The initial sum of output channel k; bias may be null.
template <class T> __device__ __forceinline__ Sum<T> bias_or_zero(const T* bias, int k, const Strides& stride) {
    return bias != nullptr ? Sum<T>(bias[k * stride.bias.step]) : Sum<T>(0);
}

// PIECE inputs from (h, w) on, side by side and aligned, widened into 16-byte aligned shared memory: one 128-bit load where
// all are in the image.
template <class T>
__device__ __forceinline__ void stage_piece(Sum<T>* to, const T* plane, int h, int w, const Geometry& g, const Strides& stride) {
    Sum<T> wide[PIECE<T>];
    const T* from = plane + h * stride.input.h + w;
    if (h >= 0 && h < g.H && w >= 0 && w + PIECE<T> <= g.W) {
        const uint4 bits = *reinterpret_cast<const uint4*>(from);
        T piece[PIECE<T>];
        std::memcpy(piece, &bits, sizeof bits);
#pragma unroll
        for (int i = 0; i < PIECE<T>; ++i) wide[i] = Sum<T>(piece[i]);
    } else {
#pragma unroll
        for (int i = 0; i < PIECE<T>; ++i) wide[i] = input_or_zero(plane, h, w + i, g, stride);
    }
    constexpr int PER_STORE = 16 / sizeof(Sum<T>);
#pragma unroll
    for (int i = 0; i < PIECE<T> / PER_STORE; ++i) {
        uint4 bits;
        std::memcpy(&bits, wide + i * PER_STORE, sizeof bits);
        reinterpret_cast<uint4*>(to)[i] = bits;
    }
}

}  // namespace conv2d
