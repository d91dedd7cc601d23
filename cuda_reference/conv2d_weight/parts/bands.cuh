// Where a tile of the weight is, whose groups lie in bands. tritonkernels/operations/conv2d_weight/bands.py says why.
// Mirrors tritonkernels/conv2d_weight/parts/bands.py.
#pragma once
#include "../../matmul/parts/store_run.cuh"
#include "operands.cuh"

namespace conv2d_weight {

constexpr int FIRST_CHANNELS = 8;  // of which boxes begin at multiples

// Output and input channels of a band; tiles of it below each other; boxes of channels of a tap.
struct Bands {
    int rows, channels, tiles_m, chunks;
};

// Where a tile begins: its first row, its first unit of columns (UNITS of them, a box of channels of a tap each), and the first
// channel of its band's units; the rows of its band, from `begin` to `end`; and units of the band. Tiles below each other are
// neighbours, which read the same inputs; then come the other taps and channels of the band.
template <int BM, int UNITS> struct TileAt {
    int row, unit, channel, begin, end, units, chunks;

    __device__ __forceinline__ TileAt(const Geometry& g, const Bands& bands, int tile) {
        chunks = bands.chunks, units = g.R * g.S * chunks;
        const int tiles_n = ceil_div(units, UNITS), across = tile / bands.tiles_m, band = across / tiles_n;
        begin = band * bands.rows, end = min(begin + bands.rows, g.K);
        row = begin / FIRST_CHANNELS * FIRST_CHANNELS + tile % bands.tiles_m * BM;
        unit = across % tiles_n * UNITS;
        channel = band * bands.channels / FIRST_CHANNELS * FIRST_CHANNELS;
    }
};

// Stores a run of neighbouring channels of a tap, of row k, where they are of k's group and k is one of the band's rows.
template <class T, int COUNT>
__device__ __forceinline__ void store_channels(const T (&run)[COUNT], T* tap, int k, int channel, int begin, int end,
                                               const Geometry& g, const FiltersStrides& stride) {
    if (k < begin || k >= end) return;
    const int channels = g.c_per_group(), first = channel - k / g.k_per_group() * channels;
    if (first >= 0) {
        matmul::store_run(run, tap, k, first, end, channels, stride.k, stride.c);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            if (first + i >= 0 && first + i < channels) tap[k * stride.k + (first + i) * stride.c] = run[i];
    }
}

}  // namespace conv2d_weight
