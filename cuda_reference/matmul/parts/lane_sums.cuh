// A tile of sums in the lanes of a warp, as from mma.sync and wgmma, and its store through the epilogue.
#pragma once
#include "epilogue.cuh"
#include "store_run.cuh"

namespace matmul {

// A lane's four numbers of a 16 x 8 tile: rows lane / 4 and 8 on, columns lane % 4 * 2 and the next.
template <class Sum> struct LaneSums {
    Sum x[4];
    __device__ __forceinline__ Sum at(int i) const { return x[i]; }
};
template <> struct LaneSums<__half> {
    __half2 x[2];
    __device__ __forceinline__ __half at(int i) const { return i % 2 ? __high2half(x[i / 2]) : __low2half(x[i / 2]); }
};

// Calls change(number, index) for each of a lane's sums, in a fixed order (common/add_splits.cuh).
template <class Number, int MS, int NS, class Do>
__device__ __forceinline__ void for_sums(LaneSums<Number> (&sum)[MS][NS], const Do& change) {
#pragma unroll
    for (int i = 0; i < MS * NS * 4; ++i) change(sum[i / 4 / NS][i / 4 % NS].x[i % 4], i);
}

// Four lanes hold a row of each of four 8-column tiles, a pair a lane and tile; after it each lane holds the row of one tile.
__device__ __forceinline__ void transpose_quad(unsigned (&words)[4]) {
#pragma unroll
    for (int bit = 1; bit < 4; bit *= 2) {
        const bool high = threadIdx.x & bit;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (i & bit) continue;
            const unsigned received = __shfl_xor_sync(0xffffffffu, high ? words[i] : words[i | bit], bit);
            words[i] = high ? received : words[i];
            words[i | bit] = high ? words[i | bit] : received;
        }
    }
}

// change(number, row, col) for each of a lane's numbers, which are rows and columns after its first. Of doubles, change(number)
// where it needs no place: erf and exp of 64 doubles are 15,000 instructions, so four at a time have their turn in a loop.
template <class Number, int MS, int NS, class Do>
__device__ __forceinline__ void for_all(Number (&numbers)[MS][NS][4], const Do& change) {
    if constexpr (std::is_same_v<Number, double> && std::is_invocable_v<const Do&, Number&>) {
#pragma unroll 1
        for (int turn = 0; turn < MS * NS; ++turn)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                change(numbers[0][0][i]);
                const Number changed = numbers[0][0][i];
#pragma unroll
                for (int j = 1; j < MS * NS; ++j) numbers[(j - 1) / NS][(j - 1) % NS][i] = numbers[j / NS][j % NS][i];
                numbers[MS - 1][NS - 1][i] = changed;
            }
    } else {
#pragma unroll
        for (int m = 0; m < MS; ++m)
#pragma unroll
            for (int n = 0; n < NS; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i) change(numbers[m][n][i], m * 16 + i / 2 * 8, n * 8 + i % 2);
    }
}

// What follows the products, of all of a lane's sums, of which the first is at (lane_row, lane_col) of the result.
template <class Sum, class Out, int MS, int NS>
__device__ __forceinline__ void finish(Scalar<Sum> (&results)[MS][NS][4], const LaneSums<Sum> (&sum)[MS][NS],
                                       const Epilogue<Sum, Out>& epilogue, int lane_row, int lane_col, int M, int N) {
    for_all(results, [&](Scalar<Sum>& result, int row, int col) {
        const int m = row / 16, n = col / 8, i = row % 16 / 8 * 2 + col % 2;
        result = epilogue.scaled(sum[m][n].at(i));
    });
    epilogue.finish([&](const auto& change) { for_all(results, change); }, lane_row, lane_col, M, N);
}

// Whether lanes write runs of 8: results of 16 bits, of whole fours of tiles, which thin ones have not.
template <class Out, int COUNT> constexpr bool IN_EIGHTS = sizeof(Out) == 2 && COUNT % 4 == 0;

// take(run, row, col) of the neighbours that a lane writes at once, in COUNT tiles' columns from tile `first` on: runs of 8
// results of 16 bits, so that 4 lanes fill two sectors of a row, or pairs, and 4 fill one of 32 bits.
template <class Out, int COUNT, bool EIGHTS = IN_EIGHTS<Out, COUNT>, class Number, int MS, int NS, class Take>
__device__ __forceinline__ void for_runs(const Number (&results)[MS][NS][4], int first, const Take& take) {
    constexpr int TILES = EIGHTS ? 4 : 1;  // whose rows four lanes exchange
    static_assert(COUNT % TILES == 0, "four lanes exchange the rows of four tiles");
    const int quad = threadIdx.x % 4, lane_row = threadIdx.x % 32 / 4;
#pragma unroll
    for (int m = 0; m < 2 * MS; ++m)
#pragma unroll
        for (int n = 0; n < COUNT; n += TILES) {
            __align__(16) Out run[2 * TILES];
#pragma unroll
            for (int i = 0; i < 2 * TILES; ++i) convert(results[m / 2][first + n + i / 2][m % 2 * 2 + i % 2], run[i]);
            if constexpr (TILES == 4) transpose_quad(reinterpret_cast<unsigned(&)[4]>(run));
            take(run, lane_row + m * 8, TILES == 4 ? (n + quad) * 8 : quad * 2 + n * 8);
        }
}

// As `finish` left them, of a warp.
template <class Sum, class Out, int MS, int NS>
__device__ __forceinline__ void store_results(const Scalar<Sum> (&results)[MS][NS][4], const Epilogue<Sum, Out>& epilogue,
                                              int first_row, int first_col, int M, int N) {
    const auto store = [&](const auto& run, int row, int col) {
        store_run(run, epilogue.out, first_row + row, first_col + col, M, N, epilogue.stride.out.row, epilogue.stride.out.col);
    };
    // Eights that are no word go out one by one, each to a sector of its own for every lane; of pairs four lanes share one
    if (IN_EIGHTS<Out, NS> && epilogue.rows_are_words())
        for_runs<Out, NS>(results, 0, store);
    else
        for_runs<Out, NS, false>(results, 0, store);
}

template <class Sum, class Out, int MS, int NS>
__device__ __forceinline__ void store_tile(const LaneSums<Sum> (&sum)[MS][NS], const Epilogue<Sum, Out>& epilogue,
                                           int first_row, int first_col, int M, int N) {
    Scalar<Sum> results[MS][NS][4];
    finish(results, sum, epilogue, first_row + threadIdx.x % 32 / 4, first_col + threadIdx.x % 4 * 2, M, N);
    store_results(results, epilogue, first_row, first_col, M, N);
}

}  // namespace matmul
