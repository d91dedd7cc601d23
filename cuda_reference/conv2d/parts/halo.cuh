// The tile of `direct` and `prefetched`, 8 x 4 output positions for as many threads, and the inputs that it needs.
#pragma once
#include "common.cuh"

namespace conv2d {

constexpr int TILE_W = 8, TILE_H = 4, THREADS = TILE_W * TILE_H;

// The part of one input channel that a tile needs, from input column first_w on. It has `before` unused columns, so that rows
// of the image have the same alignment in it as in memory; its pitch is whole pieces.
template <class T> struct Halo {
    int rows, before, pitch;

    __device__ Halo(const T* plane, int first_w, const Geometry& g, const Strides& stride)
        : rows((TILE_H - 1) * g.step_h + (g.R - 1) * g.dilation_h + 1),
          before(stride.input.w == 1 && stride.input.h % PIECE<T> == 0 ? column_of_piece(plane + first_w) : 0),
          pitch(ceil_div(before + (TILE_W - 1) * g.step_w + (g.S - 1) * g.dilation_w + 1, PIECE<T>) * PIECE<T>) {}

    __device__ static int column_of_piece(const T* at) { return int(reinterpret_cast<uintptr_t>(at) / sizeof(T) % PIECE<T>); }
};

}  // namespace conv2d
