// The sums of the blocks that share a tile, each with its range of K: the last to arrive adds them up, in the order of K.
#pragma once
#include "../../common/last_to_arrive.cuh"
#include "lane_sums.cuh"

namespace matmul {

// Calls change(number, index) for each of a lane's sums, in a fixed order.
template <class Number, int MS, int NS, class Do>
__device__ __forceinline__ void for_sums(LaneSums<Number> (&sum)[MS][NS], const Do& change) {
#pragma unroll
    for (int i = 0; i < MS * NS * 4; ++i) change(sum[i / 4 / NS][i / 4 % NS].x[i % 4], i);
}
template <class Number, int TM, int TN, class Do>
__device__ __forceinline__ void for_sums(Number (&sum)[TM][TN], const Do& change) {
#pragma unroll
    for (int i = 0; i < TM * TN; ++i) change(sum[i / TN][i % TN], i);
}

// Whether this block has the sum of all splits, which are gridDim.y, of tile blockIdx.x. `partial` is (splits, tiles, sums,
// threads): neighbouring threads write contiguously.
template <int THREADS, class Number, class Sums>
__device__ __forceinline__ bool add_splits(Sums& sum, Number* partial, int* counters) {
    constexpr int COUNT = sizeof sum / sizeof(Number);
    const int splits = gridDim.y;
    if (splits == 1) return true;
    const int64_t apart = int64_t(gridDim.x) * COUNT * THREADS;
    Number* const of_tile = partial + int64_t(blockIdx.x) * COUNT * THREADS + threadIdx.x;
    for_sums(sum, [&](Number& number, int i) { of_tile[blockIdx.y * apart + i * THREADS] = number; });
    if (!last_to_arrive(counters + blockIdx.x, splits)) return false;
    for_sums(sum, [&](Number& number, int) { number = 0; });
    for (int split = 0; split < splits; ++split)
        for_sums(sum, [&](Number& number, int i) { number += __ldcg(of_tile + split * apart + i * THREADS); });
    return true;
}

}  // namespace matmul
