// conv2d_weight on Hopper, warp-specialized (TMA, wgmma): a warp requests slices, two warpgroups multiply them.
//
// The weight is a matrix of K rows and R S C columns, grad_output^T times the im2col matrix of the input; the reduction runs over
// all N P Q positions. `implicit_gemm` copies both operands by cp.async, an address for each 16 bytes, by the threads that
// multiply, too. Here the copy engine finds the addresses (im2col mode): a box is 64 positions, one after the other whatever row
// or image they are in, by 64 channels of one tap, with zeros where a tap is outside of its image. No pixel is fetched or
// multiplied in vain, except after the last one: 7 x 7 images fill boxes as well as 114 x 114 ones.
//
// Both operands lie across the reduction, which wgmma reads as it is. Columns are units of 64 channels of a tap, tap by tap. So
// a tile of 256 columns is 256 channels of a tap, or four taps of 64 channels: either way a slice of grad_output is multiplied by
// four boxes of inputs. In L2 taps find what their neighbours have read. Small groups share boxes, in bands (parts/bands.cuh).
//
// A block has the SM to itself, and a part of the tiles that takes as long as the others' (parts/pieces.cuh). The producer is
// slices ahead, also in the next tile, while a sum is added and stored. Of a tile that several blocks share, each writes its sums
// to a workspace, and the last warpgroup to arrive adds them up in the order of positions: the same bits every time, in one
// launch.
//
// BM x BN is the tile of a block: of consumers one above the other, or side by side if BM is 64. A slice is 64 positions (STAGES
// of them), 48 KB of 128 x 256, for products of 1024 clocks.
// Mirrors tritonkernels/conv2d_weight/warp_specialized.py.
#pragma once
#include "../common/overlap.cuh"
#include "../common/shared.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "../conv2d/parts/splits.cuh"
#include "../matmul/parts/block_memory.cuh"
#include "../matmul/parts/slice_products.cuh"
#include "../matmul/parts/sums_of_others.cuh"
#include "parts/bands.cuh"
#include "parts/pieces.cuh"

namespace conv2d_weight {

using matmul::LaneSums;
using matmul::Ring;

constexpr int CONSUMERS = 2, BOX = 64, BOX_BYTES = matmul::BLOCK_BYTES;  // a box has BOX positions by BOX channels

// What a block is.
template <class T_, int BM_, int BN_, int STAGES_> struct BlockOf {
    using T = T_;
    static constexpr int BM = BM_, BN = BN_, STAGES = STAGES_, ROWS = BM / BOX, UNITS = BN / BOX;  // boxes of a slice
    static_assert(BM % BOX == 0 && BN % BOX == 0 && sizeof(T) == 2, "whole boxes of 16 bits");
    static constexpr int DOWN = BM > BOX ? 2 : 1, ACROSS = CONSUMERS / DOWN;  // consumers
    using Left = matmul::OperandSlice<T, BM, false>;
    using Right = matmul::OperandSlice<T, BN, false>;
    static constexpr int BLOCKS = ROWS / DOWN, OWN_UNITS = UNITS / ACROSS, TILES = OWN_UNITS * BOX / 8;  // of a consumer
    static_assert(BLOCKS * DOWN == ROWS && OWN_UNITS * ACROSS == UNITS && TILES <= 32, "consumers have whole boxes");
    using Threads = matmul::Registers<CONSUMERS, BLOCKS * TILES * 4>;
    using Products = matmul::SliceProducts<Left, Right, float, BLOCKS, TILES, false>;
    using Tile = TileAt<BM, UNITS>;
};

template <class T> struct Arguments {
    const CUtensorMap &grad, &input;
    T* weight;
    const Geometry& g;
    const FiltersStrides& stride;
    const Bands& bands;
    const Cut& cut;
    float* parts;
    int* counters;
};

// What is where in the block's shared memory.
template <class Block> struct Memory {
    static constexpr int STAGES = Block::STAGES;
    unsigned char* const left = dynamic_shared<unsigned char>();  // STAGES of each
    unsigned char* const right = left + STAGES * Block::Left::BYTES;
    uint64_t* const full = reinterpret_cast<uint64_t*>(right + STAGES * Block::Right::BYTES);  // a stage's boxes have landed
    uint64_t* const empty = full + STAGES;                                                     // both consumers have read them
    bool* const last = reinterpret_cast<bool*>(empty + STAGES);                                // of each consumer

    __device__ __forceinline__ void init_barriers() const {
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(full + stage, 1);
            mbarrier_init(empty + stage, CONSUMERS);
        }
        mbarrier_init_fence();
    }
};

