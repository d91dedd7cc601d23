// The result of a consumer that computes C^T = B^T A^T: it has 64 columns of the tile, and all of its rows.
//
// wgmma multiplies 64 rows by any multiple of 8 columns. So tiles whose rows are not multiples of 64, 96 or 168, are those of the
// transposed product, and so are those of tf32 of which B lies across K (transposed.cuh). Four lanes have 8 rows of a column,
// which have to become neighbours in a row: stmatrix turns results of 16 bits around on their way to a box, and of 32 bits a
// lane writes each by itself. A box has 32 rows of 128 bytes. Of 168 rows the last one has 24 that the one before has, too. They
// are written twice, but where the result is C itself: computed once more, they would have C added twice.
#pragma once
#include "../../common/index.cuh"
#include "../../common/stmatrix.cuh"
#include "out_boxes.cuh"

namespace matmul {

// Which of a consumer's columns a lane has: the first, and APART after it the other one.
struct LanesInOrder {
    static constexpr int APART = 8;
    __device__ __forceinline__ static int column() { return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4; }
};

// TILE_ROWS of the tile, a multiple of 8, from 32 on.
template <class Boxes, class Out, class Sum, int TILE_ROWS, class Lanes> struct SwappedResult {
    static constexpr int ROWS = 32, COLUMNS = SLICE / sizeof(Out), ACROSS = 64 / COLUMNS;  // of a box; boxes side by side
    using Number = Scalar<Sum>;

    Boxes& boxes;
    Out loaded[2] = {};  // bias of the lane's columns

    // Early: they arrive while slices are multiplied.
    __device__ __forceinline__ void load_bias(const Out* bias, const VectorStrides& stride, int first_col, int N) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int col = first_col + Lanes::column() + i * Lanes::APART;
            loaded[i] = bias != nullptr && col < N ? bias[col * stride.step] : Out();
        }
    }

    // Of sums whose first element is at (row, col) of the result.
    template <bool SCALED, bool OUT_BOXES>
    __device__ __forceinline__ void store(LaneSums<Sum> (&sum)[1][1][TILE_ROWS / 8], const Epilogue<Sum, Out>& epilogue, int row,
                                          int col, int batch, int M, int N) {
        constexpr int PARTS = ceil_div(TILE_ROWS, ROWS), REPEATED = PARTS * ROWS - TILE_ROWS;  // the latter: rows of the last part
        constexpr bool MAY_BE_C = REPEATED > 0 && !SCALED;
        const int first_row = row, lane_row = threadIdx.x % 4 * 2, lane_col = col + Lanes::column();
#pragma unroll(SCALED ? PARTS : 1)  // the code of addends and activations is long
        for (int part = 0; part < PARTS; ++part) {
            row = first_row + 8 * first_tile(part, ROWS / 8, TILE_ROWS / 8);
            Number results[1][ROWS / 8][4];
            scale<ROWS / 8>(results, sum, part, epilogue);
            const auto all = [&](const auto& change) {
                for_all(results, [&](Number& result, int across, int along) { change(result, along, across / 8 * Lanes::APART); });
            };
            epilogue.add_c(all, row + lane_row, lane_col, M, N);
            if (epilogue.bias != nullptr) all([&](Number& result, int, int col) { result += widen(loaded[col / Lanes::APART]); });
            epilogue.activate_all(all);
            const int repeated = part == PARTS - 1 ? REPEATED : 0;
            if (OUT_BOXES && !(MAY_BE_C && repeated > 0 && epilogue.c == epilogue.out)) {
                boxes.pass([&](unsigned char* box) { fill(box, results); },
                           [&](const unsigned char* from) {
#pragma unroll
                               for (int i = 0; i < ACROSS; ++i)
                                   tma_store(boxes.map, from + i * (ROWS * SLICE), col + i * COLUMNS, row, batch);
                           });
            } else if (!OUT_BOXES || MAY_BE_C) {
                write(results, epilogue, row + lane_row, lane_col, M, N, repeated);
            }
        }
    }

  private:
    // Without boxes, what begins at (row, col); not its first `repeated` rows.
    __device__ __forceinline__ static void write(const Number (&results)[1][ROWS / 8][4], const Epilogue<Sum, Out>& epilogue,
                                                 int row, int col, int M, int N, int repeated) {
        const auto& stride = epilogue.stride.out;
        if (Lanes::APART > 1 || stride.row == 1) {  // two neighbours of a column: 4 lanes have 8
            for_pairs<false>(results, [&](const Out(&pair)[2], int along, int across) {
                if (along >= repeated) store_run(pair, epilogue.out, col + across, row + along, N, M, stride.col, stride.row);
            });
        } else {
            for_pairs<true>(results, [&](const Out(&pair)[2], int along, int across) {
                if (along >= repeated) store_run(pair, epilogue.out, row + along, col + across, M, N, stride.row, stride.col);
            });
        }
    }

    // take(pair, along, across) of a lane's neighbours, of a row or of a column, at so many rows and columns after its first.
    template <bool OF_A_ROW, class Take>
    __device__ __forceinline__ static void for_pairs(const Number (&results)[1][ROWS / 8][4], const Take& take) {
#pragma unroll
        for (int i = 0; i < ROWS / 4; ++i) {
            __align__(2 * sizeof(Out)) Out pair[2];
#pragma unroll
            for (int j = 0; j < 2; ++j) convert(results[0][i / 2][OF_A_ROW ? i % 2 + 2 * j : i % 2 * 2 + j], pair[j]);
            take(pair, i / 2 * 8 + (OF_A_ROW ? i % 2 : 0), OF_A_ROW ? 0 : i % 2 * Lanes::APART);
        }
    }

    __device__ __forceinline__ static unsigned char* place(unsigned char* box, int row, int byte) {
        box += byte / SLICE * (ROWS * SLICE) + row * SLICE;
        return box + (byte % SLICE / 16 ^ row % 8) * 16 + byte % 16;  // the swizzle
    }

    __device__ __forceinline__ static void fill(unsigned char* box, const Number (&results)[1][ROWS / 8][4]) {
        if constexpr (sizeof(Out) == 2) {
            const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
#pragma unroll
            for (int n = 0; n < ROWS / 8; n += 2) {  // both halves of the columns, of 8 rows and the next
                __align__(4) Out numbers[8];
#pragma unroll
                for (int i = 0; i < 8; ++i) convert(results[0][n + i / 4][i % 4], numbers[i]);
                stmatrix<true>(place(box, (n + lane / 16) * 8 + lane % 8, (warp * 16 + lane / 8 % 2 * 8) * 2),
                               reinterpret_cast<const unsigned(&)[4]>(numbers));
            }
        } else if constexpr (Lanes::APART == 1) {
            for_pairs<true>(results, [&](const Out(&pair)[2], int along, int) {
                *reinterpret_cast<uint2*>(place(box, threadIdx.x % 4 * 2 + along, Lanes::column() * 4)) =
                    reinterpret_cast<const uint2&>(pair);
            });
        } else {
            for_all(results, [&](const Number& result, int across, int along) {
                Out number;
                convert(result, number);
                *reinterpret_cast<Out*>(place(box, threadIdx.x % 4 * 2 + along, (Lanes::column() + across) * 4)) = number;
            });
        }
    }
};

}  // namespace matmul
