// A consumer's tile of tf32 operands of which B lies across K, as torch's matrices usually do: by the transposed product. (Of A
// across K the launcher makes such a B: parts/turned.py.)
//
// wgmma reads 4-byte operands from shared memory along K only, and to copy B there first takes a kernel of its own: 62 us at
// 4096 cubed, next to 340. But its left operand may come from registers, which threads load as they like. So this computes C^T
// = B^T A^T, with B^T from registers and A, which lies along K, from shared memory. A consumer has 64 columns of the tile, a
// warp 16 of them.
//
// Loads: TMA brings B's slice in boxes of 32 columns, with a line of 128 bytes for each k, in which the 16-byte chunk c is at
// c XOR k % 8. With g = lane / 4 and t = lane % 4, a lane's fragment is rows g and g + 8 of B^T, at k = t and at t + 4. Which
// column of B is which row is free, as it only permutes the rows of C^T. So a lane's two rows are neighbouring columns, and 8
// bytes bring both, to the registers where wgmma wants them. Half a warp loads at once, for 4 of g and 4 of k. Here g % 2 is
// the half of a chunk, and g / 2 % 2 says whether the chunk is c or c XOR 5. XOR 4 of k, c gives the four chunks with its bit
// of 4, and c XOR 5 the other four: each bank is used once.
//
// The result (swapped.cuh): its pairs are neighbours in a row of C. They go to boxes of 32 rows by 32 columns, in lines with the
// same swizzle. There half a warp writes for 4 of g to 4 lines, every second one, so that c gives the four chunks with its last
// bit, and c XOR 5 the other four again. (XOR 4 would do for the loads, XOR 1 for the result.)
//
// Half a slice of fragments is loaded while the other half is multiplied. Per 8 of k two consumers read 2 (64 + 256) * 32
// bytes = 20 KB for a 256 x 128 tile, no more than if both operands lay along K. Its 2^18 multiply-adds take 256 clocks at
// 1024 per clock, in which 32 KB could be read.
#pragma once
#include "../../common/mbarrier.cuh"
#include "../../common/runs.cuh"
#include "../../common/shared.cuh"
#include "../../common/wgmma.cuh"
#include "block_memory.cuh"
#include "swapped.cuh"

namespace matmul {

// A lane has two neighbours of a consumer's columns.
struct LanesInPairs {
    static constexpr int APART = 1, COLUMNS = 32;  // of a box of B's slice

    // Where they are: in this box, in this 16-byte chunk of its lines, from this byte on.
    __device__ __forceinline__ static int box() { return threadIdx.x / 64; }
    __device__ __forceinline__ static int chunk() {
        const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4;
        return (warp % 2 * 2 + g / 4) ^ g / 2 % 2 * 5;
    }
    __device__ __forceinline__ static int byte() { return threadIdx.x / 4 % 2 * 8; }
    __device__ __forceinline__ static int column() { return box() % 2 * COLUMNS + chunk() * 4 + byte() / 4; }
};

template <int BM, int BN> struct TransposedTile {
    using Lanes = LanesInPairs;
    static constexpr int BOX_BYTES = Lanes::COLUMNS * SLICE;        // of 32 of k
    static constexpr int STEPS = SLICE / 32 / 2, STEP = 8 * SLICE;  // of half a slice; bytes from one to the next in B's boxes
    using Sums = LaneSums<float>[1][1][BM / 8];

    const unsigned char* b_slices;
    uint64_t a_first;  // the descriptor of A's first slice

    __device__ __forceinline__ TransposedTile(unsigned char* a_slices, unsigned char* b_slices)
        : b_slices(b_slices + Lanes::box() * BOX_BYTES), a_first(wgmma_descriptor(shared_address(a_slices), BLOCK_BYTES)) {}

    // Adds the products of `count` slices.
    template <class Ring, class GiveBack>
    __device__ __forceinline__ void multiply(Sums& sum, int count, Ring& ring, uint64_t* full,
                                             const GiveBack& give_back) const {
        unsigned fragments[2][STEPS][4];  // of either half of a slice
        int last = 0;                     // the stage of the slice before
#pragma unroll 1
        for (int slice = 0; slice < count; ++slice) {
            mbarrier_wait(full + ring.stage, ring.parity);
            const unsigned char* const b = b_slices + ring.stage * (BN * SLICE);
            const uint64_t a = a_first + ring.stage * (BM * SLICE >> 4);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                load(fragments[half], b + half * STEPS * STEP);
                wgmma_fence();
#pragma unroll
                for (int k = 0; k < STEPS; ++k)
                    wgmma<float>(sum[0][0], fragments[half][k], a + ((half * STEPS + k) * 32 >> 4));
                wgmma_commit();
                wgmma_wait<1>();  // until the other half's fragments are no longer read
                if (half == 0 && slice > 0) give_back(last);
            }
            last = ring.stage;
            ring.advance();
        }
        wgmma_wait<0>();
        if (count > 0) give_back(last);
    }

  private:
    __device__ __forceinline__ void load(unsigned (&fragments)[STEPS][4], const unsigned char* from) const {
#pragma unroll
        for (int k = 0; k < 2 * STEPS; ++k) {  // four rows of k each
            const int line = threadIdx.x % 4 + k % 2 * 4, chunk = Lanes::chunk() ^ line;
            const uint2 pair =
                *reinterpret_cast<const uint2*>(from + k / 2 * STEP + line * SLICE + chunk * 16 + Lanes::byte());
            fragments[k / 2][k % 2 * 2] = pair.x;
            fragments[k / 2][k % 2 * 2 + 1] = pair.y;
        }
    }
};

// All that a consumer of such tiles computes, as `consume` of the others (consumer.cuh).
template <class Block, class Walk>
__device__ __forceinline__ void consume_transposed(const typename Block::Args& args, const BlockMemory<Block>& memory,
                                                   const typename Block::Tiles& tiles, const Walk& walk) {
    constexpr int BM = Block::BM, BN = Block::BN;
    static_assert(Block::SWAPPED && Block::ASlice::ALONG_K && Walk::SPLITS == 1, "of tf32 only B may lie across K");
    static_assert(!Block::IN_TURN, "consumers share a tile");
    const int told = Block::Cluster::told();
    const auto give_back = [&](int stage) { Block::Cluster::give_back(memory.empty + stage, told); };
    Ring<Block::STAGES> ring;
    auto out_boxes = memory.out_boxes(args.out_map);
    const TransposedTile<BM, BN> own{memory.a_slices, memory.b_slices};
    walk.template for_pieces<Block::Cluster::SIZE>([&](const Piece& piece) {
        const Place tile = tiles.place(piece.tile).kept();  // as in consumer.cuh
        const int batch = tile.matrix, row = tile.m * BM, col = tile.n * BN + threadIdx.x / 128 * 64;
        SwappedResult<typename Block::Boxes, typename Block::Out, float, BM, LanesInPairs> result{out_boxes};
        if constexpr (!Block::SCALED) result.load_bias(args.bias, args.stride.bias, col, args.N);
        LaneSums<float> sum[1][1][BM / 8] = {};
        own.multiply(sum, piece.count, ring, memory.full, give_back);
        const auto epilogue = args.template epilogue<float, Block::SCALED>(args.alpha, batch);
        result.template store<Block::SCALED, Block::OUT_BOXES>(sum, epilogue, row, col, batch, args.M, args.N);
    });
    if (Block::OUT_BOXES && out_boxes.asks) tma_store_wait<0>();  // as in consumer.cuh
}

}  // namespace matmul
