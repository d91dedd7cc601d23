// conv2d on Hopper, warp-specialized (TMA, wgmma): a warp requests slices, two warpgroups multiply them.
//
// As in `implicit_gemm` the result is a matrix of N P Q positions by K filters, the product of the im2col matrix of the input and
// the filters; the reduction runs over taps and channels. There the threads that multiply find each 16 bytes' address, too. Here
// the copy engine does (im2col mode): a box is BM positions, one after the other whatever row or image they are in, by 64 channels
// of one tap, with zeros where the tap is outside of its image. Strides and dilation are the map's. Filters are matrices of K rows
// and C columns, one for each tap: both operands lie along the reduction. Or they are of C rows and K columns (not ALONG_C), as
// the input's gradient finds a filter; wgmma takes both. It also has other taps, or the same from last to first: an index (Taps).
//
// T is float for tf32: boxes are of 32 channels, and maps round to tf32 on the way, as wgmma would ignore the low bits of what it
// reads. Then it takes filters along the reduction only.
//
// A block walks tiles; those of the last, partial wave are shared to the slice, as by gemm's `stream_k`. Of a tile that several
// blocks share, each writes its sums to a workspace, and the last to arrive adds them up in order: the same bits every time, in one
// launch. The producer is STAGES ahead, also in the next tile, while results are written.
//
// Tiles of the same positions and other filters are neighbours, and the next positions' follow: all taps of all blocks at work read
// the same few rows of images, which L2 holds. A CLUSTER of two has neighbouring positions and the same filters, of which each
// block requests half for both: a slice of 128 x 256 is then 256 lines from L2, not 384, for products of 1024 clocks.
//
// Where a tap has 96 channels, say, its second slice is half zeros, which are not multiplied (HALVES).
//
// BM x BN is the tile of a block: of consumers one above the other, or side by side if BM is 64. A slice is a box's channels.
// Of one consumer two blocks share an SM: one multiplies while the other writes its results, which of few slices is half the time.
// Mirrors tritonkernels/conv2d/warp_specialized.py.
#pragma once
#include "../common/overlap.cuh"
#include "../common/shared.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "../matmul/parts/block_memory.cuh"
#include "../matmul/parts/cluster.cuh"
#include "../matmul/parts/shared_tiles.cuh"
#include "../matmul/parts/slice_products.cuh"
#include "parts/image_results.cuh"

namespace conv2d {

using matmul::LaneSums;
using matmul::Ring;

// Registers of a producer's and of a consumer's thread, once these have taken the producer's.
template <int CONSUMERS, int SUMS> struct RegistersOf : matmul::Registers<CONSUMERS, SUMS> {};
template <int SUMS> struct RegistersOf<1, SUMS> {  // of two blocks of an SM
    static constexpr int PRODUCER = 40, CONSUMER = 216;
};

// What a block is.
template <class T_, int BM_, int BN_, int CONSUMERS_, int STAGES_, int CLUSTER, bool ALONG_C, bool CHANNELS_INSIDE, bool HALVES_,
          bool FOLLOWS>
struct BlockOf {
    using T = T_;
    static constexpr int BM = BM_, BN = BN_, CONSUMERS = CONSUMERS_, STAGES = STAGES_;
    static constexpr int DEPTH = matmul::SLICE / sizeof(T);                           // channels of a slice
    static constexpr int DOWN = BM > 64 ? CONSUMERS : 1, ACROSS = CONSUMERS / DOWN;  // consumers
    static constexpr int ROWS = BM / DOWN, COLUMNS = BN / ACROSS, BLOCKS = ROWS / 64, TILES = COLUMNS / 8;  // of a consumer
    static_assert(ROWS % 64 == 0 && COLUMNS % 16 == 0, "whole wgmmas, whose tiles of 16 bits are stored two at once");
    static_assert(sizeof(T) == 2 || ALONG_C, "wgmma reads tf32 along the reduction only");
    static constexpr bool HALVES = HALVES_;
    using Left = matmul::OperandSlice<T, BM, true>;
    using Right = matmul::OperandSlice<T, BN, ALONG_C>;
    using Cluster = matmul::ClusterOf<1, CLUSTER>;
    using Threads = RegistersOf<CONSUMERS, BLOCKS * TILES * 4>;
    using Products = matmul::SliceProducts<Left, Right, float, BLOCKS, TILES, false>;
    using Walk = matmul::SharedTiles<CONSUMERS, CLUSTER>;
    using Results = ImageResults<T, CHANNELS_INSIDE, FOLLOWS>;
};

template <class T> struct Arguments {
    const CUtensorMap &input, &filters;
    const T* bias;  // or null
    T* out;
    const Geometry& g;
    const Strides& stride;
    const Taps& taps;
    const Follows<T>& follows;

    __device__ __forceinline__ int positions() const { return g.N * g.P * g.Q; }
};

// What is where in the block's shared memory.
template <class Block> struct Memory {
    static constexpr int STAGES = Block::STAGES, CONSUMERS = Block::CONSUMERS;
    unsigned char* const left = dynamic_shared<unsigned char>();  // STAGES of each
    unsigned char* const right = left + STAGES * Block::Left::BYTES;
    unsigned char* const boxes = right + STAGES * Block::Right::BYTES;  // of each consumer's results
    float* const biases = reinterpret_cast<float*>(boxes + CONSUMERS * matmul::BLOCK_BYTES);     // of its columns
    uint64_t* const full = reinterpret_cast<uint64_t*>(biases + CONSUMERS * Block::COLUMNS);     // a stage's boxes have landed
    uint64_t* const empty = full + STAGES;                                                       // all consumers have read them
    bool* const last = reinterpret_cast<bool*>(empty + STAGES);                                  // of each consumer

    __device__ __forceinline__ void init_barriers() const {
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(full + stage, 1);
            mbarrier_init(empty + stage, Block::Cluster::SHARERS * CONSUMERS);
        }
        mbarrier_init_fence();
    }
};

