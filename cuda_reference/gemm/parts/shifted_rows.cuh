// Stores rows that do not all begin on 16 bytes, such as those of a result with an odd number of columns, in whole aligned words.
//
// Lanes have quads of sums, which in such rows are no words of memory. Stored float by float, a request of a warp would write
// every fourth float, and each sector of 32 bytes in four requests. So the sums of a row first rotate through the warp's lanes, by
// one to three places, until they lie in the lanes as they do in words. What is left of a row, before its first word and after its
// last, is four floats, which the lane with the last quad then has; it stores them one by one.
//
// Rows four apart begin alike, and so do those of a warp's lanes: all rotate by as much, without a branch of a lane's own.
#pragma once
#include "../../common/vector.cuh"
#include "common.cuh"

namespace gemm {

// A row's sums in the lanes of a warp move BY places towards its beginning; the first ones become the last.
template <class Place, int BY, int TN> __device__ __forceinline__ void rotate_row(float (&row)[TN]) {
    const int next = Place::next_lane();
    const bool is_first = Place::of_lane(true) == 0;  // which gives the quad that follows the last lane's
    float received[TN / 4][BY];
#pragma unroll
    for (int quad = 0; quad < TN; quad += 4)
#pragma unroll
        for (int j = 0; j < BY; ++j)
            received[quad / 4][j] = __shfl_sync(0xffffffffu, is_first ? row[(quad + 4) % TN + j] : row[quad + j], next);
#pragma unroll
    for (int quad = 0; quad < TN; quad += 4) {
#pragma unroll
        for (int j = 0; j < 4 - BY; ++j) row[quad + j] = row[quad + j + BY];
#pragma unroll
        for (int j = 0; j < BY; ++j) row[quad + 4 - BY + j] = received[quad / 4][j];
    }
}

// The thread's sums into out, whose rows are contiguous. finish(results, row, col) computes results, an array of neighbours, from
// their sums.
template <class Place, int TM, int TN, class Finish>
__device__ __forceinline__ void store_shifted(const float (&sum)[TM][TN], float* out, int64_t pitch, int first_row, int first_col,
                                              int M, int N, const Finish& finish) {
    constexpr int ACROSS = Place::GAP_N / 4;
#pragma unroll
    for (int m = 0; m < TM; ++m) {
        float sums[TN];
#pragma unroll
        for (int n = 0; n < TN; ++n) sums[n] = sum[m][n];
        const int shift = -int(reinterpret_cast<uintptr_t>(out + m % 4 * pitch) / sizeof(float)) & 3;  // to the first word
        if (shift & 1) rotate_row<Place, 1>(sums);
        if (shift & 2) rotate_row<Place, 2>(sums);

        const int row = first_row + Place::row() + m / 4 * Place::GAP_M + m % 4;
        if (row >= M) continue;  // after the shuffles, which need every lane
        float* const to = out + row * pitch;
#pragma unroll
        for (int n = 0; n < TN; n += 4) {
            const int col = first_col + Place::col() + n / 4 * Place::GAP_N + shift;
            const bool is_last = n == TN - 4 && Place::of_lane(true) == ACROSS - 1;
            const int neighbours = is_last ? 4 - shift : 4;  // the others are the row's first
            if (neighbours == 4 && col + 3 < N) {
                __align__(16) float quad[] = {sums[n], sums[n + 1], sums[n + 2], sums[n + 3]};
                finish(quad, row, col);
                *reinterpret_cast<float4*>(to + col) = *reinterpret_cast<const float4*>(quad);
            } else {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int at = col + j - (j < neighbours ? 0 : TN * ACROSS);
                    float one[] = {sums[n + j]};
                    if (at >= N) continue;
                    finish(one, row, at);
                    to[at] = one[0];
                }
            }
        }
    }
}

// alpha * sum + beta * C, of quads where C allows. c is null where beta is 0, so that C (NaN too) is never read.
struct WithC {
    const float* c;
    float alpha, beta;
    MatrixStrides stride;

    template <int COUNT> __device__ __forceinline__ void operator()(float (&results)[COUNT], int row, int col) const {
#pragma unroll
        for (int j = 0; j < COUNT; ++j) results[j] *= alpha;
        if (c == nullptr) return;
        const float* const from = c + row * stride.row + col * stride.col;
        float old[COUNT];
        if (COUNT == 4 && stride.col == 1 && is_aligned16(from)) {
            *reinterpret_cast<float4*>(old) = *reinterpret_cast<const float4*>(from);
        } else {
#pragma unroll
            for (int j = 0; j < COUNT; ++j) old[j] = from[j * stride.col];
        }
#pragma unroll
        for (int j = 0; j < COUNT; ++j) results[j] += beta * old[j];
    }
};

}  // namespace gemm
