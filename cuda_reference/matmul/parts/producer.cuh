// The producer of persistent.cuh: a warp, of which one thread requests the slices of a block's tiles, and in a cluster its parts
// of those that blocks share.
#pragma once
#include "../../common/overlap.cuh"
#include "../../common/runs.cuh"
#include "block_memory.cuh"

namespace matmul {

template <class Block, class Walk> struct Producer {
    using ASlice = typename Block::ASlice;
    using BSlice = typename Block::BSlice;
    using Cluster = typename Block::Cluster;

    const typename Block::Args& args;
    const BlockMemory<Block>& memory;
    const typename Block::Tiles& tiles;
    const Walk& walk;
    Ring<Block::STAGES> ring;
    Place first{};  // of its tiles
    bool begun = false;

    // While another warp makes the barriers, so that the first request follows at once.
    __device__ __forceinline__ void find_first() { first = tiles.place(walk.template first<Cluster::SIZE>().tile).kept(); }

    // No block is without a piece.
    __device__ __forceinline__ void request_all() {
        walk.template for_pieces<Cluster::SIZE>([&](const Piece& piece) { request(piece); });
        if constexpr (Cluster::SIZE > 1)
            if (elect_lane()) wait_for_readers();
    }

  private:
    __device__ __forceinline__ void request(const Piece& piece) {
        const Place tile = begun ? tiles.place(piece.tile).kept() : first;
        begun = true;
        const int split = tile.matrix < args.batches ? 0 : tile.matrix / args.batches;  // the batch again for each split of K
        const int batch = tile.matrix - split * args.batches;
        const int a_batch = args.stride.a.batch == 0 ? 0 : batch, b_batch = args.stride.b.batch == 0 ? 0 : batch;
        const int first = piece.first + split * walk.slices;
        wait_for_earlier_kernels();  // here, so that the first request follows at once; later it has nothing to wait for
        if (!elect_lane()) return;
#pragma unroll 1
        for (int slice = first; slice < first + piece.count; ++slice) {
            uint64_t* const landed = memory.full + ring.stage;
            mbarrier_wait(memory.empty + ring.stage, ring.parity ^ 1);  // of the previous round; in the first it returns at once
            mbarrier_arrive_expect(landed, ASlice::BYTES + BSlice::BYTES);
            const int k = slice * ASlice::DEPTH;
            ASlice::template copy<Cluster::SHARE_A>(memory.a_slices + ring.stage * ASlice::BYTES, args.a_map, landed,
                                                    tile.m * Block::BM, k, a_batch, Cluster::across(), Cluster::sharers_of_a());
            BSlice::template copy<Cluster::SHARE_B>(memory.b_slices + ring.stage * BSlice::BYTES, args.b_map, landed,
                                                    tile.n * Block::BN, k, b_batch, Cluster::down(), Cluster::sharers_of_b());
            ring.advance();
        }
        if (Block::Addend::STAGES > 0 && args.c_map != nullptr) request_addend(tile, args.stride.c.batch == 0 ? 0 : batch);
    }

    // C of a tile, box by box, in the stages after its slices.
    __device__ __forceinline__ void request_addend(const Place& tile, int batch) {
        using Addend = typename Block::Addend;
#pragma unroll 1
        for (int first = 0; first < Addend::BOXES; first += Addend::OF_A_STAGE) {
            uint64_t* const landed = memory.full + ring.stage;
            mbarrier_wait(memory.empty + ring.stage, ring.parity ^ 1);
            const int boxes = min(Addend::OF_A_STAGE, Addend::BOXES - first);
            mbarrier_arrive_expect(landed, boxes * BLOCK_BYTES);
#pragma unroll 1
            for (int i = 0; i < boxes; ++i) {
                const int row = tile.m * Block::BM + Addend::row(first + i), col = tile.n * Block::BN + Addend::col(first + i);
                tma_load(memory.addend_box(ring.stage, i), *args.c_map, landed, col, row, batch);
            }
            ring.advance();
        }
    }

    // Until all slices have been read: other blocks arrive at this one's barriers, so it must not end before.
    __device__ __forceinline__ void wait_for_readers() {
#pragma unroll 1
        for (int stage = 0; stage < Block::STAGES; ++stage) {
            mbarrier_wait(memory.empty + ring.stage, ring.parity ^ 1);
            ring.advance();
        }
    }
};

}  // namespace matmul
