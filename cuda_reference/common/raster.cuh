// The order in which blocks compute the tiles of a result: in a band of `group` tile rows, column by column.
#pragma once
#include <cuda_runtime.h>

struct TileIndex {
    int m, n;
};

__device__ __forceinline__ TileIndex rasterize(int block, int tiles_m, int tiles_n, int group) {
    const int band = block / (group * tiles_n), in_band = block % (group * tiles_n);
    const int rows = min(group, tiles_m - band * group);  // the last band may be lower
    return {band * group + in_band % rows, in_band / rows};
}
