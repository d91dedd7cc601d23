// implicit_gemm in fp32 on CUDA cores: gemm's loop over slices that cp.async copies STAGES - 1 ahead.
//
// Both operands lie across the reduction, as gemm wants its slices: a row of shared memory for each position, of BM channels of
// grad_output and BN columns. A thread reads 4 quads of them for 64 multiply-adds, without bank conflicts
// (gemm/parts/z_order.cuh). 128 x 128 x 32 products take 8192 clocks of half an SM's lanes: 2048 FFMA of a warp's 2390
// instructions. The quads are 128 of the others, the copies of a slice some 120.
//
// As many blocks as the GPU holds share the tiles evenly (pieces.cuh): 69 tiles of 128 x 128 would be a quarter or half of a wave.
// Where several blocks share a tile, the last to arrive adds up the sums in the order of positions, in one launch.
#pragma once
#include "../../common/add_splits.cuh"
#include "../../common/overlap.cuh"
#include "../../common/shared.cuh"
#include "../../gemm/parts/z_order.cuh"
#include "../../matmul/parts/store_run.cuh"
#include "pieces.cuh"
#include "slice_copies.cuh"

namespace conv2d_weight {

// A slice of an operand: rows of SPAN of its channels or columns, as they lie.
template <int SPAN, int BL> struct RowTile {
    using Element = float;
    static constexpr int CHUNK = 4, CHUNKS = SPAN / CHUNK, SIZE = SPAN * BL;

    __device__ __forceinline__ static int at(int row, int chunk) { return row * SPAN + chunk * CHUNK; }
};

// Adds the products of a slice, from the thread's first quads on. The quads of a position are loaded before the one before it is
// multiplied.
template <class Lanes, int BM, int BN, int BL, int TM, int TN>
__device__ __forceinline__ void multiply_slice(float (&sum)[TM][TN], const float* a, const float* b) {
    float a_part[2][TM], b_part[2][TN];
    const auto load = [&](int i) {
        gemm::load_fragment<TM, Lanes::GAP_M>(a_part[i % 2], a + i * BM);
        gemm::load_fragment<TN, Lanes::GAP_N>(b_part[i % 2], b + i * BN);
    };
    load(0);
#pragma unroll
    for (int i = 0; i < BL; ++i) {
        if (i + 1 < BL) load(i + 1);
        gemm::outer_product(sum, a_part[i % 2], b_part[i % 2]);
    }
}

// `parts` are of the tiles that several blocks share, each of a block's sums; `counters` their arrivals.
template <int BM, int BN, int BL, int TM, int TN, int STAGES>
__global__ void __launch_bounds__(gemm::Shape<BM, BN, TM, TN>::THREADS, gemm::Shape<BM, BN, TM, TN>::blocks_per_sm(true))
cuda_cores(const float* __restrict__ input, const float* __restrict__ grad_output, float* __restrict__ weight,
           float* __restrict__ parts, int* __restrict__ counters, Geometry g, Strides stride, Moves moves, Cut cut) {
    wait_for_earlier_kernels();
    using Own = gemm::Shape<BM, BN, TM, TN>;
    using Lanes = gemm::ZOrder<BM, BN, TM, TN>;
    using ATile = RowTile<BM, BL>;
    using BTile = RowTile<BN, BL>;
    __shared__ Positions<BL> positions[2];
    float* const a_tiles = dynamic_shared<float>();
    float* const b_tiles = a_tiles + STAGES * ATile::SIZE;
    const int channels = in_whole_chunks<float>(g.c_per_group());

    for_pieces(cut, [&](const Piece& piece) {
        const Tile tile(g, g.R * g.S * channels, BM, BN, piece.tile, int64_t(piece.first) * BL, int64_t(piece.count) * BL);
        SliceCopies<ATile, BTile, BL, STAGES, Own::THREADS> copies(input, grad_output, tile, positions, a_tiles, b_tiles, g,
                                                                   stride, moves);
        copies.copy_ahead(STAGES - 1);  // after a barrier: all threads have read the slices of the piece before
        float sum[TM][TN] = {};
        int now = 0;
#pragma unroll 1
        for (int left = int((tile.end - tile.first + BL - 1) / BL); left > 0; --left) {
            cp_async_wait<STAGES - 2>();
            __syncthreads();  // it has landed; the places of the next are known, and its stage is free
            copies.copy_next();
            multiply_slice<Lanes, BM, BN, BL>(sum, a_tiles + now * ATile::SIZE + Lanes::row(),
                                              b_tiles + now * BTile::SIZE + Lanes::col());
            now = now + 1 == STAGES ? 0 : now + 1;
        }

        bool is_whole = piece.count == cut.slices;
        if (!is_whole) {
            const int shared_tile = piece.tile - cut.whole;
            const Part part = part_of(cut, piece);
            int* const arrivals = counters + shared_tile * (1 + ceil_div(part.most, GROUP_OF_PARTS));
            float* const of_tile = parts + int64_t(shared_tile) * part.most * (BM * BN);
            const auto counter_of = [&](int group) { return arrivals + (group < 0 ? 0 : 1 + group / GROUP_OF_PARTS); };
            const auto sums_of = [&](int i) { return of_tile + i * (BM * BN); };  // 2^31 sums would be 130,000 blocks'
            is_whole = add_parts<Own::THREADS, Own::PARTS_AT_ONCE, Own::SUMS_AT_ONCE>(sum, part.own, 0, part.count - 1, counter_of,
                                                                                     sums_of);
        }
        if (is_whole) {
            float* const rows = weight + int64_t(tile.group) * g.k_per_group() * stride.weight.k;
#pragma unroll
            for (int n = 0; n < TN; n += 4) {
                const int column = tile.first_n + Lanes::col() + n / 4 * Lanes::GAP_N, tap = column / channels;
                if (tap >= g.R * g.S) continue;
                float* const filters = rows + tap / g.S * stride.weight.r + tap % g.S * stride.weight.s;
#pragma unroll
                for (int m = 0; m < TM; ++m) {
                    __align__(16) const float run[] = {sum[m][n], sum[m][n + 1], sum[m][n + 2], sum[m][n + 3]};
                    matmul::store_run(run, filters, tile.first_m + Lanes::row() + m / 4 * Lanes::GAP_M + m % 4, column % channels,
                                      g.k_per_group(), g.c_per_group(), stride.weight.k, stride.weight.c);
                }
            }
        }
    });
}

}  // namespace conv2d_weight
