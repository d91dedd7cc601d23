// A tile whose slices several blocks have multiplied: the last warpgroup to arrive adds up the sums of all, in a fixed order.
#pragma once
#include "../../common/add_splits.cuh"
#include "../../common/wgmma.cuh"
#include "lane_sums.cuh"

namespace matmul {

// Whether this warpgroup, which has part `own` of a tile's parts first to last, now has the sums of all. `rows` of its rows are in
// the result: for few of them most warps have nothing to exchange. slot_of(part) is its place in `parts`, of the sums of 128
// threads; counter_of(part) counts arrivals for the group that begins with the part, or for the tile if that is -1; the
// warpgroups have a flag each in `last`.
template <int BLOCKS, int TILES, class SlotOf, class CounterOf>
__device__ __forceinline__ bool add_sums_of_others(LaneSums<float> (&sum)[BLOCKS][1][TILES], int rows, int own, int first,
                                                   int last_part, float* parts, const SlotOf& slot_of,
                                                   const CounterOf& counter_of, bool* last) {
    using Own = Parts<float, TILES * 4, 128>;
    const int row = threadIdx.x % 128 / 32 * 16;
    const auto part_of = [&](int part, int m) {
        return reinterpret_cast<typename Own::Word*>(parts + (slot_of(part) * BLOCKS + m) * (TILES * 4 * 128)) + threadIdx.x % 128;
    };
    float numbers[TILES * 4];
#pragma unroll
    for (int m = 0; m < BLOCKS; ++m) {
        wgmma_results(sum[m][0]);
        if (m * 64 + row >= rows) continue;
#pragma unroll
        for (int i = 0; i < TILES * 4; ++i) numbers[i] = sum[m][0][i / 4].x[i % 4];
        Own::store(numbers, part_of(own, m));
    }
    const auto arrive = [&](int group, int count) {
        return last_to_arrive(counter_of(group), count, threadIdx.x % 128 == 0, last + threadIdx.x / 128,
                              [] { warpgroup_barrier(); });
    };
    const int step = step_of_last(own, first, last_part, arrive, [&](int from, int to) {
#pragma unroll
        for (int m = 0; m < BLOCKS; ++m)
            if (m * 64 + row < rows) Own::add_group(from, to, [&](int part) { return part_of(part, m); });
    });
    if (step == 0) return false;
#pragma unroll
    for (int m = 0; m < BLOCKS; ++m) {
        // Rows beyond the result get no part. They become 0, so that no register keeps them while parts are added up.
        const int until = m * 64 + row < rows ? last_part : -1;
        Own::add(numbers, first, until, step, [&](int part) { return part_of(part, m); });
#pragma unroll
        for (int i = 0; i < TILES * 4; ++i) sum[m][0][i / 4].x[i % 4] = numbers[i];
    }
    return true;
}

}  // namespace matmul
