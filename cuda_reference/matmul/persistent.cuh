// Matrix product on Hopper, persistent (TMA, wgmma): one thread makes the copy engine fill slices, warpgroups multiply them.
//
// In `pipelined` warps copy, load fragments and multiply in turns, and reach some 60 % of the tensor cores. Here three things
// change:
//
//   - wgmma reads both operands from shared memory: no fragments in registers, no ldmatrix. (But for B of tf32 that lies across
//     K, whose tiles are always SWAPPED: parts/transposed.cuh.)
//   - TMA computes the addresses, swizzles, rounds fp32 to tf32, and writes zeros for elements outside of the operands. One
//     thread of a producer warpgroup requests the slices, and the producer's registers go to the consumers (setmaxnreg).
//   - No barrier of the block in the loop: each stage has an mbarrier that says that its slice has landed, and one that says
//     that all consumers have read it.
//
// Per 16 of k two warpgroups read 2 (64 + 256) * 32 bytes = 20 KB of shared memory for a 128 x 256 tile. Its 2^19 multiply-adds
// take 256 clocks at 2048 per clock, in which 32 KB could be read.
//
// A block computes every gridDim.x-th tile, so that the slices of the next tile land while this one's result is written. The
// copy engine writes it too (OUT_BOXES), from two boxes of shared memory per warpgroup, one filled while the other is read, or
// from one where another stage has more use for the room: 16-bit results by stmatrix, 8 rows of 16 bytes at once. A result that
// TMA cannot write goes through a box, too (parts/warp_rows.cuh). What is added to a box comes from shared memory, where a tile's
// bias lands meanwhile (parts/tile_bias.cuh).
//
// The tensor cores add up products of fp8 in some 14 bits. Unless that is asked for, each slice has a sum of its own (PROMOTES),
// which CUDA cores add to one in fp32: there are two of them in turn, so that the wgmmas of a slice run while the sum of the one
// before is added. With the fp32 sums they fill the registers, so a warpgroup has 64 x 128 of the tile at most.
//
// Tiles that are too few for the SMs, or leave the last wave half empty, are split along K: blocks walk pieces of tiles, the sums
// of which the copy engine writes to a workspace as if each split were a matrix of the batch, and parts/add_parts.cuh adds them
// up. All pieces are equally long, since TMA reads zeros beyond K. Neighbours are at the same k at a time, so L2 has what they
// share.
//
// Three consumers have 64 x 192 sums each at most: 3000 x 3000 is 256 tiles of 192 x 192, two waves on 132 SMs, and 288 of
// 128 x 256, three. Two consumers have up to 64 x 320, by two wgmmas of half as many columns, as there are more registers for
// each.
//
// SWAPPED tiles are those of C^T = B^T A^T, of which a consumer has 64 columns and all rows: 96, say, or 160 (parts/swapped.cuh).
// 1024 x 528 is 99 tiles of 96 x 64, one wave of 132 SMs, and 72 of 128 x 64 or 144 of 64 x 64.
//
// While a tile's result is written its consumers don't multiply: of few slices, 12 of 768 k, that is a tenth of the time. So
// consumers may have tiles of their own and multiply IN_TURN: each starts its tile's products once the one before has started
// its last ones (parts/turns.cuh), and writes its result while the other multiplies. A tile's sums must fit into one
// consumer's registers, so it has half the size, for which L2 sends more.
//
// A CLUSTER of two blocks has neighbouring tiles, which need the same slices of one operand: along M those of B, along N those of
// A; where there is a choice the longer side's, for which L2 sends least (parts/wgmma_tiles.py). Each block requests half of them
// for both (multicast), and all of its other operand. So L2 sends a pair of 128 x 256 tiles 2 * 128 + 256 rows of 128 bytes a
// slice, not 2 * (128 + 256): a third less. A stage of either block is written by both: it is full when the bytes of both have
// landed, and empty when the consumers of both have read theirs.
//
// A CLUSTER of four has 2 x 2 tiles, each of which shares A with its neighbour along N, and B with that along M: half as many rows
// a slice as without. L2 sends a line of 128 bytes to an SM every 3 clocks, and two for 128 bytes of a row that begins within a
// sector of 32, as most of 5400 columns of bf16 do: a tile of 128 x 256 takes 1.9 * 384 lines, 2100 clocks, for products of 1024;
// with four it is 1060. But not all SMs are in such clusters (model.py).
//
// Glossary: BM x BN is the block tile, of which each of CONSUMERS warpgroups owns BM / CONSUMERS rows; a slice is 128 bytes of
// k, a step 32.
//
// Here is how it all fits together: what a block is, which tiles it computes, and its threads' roles. What they do is in parts/:
//
//     tma_slices.cuh      a slice in shared memory, how TMA brings it, and the ring of stages
//     cluster.cuh         which blocks share slices, and their tiles
//     block_memory.cuh    registers and shared memory of a block
//     producer.cuh        the thread that requests slices
//     consumer.cuh        a warpgroup's way from slices to results; of tf32 with B across K transposed.cuh
//     slice_products.cuh  its main loop
//     turns.cuh           whose turn it is to multiply
//     boxed_result.cuh    its epilogue by boxes, which out_boxes.cuh passes to TMA; of SWAPPED tiles swapped.cuh
//     addend.cuh          how C comes to it
//
// Mirrors tritonkernels/matmul/persistent.py.
#pragma once
#include <type_traits>