// One thread, which requests the slices of all pieces. Boxes without a row or column of the weight are left out: what is in their
// place is multiplied, but not stored.
template <class Block>
__device__ __forceinline__ void produce(const Arguments<typename Block::T>& args, const Memory<Block>& memory) {
    const Geometry& g = args.g;
    Ring<Block::STAGES> ring;
    const conv2d::Position step(BOX, g.P, g.Q);  // from a slice to the next, where nothing is carried
    for_pieces(args.cut, [&](const Piece& piece) {
        const typename Block::Tile tile(g, args.bands, piece.tile);
        const int rows = min(Block::ROWS, ceil_div(tile.end - tile.row, BOX)), units = min(Block::UNITS, tile.units - tile.unit);
        int channel[Block::UNITS];
        Tap taps[Block::UNITS];
#pragma unroll
        for (int i = 0; i < Block::UNITS; ++i) {
            const int unit = tile.unit + i, tap = unit / tile.chunks;
            channel[i] = tile.channel + unit % tile.chunks * BOX;
            taps[i] = {(unsigned short)(tap / g.S * g.dilation_h), (unsigned short)(tap % g.S * g.dilation_w)};
        }
        conv2d::Position at(int64_t(piece.first) * BOX, g.P, g.Q);
#pragma unroll 1
        for (int slice = 0; slice < piece.count; ++slice) {
            uint64_t* const landed = memory.full + ring.stage;
            mbarrier_wait(memory.empty + ring.stage, ring.parity ^ 1);  // of the round before; in the first it returns at once
            mbarrier_arrive_expect(landed, (rows + units) * BOX_BYTES);
            unsigned char* const left = memory.left + ring.stage * Block::Left::BYTES;
            unsigned char* const right = memory.right + ring.stage * Block::Right::BYTES;
            const Pixel input{at.image, at.p * g.step_h - g.padding_h, at.q * g.step_w - g.padding_w};
#pragma unroll
            for (int i = 0; i < Block::ROWS; ++i)
                if (i < rows)
                    tma_load_pixels(left + i * BOX_BYTES, args.grad, landed, tile.row + i * BOX, {at.image, at.p, at.q}, {0, 0});
#pragma unroll
            for (int i = 0; i < Block::UNITS; ++i)
                if (i < units) tma_load_pixels(right + i * BOX_BYTES, args.input, landed, channel[i], input, taps[i]);
            ring.advance();
            at.q += step.q, at.p += step.p, at.image += step.image;
            if (at.q >= g.Q) at.q -= g.Q, ++at.p;
            if (at.p >= g.P) at.p -= g.P, ++at.image;
        }
    });
}

// A warp's sums of 16 rows from `row` on, and a consumer's units from `first_unit` on.
template <class Block, class Sums>
__device__ __forceinline__ void store(const Sums& sums, const Arguments<typename Block::T>& args,
                                      const typename Block::Tile& tile, int row, int first_unit) {
    const Geometry& g = args.g;
    const FiltersStrides& stride = args.stride;
#pragma unroll
    for (int i = 0; i < Block::OWN_UNITS; ++i) {
        const int unit = first_unit + i, tap = unit / tile.chunks, channel = tile.channel + unit % tile.chunks * BOX;
        if (unit >= tile.units) return;
        auto* const filters = args.weight + tap / g.S * stride.r + tap % g.S * stride.s;
        matmul::for_runs<typename Block::T, BOX / 8>(sums, i * BOX / 8, [&](const auto& run, int r, int c) {
            store_channels(run, filters, row + r, channel + c, tile.begin, tile.end, g, stride);
        });
    }
}

