// C of a tile in shared memory: TMA brings it as it brings slices, into the stages that follow those of the tile.
//
// So C lands while the tile's last slices are multiplied, and no thread waits for memory, or computes an address, to add it. A stage
// has boxes as those of the result (out_boxes.cuh), the first ones of all consumers before the second ones: a consumer is done
// with a stage when it has written the results of its boxes there, and gives it back as it does slices.
#pragma once
#include "../../common/index.cuh"
#include "../../common/mbarrier.cuh"
#include "block_memory.cuh"
#include "out_boxes.cuh"
#include "tma_slices.cuh"

namespace matmul {

// Boxes of a tile's C: those of SHARING consumers, of BLOCKS of 64 rows and TILES of 8 columns each, of which a box has OF_A_BOX.
template <int BLOCKS, int TILES, int SHARING, int OF_A_BOX, int A_LINES, int B_LINES, bool EXISTS> struct AddendOf {
    static constexpr int ACROSS = ceil_div(TILES, OF_A_BOX), OF_A_CONSUMER = BLOCKS * ACROSS, BOXES = OF_A_CONSUMER * SHARING;
    static constexpr int IN_A = A_LINES / 64, OF_A_STAGE = IN_A + B_LINES / 64;  // in the places of slices of A, and of both
    static_assert(!EXISTS || SHARING <= OF_A_STAGE, "the next box of a consumer is in the same stage or in the next one");
    static constexpr int STAGES = EXISTS ? ceil_div(BOXES, OF_A_STAGE) : 0;

    // Where the i-th box of all is in the tile.
    __device__ __forceinline__ static int row(int i) { return (i % SHARING * BLOCKS + i / SHARING / ACROSS) * 64; }
    __device__ __forceinline__ static int col(int i) { return first_tile(i / SHARING % ACROSS, OF_A_BOX, TILES) * 8; }
};

// The boxes of a consumer, the part-th of those that share the tile, one after the other.
template <class Block, class GiveBack> struct AddendBoxes {
    using Addend = typename Block::Addend;
    using Stages = Ring<Block::STAGES>;

    const BlockMemory<Block>& memory;
    Stages& ring;
    const GiveBack& give_back;
    int part;
    bool asked;  // C comes by TMA
    int at = -1;  // which of C's stages the ring is at

    __device__ __forceinline__ bool is_there() const { return Addend::STAGES > 0 && asked; }
    __device__ __forceinline__ int stages() const { return is_there() ? Addend::STAGES : 0; }

    // All threads of the consumer have passed a barrier since they read the box before.
    __device__ __forceinline__ const unsigned char* box(int i) {
        const int index = i * Block::SHARING + part;
        if (at < index / Addend::OF_A_STAGE) next();
        return memory.addend_box(ring.stage, index % Addend::OF_A_STAGE);
    }

    // Until the box after the i-th is there, too: it has some columns of it, and what is written there may be C itself.
    __device__ __forceinline__ void wait_for_next(int i) const {
        if (!is_there() || ((i + 1) * Block::SHARING + part) / Addend::OF_A_STAGE == at) return;
        Stages ahead = ring;
        ahead.advance();
        mbarrier_wait(memory.full + ahead.stage, ahead.parity);
    }

    __device__ __forceinline__ void give_back_all() {
        if (!is_there()) return;
        while (at < Addend::STAGES) {
            warpgroup_barrier();  // of a stage without a box of this consumer: all threads have seen that it landed
            next();
        }
    }

    // Without reading anything.
    __device__ __forceinline__ void wait_for_all() const {
        Stages ahead = ring;
        for (int stage = 0; stage < stages(); ++stage, ahead.advance()) mbarrier_wait(memory.full + ahead.stage, ahead.parity);
    }

  private:
    // Also of stages that have no box of this consumer: it may not arrive for a round before all have for the last one.
    __device__ __forceinline__ void next() {
        if (at >= 0) {
            give_back(ring.stage);
            ring.advance();
        }
        if (++at < Addend::STAGES) mbarrier_wait(memory.full + ring.stage, ring.parity);
    }
};

}  // namespace matmul
