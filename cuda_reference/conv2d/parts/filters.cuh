// Filters of a block in shared memory, which `depthwise_channels` and `grouped` read in vectors of output channels.
#pragma once
#include "../../common/shared.cuh"
#include "runs.cuh"

namespace conv2d {

// The filters of a block's output channels in shared memory: rows of taps of a channel, each with a value per output channel.
template <int KT, int LANES> struct Filters {
    static constexpr int UNIT = KT < 4 ? KT : 4, CHANNELS = KT * LANES;
    static constexpr int PITCH = CHANNELS == 4 ? 4 : CHANNELS + 4;  // rows begin in other banks

    // The output channel of a column: quads of all lanes lie side by side, so that they are read together.
    __device__ __forceinline__ static int channel(int column) {
        return column / UNIT % LANES * KT + column / (UNIT * LANES) * UNIT + column % UNIT;
    }

    template <class Value> __device__ __forceinline__ static void load(Value (&taps)[KT], const Value* row) {
#pragma unroll
        for (int i = 0; i < KT; i += UNIT) {
            Value quad[UNIT];
            load_together(quad, row + i * LANES);
#pragma unroll
            for (int k = 0; k < UNIT; ++k) taps[i + k] = quad[k];
        }
    }
};

// Stages the filters of `channels` channels, from `weight` on, of output channels from `first` on. Columns past the last output
// channel get any values: their results are not stored. Four rows of an output channel at once, by one load if they are dense and
// aligned; 16 lanes have neighbouring columns, so that stores have no bank conflicts and loads use whole sectors.
template <class Layout, int TAPS, class T>
__device__ __forceinline__ void stage_filters(Sum<T>* filters, const T* weight, int channels, int first, const Geometry& g,
                                              const Strides& stride) {
    const unsigned S = TAPS > 0 ? TAPS : g.S, taps = TAPS > 0 ? TAPS * TAPS : g.R * g.S;
    const int rows = channels * taps;
    constexpr int CHANNELS = Layout::CHANNELS, SIDE = CHANNELS < 16 ? CHANNELS : 16, PAIR = 2, QUAD = 4;
    const bool dense = stride.weight.s == 1 && stride.weight.r == S && stride.weight.c == taps;
    const bool whole = dense && (rows | stride.weight.k) % QUAD == 0 && is_aligned16(weight);
#pragma unroll 4
    for (int i = threadIdx.x; i < ceil_div(rows, PAIR * QUAD) * PAIR * CHANNELS; i += blockDim.x) {
        const int column = i % SIDE + i / (SIDE * PAIR) % (CHANNELS / SIDE) * SIDE;
        const int row = (i / SIDE % PAIR + i / (CHANNELS * PAIR) * PAIR) * QUAD;
        const T* const of_k = weight + min(first + Layout::channel(column), g.K - 1) * stride.weight.k;
        Sum<T> quad[QUAD];
        if (whole && row < rows) {
            load_together(quad, of_k + row);
        } else if (dense) {
#pragma unroll
            for (int j = 0; j < QUAD; ++j) quad[j] = Sum<T>(of_k[min(row + j, rows - 1)]);
        } else {
#pragma unroll
            for (int j = 0; j < QUAD; ++j) {
                const unsigned at = min(row + j, rows - 1), tap = at % taps;
                quad[j] = Sum<T>(of_k[at / taps * stride.weight.c + tap / S * stride.weight.r + tap % S * stride.weight.s]);
            }
        }
#pragma unroll
        for (int j = 0; j < QUAD; ++j)
            if (row + j < rows) filters[(row + j) * Layout::PITCH + column] = quad[j];
    }
}

}  // namespace conv2d
