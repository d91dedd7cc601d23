// Results whose rows are no whole chunks of 16 bytes, which TMA cannot write, by way of shared memory.
//
// A lane has at most 8 neighbours of a row, so a store from registers goes to 8 rows at once, 16 or 8 bytes of each. Here a warp puts
// 16 rows of 128 bytes into shared memory, and writes one or two rows at once, in words as long as their alignment allows.
#pragma once
#include "lane_sums.cuh"
#include "tma_slices.cuh"

namespace matmul {

template <class Out> struct WarpRows {
    static constexpr int ROWS = 16, COLUMNS = SLICE / sizeof(Out);

    unsigned char* const rows;  // of this warp; chunks of 16 bytes are swizzled as TMA does it, against bank conflicts

    // Writes all of a warp's results, of which the first is at (row, col) of the matrix: columns are neighbours.
    template <class Sum, int NS, int FIRST = 0>
    __device__ __forceinline__ void store(const Scalar<Sum> (&results)[1][NS][4], const Epilogue<Sum, Out>& epilogue, int row,
                                          int col, int M, int N) const {
        constexpr int COUNT = NS - FIRST < COLUMNS / 8 ? NS - FIRST : COLUMNS / 8;  // tiles of 8 columns
        const int64_t pitch = epilogue.stride.out.row;
        const unsigned alignment = unsigned(reinterpret_cast<uintptr_t>(epilogue.out)) | unsigned(pitch * sizeof(Out));
        Out* const to = epilogue.out + row * pitch + col;
        const int rows = M - row, columns = min(N - col, COUNT * 8);
        put<COUNT>(results, FIRST);
        __syncwarp();
        if (alignment % 8 == 0)
            write<uint2>(to, pitch, rows, columns);
        else if (sizeof(Out) == 4 || alignment % 4 == 0)
            write<unsigned>(to, pitch, rows, columns);
        else
            write<unsigned short>(to, pitch, rows, columns);
        __syncwarp();
        if constexpr (FIRST + COUNT < NS)
            store<Sum, NS, FIRST + COUNT>(results, epilogue, row, col + COUNT * 8, M, N);
    }

  private:
    __device__ __forceinline__ unsigned char* place(int row, int byte) const { return rows + row * SLICE + (byte ^ row % 8 * 16); }

    template <int COUNT, class Number, int NS>
    __device__ __forceinline__ void put(const Number (&results)[1][NS][4], int first) const {
        for_runs<Out, COUNT>(results, first, [&](const auto& run, int row, int col) {
            using Word = RunWord<sizeof run>;
            *reinterpret_cast<Word*>(place(row, col * sizeof(Out))) = *reinterpret_cast<const Word*>(run);
        });
    }

    // Of the columns of 128 bytes those that the matrix has, of as many rows.
    template <class Word>
    __device__ __forceinline__ void write(Out* to, int64_t pitch, int rows_left, int columns_left) const {
        constexpr int EACH = sizeof(Word) / sizeof(Out) ? sizeof(Word) / sizeof(Out) : 1, OF_ROW = COLUMNS / EACH;
#pragma unroll 4
        for (int i = threadIdx.x % 32; i < ROWS * OF_ROW; i += 32) {
            const int row = i / OF_ROW, col = i % OF_ROW * EACH;
            if (row >= rows_left || col >= columns_left) continue;
            const Out* const from = reinterpret_cast<const Out*>(place(row, col * sizeof(Out)));
            Out* const there = to + row * pitch + col;
            if (col + EACH <= columns_left && sizeof(Word) >= sizeof(Out)) {
                *reinterpret_cast<Word*>(there) = *reinterpret_cast<const Word*>(from);
            } else {
#pragma unroll
                for (int e = 0; e < EACH; ++e)
                    if (col + e < columns_left) there[e] = from[e];
            }
        }
    }
};

}  // namespace matmul
