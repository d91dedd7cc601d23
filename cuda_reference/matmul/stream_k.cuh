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
// A CLUSTER of two shares a run, and slices by multicast, as in `persistent`: a run is one of pairs of tiles, of which each block
// has its own. So 100 tiles of 128 x 256, which leave SMs idle or read L2 dry, keep all of them at the tensor cores.
//
// Adding up takes trips to L2, a part after the other, or in two rounds (add_splits.cuh). So a tile has at most PARTS of them
// (stream_k.py), but where there are so few tiles that all SMs should share them. Then each tile has the same number of parts: runs
// that begin anywhere would be at different k at a time, and read operands that L2 does not hold once for each tile.
//
// Source: M. Osama et al., Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication on the GPU (2023).
// Mirrors tritonkernels/matmul/stream_k.py, which adds up the parts in a second kernel.
#pragma once
#include "parts/shared_tiles.cuh"
#include "persistent.cuh"

namespace matmul {

// `sharers` clusters share the tiles after the first `whole_tiles`, none of them without a slice; these are tiles of clusters.
template <class T, class Out, class Sum, int BM, int BN, int CONSUMERS, int STAGES, int CLUSTER, int SHARE_A, bool A_K_MAJOR,
          bool B_K_MAJOR, bool PROMOTES, Scales SCALES, bool SCALED, bool OUT_BOXES>
__global__ void __launch_bounds__((CONSUMERS + 1) * 128, 1) __cluster_dims__(CLUSTER, 1, 1)
stream_k(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
         const __grid_constant__ CUtensorMap out_map, const Out* __restrict__ c, const Out* __restrict__ bias,
         Out* __restrict__ out, int M, int N, int K, Scalar<Sum> alpha, Scalar<Sum> beta, int activation, Strides stride,
         int batches, int group, const float* __restrict__ scale_a, const float* __restrict__ scale_b,
         ScaleStrides scale_stride, Scalar<Sum>* parts, int* counters, int whole_tiles, int sharers) {
    using Walk = SharedTiles<Sum, CONSUMERS, CLUSTER>;
    constexpr bool SWAPPED = sizeof(T) == 4 && !B_K_MAJOR;
    using Block = BlockOf<T, Out, Sum, BM, BN, CONSUMERS, STAGES, CLUSTER, SHARE_A, SWAPPED, A_K_MAJOR, B_K_MAJOR, PROMOTES,
                          SCALES, SCALED, OUT_BOXES>;
    multiply_tiles<Block>(
        {a_map, b_map, out_map, nullptr, c, bias, out, M, N, K, alpha, beta, activation, stride, batches, group, scale_a, scale_b,
         scale_stride},
        [=](int tiles, int slices) {
            const Runs runs{int64_t(tiles - whole_tiles) * slices, sharers};
            return Walk{whole_tiles, slices, runs, parts, counters};
        });
}

}  // namespace matmul
