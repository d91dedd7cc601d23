// The order in which blocks compute the tiles of a result: in a band of `group` tile rows, column by column.
//
// Every block begins with it, and waits 50 ns for a division, longer for signed numbers. In the first band there is only one.
#pragma once
#include <cuda_runtime.h>

struct TileIndex {
    int m, n;
};

__device__ __forceinline__ TileIndex rasterize(int block, int tiles_m, int tiles_n, int group) {
    const unsigned of_band = group * tiles_n;
    unsigned in_band = block;
    int first = 0;  // row of the band
    if (in_band >= of_band) {
        const unsigned band = in_band / of_band;
        in_band -= band * of_band;
        first = band * group;
    }
    const unsigned rows = min(group, tiles_m - first), col = in_band / rows;  // the last band may be lower
    return {first + int(in_band - col * rows), int(col)};
}

// A tile of a batch: of which matrix, and where in it.
struct Place {
    int matrix, m, n;

    // Is found here. Else ptxas divides where it is used: after the last product, when there is nothing else to do.
    __device__ __forceinline__ Place kept() const {
        Place own = *this;
        asm volatile("" : "+r"(own.matrix), "+r"(own.m), "+r"(own.n));
        return own;
    }
};

// Of the i-th tile of all matrices. For a single one there is no division.
__device__ __forceinline__ Place place_of(int i, int tiles_m, int tiles_n, int group) {
    const int count = tiles_m * tiles_n, matrix = i < count ? 0 : i / count;
    const TileIndex tile = rasterize(i - matrix * count, tiles_m, tiles_n, group);
    return {matrix, tile.m, tile.n};
}
