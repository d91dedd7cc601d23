// Matrix product on Hopper, persistent (TMA, wgmma): what calls get, by all techniques of the lessons.
//
// The lessons explain them, one each: wgmma.cuh (tensor cores read shared memory), tma.cuh (the copy engine fills a ring of
// stages), specialized.cuh (a producer, and consumers with its registers), tile_loop.cuh (a block walks tiles), multicast.cuh
// (blocks share slices) and in_turn.cuh (one consumer writes while the other multiplies). Here they take any type and layout,
// batches, C, bias, activations and scales, and the tile suits the problem:
//
//   - Consumers. Two have up to 64 x 320 sums each, by two wgmmas where that is more than 256 columns; three have 64 x 192 at most.
//     3000 x 3000 is 256 tiles of 192 x 192, two waves on 132 SMs, but 288 tiles of 128 x 256, three waves.
//   - SWAPPED tiles compute C^T = B^T A^T (parts/swapped.cuh). A consumer has 64 columns and all rows of the tile, so that a tile
//     may have 96 rows or 160: 1024 x 528 is 99 tiles of 96 x 64, one wave, but 72 of 128 x 64 or 144 of 64 x 64.
//   - Splits of K. Where tiles are too few for the SMs, or leave the last wave half empty, blocks walk pieces of tiles. The copy
//     engine writes their sums to a workspace, as if each split were a matrix of the batch, and parts/add_parts.cuh adds them up.
//     All pieces are equally long, since TMA reads zeros beyond K. Blocks are at the same k at the same time, so that L2 has what
//     they share.
//   - IN_TURN. Where K is short or the epilogue long, each consumer has a tile of its own. Such tiles are half as large, as one
//     consumer must hold all sums, and L2 sends more for them.
//   - CLUSTER. Two blocks have neighbouring tiles, and each requests half of the slices that they share for both: along M those of
//     B, along N those of A. If both are possible, the longer side is shared, so that L2 sends least (parts/wgmma_tiles.py). Four
//     blocks have 2 x 2 tiles, and each shares A with one neighbour and B with another: half as many rows a slice. L2 sends a line
//     of 128 bytes to an SM every 3 clocks, and two lines for 128 bytes that begin within a sector of 32, as in most rows of 5400
//     columns of bf16. A tile of 128 x 256 then takes 1.9 * 384 lines, 2100 clocks, for products of 1024; with four blocks it
//     takes 1060. But not all SMs of a GPU are in such clusters (choice/model.py).
//   - fp8. Tensor cores add up products of fp8 in some 14 bits. Unless the caller asks for that, each slice has its own sum
//     (PROMOTES), which CUDA cores add to one in fp32; so have planes of fp32 (persistent_planes.cuh). There are two such sums, so
//     that the wgmmas of a slice run while the sum of the one before is added. All three fill the registers, so a warpgroup has
//     64 x 128 of the tile at most.
//   - tf32. TMA rounds it on the way to shared memory. A B that lies across K is read into registers, in SWAPPED tiles
//     (parts/transposed.cuh).
//   - Results. The copy engine writes them, too (OUT_BOXES), from two boxes of shared memory for each warpgroup: one is filled
//     while the other is read. There is only one where another stage has more use for the room. 16-bit results get there by
//     stmatrix, 8 rows of 16 bytes at once. What TMA cannot write goes through a box, too (parts/warp_rows.cuh). A tile's bias
//     lands in shared memory meanwhile (parts/tile_bias.cuh).
//
// Glossary: BM x BN is the block tile, of which each of CONSUMERS warpgroups owns BM / CONSUMERS rows; a slice is 128 bytes of
// k, a step 32.
//
// Below are the constants of a block, its walk over tiles and the roles of its threads. Their work is in parts/:
//
//     tma_slices.cuh      a slice in shared memory, how TMA brings it, and the ring of stages
//     cluster.cuh         which blocks share slices, and their tiles
//     block_memory.cuh    registers and shared memory of a block
//     producer.cuh        the thread that requests slices
//     consumer.cuh        a warpgroup's way from slices to results (transposed.cuh: with B of tf32 across K)
//     slice_products.cuh  its main loop
//     turns.cuh           which consumer may multiply, IN_TURN
//     boxed_result.cuh    its epilogue by boxes, which out_boxes.cuh passes to TMA (swapped.cuh: of SWAPPED tiles)
//     addend.cuh          how C arrives
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
// GATED: results are made of pairs of sums (pairs.cuh).
template <class T, class Out_, class Sum_, int BM_, int BN_, int CONSUMERS_, int STAGES_, int CLUSTER, int SHARE_A, bool SWAPPED_,
          bool A_K_MAJOR, bool B_K_MAJOR, bool PROMOTES, Scales SCALES_, bool SCALED_, bool OUT_BOXES_, bool IN_TURN_ = false,
          bool GATED_ = false>
struct BlockOf {
    using Out = Out_;
    using Sum = Sum_;
    using Number = Scalar<Sum>;
    using Args = Arguments<Sum, Out>;
    static constexpr int BM = BM_, BN = BN_, CONSUMERS = CONSUMERS_, STAGES = STAGES_;
    static constexpr bool SWAPPED = SWAPPED_, SCALED = SCALED_, OUT_BOXES = OUT_BOXES_, IN_TURN = IN_TURN_, GATED = GATED_;
    static constexpr int OF_A_RESULT = GATED ? 2 : 1;  // sums
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
    using Addend = AddendOf<BLOCKS, TILES, SHARING, Boxes::TILES, ASlice::LINES, BSlice::LINES, OUT_BOXES && !SWAPPED && !SCALED && !GATED>;
    static_assert(!GATED || (!SWAPPED && TILES % 2 == 0 && TILES >= OF_A_RESULT * Boxes::TILES), "pairs of columns that fill a box");
    static_assert(!IN_TURN || Addend::STAGES < STAGES, "all of C lands beside the last slice");
};

// What a block computes: every gridDim.x-th tile, whole, or a piece of each if K is split: those of all tiles' first `slices`, then
// of the next ones. A cluster counts as one block. Producers and consumers walk alike.
struct WholeTiles {
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
          bool IN_TURN, bool A_K_MAJOR, bool B_K_MAJOR, bool PROMOTES, Scales SCALES, bool SCALED, bool OUT_BOXES,
          bool GATED = false>
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
                          SCALES, SCALED, OUT_BOXES, IN_TURN, GATED>;
    multiply_tiles<Block>(
        {a_map, b_map, out_map, c == nullptr && beta != 0 ? &c_map : nullptr, c, bias, out, M, N, K, alpha, beta, activation,
         stride, batches, group, scale_a, scale_b, scale_stride},
        [=](int tiles, int slices) { return WholeTiles{splits * tiles, splits == 1 ? slices : ceil_div(slices, splits)}; });
}

}  // namespace matmul
