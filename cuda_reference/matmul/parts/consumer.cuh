// A consumer of persistent.cuh: a warpgroup, which multiplies the slices of its part of a tile and writes the result.
#pragma once
#include "../../common/runs.cuh"
#include "../../common/wgmma.cuh"
#include "addend.cuh"
#include "block_memory.cuh"
#include "boxed_result.cuh"
#include "lane_sums.cuh"
#include "pairs.cuh"
#include "scales.cuh"
#include "slice_products.cuh"
#include "swapped.cuh"
#include "tile_bias.cuh"
#include "turns.cuh"
#include "warp_rows.cuh"

namespace matmul {

// Writes a warp's 16 rows of a gated linear unit that TMA does not write, by way of `rows` in shared memory.
template <class Sum, class Out, int TILES>
__device__ __forceinline__ void store_pairs(unsigned char* rows, const LaneSums<Sum> (&sum)[1][TILES],
                                            const Epilogue<Sum, Out>& epilogue, int row, int col, int M, int N) {
    Scalar<Sum> results[1][TILES / 2][4];
    finish_pairs(results, sum, epilogue, row + threadIdx.x % 32 / 4, col + threadIdx.x % 4 * 2, M, N);
    if (epilogue.stride.out.col == 1)
        WarpRows<Out>{rows}.store(results, epilogue, row, col / 2, M, N / 2);
    else
        store_results(results, epilogue, row, col / 2, M, N / 2);
}

// All that a consumer computes: its rows of the block's tiles, or of SWAPPED ones its columns; or IN_TURN whole tiles.
template <class Block, class Walk>
__device__ __forceinline__ void consume(const typename Block::Args& args, const BlockMemory<Block>& memory,
                                        const typename Block::Tiles& tiles, const Walk& walk) {
    using Out = typename Block::Out;
    using Sum = typename Block::Sum;
    using Number = typename Block::Number;
    constexpr int BM = Block::BM, BN = Block::BN, BLOCKS = Block::BLOCKS, TILES = Block::TILES;
    constexpr bool SWAPPED = Block::SWAPPED, SCALED = Block::SCALED, OUT_BOXES = Block::OUT_BOXES;
    const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    constexpr bool IN_TURN = Block::IN_TURN;
    static_assert(!IN_TURN || Walk::SPLITS == 1, "what consumers of other blocks add up is a part of the tile");
    const int part = IN_TURN || Block::CONSUMERS == 1 ? 0 : own_warpgroup();
    const int first_row = SWAPPED ? 0 : part * (BM / Block::SHARING), first_col = SWAPPED ? part * 64 : 0;
    const uint64_t of_a = wgmma_descriptor(shared_address(memory.a_slices + first_row * SLICE), BLOCK_BYTES);
    const uint64_t of_b = wgmma_descriptor(shared_address(memory.b_slices + first_col * SLICE), BLOCK_BYTES);
    const typename Block::Products products{SWAPPED ? of_b : of_a, SWAPPED ? of_a : of_b};
    const int told = Block::Cluster::told();
    const auto give_back = [&](int stage) { Block::Cluster::give_back(memory.empty + stage, told); };
    Ring<Block::STAGES> ring;
    Turns<Block> turns{memory.turns};
    auto out_boxes = memory.out_boxes(args.out_map);
    walk.template for_pieces<Block::Cluster::SIZE>([&](const Piece& piece) {
        AddendBoxes<Block, decltype(give_back)> addend{memory, ring, give_back, part, args.c_map != nullptr};
        if (IN_TURN && !turns.is_own()) return ring.skip(piece.count + addend.stages());
        const Place tile = tiles.place(piece.tile).kept();  // while the first slices are on their way
        const int batch = tile.matrix, M = args.M, N = args.N;
        TileScales<Block::SCALES, BLOCKS, BN> scales;
        const auto load_scales = [&] {
            scales.load(args.scale_a, args.scale_b, args.scale_stride, batch, tile.m * BM + first_row + warp * 16, tile.n * BN,
                        M, N);
        };
        if constexpr (SCALED) load_scales();  // early: they arrive while slices are multiplied
        TileBias<Number, Out, BN> tile_bias{memory.biases + threadIdx.x / 128 * BN};
        const bool adds_bias = OUT_BOXES && !SWAPPED && !SCALED && args.bias != nullptr;
        if (adds_bias) tile_bias.load(args.bias, args.stride.bias, tile.n * BN, N);
        SwappedResult<typename Block::Boxes, Out, Sum, BM, LanesInOrder> swapped{out_boxes};
        if constexpr (SWAPPED && !SCALED)
            swapped.load_bias(args.bias, args.stride.bias, tile.n * BN + first_col, N);

        LaneSums<Sum> sum[BLOCKS][1][TILES] = {};
        if constexpr (IN_TURN) turns.wait();
        const int last = products.multiply(sum, piece.count, ring, memory.full, give_back, [&] {
            if constexpr (IN_TURN) {
                addend.wait_for_all();  // or those whose turn it is might be two phases ahead of C's stages (turns.cuh)
                turns.pass(lane);
            }
        });

        const FirstResult at{tile.m * BM + first_row, tile.n * BN + first_col, batch};
        if constexpr (!SCALED) load_scales();  // no earlier than addends, which want registers of their own
        scales.apply(sum);
        if constexpr (Walk::SPLITS > 1) {
            const auto epilogue = args.template epilogue<Number, SCALED>(scales.times(args.alpha), batch);
            // Until nobody reads slices any more
            if (piece.count > 0) mbarrier_wait(memory.empty + last, ring.parity ^ (ring.stage == 0));
            return walk.share(sum, epilogue, memory.a_slices, tile.m * BM, first_row, at.col, M, N);
        }
        const auto epilogue = args.template epilogue<Sum, SCALED>(scales.times(args.alpha), batch);
        if constexpr (SWAPPED) {
            swapped.template store<SCALED, OUT_BOXES>(sum, epilogue, at.row, at.col, batch, M, N);
        } else if constexpr (OUT_BOXES) {
            BoxedResult<Block, decltype(addend)>{args, tile_bias, adds_bias, addend, warp, lane}.store(out_boxes, sum, epilogue, at);
        } else {
#pragma unroll
            for (int m = 0; m < BLOCKS; ++m) {
                wgmma_results(sum[m][0]);
                const int row = at.row + m * 64 + warp * 16;
                if constexpr (Block::GATED) {
                    store_pairs(memory.own_boxes() + warp * WarpRows<Out>::ROWS * SLICE, sum[m], epilogue, row, at.col, M, N);
                } else {
                    Scalar<Sum> results[1][TILES][4];
                    finish(results, sum[m], epilogue, row + lane / 4, at.col + lane % 4 * 2, M, N);
                    if (epilogue.stride.out.col == 1)
                        WarpRows<Out>{memory.own_boxes() + warp * WarpRows<Out>::ROWS * SLICE}.store(results, epilogue, row, at.col, M, N);
                    else
                        store_results(results, epilogue, row, at.col, M, N);
                }
            }
        }
    });
    if (OUT_BOXES && out_boxes.asks) tma_store_wait<0>();  // the stores read shared memory, which ends with the block
}

}  // namespace matmul