// A warpgroup, which multiplies its part of the block's tiles.
template <class Block>
__device__ __forceinline__ void consume(const Arguments<typename Block::T>& args, const Memory<Block>& memory) {
    constexpr int BLOCKS = Block::BLOCKS, TILES = Block::TILES;
    const int consumer = own_warpgroup(), down = consumer / Block::ACROSS * BLOCKS;
    const int across = consumer % Block::ACROSS * Block::OWN_UNITS;
    const typename Block::Products products{wgmma_descriptor(shared_address(memory.left + down * BOX_BYTES), BOX_BYTES),
                                            wgmma_descriptor(shared_address(memory.right + across * BOX_BYTES), BOX_BYTES)};
    const auto give_back = [&](int stage) {
        if (threadIdx.x % 128 == 0) mbarrier_arrive(memory.empty + stage);
    };
    Ring<Block::STAGES> ring;
    for_pieces(args.cut, [&](const Piece& piece) {
        const typename Block::Tile tile(args.g, args.bands, piece.tile);
        LaneSums<float> sum[BLOCKS][1][TILES] = {};
        products.multiply(sum, piece.count, ring, memory.full, give_back, [] {});
        const int row = tile.row + down * BOX;
        if (piece.count < args.cut.slices) {
            const int shared_tile = piece.tile - args.cut.whole;
            const Part part = part_of(args.cut, piece);
            const auto slot_of = [&](int i) { return (int64_t(shared_tile) * part.most + i) * CONSUMERS + consumer; };
            const auto counter_of = [&](int group) {
                const int counters = 1 + ceil_div(part.most, GROUP_OF_PARTS), own = group < 0 ? 0 : 1 + group / GROUP_OF_PARTS;
                return args.counters + (shared_tile * counters + own) * CONSUMERS + consumer;
            };
            const bool is_last = matmul::add_sums_of_others(sum, tile.end - row, part.own, 0, part.count - 1, args.parts, slot_of,
                                                            counter_of, memory.last);
            if (!__shfl_sync(0xffffffffu, is_last, 0)) return;  // from one lane, so that descriptors stay in uniform registers
        }
#pragma unroll
        for (int m = 0; m < BLOCKS; ++m) {
            wgmma_results(sum[m][0]);
            store<Block>(reinterpret_cast<const float(&)[1][TILES][4]>(sum[m]), args, tile,
                         row + m * BOX + threadIdx.x % 128 / 32 * 16, tile.unit + across);
        }
    });
}

template <class T, int BM, int BN, int STAGES>
__global__ void __launch_bounds__((CONSUMERS + 1) * 128, 1)
warp_specialized(const __grid_constant__ CUtensorMap grad, const __grid_constant__ CUtensorMap input, T* __restrict__ weight,
                 float* __restrict__ parts, int* __restrict__ counters, Geometry g, FiltersStrides stride, Bands bands,
                 Cut cut) {
    using Block = BlockOf<T, BM, BN, STAGES>;
    const Memory<Block> memory;
    const Arguments<T> args{grad, input, weight, g, stride, bands, cut, parts, counters};
    if (threadIdx.x == 0) {  // while the kernel before this one ends
        memory.init_barriers();
        prefetch_tensor_map(grad);
        prefetch_tensor_map(input);
    }
    __syncthreads();
    wait_for_earlier_kernels();
    if (own_warpgroup() == CONSUMERS) {
        give_up_registers<Block::Threads::PRODUCER>();
        if (threadIdx.x / 32 == CONSUMERS * 4 && elect_lane()) produce<Block>(args, memory);
    } else {
        take_registers<Block::Threads::CONSUMER>();
        consume<Block>(args, memory);
    }
}

}  // namespace conv2d_weight
