// Gated linear units: each result is activation(sum) * the next sum, of a pair of columns, which a lane holds side by side.
//
// Two tiles of 8 columns become one. Four lanes then have columns q and 4 + q of its rows (q = lane % 4), and exchange them by two
// shuffles, so that each has 2 q and 2 q + 1, as of any other tile: what stores results knows nothing of pairs.
#pragma once
#include "lane_sums.cuh"

namespace matmul {

// change(number, row, col) for what the activation is applied to, of all that for_all has.
template <class ForAll, class Of> __device__ __forceinline__ void activate_gates(const ForAll& for_all, const Of& epilogue) {
    epilogue.activate_all([&](const auto& change) {
        for_all([&](auto& number, int row, int col) {
            if (col % 2 == 0) change(number, row, col);
        });
    });
}

// Gates results that have their bias; it changes them.
template <class Sum, class Out, class Number, int MS, int HALF, int NS>
__device__ __forceinline__ void gate(Number (&gated)[MS][HALF][4], Number (&results)[MS][NS][4],
                                     const Epilogue<Sum, Out>& epilogue) {
    static_assert(NS == 2 * HALF, "a tile is made of two");
    activate_gates([&](const auto& change) { for_all(results, change); }, epilogue);
#pragma unroll
    for (int m = 0; m < MS; ++m)
#pragma unroll
        for (int n = 0; n < HALF; ++n)
#pragma unroll
            for (int row = 0; row < 4; row += 2) {  // a lane's first number there
                Number own[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) own[i] = results[m][2 * n + i][row] * results[m][2 * n + i][row + 1];
#pragma unroll
                for (int bit = 2; bit > 0; bit /= 2) {
                    const bool high = threadIdx.x & bit;
                    const Number received = __shfl_xor_sync(0xffffffffu, high ? own[0] : own[1], bit);
                    own[0] = high ? received : own[0];
                    own[1] = high ? own[1] : received;
                }
#pragma unroll
                for (int i = 0; i < 2; ++i) gated[m][n][row + i] = own[i];
            }
}

// As `finish` (lane_sums.cuh), whose place counts columns of sums.
template <class Sum, class Out, int MS, int NS>
__device__ __forceinline__ void finish_pairs(Scalar<Sum> (&gated)[MS][NS / 2][4], const LaneSums<Sum> (&sum)[MS][NS],
                                             const Epilogue<Sum, Out>& epilogue, int lane_row, int lane_col, int M, int N) {
    Scalar<Sum> results[MS][NS][4];
    Epilogue<Sum, Out> until_gates = epilogue;
    until_gates.c = nullptr, until_gates.activation = NONE;  // which the compiler knows
    finish(results, sum, until_gates, lane_row, lane_col, M, N);
    gate(gated, results, epilogue);
}

}  // namespace matmul
