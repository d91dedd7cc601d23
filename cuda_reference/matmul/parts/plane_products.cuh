// The products of planes, and what their sums make.
#pragma once
#include "scheme.cuh"
#include "warp_tile.cuh"

namespace matmul {

// Of a step, from the fragments of each plane: those of plane 0 by plane 0 to `main`, the others to `corrections`.
template <class Plane, int DEPTH, class PlaneFragments, int COUNT, int MS, int NS>
__device__ __forceinline__ void multiply_planes(LaneSums<float> (&main)[MS][NS], LaneSums<float> (&corrections)[MS][NS],
                                                const PlaneFragments (&fragments)[COUNT]) {
    multiply_add<Plane>(main, fragments[0].a, fragments[0].b);
#pragma unroll
    for (int both = DEPTH; both > 0; --both)  // the smallest products first
#pragma unroll
        for (int i = COUNT - 1; i >= 0; --i)
            if (both >= i && both < i + COUNT) multiply_add<Plane>(corrections, fragments[i].a, fragments[both - i].b);
}

// Adds the sums of a slice to those before, to nearest, and begins the next slice's.
template <int MS, int NS>
__device__ __forceinline__ void add_slice(LaneSums<float> (&main)[MS][NS], LaneSums<float> (&slice)[MS][NS]) {
    for_sums(main, [&](float& sum, int i) {
        float& own = slice[i / 4 / NS][i / 4 % NS].x[i % 4];
        sum += own;
        own = 0;
    });
}

// main += corrections / STEP where main is finite.
template <class Of, int MS, int NS>
__device__ __forceinline__ void correct(LaneSums<float> (&main)[MS][NS], const LaneSums<float> (&corrections)[MS][NS]) {
    for_sums(main, [&](float& sum, int i) {
        if (fabsf(sum) < INFINITY) sum += corrections[i / 4 / NS][i / 4 % NS].x[i % 4] * (1 / Of::STEP);
    });
}

}  // namespace matmul
