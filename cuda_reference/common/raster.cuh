// The order in which blocks take the tiles of a result: down a band of `group` rows of tiles, then the next column.
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
