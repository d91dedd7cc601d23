// Blocks that share rows: each writes its partial sums to a workspace, and the last to arrive adds them up, in one launch.
#pragma once
#include "../../common/last_to_arrive.cuh"
#include "../../common/reduce.cuh"

// The sum of `splits` partial sums side by side, in the block's first thread. All threads share the work, by their numbers:
// the order is fixed. From L2: other blocks wrote them.
template <int WARPS, class T> __device__ __forceinline__ T sum_of_splits(const T* partial, int splits) {
    T sum = 0;
#pragma unroll 4
    for (int split = threadIdx.x; split < splits; split += 32 * WARPS) sum += __ldcg(partial + split);
    return block_sum<WARPS>(sum);
}
