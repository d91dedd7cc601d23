// Stream-K's line of slices, cut into equal runs.
#pragma once
#include <cuda_runtime.h>

// The slices of the tiles that are shared, numbered through; block i of `blocks` takes begin(i) up to begin(i + 1).
struct Runs {
    int64_t slices;
    int blocks;
    __device__ __forceinline__ int64_t begin(int block) const { return slices * block / blocks; }
    __device__ __forceinline__ int block_of(int64_t slice) const { return int(((slice + 1) * blocks - 1) / slices); }
};
