// Consumers of a block that multiply in turn, each a tile of its own.
//
// The turns are also what keeps a consumer from waiting for slices too early: a stage's mbarrier tells only the last phase from
// the one before, and slices that others have not waited for yet may be two phases away.
#pragma once
#include "../../common/mbarrier.cuh"
#include "../../common/wgmma.cuh"
#include "block_memory.cuh"

namespace matmul {

template <class Block> struct Turns {
    uint64_t* const barriers;
    const int own = own_warpgroup();  // the consumer
    int next = 0;                       // who has the block's next piece
    unsigned parity = own == 0;         // of the own barrier's phase: the first consumer's first turn comes at once

    // Whether the next piece is this consumer's.
    __device__ __forceinline__ bool is_own() {
        const bool is = next == own;
        next = next + 1 < Block::CONSUMERS ? next + 1 : 0;
        return is;
    }

    __device__ __forceinline__ void wait() {
        mbarrier_wait(barriers + own, parity);
        parity ^= 1;
    }

    // To the next consumer, by each warp.
    __device__ __forceinline__ void pass(int lane) const {
        if (lane == 0) mbarrier_arrive(barriers + (own + 1 < Block::CONSUMERS ? own + 1 : 0));
    }
};

}  // namespace matmul
