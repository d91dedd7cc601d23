// The sums of the blocks that share a tile, each with its range of K: the last to arrive adds them up, in the order of K.
//
// It reads a part after the other, a quarter of a microsecond each: 100 parts would take longer than the product. So more than
// 16 are added up in two rounds: in each group of 8 the last to arrive puts their sum in the place of the first, and of these
// blocks the last adds up the groups' sums. Of 128 parts it reads 16, after all groups were added up side by side.
#pragma once
#include <type_traits>

#include "last_to_arrive.cuh"

// Calls change(number, index) for each of a thread's sums, in a fixed order.
template <class Number, int TM, int TN, class Do>
__device__ __forceinline__ void for_sums(Number (&sum)[TM][TN], const Do& change) {
#pragma unroll
    for (int i = 0; i < TM * TN; ++i) change(sum[i / TN][i % TN], i);
}

constexpr int GROUP_OF_PARTS = 8;  // operations/gemm/split_counts.py

// A thread's part of a tile in the workspace: 16 bytes at a time, of THREADS threads side by side. At most LARGEST of its sums
// are added up, then the next; MOST parts of these are under way at most, each in as many registers, and 1 where they are many.
template <class Number, int COUNT, int THREADS, int MOST = 4, int LARGEST = COUNT> struct Parts {
    static constexpr int PIECE = COUNT < LARGEST ? COUNT : LARGEST, PER_WORD = 16 / sizeof(Number), WORDS = PIECE / PER_WORD;
    static constexpr int AT_ONCE = WORDS <= 8 ? MOST : 1;
    static_assert(PIECE % PER_WORD == 0 && COUNT % PIECE == 0, "whole words of 16 bytes, whole pieces");
    struct __align__(16) Word { Number x[PER_WORD]; };

    __device__ __forceinline__ static void store(const Number (&numbers)[COUNT], Word* part) {
#pragma unroll
        for (int i = 0; i < COUNT / PER_WORD; ++i) {
            Word word;
#pragma unroll
            for (int j = 0; j < PER_WORD; ++j) word.x[j] = numbers[i * PER_WORD + j];
            part[i * THREADS] = word;
        }
    }

    // The first part = the sum of parts first to last, a group's. One or two words of each are under way, not a whole part: it has
    // few registers, since ptxas keeps those of wgmma's sums. part_of(i) is where the i-th is
    template <class PartOf>
    __device__ __forceinline__ static void add_group(int first, int last, const PartOf& part_of) {
#pragma unroll(COUNT <= 32 ? 2 : 1)
        for (int i = 0; i < COUNT / PER_WORD; ++i) {
            uint4 loaded[GROUP_OF_PARTS];
#pragma unroll
            for (int part = 0; part < GROUP_OF_PARTS; ++part) {
                const auto word = reinterpret_cast<const uint4*>(part_of(min(first + part, last))) + i * THREADS;
                loaded[part] = first + part <= last ? __ldcg(word) : make_uint4(0, 0, 0, 0);
            }
            Word total = {};
#pragma unroll
            for (int part = 0; part < GROUP_OF_PARTS; ++part)
#pragma unroll
                for (int j = 0; j < PER_WORD; ++j) total.x[j] += reinterpret_cast<const Word&>(loaded[part]).x[j];
            part_of(first)[i * THREADS] = total;
        }
    }

    // total = the sum of every step-th part from first to last, one after the other
    template <class PartOf>
    __device__ __forceinline__ static void add(Number (&total)[COUNT], int first, int last, int step, const PartOf& part_of) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) total[i] = 0;
#pragma unroll
        for (int piece = 0; piece < COUNT; piece += PIECE)
