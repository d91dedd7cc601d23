// Results of wgmma on their way into images, through a box of shared memory of the warpgroup: 64 positions by 64 channels, or 32
// of 32 bits.
//
// A lane has two channels each of many positions. Through the box lanes write 16 bytes of a pixel's channels, eight of them 128 in
// a row; or if channels are planes, turned around on their way into the box, two positions of one channel, a warp 64 in a row. Any
// strides do: what is no neighbour in memory, or not aligned, is written one by one.
#pragma once
#include "../../matmul/parts/out_boxes.cuh"
#include "../../matmul/parts/tile_bias.cuh"
#include "residual.cuh"
#include "splits.cuh"

namespace conv2d {

// FOLLOWS: `follows` is not ignored.
template <class T, bool CHANNELS_INSIDE, bool FOLLOWS> struct ImageResults {
    using Box = matmul::OutBoxes<T, 1>;
    static constexpr int ROWS = 16, POSITIONS = 64, CHUNK = 16 / sizeof(T), CHUNKS = POSITIONS / CHUNK;
    using Word = matmul::RunWord<2 * sizeof(T)>;  // of a pair

    T* out;
    ImagesStrides stride;
    int positions, filters, P, Q;
    unsigned char* box;  // this warpgroup's
    Follows<T> follows;

    // Of 64 positions and a filter for each column, the first of which are given.
    template <int TILES, class Bias>
    __device__ __forceinline__ void store(matmul::LaneSums<float> (&sum)[TILES], const Bias& bias, bool adds_bias, int position, int filter) const {
        wgmma_results(sum);
        if constexpr (CHANNELS_INSIDE) {
            const int lane = threadIdx.x % 32, first = position + threadIdx.x % 128 / 32 * ROWS + lane / 8;
            const int64_t at[] = {offset(first), offset(first + 4), offset(first + 8), offset(first + 12)};
            store_boxes<0>(sum, bias, adds_bias, at, position, filter);
        } else {
            const int first = threadIdx.x % 32 * 2;
            const int64_t at[] = {offset(position + first), offset(position + first + 1), offset(position + (first + 2) % POSITIONS)};
            store_boxes<0>(sum, bias, adds_bias, at, position, filter);
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
                                                int position, int filter) const {
        constexpr int SOME = TILES - FIRST < Box::TILES ? TILES - FIRST : Box::TILES;
        float results[1][SOME][4];
#pragma unroll
        for (int i = 0; i < SOME * 4; ++i) results[0][i / 4][i % 4] = sum[FIRST + i / 4].x[i % 4];
        if (adds_bias) bias.add(results, FIRST);
        if constexpr (FOLLOWS) {
            const int lane = threadIdx.x % 32, first = position + threadIdx.x % 128 / 32 * ROWS + lane / 4;
            const auto for_all = [&](const auto& change) { matmul::for_all(results, change); };
            follows.add(for_all, first, filter + FIRST * 8 + lane % 4 * 2);
            follows.activate(for_all);
        }
        if constexpr (CHANNELS_INSIDE)
            store_pixels(results, at, filter + FIRST * 8);
        else
            store_planes(results, at, filter + FIRST * 8);
        if constexpr (FIRST + SOME < TILES) store_boxes<FIRST + SOME>(sum, bias, adds_bias, at, position, filter);
    }

    // A warp's 16 positions, without the other warps.
    template <int SOME>
    __device__ __forceinline__ void store_pixels(const float (&results)[1][SOME][4], const int64_t (&at)[4], int filter) const {
        Box::fill(box, results, 0);
        __syncwarp();
        const int row = threadIdx.x % 32 / 8, chunk = threadIdx.x % 8;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (const int left = filters - filter - chunk * CHUNK; at[i] >= 0 && chunk * CHUNK < SOME * 8) {
                const T* const run = reinterpret_cast<const T*>(Box::place(box, row + i * 4, chunk * 16));
                T* const to = out + at[i] + filter + chunk * CHUNK;
                if (left >= CHUNK && reinterpret_cast<uintptr_t>(to) % 16 == 0)
                    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(run);
                else
#pragma unroll 1
                    for (int c = 0; c < min(left, CHUNK); ++c) to[c] = run[c];
            }
        __syncwarp();
    }

    // All 64 positions of a warp's channels: 16 bytes a lane if planes allow it.
    template <int SOME>
    __device__ __forceinline__ void store_planes(const float (&results)[1][SOME][4], const int64_t (&at)[3], int filter) const {
        const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
        turn(results);
        warpgroup_barrier();
        constexpr int CHANNELS = SOME * 8 / 4;  // of a warp
        const int channel = warp * CHANNELS, count = min(CHANNELS, filters - filter - channel);
        T* const planes = out + (filter + channel) * stride.c;
        const int64_t first = __shfl_sync(0xffffffffu, at[0], 0);
        const bool in_a_row = at[0] == first + lane * 2 && at[1] == at[0] + 1;
        const bool are_words = (reinterpret_cast<uintptr_t>(planes + first) | uintptr_t(stride.c) * sizeof(T)) % 16 == 0;
        if (first >= 0 && __all_sync(0xffffffffu, in_a_row && are_words)) {
#pragma unroll
            for (int i = lane / CHUNKS; i < CHANNELS; i += 32 / CHUNKS)
                if (i < count)
                    *reinterpret_cast<uint4*>(planes + first + i * stride.c + lane % CHUNKS * CHUNK) =
                        *reinterpret_cast<const uint4*>(place(channel + i, lane % CHUNKS * CHUNK));
        } else {
            const Pair pairs[] = {{planes, at, first}, {planes + stride.c, at, first}};  // every other plane may begin within a word
#pragma unroll 1
            for (int eighth = 0; eighth < CHANNELS; eighth += 8)
#pragma unroll
                for (int i = 0; i < 8; ++i)
                    if (eighth + i < count) pairs[i % 2].store(*this, channel + eighth + i, (eighth + i) / 2 * 2 * stride.c);
        }
        warpgroup_barrier();
    }

    // Into the box, a row of positions for each channel.
    template <int SOME> __device__ __forceinline__ void turn(const float (&results)[1][SOME][4]) const {
        const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
        if constexpr (sizeof(T) == 2) {
#pragma unroll
            for (int n = 0; n < SOME; n += 2) {  // the upper and lower halves of a tile, and of the next
                __align__(4) T numbers[8];
#pragma unroll
                for (int i = 0; i < 8; ++i) matmul::convert(results[0][n + i / 4][i % 4], numbers[i]);
                const int channel = (n + lane / 16) * 8 + lane % 8, half = lane / 8 % 2;
                stmatrix<true>(place(channel, warp * ROWS + half * 8), reinterpret_cast<const unsigned(&)[4]>(numbers));
            }
        } else {
#pragma unroll
            for (int i = 0; i < SOME * 4; ++i)
                *place(i / 4 * 8 + lane % 4 * 2 + i % 2, warp * ROWS + i / 2 % 2 * 8 + lane / 4) = results[0][i / 4][i % 4];
        }
    }

    // Two positions that a lane writes to planes. If the first position is no aligned word they begin with the second one, and the
    // last lane has the last position and the first.
    struct Pair {
        T* to[2];
        int from[2];
        bool exists[2], together;

        __device__ __forceinline__ Pair(T* plane, const int64_t (&at)[3], int64_t first) {
            const bool odd = reinterpret_cast<uintptr_t>(plane + first) % sizeof(Word) != 0;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int64_t own = odd ? at[i + 1] : at[i];
                from[i] = (threadIdx.x % 32 * 2 + i + odd) % POSITIONS;
                to[i] = plane + own;
                exists[i] = own >= 0;
            }
            together = exists[0] && exists[1] && to[1] == to[0] + 1 && reinterpret_cast<uintptr_t>(to[0]) % sizeof(Word) == 0;
        }

        // Of a channel of the box, to a plane that is so far from the pair's.
        __device__ __forceinline__ void store(const ImageResults& results, int channel, int64_t plane) const {
            __align__(sizeof(Word)) T numbers[] = {*results.place(channel, from[0]), *results.place(channel, from[1])};
            if (together) {
                *reinterpret_cast<Word*>(to[0] + plane) = reinterpret_cast<const Word&>(numbers);
            } else {
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    if (exists[i]) to[i][plane] = numbers[i];
            }
        }
    };

    // In a box of rows of 64 positions, one for each channel, swizzled against bank conflicts.
    __device__ __forceinline__ T* place(int channel, int position) const {
        const int chunk = position / CHUNK ^ channel % 8;
        return reinterpret_cast<T*>(box) + channel * POSITIONS + chunk * CHUNK + position % CHUNK;
    }
};

}  // namespace conv2d
