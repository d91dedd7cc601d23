// Matrix product on Hopper, stream-K (TMA, wgmma): `persistent`, with the last tiles cut into equal runs of slices, one a block.
//
// A block per SM that walks whole tiles has a tail: 144 tiles on 132 SMs take two waves, and the second keeps 12 of them busy. A
// product of few rows may have 20 tiles in all, each with K = 13824 to go through, and 112 SMs idle. Here whole waves are computed
// as in `persistent`; the slices of the tiles that are left form one line, which is cut into equal runs, wherever tiles begin and
// end. So every SM streams its share of the operands, and TMA fetches the slices of the next run while this one is multiplied.
//
// A run that covers a tile writes it. Of a tile that is cut each block writes its sums to a workspace, and the last to arrive adds
// them up, in the order of K: the same bits every time, in one launch. Each warpgroup arrives for its own rows, so that nobody
// waits for the other, or for the producer, which is at the next piece. A block's run begins inside one tile and ends inside
// another, so that it has 2 tiles of workspace.
//
// Adding up takes trips to L2, a part after the other, or in two rounds (add_splits.cuh). So a tile has at most PARTS of them
// (stream_k.py), but where there are so few tiles that all SMs should share them. Then each tile has the same number of parts: runs
// that begin anywhere would be at different k at a time, and read operands that L2 does not hold once for each tile.
//
// Source: M. Osama et al., Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication on the GPU (2023).
// Mirrors tritonkernels/matmul/stream_k.py, which adds up the parts in a second kernel.
#pragma once
#include "../common/add_splits.cuh"
#include "persistent.cuh"

namespace matmul {

// A walk: every gridDim.x-th of the whole tiles, then this block's run of the slices of the others.
template <class Sum, int CONSUMERS> struct SharedTiles {
    static constexpr bool CUTS = true;
    static constexpr int SPLITS = 1;
    using Number = Scalar<Sum>;
    int whole_tiles, slices;  // slices of a tile
    Runs runs;
    Number* parts;  // (block, beginning or end of its run, consumer, 64 rows, sums of 128 threads)
    int* counters;  // (block, beginning or end of its run), which groups of parts use, then (shared tile); a consumer's each

    template <int CLUSTER, class Compute> __device__ __forceinline__ void for_pieces(const Compute& compute) const {
        runs.for_pieces(whole_tiles, slices, compute);
    }

    // Whether this warpgroup has the sums of all of K: of a piece it has if it is the last, and adds the others'. `rows` of its
    // rows are in the result: for few of them most warps have nothing to exchange.
    template <int BLOCKS, int TILES>
    __device__ __forceinline__ bool add_others(LaneSums<Sum> (&sum)[BLOCKS][1][TILES], const Piece& piece, int rows,
                                               bool* last) const {
        if (piece.count == slices) return true;
        const int consumer = threadIdx.x / 128, shared_tile = piece.tile - whole_tiles, row = threadIdx.x % 128 / 32 * 16;
        const Sharers sharers = runs.sharers_of(shared_tile, slices);
        using Own = Parts<Number, TILES * 4, 128>;
        const auto part_of = [&](int block, int m) {
            Number* const own = parts + ((sharers.slot_of(block) * CONSUMERS + consumer) * BLOCKS + m) * (TILES * 4 * 128);
            return reinterpret_cast<typename Own::Word*>(own) + threadIdx.x % 128;
        };
        Number numbers[TILES * 4];
#pragma unroll
        for (int m = 0; m < BLOCKS; ++m) {
            wgmma_results(sum[m][0]);
            if (m * 64 + row >= rows) continue;
#pragma unroll
            for (int i = 0; i < TILES * 4; ++i) numbers[i] = widen(sum[m][0][i / 4].at(i % 4));
            Own::store(numbers, part_of(blockIdx.x, m));
        }
        const auto arrive = [&](int group, int count) {
            const int counter = group < 0 ? 2 * runs.blocks + shared_tile : sharers.slot_of(group);
            return last_to_arrive(counters + counter * CONSUMERS + consumer, count, threadIdx.x % 128 == 0, last + consumer,
                                  [] { warpgroup_barrier(); });
        };
        const int step = step_of_last(blockIdx.x, sharers.first, sharers.last, arrive, [&](int from, int to) {
#pragma unroll
            for (int m = 0; m < BLOCKS; ++m)
                if (m * 64 + row < rows) Own::add_group(from, to, [&](int block) { return part_of(block, m); });
        });
        if (step == 0) return false;
#pragma unroll
        for (int m = 0; m < BLOCKS; ++m) {
            // Rows beyond the result get no part. They become 0, so that no register keeps them while parts are added up.
            const int last_part = m * 64 + row < rows ? sharers.last : -1;
            Own::add(numbers, sharers.first, last_part, step, [&](int block) { return part_of(block, m); });
#pragma unroll
            for (int n = 0; n < TILES; ++n) narrow(&numbers[n * 4], sum[m][0][n]);
        }
        return true;
    }

    __device__ __forceinline__ static void narrow(const Number* total, LaneSums<Sum>& sum) {
        if constexpr (std::is_same_v<Sum, __half>) {  // parts are added up in fp32, their sum is rounded once
            sum.x[0] = __floats2half2_rn(total[0], total[1]);
            sum.x[1] = __floats2half2_rn(total[2], total[3]);
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) sum.x[i] = Sum(total[i]);
        }
    }
};

// `sharers` blocks share the tiles after the first `whole_tiles`, none of them without a slice.
template <class T, class Out, class Sum, int BM, int BN, int CONSUMERS, int STAGES, bool A_K_MAJOR, bool B_K_MAJOR,
          bool PROMOTES, Scales SCALES, bool SCALED, bool OUT_BOXES>
__global__ void __launch_bounds__((CONSUMERS + 1) * 128, 1)
stream_k(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
         const __grid_constant__ CUtensorMap out_map, const Out* __restrict__ c, const Out* __restrict__ bias,
         Out* __restrict__ out, int M, int N, int K, Scalar<Sum> alpha, Scalar<Sum> beta, int activation, Strides stride,
         int batches, int group, const float* __restrict__ scale_a, const float* __restrict__ scale_b,
         ScaleStrides scale_stride, Scalar<Sum>* parts, int* counters, int whole_tiles, int sharers) {
    using Walk = SharedTiles<Sum, CONSUMERS>;
    multiply_tiles<T, Out, Sum, BM, BN, CONSUMERS, STAGES, 1, A_K_MAJOR, B_K_MAJOR, PROMOTES, SCALES, SCALED, OUT_BOXES>(
        a_map, b_map, out_map, c, bias, out, M, N, K, alpha, beta, activation, stride, batches, group, scale_a, scale_b,
        scale_stride, [=](int tiles, int slices) {
            const Runs runs{int64_t(tiles - whole_tiles) * slices, sharers};
            return Walk{whole_tiles, slices, runs, parts, counters};
        });
}

}  // namespace matmul