#pragma unroll 1
            for (int next = first; next <= last; next += AT_ONCE * step) {
                uint4 loaded[AT_ONCE][WORDS];
#pragma unroll
                for (int ahead = 0; ahead < AT_ONCE; ++ahead) {
                    const int i_th = next + ahead * step;
                    const auto part = reinterpret_cast<const uint4*>(part_of(min(i_th, last))) + piece / PER_WORD * THREADS;
#pragma unroll
                    for (int i = 0; i < WORDS; ++i)
                        loaded[ahead][i] = i_th <= last ? __ldcg(part + i * THREADS) : make_uint4(0, 0, 0, 0);
                }
#pragma unroll
                for (int ahead = 0; ahead < AT_ONCE; ++ahead)
#pragma unroll
                    for (int i = 0; i < PIECE; ++i)
                        total[piece + i] += reinterpret_cast<const Word&>(loaded[ahead][i / PER_WORD]).x[i % PER_WORD];
            }
    }
};

// What these threads, which have stored part `own` of the parts first to last, are to add up: every so many of them, or nothing
// (0), since others arrived later. arrive(group, count) says whether they are the last of `count` at the counter of the group that
// begins with a part, or at the tile's if that is -1; add_group(from, to) puts the sum of these parts where the first was.
template <class Arrive, class AddGroup>
__device__ __forceinline__ int step_of_last(int own, int first, int last, const Arrive& arrive, const AddGroup& add_group) {
    if (last - first < 2 * GROUP_OF_PARTS) return arrive(-1, last - first + 1);
    const int from = first + (own - first) / GROUP_OF_PARTS * GROUP_OF_PARTS, to = min(from + GROUP_OF_PARTS - 1, last);
    if (!arrive(from, to - from + 1)) return 0;
    add_group(from, to);
    return arrive(-1, (last - first) / GROUP_OF_PARTS + 1) ? GROUP_OF_PARTS : 0;
}

// Whether this block, which has part `own` of a tile's parts first to last, now has the sum of all. tile_of(i) is where part i
// begins in the workspace, the sums of THREADS threads; counter_of(i) counts for the group that begins with part i, or for the
// tile if i is -1.
template <int THREADS, int MOST, int LARGEST, class Sums, class TileOf, class CounterOf>
__device__ __forceinline__ bool add_parts(Sums& sum, int own, int first, int last, const CounterOf& counter_of,
                                          const TileOf& tile_of) {
    using Number = std::remove_pointer_t<decltype(tile_of(own))>;
    constexpr int COUNT = sizeof(Sums) / sizeof(Number);
    using Own = Parts<Number, COUNT, THREADS, MOST, LARGEST>;
    const auto part_of = [&](int part) { return reinterpret_cast<typename Own::Word*>(tile_of(part)) + threadIdx.x; };
    Number numbers[COUNT];
    for_sums(sum, [&](Number& number, int i) { numbers[i] = number; });
    Own::store(numbers, part_of(own));
    const auto arrive = [&](int group, int count) { return last_to_arrive(counter_of(group), count); };
    const auto add_group = [&](int from, int to) { Own::add_group(from, to, part_of); };
    const int step = step_of_last(own, first, last, arrive, add_group);
    if (step == 0) return false;
    Own::add(numbers, first, last, step, part_of);
    for_sums(sum, [&](Number& number, int i) { number = numbers[i]; });
    return true;
}

// Whether this block has the sum of all splits, which are gridDim.y, of tile blockIdx.x. `partial` is (splits, tiles, threads'
// sums), `counters` those of the tiles, then of their groups: operations/gemm/split_counts.py.
template <int THREADS, int MOST = 4, int LARGEST = 1024, class Number, class Sums>
__device__ __forceinline__ bool add_splits(Sums& sum, Number* partial, int* counters) {
    constexpr int COUNT = sizeof(Sums) / sizeof(Number);
    const int splits = gridDim.y;
    if (splits == 1) return true;
    const auto tile_of = [&](int split) { return partial + (int64_t(split) * gridDim.x + blockIdx.x) * COUNT * THREADS; };
    const auto counter_of = [&](int group) {
        return counters + (group < 0 ? 0 : 1 + group / GROUP_OF_PARTS) * int64_t(gridDim.x) + blockIdx.x;
    };
    return add_parts<THREADS, MOST, LARGEST>(sum, blockIdx.y, 0, splits - 1, counter_of, tile_of);
}
