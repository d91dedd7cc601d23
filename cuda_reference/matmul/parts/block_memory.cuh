// What a block of persistent.cuh has of an SM: the registers of its threads, and its shared memory.
#pragma once
#include "../../common/mbarrier.cuh"
#include "../../common/shared.cuh"
#include "out_boxes.cuh"
#include "tma_slices.cuh"

namespace matmul {

// Registers of a thread: at first, and once consumers have taken the producer's. One consumer has enough at first. SUMS of a
// consumer's thread.
template <int CONSUMERS, int SUMS> struct Registers {
    static constexpr int AT_FIRST = 65536 / 128 / (CONSUMERS + 1) / 8 * 8;
    static constexpr bool ALL = SUMS > 160;  // the producer keeps the fewest that it runs with
    static constexpr int PRODUCER = CONSUMERS != 2 ? 32 : ALL ? 24 : 40, CONSUMER = CONSUMERS != 2 ? 160 : ALL ? 240 : 232;
    static constexpr int OF_A_BOX = ALL ? 48 : 64;
    static_assert(CONSUMERS <= 3 && (CONSUMERS == 1 || PRODUCER + CONSUMERS * CONSUMER == (CONSUMERS + 1) * AT_FIRST),
                  "what one gives up others take; if they want more, they wait for ever");
};

// Bytes of a block's slices, of so many lines in both operands, and of each consumer's boxes of the result and bias of its columns,
// with the barriers of stages and turns.
constexpr int block_bytes(int lines, int bn, int consumers, int stages, int boxes) {
    return stages * (SLICE * lines + 16) + consumers * (boxes * BLOCK_BYTES + 4 * bn + 8);
}

// Boxes of a consumer: two if they fit beside the stages.
template <int LINES, int BN, int CONSUMERS, int STAGES>
constexpr int BOXES_THAT_FIT = block_bytes(LINES, BN, CONSUMERS, STAGES, 2) <= 227 * 1024 ? 2 : 1;

// Blocks that an SM is to hold: two where their shared memory allows it, and sums and what follows leave the registers. Then
// those of the kernel after it need not wait for a block to end.
template <int LINES, int BN, int CONSUMERS, int STAGES, bool PROMOTES, bool SCALED> constexpr int blocks_of_an_sm() {
    constexpr bool FIT = 2 * (block_bytes(LINES, BN, CONSUMERS, STAGES, 2) + 1024) <= 228 * 1024;
    return CONSUMERS == 1 && !PROMOTES && SCALED && FIT ? 2 : 1;
}

// What is where in a block's dynamic shared memory.
template <class Block> struct BlockMemory {
    using Number = typename Block::Number;
    static constexpr int CONSUMERS = Block::CONSUMERS, STAGES = Block::STAGES;
    static constexpr int BOXES_BYTES = Block::HAS_BOXES ? Block::Boxes::COUNT * BLOCK_BYTES : 0;  // of a consumer
    static constexpr int BIASES = Block::OUT_BOXES ? Block::BN : 0;                              // of a consumer's tile

    unsigned char* const a_slices = dynamic_shared<unsigned char>();  // STAGES of each
    unsigned char* const b_slices = a_slices + STAGES * Block::ASlice::BYTES;
    unsigned char* const boxes = b_slices + STAGES * Block::BSlice::BYTES;  // of the result, or none
    Number* const biases = reinterpret_cast<Number*>(boxes + CONSUMERS * BOXES_BYTES);
    uint64_t* const full = reinterpret_cast<uint64_t*>(biases + CONSUMERS * BIASES);
    uint64_t *const empty = full + STAGES, *const turns = empty + STAGES;  // a turn's for each consumer

    // By one thread. Of a stage `full` says that its slices have landed, `empty` that all their consumers have read them; `turns`
    // that the consumer before has started all products of its tile.
    __device__ __forceinline__ void init_barriers() const {
#pragma unroll
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(full + stage, 1);
            mbarrier_init(empty + stage, Block::Cluster::SHARERS * Block::SHARING);  // a thread of each consumer that reads
        }
#pragma unroll
        for (int consumer = 0; consumer < Block::TURNS; ++consumer) mbarrier_init(turns + consumer, 4);
        mbarrier_init_fence();
    }

    // Of all threads, at one place: the barriers are ready, in a cluster those of the other blocks, too.
    __device__ __forceinline__ static void begin() {
        if constexpr (Block::Cluster::SIZE > 1)
            cluster_barrier();
        else
            __syncthreads();
    }

    // Those of this thread's consumer.
    __device__ __forceinline__ typename Block::Boxes out_boxes(const CUtensorMap& out_map) const {
        return {out_map, own_boxes(), threadIdx.x % 128 == 0};
    }
    __device__ __forceinline__ unsigned char* own_boxes() const { return boxes + threadIdx.x / 128 * BOXES_BYTES; }

    // The i-th box of C in a stage: where slices of A are otherwise, and then those of B.
    __device__ __forceinline__ unsigned char* addend_box(int stage, int i) const {
        constexpr int IN_A = Block::Addend::IN_A;
        return i < IN_A ? a_slices + stage * Block::ASlice::BYTES + i * BLOCK_BYTES
                        : b_slices + stage * Block::BSlice::BYTES + (i - IN_A) * BLOCK_BYTES;
    }
};

}  // namespace matmul
