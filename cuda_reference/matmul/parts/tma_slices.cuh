// Slices of operands in shared memory, as TMA brings them, and the ring of stages that they are in.
#pragma once
#include "../../common/index.cuh"
#include "../../common/tma.cuh"

namespace matmul {

constexpr int SLICE = 128, BLOCK_BYTES = 64 * SLICE;  // bytes of k; bytes of 64 of SPAN in a slice

// Lines of 128 bytes of a slice that spans so much of an operand: a line each along k; across k whole boxes.
template <class T> constexpr int lines_of_slice(int span, bool along_k) {
    constexpr int BOX = SLICE / int(sizeof(T));
    return along_k ? span : ceil_div(span, BOX) * BOX;
}

// A slice of an operand in shared memory. K_MAJOR: SPAN rows of 128 bytes along k, in one box of up to 256, or two. Else a box for
// every 128 bytes along SPAN, with a row per k; the last one may be wider than what is left of SPAN, and wgmma reads a part of it.
// Either way 64 of SPAN are BLOCK_BYTES.
template <class T, int SPAN, bool K_MAJOR> struct OperandSlice {
    using Element = T;
    static constexpr bool ALONG_K = K_MAJOR;
    static constexpr int LINES = lines_of_slice<T>(SPAN, K_MAJOR), BYTES = LINES * SLICE;
    static constexpr int DEPTH = SLICE / sizeof(T), BOXES = LINES / DEPTH;
    static constexpr int STEP = K_MAJOR ? 32 : 16 * SLICE;  // bytes from a step to the next
    static_assert(K_MAJOR || sizeof(T) > 1, "bytes are read along k only");

    // To this block; or the part of this one's rank among SHARE blocks of the cluster, to those whose bits are set in `sharers`.
    // A part is rows of the one box, or some of the boxes, or rows of each: the boxes of the map are of its size.
    template <int SHARE = 1>
    __device__ __forceinline__ static void copy(unsigned char* slice, const CUtensorMap& map, uint64_t* barrier, int first,
                                                int k, int batch, int rank = 0, unsigned sharers = 0) {
        static_assert((!K_MAJOR || SPAN % (8 * SHARE) == 0) && DEPTH % (8 * SHARE) == 0, "rows of whole periods of the swizzle");
        const auto load = [&](int at, int column, int row) {
            if constexpr (SHARE > 1)
                tma_load_multicast(slice + at * SLICE, map, barrier, column, row, batch, sharers);
            else
                tma_load(slice + at * SLICE, map, barrier, column, row, batch);
        };
        if constexpr (K_MAJOR) {
            constexpr int IN_BOXES = SPAN / SHARE > 256 ? 2 : 1, ROWS = SPAN / SHARE / IN_BOXES;
#pragma unroll
            for (int i = 0; i < IN_BOXES; ++i) {
                const int part = (rank * IN_BOXES + i) * ROWS;
                load(part, k, first + part);
            }
        } else if constexpr (BOXES % SHARE == 0) {
#pragma unroll
            for (int i = 0; i < BOXES / SHARE; ++i) {
                const int part = (rank * (BOXES / SHARE) + i) * DEPTH;
                load(part, first + part, k);
            }
        } else {
            const int part = rank * (DEPTH / SHARE);
#pragma unroll
            for (int i = 0; i < BOXES; ++i) load(i * DEPTH + part, first + i * DEPTH, k + part);
        }
    }
};

// A position in the ring of stages; the parity of a stage's barriers changes in every round.
template <int STAGES> struct Ring {
    int stage = 0;
    unsigned parity = 0;

    __device__ __forceinline__ void advance() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    // Past so many stages that others read.
    __device__ __forceinline__ void skip(int stages) {
        stages += stage;
        stage = stages % STAGES;
        parity ^= stages / STAGES % 2;
    }
};

}  // namespace matmul
