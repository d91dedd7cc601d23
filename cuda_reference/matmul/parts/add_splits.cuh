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

// A thread's part of a tile in the workspace: 16 bytes at a time, of THREADS threads side by side. MOST parts are under way at
// most, each in as many registers as the sums, and 1 where these are many.
template <class Number, int COUNT, int THREADS, int MOST = 4> struct Parts {
    static constexpr int WORDS = COUNT * sizeof(Number) / 16, PER_WORD = 16 / sizeof(Number);
    static constexpr int AT_ONCE = WORDS <= 8 ? MOST : 1;
    static_assert(COUNT % PER_WORD == 0, "whole words of 16 bytes");
    struct __align__(16) Word { Number x[PER_WORD]; };

    __device__ __forceinline__ static void store(const Number (&numbers)[COUNT], Word* part) {
#pragma unroll
        for (int i = 0; i < WORDS; ++i) {
            Word word;
#pragma unroll
            for (int j = 0; j < PER_WORD; ++j) word.x[j] = numbers[i * PER_WORD + j];
            part[i * THREADS] = word;
        }
    }

    // total = the sum of parts first to last, one after the other; part_of(i) is where the i-th is
    template <class PartOf>
    __device__ __forceinline__ static void add(Number (&total)[COUNT], int first, int last, const PartOf& part_of) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) total[i] = 0;
#pragma unroll 1
        for (; first <= last; first += AT_ONCE) {
            uint4 loaded[AT_ONCE][WORDS];
#pragma unroll
            for (int ahead = 0; ahead < AT_ONCE; ++ahead) {
                const uint4* const part = reinterpret_cast<const uint4*>(part_of(min(first + ahead, last)));
#pragma unroll
                for (int i = 0; i < WORDS; ++i)
                    loaded[ahead][i] = first + ahead <= last ? __ldcg(part + i * THREADS) : make_uint4(0, 0, 0, 0);
            }
#pragma unroll
            for (int ahead = 0; ahead < AT_ONCE; ++ahead)
#pragma unroll
                for (int i = 0; i < COUNT; ++i)
                    total[i] += reinterpret_cast<const Word&>(loaded[ahead][i / PER_WORD]).x[i % PER_WORD];
        }
    }
};

// Whether this block has the sum of all splits, which are gridDim.y, of tile blockIdx.x. `partial` is (splits, tiles, threads'
// sums).
template <int THREADS, int MOST = 4, class Number, class Sums>
__device__ __forceinline__ bool add_splits(Sums& sum, Number* partial, int* counters) {
    constexpr int COUNT = sizeof sum / sizeof(Number);
    using Own = Parts<Number, COUNT, THREADS, MOST>;
    const int splits = gridDim.y;
    if (splits == 1) return true;
    const auto part_of = [&](int split) {
        return reinterpret_cast<typename Own::Word*>(partial + (int64_t(split) * gridDim.x + blockIdx.x) * COUNT * THREADS) +
               threadIdx.x;
    };
    Number numbers[COUNT];
    for_sums(sum, [&](Number& number, int i) { numbers[i] = number; });
    Own::store(numbers, part_of(blockIdx.y));
    if (!last_to_arrive(counters + blockIdx.x, splits)) return false;
    Own::add(numbers, 0, splits - 1, part_of);
    for_sums(sum, [&](Number& number, int i) { number = numbers[i]; });
    return true;
}

}  // namespace matmul
