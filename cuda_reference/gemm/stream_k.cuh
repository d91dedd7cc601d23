// FP32 GEMM, stream_k: `rasterized` with as many blocks as fit on the GPU, which share the tiles evenly, to the slice.
//
// The tail effect: 140 tiles on 132 SMs take two waves, the second with 8 blocks: 53 % of the GPU at best. Here whole waves of
// tiles are computed as before, and the rest, between one and two waves, is cut into equal runs of slices, one per block,
// wherever tiles begin and end. Of a tile that is cut each block writes its sums to a workspace, where it has room for two, one
// at either end of its run; the last to arrive adds them in the order of K, as in `split_k`: the same bits every time for the
// same number of blocks, in one launch. After Osama, Merrill, Cecka, Garland, Owens: Stream-K (PPoPP 2023), the variant called
// "two-tile". Mirrors tritonkernels/gemm/stream_k.py, which adds up the parts in a second kernel.
#pragma once
#include "../common/add_splits.cuh"
#include "../common/overlap.cuh"
#include "../common/runs.cuh"
#include "rasterized.cuh"

namespace gemm {

// `sharers` blocks share the tiles after the first `whole_tiles`, none of them without a slice.
template <int BM, int BN, int BK, int TM, int TN, bool VECTOR, bool SHIFTED>
__global__ void __launch_bounds__(Shape<BM, BN, TM, TN>::THREADS, Shape<BM, BN, TM, TN>::blocks_per_sm(VECTOR))
stream_k(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c, float* __restrict__ out,
         int M, int N, int K, float alpha, float beta, Strides stride, int group, float* parts, int* counters,
         int whole_tiles, int sharers) {
    wait_for_earlier_kernels();
    using Own = Shape<BM, BN, TM, TN>;
    using Buffer = DoubleBuffer<BM, BN, BK, TM, TN, VECTOR>;
    using Place = typename Buffer::Place;
    __shared__ typename Buffer::Slice buffers[2];

    const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), slices = max(ceil_div(K, BK), 1);
    const Runs runs{int64_t(tiles_m * tiles_n - whole_tiles) * slices, sharers};
    runs.for_pieces(whole_tiles, slices, [&](const Piece& piece) {
        const TileIndex tile = rasterize(piece.tile, tiles_m, tiles_n, group);
        const int first_row = tile.m * BM, first_col = tile.n * BN;
        const int64_t first_k = int64_t(piece.first) * BK;
        const int length = int(min(K - first_k, int64_t(piece.count) * BK));

        float sum[TM][TN] = {};
        const float *a_part = a + first_k * stride.a.col, *b_part = b + first_k * stride.b.row;
        Buffer::accumulate(sum, buffers, a_part, b_part, first_row, first_col, M, N, length, stride);

        bool whole = piece.count == slices;
        if (!whole) {
            const int shared_tile = piece.tile - whole_tiles;
            const Sharers of_tile = runs.sharers_of(shared_tile, slices);
            const auto counter_of = [&](int group) {  // after those of the blocks' slots, of which groups have their first's
                return counters + (group < 0 ? 2 * sharers + shared_tile : of_tile.slot_of(group));
            };
            whole = add_parts<Own::THREADS, Own::PARTS_AT_ONCE, Own::SUMS_AT_ONCE>(
                sum, blockIdx.x, of_tile.first, of_tile.last, counter_of,
                [&](int block) { return parts + int64_t(of_tile.slot_of(block)) * (BM * BN); });
        }
        if (whole) Place::template store<SHIFTED>(sum, c, out, first_row, first_col, M, N, alpha, beta, stride);
        __syncthreads();  // all threads have read the buffers, the next tile may overwrite them
    });
}

}  // namespace gemm
