// Results of wgmma on their way into images, through a box of shared memory of the warpgroup: 64 positions by 64 channels.
//
// A lane has two channels each of many positions. Through the box lanes write 16 bytes of a pixel's channels, eight of them 128 in
// a row; or if channels are planes, turned around on their way into the box, two positions of one channel, a warp 64 in a row. Any
// strides do: what is no neighbour in memory, or not aligned, is written one by one.
#pragma once
#include "../../matmul/parts/out_boxes.cuh"
#include "../../matmul/parts/tile_bias.cuh"
#include "splits.cuh"

namespace conv2d {

template <class T, bool CHANNELS_INSIDE> struct ImageResults {
    using Box = matmul::OutBoxes<T, 1>;
    static constexpr int ROWS = 16, POSITIONS = 64, CHUNK = 16 / sizeof(T);

    T* out;
    ImagesStrides stride;
    int positions, filters, P, Q;
    unsigned char* box;  // of this warpgroup

    // Of 64 positions and a filter for each column, the first of which are given.
    template <int TILES, class Bias>
    __device__ __forceinline__ void store(matmul::LaneSums<float> (&sum)[TILES], const Bias& bias, bool adds_bias, int position, int filter) const {
        wgmma_results(sum);
        if constexpr (CHANNELS_INSIDE) {
            const int lane = threadIdx.x % 32, first = position + threadIdx.x % 128 / 32 * ROWS + lane / 8;
            const int64_t at[] = {offset(first), offset(first + 4), offset(first + 8), offset(first + 12)};
            store_boxes<0>(sum, bias, adds_bias, at, filter);
        } else {
            const int first = threadIdx.x % 32 * 2;
            const int64_t at[] = {offset(position + first), offset(position + first + 1), offset(position + (first + 2) % POSITIONS)};
            store_boxes<0>(sum, bias, adds_bias, at, filter);
        }
    }

  private:
    // Of a position's first channel, or -1.
    __device__ __forceinline__ int64_t offset(int position) const {
        if (position >= positions) return -1;
        const Position at(position, P, Q);
        return at.image * stride.n + at.p * stride.h + at.q * stride.w;
    }

    template <int FIRST, int TILES, class Bias, int COUNT>
    __device__ __forceinline__ void store_boxes(const matmul::LaneSums<float> (&sum)[TILES], const Bias& bias, bool adds_bias, const int64_t (&at)[COUNT],
                                                int filter) const {
        constexpr int SOME = TILES - FIRST < Box::TILES ? TILES - FIRST : Box::TILES;
        float results[1][SOME][4];
#pragma unroll
        for (int i = 0; i < SOME * 4; ++i) results[0][i / 4][i % 4] = sum[FIRST + i / 4].x[i % 4];
        if (adds_bias) bias.add(results, FIRST);
        if constexpr (CHANNELS_INSIDE)
            store_pixels(results, at, filter + FIRST * 8);
        else
            store_planes(results, at, filter + FIRST * 8);
        if constexpr (FIRST + SOME < TILES) store_boxes<FIRST + SOME>(sum, bias, adds_bias, at, filter);
    }

    // A warp's 16 positions, without the other warps.
    template <int SOME>
    __device__ __forceinline__ void store_pixels(const float (&results)[1][SOME][4], const int64_t (&at)[4], int filter) const {
        Box::fill(box, results, 0);
        __syncwarp();
        const int row = threadIdx.x % 32 / 8, tile = threadIdx.x % 8;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (const int left = filters - filter - tile * 8; at[i] >= 0 && tile < SOME && left > 0) {
                const T* const run = reinterpret_cast<const T*>(Box::place(box, row + i * 4, tile * 16));
                T* const to = out + at[i] + filter + tile * 8;
                if (left >= 8 && reinterpret_cast<uintptr_t>(to) % 16 == 0)
                    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(run);
                else
#pragma unroll 1
                    for (int c = 0; c < min(left, 8); ++c) to[c] = run[c];
            }
        __syncwarp();
    }

    // All 64 positions of a channel for each warp and turn. Pairs begin with the second position where the first one is no aligned
    // word: then the last lane has the last position and the first.
    template <int SOME>
    __device__ __forceinline__ void store_planes(const float (&results)[1][SOME][4], const int64_t (&at)[3], int filter) const {
        const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
#pragma unroll
        for (int n = 0; n < SOME; n += 2) {  // the upper and lower halves of a tile, and of the next
            __align__(4) T numbers[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) matmul::convert(results[0][n + i / 4][i % 4], numbers[i]);
            const int channel = (n + lane / 16) * 8 + lane % 8, half = lane / 8 % 2;
            stmatrix<true>(place(channel, warp * ROWS + half * 8), reinterpret_cast<const unsigned(&)[4]>(numbers));
        }
        warpgroup_barrier();
        constexpr int CHANNELS = SOME * 8 / 4;  // of a warp
        const int64_t first = __shfl_sync(0xffffffffu, at[0], 0);
#pragma unroll 4
        for (int i = 0; i < CHANNELS; ++i) {
            const int channel = warp * CHANNELS + i;
            if (filter + channel >= filters) break;
            T* const plane = out + (filter + channel) * stride.c;
            const bool odd = reinterpret_cast<uintptr_t>(plane + first) % sizeof(unsigned) != 0;
            const int64_t to[] = {odd ? at[1] : at[0], odd ? at[2] : at[1]};
            __align__(4) T pair[] = {*place(channel, lane * 2 + odd), *place(channel, (lane * 2 + 1 + odd) % POSITIONS)};
            if (to[0] >= 0 && to[1] == to[0] + 1 && reinterpret_cast<uintptr_t>(plane + to[0]) % sizeof pair == 0) {
                *reinterpret_cast<unsigned*>(plane + to[0]) = reinterpret_cast<const unsigned&>(pair);
            } else {
#pragma unroll
                for (int j = 0; j < 2; ++j)
                    if (to[j] >= 0) plane[to[j]] = pair[j];
            }
        }
        warpgroup_barrier();
    }

    // In a box of 64 rows of positions, one for each channel, swizzled against bank conflicts.
    __device__ __forceinline__ T* place(int channel, int position) const {
        const int chunk = position / CHUNK ^ channel % 8;
        return reinterpret_cast<T*>(box + channel * matmul::SLICE) + chunk * CHUNK + position % CHUNK;
    }
};

}  // namespace conv2d