#include "../common/index.cuh"
#include "../common/overlap.cuh"
#include "../common/runs.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "parts/addend.cuh"
#include "parts/arguments.cuh"
#include "parts/block_memory.cuh"
#include "parts/cluster.cuh"
#include "parts/consumer.cuh"
#include "parts/out_boxes.cuh"
#include "parts/producer.cuh"
#include "parts/scales.cuh"
#include "parts/slice_products.cuh"
#include "parts/tma_slices.cuh"
#include "parts/transposed.cuh"

namespace matmul {

// What a block is: the kernel's constants, and what follows from them. SCALED: nothing follows alpha, as epilogue.cuh says.
// PROMOTES: tensor cores add up one slice at a time. SCALES: those of fp8 (scales.cuh), which SWAPPED tiles have of a matrix only.
template <class T, class Out_, class Sum_, int BM_, int BN_, int CONSUMERS_, int STAGES_, int CLUSTER, int SHARE_A, bool SWAPPED_,
          bool A_K_MAJOR, bool B_K_MAJOR, bool PROMOTES, Scales SCALES_, bool SCALED_, bool OUT_BOXES_, bool IN_TURN_ = false>
struct BlockOf {
    using Out = Out_;
    using Sum = Sum_;
    using Number = Scalar<Sum>;
    using Args = Arguments<Sum, Out>;
    static constexpr int BM = BM_, BN = BN_, CONSUMERS = CONSUMERS_, STAGES = STAGES_;
    static constexpr bool SWAPPED = SWAPPED_, SCALED = SCALED_, OUT_BOXES = OUT_BOXES_, IN_TURN = IN_TURN_;
    static constexpr bool HAS_BOXES = true;  // for results, also those that TMA cannot write (warp_rows.cuh)
    static constexpr Scales SCALES = SCALES_;
    static constexpr int SHARING = IN_TURN ? 1 : CONSUMERS, TURNS = IN_TURN ? CONSUMERS : 0;  // consumers that have a tile together
    static_assert((SWAPPED ? BN : BM) % (SHARING * 64) == 0, "a wgmma has 64 rows");
    static_assert(!SWAPPED || (BN == SHARING * 64 && BM % 8 == 0 && BM >= 32 && SCALES != ROW_SCALES),
                  "a consumer has 64 columns");

    static_assert(CLUSTER % SHARE_A == 0 && CLUSTER <= 8, "a cluster is SHARE_B x SHARE_A blocks, of which each GPU takes 8");
    using Cluster = ClusterOf<SHARE_A, CLUSTER / SHARE_A>;
    using Tiles = ClusterTiles<Cluster, BM, BN>;
    using ASlice = OperandSlice<T, BM, A_K_MAJOR>;
    using BSlice = OperandSlice<T, BN, B_K_MAJOR>;
    using Boxes = OutBoxes<Out, BOXES_THAT_FIT<ASlice::LINES + BSlice::LINES, BN, CONSUMERS, STAGES>>;

    static constexpr int BLOCKS = SWAPPED ? 1 : BM / SHARING / 64;  // of 64 rows of a consumer's products
    static constexpr int TILES = (SWAPPED ? BM : BN) / 8;             // of 8 columns of them
    static constexpr int SUMS = BLOCKS * TILES * 4;                   // of a thread
    using Threads = Registers<CONSUMERS, SUMS>;
    static_assert(CONSUMERS == 1 || SUMS + Threads::OF_A_BOX <= Threads::CONSUMER, "sums, and what a box takes");
    static_assert(!PROMOTES || (SUMS <= 64 && CONSUMERS < 3), "three sets of sums must fit in registers");
    static_assert(!IN_TURN || (!PROMOTES && CONSUMERS > 1), "one sum, and others who multiply meanwhile");
    static constexpr bool TRANSPOSED = sizeof(T) == 4 && !B_K_MAJOR;  // its consumers load B into registers
    using Left = std::conditional_t<SWAPPED, BSlice, ASlice>;         // of which a consumer has BLOCKS of 64
    using Right = std::conditional_t<SWAPPED, ASlice, BSlice>;
    using Products = SliceProducts<Left, Right, Sum, BLOCKS, TILES, PROMOTES>;
    using Addend = AddendOf<BLOCKS, TILES, SHARING, Boxes::TILES, ASlice::LINES, BSlice::LINES, OUT_BOXES && !SWAPPED && !SCALED>;
    static_assert(!IN_TURN || Addend::STAGES < STAGES, "all of C lands beside the last slice");
};

// What a block computes: every gridDim.x-th tile, whole, or a piece of each if K is split: those of all tiles' first `slices`, then
// of the next ones. A cluster counts as one block. Producers and consumers walk alike.
struct WholeTiles {
    static constexpr bool CUTS = false;
    static constexpr int SPLITS = 1;  // blocks of a cluster with a piece each of the same tile
    int tiles, slices;  // of all splits; of a piece