// Where this block's part of a cluster's tile begins.
template <class Block> struct TileAt {
    int position, filter;

    __device__ __forceinline__ TileAt(const Geometry& g, int tile) {
        const int across = ceil_div(g.K, Block::BN), down = tile / across;
        position = (down * Block::Cluster::SHARE_B + Block::Cluster::down()) * Block::BM;
        filter = (tile - down * across) * Block::BN;
    }
};

// One thread, which requests the slices of all pieces: tap by tap, the channels of each.
template <class Block>
__device__ __forceinline__ void produce(const Arguments<typename Block::T>& args, const Memory<Block>& memory,
                                        const typename Block::Walk& walk) {
    using Cluster = typename Block::Cluster;
    const Geometry& g = args.g;
    const int chunks = ceil_div(g.C, Block::DEPTH);
    Ring<Block::STAGES> ring;
    walk.for_pieces([&](const Piece& piece) {
        const TileAt<Block> tile(g, piece.tile);
        const Position at(tile.position, g.P, g.Q);
        const ::Pixel pixel{at.image, at.p * g.step_h - g.padding_h, at.q * g.step_w - g.padding_w};
        const int tap = piece.first / chunks;
        int channel = (piece.first - tap * chunks) * Block::DEPTH, r = tap / g.S, s = tap - r * g.S;
#pragma unroll 1
        for (int slice = 0; slice < piece.count; ++slice) {
            uint64_t* const landed = memory.full + ring.stage;
            mbarrier_wait(memory.empty + ring.stage, ring.parity ^ 1);  // of the round before; in the first it returns at once
            mbarrier_arrive_expect(landed, Block::Left::BYTES + Block::Right::BYTES);
            const ::Tap place{(unsigned short)(r * g.dilation_h), (unsigned short)(s * g.dilation_w)};
            tma_load_pixels(memory.left + ring.stage * Block::Left::BYTES, args.input, landed, channel, pixel, place);
            Block::Right::template copy<Cluster::SHARE_B>(memory.right + ring.stage * Block::Right::BYTES, args.filters, landed,
                                                          tile.filter, channel, args.taps.at(r, s), Cluster::down(), Cluster::sharers_of_b());
            ring.advance();
            channel += Block::DEPTH;
            if (channel >= g.C) {
                channel = 0, ++s;
                if (s == g.S) s = 0, ++r;
            }
        }
    });
    if constexpr (Cluster::SIZE > 1)  // the other block arrives at this one's barriers, so it must not end before
        for (int stage = 0; stage < Block::STAGES; ++stage) {
            mbarrier_wait(memory.empty + ring.stage, ring.parity ^ 1);
            ring.advance();
        }
}

