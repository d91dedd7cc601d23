// Boxes of a result in shared memory, from which TMA writes them.
#pragma once
#include "../../common/ldmatrix.cuh"
#include "../../common/stmatrix.cuh"
#include "../../common/tma.cuh"
#include "../../common/wgmma.cuh"
#include "lane_sums.cuh"
#include "tma_slices.cuh"

namespace matmul {

// The first tile of the i-th box, which has so many of `count`: the last box has some of the one before, if they don't divide it.
__host__ __device__ constexpr int first_tile(int i, int of_a_box, int count) {
    return (i + 1) * of_a_box <= count ? i * of_a_box : count - of_a_box;
}

// results = alpha times the sums of TILES tiles, the i-th such part of all boxes. Registers have no index: a branch finds them,
// which wgmma_results keeps the compiler from replacing by a choice among all of them.
template <int OF_A_BOX, class Sum, class Out, int TILES, int BLOCKS, int COUNT>
__device__ __forceinline__ void scale(Scalar<Sum> (&results)[1][TILES][4], LaneSums<Sum> (&sum)[BLOCKS][1][COUNT], int i,
                                      const Epilogue<Sum, Out>& epilogue) {
    constexpr int ACROSS = (COUNT + OF_A_BOX - 1) / OF_A_BOX, PARTS = OF_A_BOX / TILES;
#pragma unroll
    for (int j = 0; j < BLOCKS * ACROSS * PARTS; ++j)
        if (j == i) {
            const int first = first_tile(j / PARTS % ACROSS, OF_A_BOX, COUNT) + j % PARTS * TILES;
            auto& found = reinterpret_cast<LaneSums<Sum>(&)[TILES]>(sum[j / PARTS / ACROSS][0][first]);
            wgmma_results(found);
            for_all(results, [&](Scalar<Sum>& result, int row, int col) {
                result = epilogue.scaled(found[col / 8].at(row / 8 * 2 + col % 2));
            });
        }
}

// NUMBER places of BLOCK_BYTES in shared memory, through which a warpgroup writes its result: boxes of 64 rows of 128 bytes.
template <class Out, int NUMBER> struct OutBoxes {
    static constexpr int TILES = SLICE / sizeof(Out) / 8, COUNT = NUMBER;  // of 8 columns in a box; boxes
    const CUtensorMap& map;
    unsigned char* boxes;
    bool asks;  // whether this is the thread of the warpgroup that requests the stores
    int next = 0;

    // All threads of the warpgroup fill a place, and one of them requests the stores.
    template <class Fill, class Request> __device__ __forceinline__ void pass(const Fill& fill, const Request& request) {
        unsigned char* const box = boxes + next * BLOCK_BYTES;
        next = (next + 1) % COUNT;
        if (asks) tma_store_wait<COUNT - 1>();  // the box's previous contents have been read
        warpgroup_barrier();
        fill(box);
        tma_store_fence();
        warpgroup_barrier();
        if (asks) {
            request(box);
            tma_store_commit();
        }
    }

    // Of the warp's 16 rows of a box, which is swizzled.
    template <class Byte> __device__ __forceinline__ static Byte* place(Byte* box, int row, int byte) {
        const int at_row = threadIdx.x % 128 / 32 * 16 + row, chunk = byte / 16 ^ at_row % 8;
        return box + at_row * SLICE + chunk * 16 + byte % 16;
    }

    // Tiles of a box from the first on. Each warp writes 16 rows: four 8 x 8 matrices of 16 bits at once, without bank conflicts,
    // or each lane a pair of 32 bits.
    template <class Number, int SOME>
    __device__ __forceinline__ static void fill(unsigned char* box, const Number (&results)[1][SOME][4], int first) {
        if constexpr (sizeof(Out) == 2) {
            const int lane = threadIdx.x % 32;
#pragma unroll
            for (int n = 0; n < SOME; n += 2) {  // the upper and lower halves of a tile, and of the next
                __align__(4) Out numbers[8];
#pragma unroll
                for (int i = 0; i < 8; ++i) convert(results[0][n + i / 4][i % 4], numbers[i]);
                stmatrix(place(box, lane % 16, (first + n + lane / 16) * 16), reinterpret_cast<const unsigned(&)[4]>(numbers));
            }
        } else {
            for_runs<Out, SOME>(results, 0, [&](const auto& run, int row, int col) {
                using Word = RunWord<sizeof run>;
                *reinterpret_cast<Word*>(place(box, row, (first * 8 + col) * int(sizeof(Out)))) = reinterpret_cast<const Word&>(run);
            });
        }
    }

    // results += beta times what is in a box, of the tiles that `fill` would write there, and by the same lanes.
    template <class Number, int SOME>
    __device__ __forceinline__ static void add(Number (&results)[1][SOME][4], Number beta, const unsigned char* box, int first) {
        const int lane = threadIdx.x % 32;
        if constexpr (sizeof(Out) == 2) {
#pragma unroll
            for (int n = 0; n < SOME; n += 2) {
                unsigned words[4];
                ldmatrix<false>(words, place(box, lane % 16, (first + n + lane / 16) * 16));
                const auto& numbers = reinterpret_cast<const Out(&)[8]>(words);
#pragma unroll
                for (int i = 0; i < 8; ++i) results[0][n + i / 4][i % 4] += beta * widen(numbers[i]);
            }
        } else {
#pragma unroll
            for (int n = 0; n < SOME; ++n)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    using Pair = RunWord<2 * sizeof(Out)>;
                    const Pair pair = *reinterpret_cast<const Pair*>(place(box, half * 8 + lane / 4, (first + n) * 32 + lane % 4 * 8));
                    const auto& numbers = reinterpret_cast<const Out(&)[2]>(pair);
#pragma unroll
                    for (int i = 0; i < 2; ++i) results[0][n][half * 2 + i] += beta * widen(numbers[i]);
                }
        }
    }
};

}  // namespace matmul