    template <int CLUSTER> __device__ __forceinline__ Piece first() const { return {int(blockIdx.x) / CLUSTER, 0, slices}; }

    template <int CLUSTER, class Compute> __device__ __forceinline__ void for_pieces(const Compute& compute) const {
        for (int i = blockIdx.x / CLUSTER; i < tiles; i += gridDim.x / CLUSTER) compute(Piece{i, 0, slices});
    }
};

// walk_of(tiles, slices) makes a Walk, as WholeTiles is.
template <class Block, class WalkOf>
__device__ __forceinline__ void multiply_tiles(const typename Block::Args& args, const WalkOf& walk_of) {
    constexpr int CONSUMERS = Block::CONSUMERS;
    using Threads = typename Block::Threads;
    using Walk = decltype(walk_of(0, 0));
    const BlockMemory<Block> memory;
    const typename Block::Tiles tiles(args.M, args.N, args.group);
    const Walk walk = walk_of(args.batches * tiles.count, ceil_div(args.K, Block::ASlice::DEPTH));
    Producer<Block, Walk> producer{args, memory, tiles, walk};
    const bool produces = threadIdx.x / 32 == CONSUMERS * 4;
    if (produces) producer.find_first();
    if (threadIdx.x == CONSUMERS * 128 + 32) {  // while the kernel before this one ends
        memory.init_barriers();
        prefetch_tensor_map(args.a_map);
        prefetch_tensor_map(args.b_map);
        if constexpr (Block::OUT_BOXES) prefetch_tensor_map(args.out_map);
        if (Block::Addend::STAGES > 0 && args.c_map != nullptr) prefetch_tensor_map(*args.c_map);
    }
    __syncwarp();
    memory.begin();
    if (threadIdx.x >= CONSUMERS * 128) {
        if constexpr (CONSUMERS > 1) give_up_registers<Threads::PRODUCER>();
        if (produces) producer.request_all();
        if constexpr (Walk::SPLITS > 1) {  // all threads of the cluster are to arrive
            __syncwarp();
            cluster_exchange();
        }
    } else {
        if constexpr (CONSUMERS > 1) take_registers<Threads::CONSUMER>();
        wait_for_earlier_kernels();
        if constexpr (Block::TRANSPOSED)
            consume_transposed<Block>(args, memory, tiles, walk);
        else
            consume<Block>(args, memory, tiles, walk);
    }
    if constexpr (Walk::SPLITS > 1) {  // which others read
        __syncwarp();
        cluster_barrier();
    }
}

template <class T, class Out, class Sum, int BM, int BN, int CONSUMERS, int STAGES, int CLUSTER, int SHARE_A, bool SWAPPED,
          bool IN_TURN, bool A_K_MAJOR, bool B_K_MAJOR, bool PROMOTES, Scales SCALES, bool SCALED, bool OUT_BOXES>
__global__ void __launch_bounds__((CONSUMERS + 1) * 128,
                                  blocks_of_an_sm<lines_of_slice<T>(BM, A_K_MAJOR) + lines_of_slice<T>(BN, B_K_MAJOR), BN,
                                                  CONSUMERS, STAGES, PROMOTES, SCALED>())
__cluster_dims__(CLUSTER, 1, 1)
persistent(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
           const __grid_constant__ CUtensorMap out_map, const Out* __restrict__ c, const Out* __restrict__ bias,
           Out* __restrict__ out, int M, int N, int K, Scalar<Sum> alpha, Scalar<Sum> beta, int activation, Strides stride,
           int batches, int group, const float* __restrict__ scale_a, const float* __restrict__ scale_b,
           ScaleStrides scale_stride, const __grid_constant__ CUtensorMap c_map, int splits) {
    using Block = BlockOf<T, Out, Sum, BM, BN, CONSUMERS, STAGES, CLUSTER, SHARE_A, SWAPPED, A_K_MAJOR, B_K_MAJOR, PROMOTES,
                          SCALES, SCALED, OUT_BOXES, IN_TURN>;
    multiply_tiles<Block>(
        {a_map, b_map, out_map, c == nullptr && beta != 0 ? &c_map : nullptr, c, bias, out, M, N, K, alpha, beta, activation,
         stride, batches, group, scale_a, scale_b, scale_stride},
        [=](int tiles, int slices) { return WholeTiles{splits * tiles, splits == 1 ? slices : ceil_div(slices, splits)}; });
}

}  // namespace matmul
