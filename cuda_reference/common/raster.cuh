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