// A warpgroup, which multiplies its part of the block's tiles.
template <class Block>
__device__ __forceinline__ void consume(const Arguments<typename Block::T>& args, const Memory<Block>& memory,
                                        const typename Block::Walk& walk) {
    using Cluster = typename Block::Cluster;
    constexpr int BLOCKS = Block::BLOCKS, TILES = Block::TILES;
    const Geometry& g = args.g;
    const int consumer = own_warpgroup(), down = consumer / Block::ACROSS * Block::ROWS, across = consumer % Block::ACROSS * Block::COLUMNS;
    const typename Block::Products products{
        wgmma_descriptor(shared_address(memory.left + down * matmul::SLICE), matmul::BLOCK_BYTES),
        wgmma_descriptor(shared_address(memory.right + across * matmul::SLICE), matmul::BLOCK_BYTES)};
    const typename Block::Results results{args.out, args.stride.out, args.positions(), g.K, g.P, g.Q,
                                          memory.boxes + consumer * matmul::BLOCK_BYTES, args.follows};
    const int told = Cluster::told();
    const auto give_back = [&](int stage) { Cluster::give_back(memory.empty + stage, told); };
    Ring<Block::STAGES> ring;
    walk.for_pieces([&](const Piece& piece) {
        const TileAt<Block> tile(g, piece.tile);
        const int position = tile.position + down, filter = tile.filter + across;
        matmul::TileBias<float, typename Block::T, Block::COLUMNS> bias{memory.biases + consumer * Block::COLUMNS};
        if (args.bias != nullptr) bias.load(args.bias, args.stride.bias, filter, g.K);
        LaneSums<float> sum[BLOCKS][1][TILES] = {};
        if constexpr (Block::HALVES) {
            const int chunks = ceil_div(g.C, Block::DEPTH);
            products.multiply_with_halves(sum, piece.count, piece.first % chunks, chunks, ring, memory.full, give_back);
        } else {
            products.multiply(sum, piece.count, ring, memory.full, give_back, [] {});
        }
        const bool has_all = walk.add_others(sum, piece, results.positions - position, memory.last);
        if (!__shfl_sync(0xffffffffu, has_all, 0)) return;  // from one lane, so that descriptors stay in uniform registers
        if (args.bias != nullptr) {
            warpgroup_barrier();  // all have read those of the tile before
            bias.share();
            warpgroup_barrier();
        }
#pragma unroll
        for (int m = 0; m < BLOCKS; ++m)
            results.store(sum[m][0], bias, args.bias != nullptr, position + m * 64, filter);
    });
}

// `sharers` clusters share the tiles after the first `whole_tiles`, none of them without a slice; these are tiles of clusters.
// FOLLOWS: a residual, unless it is null, and an activation; else both are ignored.
template <class T, int BM, int BN, int CONSUMERS, int STAGES, int CLUSTER, bool ALONG_C, bool CHANNELS_INSIDE, bool HALVES,
          bool FOLLOWS = false>
__global__ void __launch_bounds__((CONSUMERS + 1) * 128, CONSUMERS == 1 ? 2 : 1) __cluster_dims__(CLUSTER, 1, 1)
warp_specialized(const __grid_constant__ CUtensorMap input, const __grid_constant__ CUtensorMap filters,
                 const T* __restrict__ bias, T* __restrict__ out, Geometry g, Strides stride, Taps taps, float* __restrict__ parts,
                 int* __restrict__ counters, int whole_tiles, int shared_tiles, int sharers, const T* residual,
                 ImagesStrides of_residual, int activation) {
    using Block = BlockOf<T, BM, BN, CONSUMERS, STAGES, CLUSTER, ALONG_C, CHANNELS_INSIDE, HALVES, FOLLOWS>;
    const Memory<Block> memory;
    const Follows<T> follows{residual, of_residual, activation, g.N * g.P * g.Q, g.K, g.P, g.Q};
    const Arguments<T> args{input, filters, bias, out, g, stride, taps, follows};
    const int slices = g.R * g.S * ceil_div(g.C, Block::DEPTH);
    const typename Block::Walk walk{whole_tiles, slices, {int64_t(shared_tiles) * slices, sharers}, parts, counters};
    if (threadIdx.x == 0) {  // while the kernel before this one ends
        memory.init_barriers();
        prefetch_tensor_map(input);
        prefetch_tensor_map(filters);
    }
    if constexpr (CLUSTER > 1) {
        __syncwarp();
        cluster_barrier();
    } else {
        __syncthreads();
    }
    wait_for_earlier_kernels();
    if (own_warpgroup() == CONSUMERS) {
        give_up_registers<Block::Threads::PRODUCER>();
        if (threadIdx.x / 32 == CONSUMERS * 4 && elect_lane()) produce<Block>(args, memory, walk);
    } else {
        take_registers<Block::Threads::CONSUMER>();
        consume<Block>(args, memory, walk);
    }
}

}  // namespace conv2d
